/* question: a program that is started, asked and listened to beside the loop.
 *
 * It runs in a process group of its own. What it prints on its standard output is the answer, up to
 * a bound; it has answered when it has ended, whoever still holds that output open. What it leaves
 * running in its group is ended with it, and it dies with the caller. */
#pragma once

#include "base/sys/loop.h"
#include "base/sys/process.h"

#include <stddef.h>

struct question;

struct question_answer {
    char *text; /* what it printed, NUL-ended; the caller may write into it, during the call */
    size_t len;
    bool too_long;     /* it printed more than bytes_max: the rest is not there */
    bool late;         /* it was ended at its deadline */
    const char *ended; /* NULL: by itself and with status 0; else a sentence: "it ended with .." */
};

/* Called once, from the loop; the question is gone by then. */
typedef void question_fn(void *arg, const struct question_answer *a);

struct question_spec {
    struct process_spawn program; /* its group, death signal and fds[1] are the question's own */
    size_t bytes_max;
    int64_t within_ns; /* it is killed then; one that cannot be is given up 10 s later */
};

/* All that a node has of its own; needs <sched.h>. */
#define QUESTION_IN_NODE (CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC)

/* Where a program runs, for its in_child: in namespaces (CLONE_NEW*) of the process behind pidfd,
 * its pids excepted, which only a further child could have, and there in cwd, or in /. */
struct question_place {
    int pidfd;      /* -1: here, in the caller's directory */
    int namespaces; /* of a node: QUESTION_IN_NODE */
    const char *cwd;
    bool privileged; /* there with the caller's rights, not those of a job (rights.h) */
};
int question_enter(void *place); /* 0 or -errno */

/* NULL with err: it could not be started, and fn is not called. */
struct question *question_ask(struct loop *l, const struct question_spec *spec, question_fn *fn,
                              void *arg, struct err *err);
/* Ends it unheard. NULL is allowed; returns NULL. */
struct question *question_abandon(struct question *q);
