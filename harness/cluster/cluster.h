/* cluster: a plan as running nodes.
 *
 * Every node is a set of namespaces whose first process is the node helper (`rankquake node`); its
 * one network card hangs on the wire, a small process of its own that decides about every frame.
 * Helper and wire each hold one SEQPACKET socket to the harness and end, with all that is theirs,
 * when it closes: whatever happens to the harness, the kernel takes the cluster away.
 *
 * Everything is asynchronous on the harness's loop: calls begin something, callbacks say that it
 * has happened. Stamps are taken by whoever receives the callback. pids are the host's. */
#pragma once

#include "base/json.h"
#include "base/sys/folder.h"
#include "base/sys/loop.h"
#include "faults/fault.h"
#include "faults/mechanism/call_file.h"
#include "faults/mechanism/disk_rules.h"
#include "faults/mechanism/store_operation.h"
#include "harness/carrier/clock_bound.h"
#include "harness/carrier/given.h"
#include "harness/plan/plan.h"

/* RANKQUAKE_EVENTS of whatever runs in a node. */
#define CLUSTER_EVENTS_PATH "/run/rankquake/events"

/* The network card of every node. */
#define CLUSTER_CARD "eth0"

struct cluster;
struct node;

enum { CLUSTER_NODES_MAX = 64 }; /* ports of the wire */

struct wire_counters { /* of one node's port; in: towards the node */
    uint64_t frames_in, bytes_in, frames_out, bytes_out, dropped_in, dropped_out;
    uint64_t data_bytes_out; /* TCP payload of ports that are neither the store's nor listening on a
                                MASTER_PORT told by wire_bootstrap_port; retransmissions included */
    bool at_sockets; /* counted by the kernel at the nodes' own sockets: only what was dropped at
                        those that are cut, and what came to them all the same */
    bool by_table;   /* of the packets of its host, rather */
    bool in_unknown; /* who would count what is dropped on its way in has gone with the node */
    uint64_t lost;   /* by the wire itself, because it was too slow: a sick harness */
    uint64_t cut_to[CLUSTER_NODES_MAX]; /* frames from this node, dropped by a partition; by the
                                           receiver's place in cluster_nodes */
    uint64_t passed_to[PLANES_N][CLUSTER_NODES_MAX]; /* likewise, passed on, by plane */
    uint64_t bytes_to[CLUSTER_NODES_MAX];            /* bytes of all that was passed on */
    uint64_t done_to[DEEDS_N][CLUSTER_NODES_MAX];    /* likewise, what impairments did to them */
};

struct store_request { /* a node asks the store, over the wire */
    struct node *from, *to;
    enum store_operation operation;
    uint64_t waits; /* for cluster_pass_request; 0: it does not */
};

/* What a fault has done to an operation of a program on its node's disks. */
struct disk_strike {
    bool by_disk; /* told by the disk, which is ours; else a system call that waited for us */
    const char *verdict; /* disk_verdict_names */
    const char *does;    /* "fsync" */
    const char *path;
    int pid, error; /* 0: none */
};

/* A process on another host that has connected to RANKQUAKE_EVENTS there. */
struct far_client;

