/* loop: the one event loop, libevent in small words.
 *
 * Single-threaded. A source is freed with loop_source_free, also from inside its own callback, and
 * at the latest with its loop. Timers are absolute CLOCK_MONOTONIC nanoseconds and precise
 * (timerfd); a timer fires once and is then disarmed. After fork the child must not touch the
 * parent's loop. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_source;
struct event_base;

enum { LOOP_READ = 1, LOOP_WRITE = 2 };

/* Priorities of libevent's own events: sources have the usual one. Those of LOOP_LAST are served
 * while there are no others, a few at a time. */
enum { LOOP_USUAL = 1, LOOP_LAST, LOOP_PRIORITIES };

typedef void loop_fd_fn(void *arg, int fd, int what); /* what: LOOP_READ | LOOP_WRITE */
typedef void loop_timer_fn(void *arg, int64_t now_ns);
typedef void loop_signal_fn(void *arg, int signo);

struct loop *loop_new(struct err *err);
struct loop *loop_free(struct loop *l);       /* NULL is allowed; returns NULL */
struct event_base *loop_base(struct loop *l); /* for evhttp */

/* Runs until loop_stop, or until no source is left. Returns 0 or a -errno. */
int loop_run(struct loop *l, struct err *err);
void loop_stop(struct loop *l);

/* From here on loop_late_ns knows. 0, or a -errno: this kernel does not tell how long a process waits for a
 * processor. */
int loop_watch_lateness(struct loop *l);
/* By how much what a callback is told of may be older than this moment: it came while the turn before was
 * served, or while we waited for a processor. Called from a callback; 0: it is not known. */
int64_t loop_late_ns(const struct loop *l);

/* Level-triggered. The fd stays the caller's; it must outlive the source. A pidfd is readable when
 * its process has ended. Never NULL (out of memory aborts). */
struct loop_source *loop_fd(struct loop *l, int fd, int what, loop_fd_fn *fn, void *arg);
void loop_fd_set(struct loop_source *s, int what); /* 0 pauses it */

struct loop_source *loop_timer(struct loop *l, loop_timer_fn *fn, void *arg); /* disarmed */
void loop_timer_at(struct loop_source *s, int64_t deadline_ns); /* past: on the next turn */
void loop_timer_off(struct loop_source *s);

/* At most one source per signal in a process. */
struct loop_source *loop_signal(struct loop *l, int signo, loop_signal_fn *fn, void *arg);

struct loop_source *loop_source_free(struct loop_source *s); /* NULL is allowed; returns NULL */
