/* base64: RFC 4648, as etcd's JSON gateway has keys and values. */
#pragma once

#include "agent/base/arena.h"
#include "agent/base/buf.h"

#include <stddef.h>

void base64_put(struct buf *out, const void *data, size_t n);
/* What stands for text, up to the first character that is none of base64, NUL-ended in the arena;
 * *ret_n (may be NULL) is its length without that NUL. */
char *base64_decode(struct arena *a, const char *text, size_t *ret_n);
