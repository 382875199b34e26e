/* signal_events: every signal that ends, stops or continues a process of the host, told by the
 * kernel as it is sent (the tracepoint signal:signal_generate, read by perf_event_open(2)).
 *
 * No other source sees who sends what to a process that is not its child: the target may be a
 * static program, may ignore the signal, and nothing is done to it or to the sender. The kernel
 * tells root alone (CAP_PERFMON), and in the numbers of the first pid namespace, so that a caller
 * in another one is refused. What is open ends with the process; nothing is left on the host. */
#pragma once

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

struct signal_event {
    int64_t t_ns; /* CLOCK_MONOTONIC, by the kernel */
    int signo;    /* HUP, INT, QUIT, KILL, TERM, CONT, STOP or TSTP */
    pid_t to, by; /* to: of a signal to a process as a whole, its own number */
};

struct signal_events;

/* -EPERM or -ENOTSUP with what would help. */
struct signal_events *signal_events_open(struct err *err);
struct signal_events *signal_events_close(struct signal_events *s); /* NULL is allowed */
int signal_events_fd(const struct signal_events *s); /* readable when there may be some */
/* 1: *ret is filled; 0: nothing there now; -ENOBUFS: some were lost. Those of one processor come in
 * their order. */
int signal_events_read(struct signal_events *s, struct signal_event *ret);
