/* orders: what agent and guard say to each other, over one SOCK_SEQPACKET socket of one machine and
 * one build: plain structs. A group to start travels in a memfd, because it has no bound that a
 * message could keep. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* LIFELINE brings a descriptor for the groups that START makes from then on. */
enum order_kind {
    ORDER_LIFELINE,
    ORDER_START,
    ORDER_DEADLINE,
    ORDER_STOP,
    ORDER_KILL,
    ORDER_SIGNAL
};

/* Agent to guard. */
struct order {
    enum order_kind kind;
    int signo;        /* STOP, SIGNAL */
    int64_t grace_ms; /* STOP */
    int64_t fence_ns; /* DEADLINE, START: CLOCK_BOOTTIME; 0: none */
    int64_t hard_ns;  /* DEADLINE, START */
};

enum report_kind {
    REPORT_STARTED,
    REPORT_RUNNING,
    REPORT_EXEC_FAILED,
    REPORT_EXITED,
    REPORT_REAPED
};

/* Guard to agent. */
struct guard_report {
    enum report_kind kind;
    int local_rank;
    int pid;             /* STARTED, EXITED; STARTED brings the pidfd */
    int status;          /* EXITED: wait status; EXEC_FAILED: -errno; REAPED: enum guard_reason */
    int64_t realtime_ns; /* EXITED */
};

/* Both -EAGAIN when the other side does not keep up, -EPIPE when it is gone. fd -1: none. */
int order_send(int sock, const void *message, size_t size, int fd);
/* Whether what order_send returned means that the same may be sent later: the other side does not keep up, or
 * the kernel has no room just now. */
bool order_may_go_later(int code);
/* 1 for a message, 0 at the end, -EAGAIN when there is none. *ret_fd is the receiver's. */
int order_receive(int sock, void *message, size_t size, int *ret_fd);

/* A local worker group as the guard needs it: everything is settled but the forks. */
struct launch_worker {
    char **argv;
    char **env;            /* NAME=value, over the guard's own environment */
    const char *out, *err; /* files for stdout and stderr; "": inherited */
};
struct launch_order {
    bool deadline_required;
    const char *scratch; /* to be removed when agent and workers are gone; "": nothing */
    bool sandbox;        /* --sandbox: the guard does its part of the confinement */
    uint32_t n;
    struct launch_worker *workers;
    int lifeline; /* the guard's; 0: none. Does not travel with the rest */
};

/* A memfd that holds it. */
int launch_write(const struct launch_order *l, int *ret_fd, struct err *err);
/* Takes fd. */
int launch_read(int fd, struct arena *a, struct launch_order *ret, struct err *err);
