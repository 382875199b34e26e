/* file_timer: torchelastic's file timer, by which a worker asks to be killed when a piece of its
 * work takes too long (torch.distributed.elastic.timer, FileTimerClient; torch 1.13 and newer).
 *
 * The agent makes a FIFO, whose name the workers find in TORCHELASTIC_TIMER_FILE. They write lines
 * of at most PIPE_BUF bytes into it:
 *
 *   {"version": 1, "pid": 17, "scope_id": "train.py#12", "expiration_time": 1700000000.5,
 *    "signal": 9}
 *
 * A time, in seconds since 1970 by the worker's clock, sets the timer of this process and scope, a
 * negative one takes it back. When one expires the process gets the signal of the earliest timer of
 * its that has one, once, and all its timers are forgotten. The time is turned into one by the
 * monotonic clock when the line is read: a clock that is set later changes nothing.
 *
 * Anything may be written there: lines that are none are told once, and memory is bounded. */
#pragma once

#include "base/err.h"
#include "base/sys/loop.h"

#include <stdint.h>
#include <sys/types.h>

enum { FILE_TIMER_MAX = 4096, FILE_TIMER_SCOPE = 128 };

struct file_timer;

struct file_timer_events {
    /* This process is due; scope: which piece of its work, cut to FILE_TIMER_SCOPE bytes. */
    void (*expired)(void *arg, pid_t pid, int signo, const char *scope, int64_t late_ns);
    /* Once: what the workers write is no request, or there are more timers than FILE_TIMER_MAX. */
    void (*odd)(void *arg, const char *what);
};

/* Makes the FIFO at path, in place of one that is there (of an earlier run); anything else there is
 * an error: NULL then. Strings are copied; ev must outlive it. */
struct file_timer *file_timer_new(struct loop *l, const char *path,
                                  const struct file_timer_events *ev, void *arg, struct err *err);
/* Removes the FIFO. NULL is allowed; returns NULL. */
struct file_timer *file_timer_free(struct file_timer *t);

/* This process has ended. */
void file_timer_forget(struct file_timer *t, pid_t pid);
/* All have: what they wrote and nobody read is thrown away. */
void file_timer_clear(struct file_timer *t);