struct cluster_callbacks {
    void (*node_up)(void *arg,
                    struct node *n); /* helper ready, address set, agent not yet started */
    void (*node_down)(void *arg, struct node *n);
    /* The program of the node (agent or store) has exec'ed / has ended. status: a wait status. The
     * pidfd stays the cluster's and is closed after program_exited; dup it to keep it. A node that
     * is killed ends its program too: program_exited, then node_down, without leftovers. */
    void (*program_started)(void *arg, struct node *n, pid_t pid, int pidfd);
    void (*program_exited)(void *arg, struct node *n, pid_t pid, int status);
    /* It has ended, and is to run again: node_run. empty: without what it has on its disk. */
    void (*program_due)(void *arg, struct node *n, bool empty);
    void (*program_failed)(void *arg, struct node *n, const char *why); /* could not be exec'ed */
    /* A process in the node connected to RANKQUAKE_EVENTS; the callee owns fd, which does not
     * block. It keeps the node's network alive: close it when the node is down. */
    void (*client)(void *arg, struct node *n, int fd, pid_t pid);
    /* The same of one on another host, who speaks to its helper: what is returned is handed to the
     * next two. at: when it was said. became_other: it runs another program by now than
     * when it connected. */
    void *(*far_client)(void *arg, struct node *n, struct far_client *c);
    void (*far_said)(void *arg, void *client, const char *text, size_t len,
                     const struct clock_stamp *at);
    void (*far_gone)(void *arg, void *client, bool became_other);
    /* Processes of other hosts have been looked at, or have answered: see host_process.h. */
    void (*far_seen)(void *arg);
    /* What a process on another host was given (given.h), pid: its number here; 0: what the node's
     * program is about to be. */
    void (*given)(void *arg, struct node *n, pid_t pid, const struct json *given);
    /* To cluster_dump: what is said of one process of the node, and that this was all; error: why it was
     * not, or NULL. */
    void (*dumped)(void *arg, struct node *n, pid_t pid, const char *name, const struct buf *text);
    void (*dump_over)(void *arg, struct node *n, const char *error);
    /* The clock of a node's host has been asked, told once a second; b: what is known of it now. was: what was
     * known of it before, where it, or ours, has been set since; else NULL. */
    void (*clock)(void *arg, struct node *n, const struct clock_bound *b,
                  const struct clock_bound *was);
    /* Counted in the node after its program had ended: {processes, ports, shm, cgroups}. */
    void (*leftovers)(void *arg, struct node *n, const struct json *found);
    /* The answer to node_sockets: [{local, remote, state}], as sockets.h says. */
    void (*sockets)(void *arg, struct node *n, uint16_t port, int round, const struct json *found);
    /* The answer to node_inject or node_recover with this token; error is NULL when in force. */
    void (*injected)(void *arg, struct node *n, uint64_t token, const char *error);
    /* Something that the node's program has started is about to make a call that the plan asks
     * for, or on another host one that is wanted (cluster_want_calls), on a file or by its name, and waits: true when it is to wait for node_pass. */
    bool (*called)(void *arg, struct node *n, const struct watched_call *call);
    /* A fault on a disk of the node has struck an operation, one of its first. */
    void (*struck)(void *arg, struct node *n, const struct disk_strike *s);
    /* Of what cluster_watch_store asks for: true when it is to wait for cluster_pass_request, if it
     * waits. */
    bool (*asked)(void *arg, const struct store_request *r);
    void (*counters)(void *arg, struct node *n,
                     const struct wire_counters *c); /* to cluster_count */
    void (*counted)(void *arg);                      /* after the last of them */
    /* We had said nothing for so long that what lasted was undone, on a node or on the wire (who):
     * [{fault, name, error|null}], NULL where it is not told one by one. See dead_man.h. */
    void (*healed)(void *arg, const char *who, int64_t silent_ns, const struct json *undone);
    /* The power of the node's host is gone (off) or back, in so long; error: it is not, and why. Of one
     * that is back the node is about to be up. */
    void (*powered)(void *arg, struct node *n, bool off, int64_t took_ns, const char *error);
    void (*failed)(void *arg, const struct err *err); /* the harness or the host broke: once */
    /* All nodes are down and the wire has ended. left: what is still there, NULL-ended; empty: none
     */
    void (*down)(void *arg, const char *const *left);
};

/* What runs in a node; strings are copied. */
struct program {
    const char *const *argv, *const *env; /* env: NAME=value, complete; NULL-ended */
    const char *cwd;
    int log; /* stdout and stderr, open for appending; stays the caller's */
};

/* dir: the run directory, which must outlive the cluster; shared and each node's disk lie in
 * dir/scratch, which is removed at the end unless cluster_keep was called, or where the plan says. Must be called before
 * any thread or loop-owned child exists: without root it moves the process into a user namespace of
 * its own. */
struct cluster *cluster_new(const struct plan *p, const struct folder *dir, struct loop *l,
                            const struct cluster_callbacks *cb, void *arg, struct err *err);
