/* sorted: where in rising things what is asked for begins. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Of n things of so many bytes each, rising by what `of` says of one: how many lie below least,
 * which is the index of the first that does not; n: all do. */
size_t lower_bound(const void *things, size_t n, size_t size, int64_t (*of)(const void *thing),
                   int64_t least);
