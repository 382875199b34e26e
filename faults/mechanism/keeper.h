/* keeper: a thread that does something to a process for as long as a fault lasts: stops it over and
 * over, or holds one of its threads.
 *
 * Of each kind of work there is one per process at most. All signals are blocked in the thread. Who
 * waits for children must do so with __WNOTHREAD, or it may be told what the keeper waits for. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct keeper;

struct keeper_work {
    /* All of these run in the thread. begin: 0 when it is in force, or a -errno with `err` set. */
    int (*begin)(struct keeper *k, struct err *err);
    void (*go_on)(
        struct keeper *k); /* until it is released or ended; NULL: there is nothing to do */
    void (*end)(struct keeper *k);
};

struct keeper_of { /* whom it is about, and how */
    pid_t pid;
    int pidfd;               /* of which a copy is kept; never used for another process */
    int64_t run_ns, stop_ns; /* duty */
    pid_t tid;               /* hold, gil */
};

/* Returns when the work is in force: 0, or what begin says, -EBUSY: the process has such a keeper,
 * -ENOSPC: there are too many, -ETIME: begin takes longer than 5 s. */
int keeper_start(const struct keeper_work *work, const struct keeper_of *of, struct err *err);
/* Releases it and returns when the work is undone; 0 also if there is none. */
int keeper_stop(const struct keeper_work *work, pid_t pid, struct err *err);

/* The process runs for run_ns, stands still for stop_ns (SIGSTOP, with its group where it leads
 * one), and so on; in the end it runs. */
extern const struct keeper_work keeper_duty;
/* One thread of it stands still, held as by a debugger; the others run. */
extern const struct keeper_work keeper_hold;

/* One thread of it has taken Python's interpreter lock, as any thread does that wants to run, and
 * stands still with it; in the end it gives it back. -ENOTSUP: the process is no Python, -EAGAIN: the
 * thread waits for a lock just now. */
extern const struct keeper_work keeper_gil;

/* For the work itself. keeper_wait: until the keeper is released or the process has ended, then
 * true; or so long, then false; below 0: for ever. */
const struct keeper_of *keeper_whom(const struct keeper *k);
/* What the work remembers between its calls; freed by free() with the keeper. */
void **keeper_memory(struct keeper *k);
bool keeper_wait(struct keeper *k, int64_t ns);
