/* bisection: which of several hosts spoils what they do together, found by doing it with parts of
 * them. Pure but for the question that is asked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether these of the hosts (by number, n >= 2) do it well together. */
typedef bool bisection_fn(void *arg, const size_t *v, size_t n);

/* Of n >= 2 hosts that have failed together. Returns 1 and in ret[0] the one that spoils it; 2: one of two
 * does, and there is no third to tell which; n: only all together fail, or there is more than one and
 * they cannot be told apart. ret has room for n. */
size_t bisection_find(size_t n, bisection_fn *well, void *arg, size_t *ret);
