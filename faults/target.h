/* target: all a fault knows of the world. Plain data, filled by harness/cluster or by the node
 * helper; the fds stay theirs. */
#pragma once

#include "base/err.h"
#include "base/sys/folder.h"
#include "faults/mechanism/clock_page.h"
#include "faults/mechanism/disk_rules.h"
#include "faults/mechanism/impairment.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum target_kind {
    TARGET_NODE = 1,
    TARGET_AGENT = 2,
    TARGET_WORKER = 4,
    TARGET_STORE = 8,
    TARGET_RACK = 16, /* all nodes of one or more racks, never some of them */
};

/* What the processes of a node may have together, as a control group says it. */
enum node_limit {
    NODE_LIMIT_CPU,    /* percent of one processor */
    NODE_LIMIT_MEMORY, /* bytes on top of what they have */
    NODE_LIMIT_PIDS,   /* processes and threads on top of those that there are */
    NODE_LIMITS_N,
};

/* Where a job's files lie. */
enum node_place { NODE_SHARED, NODE_DISK };

struct node_uptime { /* by how far a node's clocks are ahead of the host's; below 0: behind */
    int64_t monotonic_ns, boottime_ns;
};

/* What can be done to a whole node from outside. Each returns 0 or a -errno. Calls that take time
 * (start) return when they have begun; the caller of the fault watches for the effect. */
struct node_ops {
    int (*kill)(void *node, struct err *err); /* every process at once */
    /* Begins to take the power of its host, by a command of whoever operates that. Returns
     * -EINPROGRESS, and what came of it is told where the node's end is; -ENOTSUP: there is no such
     * command, and nothing was done; or another -errno. `start` gives it back. May be NULL. */
    int (*cut_power)(void *node, struct err *err);
    int (*silence)(void *node, bool on, struct err *err); /* the wire drops all of its frames */
    /* Closes or opens the planes and directions of `how` between groups of nodes, "n0,n1|n2"; a
     * group "*" is everybody who is named in no other. Who is in no group keeps all links. */
    int (*part)(void *node, const char *groups, const struct impairment *how, bool on,
                struct err *err);
    /* The same for frames that arrive, but not as they were sent: all `n` at once. */
    int (*impair)(void *node, const char *groups, const struct impairment *how, size_t n, bool on,
                  struct err *err);
    /* The node's established connections with other nodes, of these planes, are gone for it; its
     * kernel sends each peer a RST. Returns how many there were, or a -errno. */
    int (*forget_connections)(void *node, unsigned planes, struct err *err);
    int (*destroy_sockets)(void *node, struct err *err); /* orphans of a dead node, after silence */
    int (*start)(void *node, bool fresh_disk, struct err *err);
    /* The same with its disk, and with uptimes that are not the host's: so far ahead of it. */
    int (*start_at)(void *node, const struct node_uptime *uptime, struct err *err);
    /* Its wall clock is so wrong from now on; NULL: right again. */
    int (*shift_clock)(void *node, const struct clock_shift *shift, struct err *err);
    /* Puts what runs on the node into a control group that has the limit, and takes it out again.
     * -ENOTSUP: no control group of that kind can be had here, and nothing was done. */
    int (*limit)(void *node, enum node_limit what, int64_t value, struct err *err);
    int (*unlimit)(void *node, enum node_limit what, struct err *err);
    /* Leaves a file on the node: `path` is one of its disk, or where nodes are namespaces an
     * absolute one below /tmp or /run. */
    int (*leave_file)(void *node, const char *path, const char *text, struct err *err);
    /* Opens its disk, or the directory that all nodes share: where it lies on the host, or inside: as
     * the programs of the node see it, as far as it is on. */
    int (*open_place)(void *node, enum node_place place, bool inside, struct folder *ret,
                      struct err *err);
    /* What its cloud's metadata service says from now on, where it has one; else nothing is done. */
    int (*tell_cloud)(void *node, const char *cloud, const char *text, struct err *err);
    /* What the node's programs do to its disk, or to the shared directory, gets what the rule says;
     * root is filled in. Off: as it was, and who waits goes on. */
    int (*disk_rule)(void *node, const struct disk_rule *rule, enum node_place place, bool on,
                     struct err *err);
    /* A signal to its program, the agent or what serves the store. */
    int (*signal_program)(void *node, int signo, struct err *err);
    /* Once its program, which is about to end, has ended: runs the same command line so long after
     * that, with what the program has on its disk or with nothing. */
    int (*run_again)(void *node, bool empty, int64_t after_ns, struct err *err);
};

struct target {
    enum target_kind kind;
    char name[64]; /* "n2", "agent of n2", "n2/0 (rank 4)" */
    pid_t pid;     /* in the pid namespace of whoever runs the fault */
    int pidfd;     /* of the worker, of the agent, of the node's first process; -1: off */
    /* What the worker has announced as a region of that name (struct fault, .region); bytes 0: it
     * has not. Of a process that may be a child of the worker. */
    struct {
        pid_t pid;
        uint64_t address, bytes;
    } region;
    int keep; /* an empty file of the run's directory (struct fault, .keeps); 0: none */
    /* How a store is asked, from the node that serves it; port 0: nobody asked. What our own client
     * read there before the fault, if its evidence is such a reading. */
    struct {
        char address[64];
        int port;
        char token[64]; /* that it wants to be shown; "": none */
        int64_t number;
    } store;
    bool far; /* on another host: its node's helper strikes it (ops.signal_program) */
    const struct node_ops *ops; /* of a node, or of what serves the store; only in the harness */
    void *node;
};

/* Sends signo; -ESRCH when the target is not running, waited for or not. */
int target_signal(const struct target *t, int signo, struct err *err);
/* Waits until the target has ended, at most some seconds: after SIGKILL only a process that hangs
 * in the kernel takes longer. */
int target_wait_end(const struct target *t, struct err *err);
