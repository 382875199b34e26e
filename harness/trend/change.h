/* change: where in a series of times they have become longer. **Pure.** */
#pragma once

#include <stddef.h>

/* Pettitt's test: the place from which on the values lie above those before it the most, by ranks;
 * *ret_p is how often chance alone would bring as much, nearly. 0: nowhere. */
size_t change_find(const double *v, size_t n, double *ret_p);
