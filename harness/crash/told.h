/* told: what a job tells by events (scenarios/jobs/rankquake.h) while it is on a stage: when it
 * saves, where it goes on, what it has become. Nobody is held. */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct told_events;

struct told_event {
    const char *kind; /* "checkpoint-commit"; "": it has connected, and waits until this returns */
    int64_t step;     /* -1: it says none */
    const char *text; /* of done the model, of others the path; "" */
    int rank;         /* of kind "rank", who says it itself; else -1 */
    int pid;
    int64_t t_ns; /* CLOCK_MONOTONIC: when it was sent, as the kernel says */
};
typedef void told_fn(void *arg, const struct told_event *e);

/* Listens at path, which is made, or behind @ at an abstract name. NULL with err. */
struct told_events *told_new(const char *path, told_fn *fn, void *arg, struct err *err);
struct told_events *
told_free(struct told_events *t); /* NULL is allowed; removes the socket; returns NULL */
/* Readable when something has come: an epoll. */
int told_fd(const struct told_events *t);
/* Takes what has come; NULL is allowed. */
void told_take(struct told_events *t);
