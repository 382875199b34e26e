/* base64: RFC 4648, as etcd's JSON gateway has keys and values, read. agent/base/base64.h writes.
 */
#pragma once

#include "agent/base/arena.h"

#include <stddef.h>

/* What stands for text, up to the first character that is none of base64, NUL-ended in the arena;
 * *ret_n (may be NULL) is its length without that NUL. */
char *base64_decode(struct arena *a, const char *text, size_t *ret_n);
