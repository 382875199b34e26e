/* failures: whether runs fail more often than those of before. **Pure.** */
#pragma once

#include <stddef.h>

/* Fisher's exact test, one-sided: how often chance alone would put so many or more of all failures
 * among the n runs. 1 where there are no runs of one kind. */
double failures_p(size_t failed, size_t n, size_t base_failed, size_t base_n);
