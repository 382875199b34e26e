/* proc_events: the ends of all processes of the host, told by the kernel (netlink connector,
 * CN_IDX_PROC; linux/cn_proc.h, kernel documentation driver-api/connector).
 *
 * How a process has ended is told to its parent alone, and to nobody else once the parent has
 * reaped it; this is the one way in which somebody else can learn it for certain before Linux 6.15.
 * The kernel speaks to processes in the initial user, pid and network namespaces: to root, since
 * Linux 6.6 to everybody. Its numbers are of the initial pid namespace. */
#pragma once

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

struct proc_exit {
    pid_t pid, thread; /* a thread has ended; thread == pid: the process's first one */
    int status;        /* of the thread, as of waitpid */
    int64_t t_ns;      /* CLOCK_MONOTONIC, by the kernel; later than its pidfd woke */
};

/* Returns a non-blocking descriptor, readable when something has ended or was lost; the kernel
 * passes it ends only. -EPERM: not for this user or not in these namespaces; -EOPNOTSUPP: a kernel
 * without it. An ordinary user's stays open and is returned again by the next call: by then the
 * process may have moved into a user namespace of its own, from which it would be refused. */
int proc_events_open(struct err *err);
void proc_events_close(int fd); /* -1 is allowed */

/* 1: *ret is filled; 0: nothing there now; -ENOBUFS: some were lost; another -errno: broken. */
int proc_events_read(int fd, struct proc_exit *ret);
