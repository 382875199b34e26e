/* tree_model: an etcd's v2 tree in memory and in virtual time, as far as agent/legacy asks for it.
 * Of the past it keeps the last HISTORY changes, as etcd does with more. */
#pragma once

#include "agent/core/tree.h"
#include "base/arena.h"

struct tree_model;

struct tree_model *tree_model_new(void);
struct tree_model *tree_model_free(struct tree_model *m);

/* All but WAIT. What the answer points to is in the arena. */
struct tree_answer tree_model_do(struct tree_model *m, int64_t now_ns, const struct tree_request *q,
                                 struct arena *a);
/* The answer to a WAIT, if there is one yet. arrives: it is asked for the first time; only then can
 * it be too late for what it wants to know. */
bool tree_model_wait(struct tree_model *m, const struct tree_request *q, bool arrives,
                     struct tree_answer *ret, struct arena *a);
/* Takes away what has expired; returns when the next does, INT64_MAX: never. */
int64_t tree_model_expire(struct tree_model *m, int64_t now_ns);
/* The value of a key, or NULL. */
const char *tree_model_get(const struct tree_model *m, const char *key);