/* So long what a node's program has left may live behind it, before it is counted as left over. */
int64_t cluster_linger_ns(const struct plan *p);
/* Starts the wire and switches on the store and the nodes that are on at start. */
int cluster_up(struct cluster *c, struct err *err);
/* Ends everything in order; `down` follows, within a deadline of 10 s. Safe to call twice. */
void cluster_down(struct cluster *c);
/* Before `down` it kills what is left without looking back. NULL is allowed; returns NULL. */
struct cluster *cluster_free(struct cluster *c);
void cluster_capture(struct cluster *c); /* before it is up: pcap/NODE.pcapng of each node's wire */
void cluster_keep(struct cluster *c);    /* leave dir/scratch where it is */

const char *
cluster_shared_dir(const struct cluster *c); /* on the host and, same path, in each node */
/* Which files nodes execute when they start our programs: bin, or copies of them in dir/scratch
 * where nodes have a root file system of their own (bundle.h). */
const char *cluster_programs(const struct cluster *c, const char *bin);
struct node **cluster_nodes(const struct cluster *c); /* as in the plan, NULL-ended */
#define cluster_each(it, c)                                                                        \
    for (struct node **it##_at = cluster_nodes(c), *it; (it = *it##_at); it##_at++)
struct node *cluster_node(const struct cluster *c, const char *name);
void cluster_count(struct cluster *c); /* asks for all counters */
/* Sets of 1 << STORE_*: which requests to the store are told, and which of them wait on the wire; in
 * force when it returns. Without a wire nothing is seen. */
void cluster_watch_store(struct cluster *c, unsigned told, unsigned held);
void cluster_pass_request(struct cluster *c, uint64_t waits);
/* "n0,n1|n2" as a group for each of cluster_nodes, -1: in none; "*" is everybody else. -EINVAL: a
 * name that is no node's, or is in two groups. */
int cluster_groups(const struct cluster *c, const char *text, int ret[CLUSTER_NODES_MAX],
                   struct err *err);
/* Traffic with this port belongs to the bootstrap plane from now on. */
void cluster_bootstrap_port(struct cluster *c, uint16_t port);

const struct plan_node *node_plan(const struct node *n);
const char *node_disk_dir(const struct node *n); /* as the host sees it */
/* Where the node sees our programs, which lie in the host's folder bin. */
const char *node_programs(const struct node *n, const char *bin);
/* As the node sees them, once it is on: its directory for what is temporary, and RANKQUAKE_EVENTS.
 */
const char *node_tmp_dir(const struct node *n);
const char *node_events_path(const struct node *n);
/* Which events make their sender wait on all hosts but this one, from now on and for nodes to come;
 * as observer_arm. */
void cluster_arm(struct cluster *c, uint32_t kinds, uint64_t next_step);
/* Asks the helpers on other hosts what all processes of their nodes are doing; each has so much time.
 * Returns how many were asked, and will say that it is over (dump_over), if only by its end. */
size_t cluster_dump(struct cluster *c, int64_t budget_ns);
/* Has helpers on other hosts say what processes were given; before it is up. */
void cluster_ask_given(struct cluster *c, const struct given_key *key);
/* Which calls of programs on other hosts are told and wait (cb.called): by their number, or, where
 * that is -1, of a kind on files of such a name, which fnmatch(3) compares. In force with the next
 * cluster_arm; the texts are copied. */
struct wanted_call {
    int number;
    enum call_kind kind;
    const char *like;
};
void cluster_want_calls(struct cluster *c, const struct wanted_call *v, size_t n);
pid_t far_client_pid(const struct far_client *c); /* its number here: host_process.h */
bool far_client_is_probe(
    const struct far_client *c);                /* its helper has seen that it runs rankprobe */
int far_client_end(const struct far_client *c); /* readable when it ends, the caller's; -1 */
void far_client_release(struct far_client *c);  /* it waits, and may go on */
void far_client_forget(struct far_client *c);   /* what it says is not told any more */
/* Has those processes of other hosts looked at that faults have been done to; far_seen follows. */
void cluster_look_far(struct cluster *c, const pid_t *pids, size_t n);
/* When what a callback tells of it has happened, by the clock of its host: while the callback lasts.
 * False: now, for all that is known; always so of nodes on our own host. */
bool node_moment(const struct node *n, struct clock_stamp *ret);
/* When it was asked to run its program the last time, by our clock: the program has done nothing earlier, however late
 * its start is told. 0: never. */
int64_t node_asked_ns(const struct node *n);

/* The page of its wall clock, as the node sees it; NULL: the plan moves no clock. */
const char *node_clock_path(const struct node *n);
/* What its programs were told of the time from since_ns of our wall clock on, or, on another host, since its
 * clock was set, as its helper last told; -ENOENT: it has no such page, or nothing was told. */
int node_clock_told(const struct node *n, int64_t since_ns, struct clock_setting *ret_setting,
                    struct clock_told *ret);
/* What a fault on its disks has done to its programs' operations, by its rule: how often, as the kernel has taken it, on
 * another host of the first each time that it was in force, and the last file. */
struct disk_done {
    int64_t count;
    char path[CALL_FILE_MAX];
    bool by_disk; /* the disk says so, which is ours; else the kernel, of system calls */
};
struct disk_done node_disk_done(const struct node *n, const struct disk_rule *rule,
                                enum node_place place, enum disk_verdict v);
/* The control group that holds what runs on it to this limit; NULL: none does. */
const char *node_cgroup(const struct node *n, enum node_limit what);
/* Where it is on another host: what the kernel there had counted in the newest such group when its helper
 * last told, "" before; else NULL. */
const char *node_far_counts(const struct node *n, enum node_limit what);
/* Partitions drop packets of its host, not what comes to its sockets. */
bool node_is_cut_by_table(const struct node *n);
/* Under which all that runs on it is looked at, where it is on another host (host_process.h); else 0. */
pid_t node_far_number(const struct node *n);
/* By how much the clocks of its program are ahead of its host's, as the kernel there says; false: it is on no other
 * host. */
bool node_uptime_there(const struct node *n, struct node_uptime *ret);
bool node_is_on(const struct node *n);
pid_t node_program_pid(const struct node *n); /* 0: not running */
bool node_is_busy(const struct node *n);      /* its program runs, or has been told to start */
int node_start(struct node *n, bool fresh_disk, struct err *err); /* node_up follows */
int node_run(struct node *n, const struct program *p, struct err *err);
/* The established TCP connections that it has with other nodes, of these planes (PLANE_*): what no
 * other socket of this host ever has in common with them, the caller's to free. 0 or a -errno;
 * -ENOTSUP on an isolation without networks of their own. */
int node_connections(struct node *n, unsigned planes, uint64_t **ret, size_t *ret_n,
                     struct err *err);
/* Asks for the sockets that have this TCP port at an end; round comes back with the answer. */
int node_sockets(struct node *n, uint16_t port, int round, struct err *err);
/* The node as a whole. A FAULT_IN_NODE fault aimed at it hits the node's program instead. */
void node_target(struct node *n, struct target *ret);
int node_agent_target(struct node *n, struct target *ret); /* -ESRCH: not running */
/* Runs a FAULT_IN_NODE fault on a process of the node; t->pidfd travels to the helper. */
int node_inject(struct node *n, const struct fault *f, const struct target *t,
                const struct fault_args *a, uint64_t token, struct err *err);
int node_recover(struct node *n, const struct fault *f, const struct target *t,
                 const struct fault_args *a, uint64_t token, struct err *err);
/* Of a call that waits: its files, as call_file_paths has them, and how much of one there is, as its process
 * sees it; -1: nobody knows. */
void node_call_paths(const struct node *n, const struct watched_call *call,
                     char from[CALL_FILE_MAX], char to[CALL_FILE_MAX]);
int64_t node_call_bytes(const struct node *n, const struct watched_call *call, const char *file);
/* Lets a call go on that was to wait; one that has gone is no matter. */
void node_pass(struct node *n, const struct watched_call *call);
