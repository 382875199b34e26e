/* group: the local worker group inside the guard - forks, signals, the reaping of all that is
 * below.
 *
 * The guard is a subreaper, so every process that a worker leaves behind becomes its child: when
 * waitpid says that there is none, nothing of the group is alive. */
#pragma once

#include "agent/workers/guard.h"
#include "agent/workers/orders.h"
#include "base/sys/process.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum group_phase {
    GROUP_NONE,     /* nothing lives */
    GROUP_RUNNING,  /* workers live, nobody wants them to end */
    GROUP_STOPPING, /* told to end, SIGKILL at grace_at */
    GROUP_KILLING,  /* SIGKILL was sent, or only orphans are left, none of which was told to end */
};

struct worker_processes {
    enum group_phase phase;
    enum guard_reason reason;
    pid_t *pids; /* by local rank; 0: not started, or ended */
    pid_t *told; /* likewise: those that lived when the group was told to end; and their groups */
    uint32_t n;
    uint32_t alive;
    int failures; /* read end of the pipe that all workers hold until they have exec'ed; -1: none */
    bool failed;  /* at least one could not exec */
    struct arena memory; /* the launch and its children's stacks, until that pipe has ended */
    char *stacks;
    int64_t grace_at_ns; /* CLOCK_BOOTTIME */
};

struct group_events {
    void (*started)(void *arg, uint32_t local_rank, const struct process *p);
    void (*exited)(void *arg, uint32_t local_rank, pid_t pid, int status);
    void (*exec_failed)(void *arg, uint32_t local_rank, int code);
    void (*running)(void *arg);
    void (*reaped)(void *arg, enum guard_reason reason);
};

/* Starts the workers, of which there is one at least; fence_ns is looked at before each (0: there
 * is none), and when it has passed the rest is not started and those that were are killed. a holds
 * what l points to and is taken. */
void group_start(struct worker_processes *g, const struct launch_order *l, struct arena *a,
                 int64_t fence_ns, const struct group_events *ev, void *arg);
void group_signal(const struct worker_processes *g, int signo);
void group_stop(struct worker_processes *g, int signo, int64_t grace_ms);
/* SIGKILL to everything below this process. */
void group_kill_all(struct worker_processes *g, enum guard_reason reason);
/* After SIGCHLD: reaps what has ended, and follows up. */
void group_reap(struct worker_processes *g, const struct group_events *ev, void *arg);
/* After the pipe of failures became readable. */
void group_read_failures(struct worker_processes *g, const struct group_events *ev, void *arg);
