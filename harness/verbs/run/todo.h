/* todo: how many runs there will be, and how far they are. */
#pragma once

#include "harness/verbs/run/asked.h"

/* How often each seed of the file is run. */
int64_t todo_each(const struct run_request *q, const struct selected *l);
/* All runs of it, INT64_MAX where they go on until one fails. arg: the request. */
int64_t todo_of(const void *arg, const struct selected *l);
void todo_count(struct run_request *q);
void todo_begin(struct run_request *q);
/* done runs have ended. l: the one that is about to run, or has just ended; NULL: none yet. */
void todo_tell(struct run_request *q, const struct selected *l, int64_t done);
void todo_less(struct run_request *q, const struct selected *l); /* one of it less */
