/* proc: what the kernel says of processes in /proc, their threads and their signals. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Every thread of it has been stopped. */
bool proc_stands_still(pid_t pid);
/* A thread of it is held by a tracer. */
bool proc_has_held_thread(pid_t pid);
/* Its threads, by what they do: held by a tracer, waiting in futex(2), running. */
struct proc_threads {
    int held, waiting, running;
};
struct proc_threads proc_threads(pid_t pid);
/* What a thread does: its state as in stat, and the number of the system call that it is in, -1: none. */
struct proc_thread {
    pid_t tid;
    char state;
    long call;
};
/* False: it has ended. */
bool proc_thread(pid_t pid, pid_t tid, struct proc_thread *ret);
/* The thread of it that waits in a call which reads a single byte, as the sender of a held event does.
 * False: none does. */
bool proc_waits_for_byte(pid_t pid, struct proc_thread *ret);
/* How many filters of seccomp(2) it has; -1: it has ended, or the kernel does not say. */
int proc_call_filters(pid_t pid);
/* As proc_stands_still, of all that descends from it, one at least; those that have ended do not count. */
bool proc_all_stand_still(pid_t root);

struct proc_times {            /* of all threads of it, as schedstat has them; 0: it has ended */
    int64_t ran_ns, waited_ns; /* waited: ready to run, while others ran */
};
struct proc_times proc_times(pid_t pid);
/* Of that thread of it alone; the first has the number of the process. */
struct proc_times proc_thread_times(pid_t pid, pid_t tid);

struct proc_signals { /* a bit each; signal 1 is the lowest */
    uint64_t pending, blocked, ignored, caught;
};
/* False: it has ended. */
bool proc_signals(pid_t pid, struct proc_signals *ret);
