/* base64: RFC 4648 with padding, as etcd's JSON gateway writes keys and values. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

void base64_put(struct buf *out, const void *p, size_t n);
/* Appends the decoded bytes; false (and out as it was) when text is no base64. */
bool base64_take(struct buf *out, const char *text, size_t n);

/* Both of a text without a NUL, in the arena; plain: NULL when text is no base64. */
const char *base64_coded(struct arena *a, const char *text);
const char *base64_plain(struct arena *a, const char *text);
