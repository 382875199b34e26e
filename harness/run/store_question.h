/* store_question: what rankquake inquire is asked of the store that a node serves.
 *
 * A process of its own asks, in the network of that node, so that no cut keeps the question from it,
 * and it shows the token of the run. */
#pragma once

#include "harness/observe/question.h"
#include "harness/run/engine.h"

enum { STORE_ANSWER_MAX = 4096, STORE_ANSWER_WITHIN_MS = 3000 };

/* argv: "rankquake", "inquire", what is asked, the store's address, its port, ... and NULL, read
 * during the call alone. fn, arg: as question_ask's. The caller owns the question.
 * NULL with err: it could not be started, and fn is not called. */
struct question *store_question_ask(struct engine *e, struct node *n, const char *const *argv,
                                    question_fn *fn, void *arg, struct err *err);
