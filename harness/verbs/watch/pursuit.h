/* pursuit: the history of a run as it is written, and of one that has ended to its end. The kernel tells
 * of what is added (inotify), and of the end of the harness that writes it (pidfd): nothing is looked at
 * again after a while. The control run, which has a history of its own, comes first where there is
 * one going on. */
#pragma once

#include "base/sys/folder.h"
#include "base/sys/loop.h"
#include "harness/history/history.h"

struct pursuit;

struct pursuit_calls {
    /* Another history begins; the records of the one before are gone when this returns. */
    void (*begin)(void *arg);
    void (*record)(void *arg, const struct record *r);
    /* All that there was has been told for now. */
    void (*rest)(void *arg);
    /* Nothing more will come; why: NULL, or a sentence when the end of the history is missing. */
    void (*end)(void *arg, const char *why);
    void *arg;
};

/* run must outlive it. NULL with err: there is no history, or the kernel gives no inotify. The calls are
 * made from the loop. */
struct pursuit *pursuit_new(struct loop *loop, const struct folder *run,
                            const struct pursuit_calls *calls, struct err *err);
struct pursuit *pursuit_free(struct pursuit *f); /* NULL is allowed; returns NULL */
