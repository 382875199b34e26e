/* manual: the manual page of ranktrain, and what shells complete, both of the table of options. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What stands in front of the options and behind them. */
extern const char manual_about[], manual_after[];

/* The word by which a shell asks, before all others. */
#define MANUAL_WORDS "--words"

void manual_print(void);
/* The lines for a shell; false, with a sentence on standard error: there is no such shell. */
bool manual_print_script(const char *shell);
/* What can stand where the last of n words stands; the first is "--". Returns an exit status. */
int manual_print_words(const char *const *words, size_t n);
