/* scheduler_question: what the scheduler in the nodes is asked of one of them.
 *
 * A client of its own asks, in the namespaces of that node, as an operator would who is signed in
 * there. */
#pragma once

#include "harness/observe/question.h"
#include "harness/run/engine.h"

/* How long an answer may take: a controller that starts again answers late. */
enum { SCHEDULER_ANSWER_WITHIN_MS = 15000 };

/* fn, arg: as question_ask's; the answer is for scheduler_question_drains. The caller owns the
 * question. NULL with err: it could not be started, and fn is not called. */
struct question *scheduler_question_ask(struct engine *e, struct node *n, question_fn *fn,
                                        void *arg, struct err *err);

/* Whether Slurm gives a node no more jobs, of what it answered: 1, 0, or -1: it says no state. */
int scheduler_question_drains(const char *answer);
