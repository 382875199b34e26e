/* refusal: what a store says in place of an answer, and what is to be done about it. */
#pragma once

#include "agent/base/arena.h"
#include "agent/base/buf.h"

#include <stdbool.h>

/* etcd's own words, and what to do about them. */
const char *refusal_advise(struct arena *a, const char *text);
/* For what came as an answer and is none of an etcd's gateway. */
const char *refusal_of_stranger(struct arena *a, long status, const struct buf *body);

/* text: the error in the answer; NULL: there was none. */

/* The token is not taken any more: it may be asked for again, and then the same. Nothing has been
 * done. */
bool refusal_is_of_token(long status, const char *text);
/* The store has judged the request, and asking again would not help. */
bool refusal_is_final(long status, const char *text);
