/* arguments: numbers that several faults take, each with its unit. `absent` is the text where the
 * scenario says nothing. All return 0, or -EINVAL with what may be written; fault_program_signal
 * returns the signal instead of 0. */
#pragma once

#include "faults/fault.h"

int fault_share(const struct fault_args *a, const char *key, const char *absent, int64_t *ret_ppm,
                struct err *err); /* "0.5%", of more than nothing and at most 100% */
int fault_rate(const struct fault_args *a, const char *key, const char *absent, int64_t *ret_bit_s,
               struct err *err); /* "10mbit", as tc(8) writes it, of 8kbit to 100gbit */
int fault_count(const struct fault_args *a, const char *key, const char *absent, int64_t min,
                int64_t max, int64_t *ret, struct err *err);
int fault_duration(const struct fault_args *a, const char *key, const char *absent, int64_t max_ns,
                   int64_t *ret_ns, struct err *err); /* not 0 */
/* "signal" to an agent or a store, but none that stops it: `hang` is the fault that undoes that. */
int fault_program_signal(const struct fault_args *a, int absent, const char *hang, struct err *err);
