/* canonical: the one way to write a JSON value, so that its bytes can be signed (RFC 8785).
 *
 * Members are sorted by their names' UTF-16 code units, there is no blank and no line feed, a text
 * has only the escapes that it must have, and is UTF-8. Numbers are whole ones of at most 2^53 - 1:
 * how a fraction is written differs too much between programs. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

#include <stddef.h>

/* Appends the value. -EBADMSG with a sentence: a fraction, a number too large, a name that an
 * object has twice; out is then of no use. */
int canonical_put(const struct json *j, struct buf *out, struct err *err);

/* Reads a text that must be canonical already, byte for byte. The tree is the arena's. NULL:
 * err says at which byte it is something else. */
const struct json *canonical_read(struct arena *a, const char *text, size_t len, struct err *err);
