/* interpreter: which Python a launcher runs on, and what it has. Private to this room. */
#pragma once

#include "harness/plan/plan.h"

/* The word names a Python, by its path or without. */
bool interpreter_is_python(const char *word);

/* The interpreter that the beginning of a script names; NULL: none that is a Python. */
const char *interpreter_of_head(struct arena *a, const char *head);

/* What a script of Python's prints there, on a node; false: nothing, or it could not be started. */
bool interpreter_say(const struct plan *p, const char *path, const char *script, char *ret,
                     size_t size);

/* The words of a launcher of torchrun's kind and its Python, into p->launcher and p->python.path,
 * without asking anybody. 0, or -ENOENT with the sentence. */
int interpreter_find(struct plan *p, struct err *err);

/* The Python that is asked for them; NULL: the job has none. */
const char *needs_python(const struct plan *p);
/* Whether its Python has the modules that the job needs: 0, or -ENOTSUP with the sentence. In a
 * plan of somebody else's it is not asked. */
int needs_check(const struct plan *p, struct err *err);

/* Asks it, on a node; version and torch stay "" when it does not answer or has none. */
void interpreter_ask(const struct plan *p, const char *path, struct python *ret);
