/* system_calls: the names of system calls that can be waited for, and their numbers on this
 * machine. */
#pragma once

/* In alphabetical order, NULL-ended. */
extern const char *const system_call_names[];
/* Below 0: it is none of them, or one that machines of this kind do not have. */
int system_call_number(const char *name);
/* Why a call that there is cannot be waited for, a phrase; NULL: it is none of those. */
const char *system_call_why_not(const char *name);
