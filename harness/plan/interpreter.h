/* interpreter: which Python a launcher runs on, and what it has. Private to this room. */
#pragma once

#include "harness/plan/plan.h"

/* The program of this name as exec looks for it in path, on a node; NULL: there is none. */
char *interpreter_find(struct plan *p, const char *name, const char *path);

/* The interpreter that the beginning of a script names; NULL: none that is a Python. */
const char *interpreter_of_head(struct arena *a, const char *head);

/* Asks it, on a node; version and torch stay "" when it does not answer or has none. */
void interpreter_ask(const struct plan *p, const char *path, struct python *ret);
