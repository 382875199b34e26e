/* codec: the values of a job's keys (agent/core/keys.h) as one line of JSON each, as they lie in
 * the store: {"seq":12}. Fields that are zero or empty are left out; enums are words, times end in
 * _ns. A reader ignores fields it does not know, so that a later rankrun may write more. */
#pragma once

#include "agent/core/keys.h"
#include "agent/core/kv.h"
#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>

/* kind is not KEY_INCARNATION. */
void codec_put(struct buf *out, enum key_kind kind, const union value *v);
/* The same, in an arena. */
struct kv_bytes codec_bytes(struct arena *a, enum key_kind kind, const union value *v);

/* Returns 0, or -EPROTO with a sentence: no JSON, a field of another type, a word that is none, a
 * string too long. *ret is written whole, and only on success. */
int codec_take(enum key_kind kind, const char *text, size_t n, union value *ret, struct err *err);
