/* parts: how cluster, node and wire_link lie together; of this room only. */
#pragma once

#include "base/list.h"
#include "base/sys/process.h"
#include "base/texts.h"
#include "faults/mechanism/wire_rules.h"
#include "harness/cluster/bundle.h"
#include "harness/cluster/cgroups.h"
#include "harness/carrier/carrier.h"
#include "harness/cluster/cluster.h"
#include "harness/cluster/layer.h"
#include "harness/cluster/limit_group.h"

enum node_state {
    NODE_OFF,
    NODE_SETUP,  /* its helper arranges the namespaces */
    NODE_WIRING, /* the wire makes its network card */
    NODE_ON,
};

struct host_link; /* a node's way to its host: host_link.h */
struct power;     /* of a node's host: power.h */
struct cut;       /* of nodes that are processes: cut.c */
struct far_cut;   /* of nodes on other hosts: far_cut.h */
struct far_rules; /* of the disks of one: far_rules.h */

/* How nodes are made and kept apart: one const struct each, in namespaces.c and processes.c. What
 * may be NULL has nothing to do there. */
struct isolation_ops {
    /* First thing of a cluster; then, before its first node. */
    int (*enter)(struct cluster *c, struct err *err);
    int (*begin)(struct cluster *c, struct err *err);
    /* Starts the helper: init and ends of the node. */
    int (*spawn)(struct node *n, struct err *err);
    void (*put_setup)(const struct node *n, struct json_writer *w);
    /* The helper has arranged the node: what is missing is brought on its way, or the node is on.
     */
    int (*ready)(struct node *n, struct message *m, struct err *err);
    void (*kill)(struct node *n);   /* every process at once; the helper's end follows */
    void (*ended)(struct node *n);  /* its helper has */
    void (*forget)(struct node *n); /* its sockets: what holds on to a life that is over */
    /* All helpers have ended: true when there is nothing else to wait for. */
    bool (*settled)(struct cluster *c);
    /* Adds what is left of it at last. */
    void (*look)(struct cluster *c, struct texts *left);
    void (*free)(struct cluster *c);
    void (*count)(struct cluster *c);
    void (*bootstrap)(struct cluster *c, uint16_t port); /* may be NULL */
    /* The mechanisms that node_ops are made of (node.c). Nothing of what fails is in force. */
    int (*silence)(struct node *n, bool on, struct err *err);
    int (*link)(struct cluster *c, struct err *err); /* brings all partitions in force, no others */
    bool impairs;                                    /* it can do more than cut */
    bool uptimes;                                    /* a node can have others than the host's */
    int (*destroy_sockets)(struct node *n, struct err *err);
    int (*forget_connections)(struct node *n, unsigned planes, struct err *err); /* NULL: cannot */
};
extern const struct isolation_ops isolation_namespaces, isolation_processes, isolation_hosts;

/* What a node that is processes has in the scratch directory, behind its name. */
#define PROCESSES_TMP    ".tmp"
#define PROCESSES_EVENTS ".events"

enum { ADDRESS_PREFIX = 24 };

struct node {
    struct cluster *cluster;
    const struct plan_node *plan;
    int port;                  /* of the wire: the node's place in the plan */
    char *disk, *tmp, *events; /* tmp and events: as the node sees them */
    enum node_state state;
    bool killed;      /* by us: its end is no surprise */
    bool asked;       /* to run its program, and has not said yet what came of it */
    int64_t asked_ns; /* when it was asked last */
    bool again;       /* its program is run again when it has ended */
    bool empty;       /* likewise, without what it has on its disk */
    int64_t again_ns; /* likewise, so long after */
    bool silent;      /* it has lost its power */
    bool wired;       /* the wire has a card whose other end is in the node's network */
    struct process init;
    struct carrier *control;  /* NULL: it is off */
    bool greeted;             /* the helper has said hello */
    bool bade;                /* it has said bye, and because the harness had ended it */
    struct carrier_ends ends; /* that isolation_ops.spawn has made, until `control` has them */
    int listener;
    int diag; /* kept after the node's end, to destroy the sockets it left; keeps its network */
    struct loop_source *on_listener, *on_end, *on_late, *on_again;
    int clock;          /* the page of its wall clock; -1: it has none */
    char *clock_path;   /* as the node sees it; NULL: none */
    bool clock_shifted; /* a fault has it be wrong */
    struct far_clock {  /* on another host: what its helper has told; generation 0: nothing */
        struct clock_setting setting;
        struct clock_told told;
    } far_clock;
    struct node_uptime uptime; /* of this life */
    struct node_uptime
        uptime_there; /* on another host: that its program has, as the kernel there says */
    struct process program;
    struct limit_group limits[NODE_LIMITS_N]; /* that hold what runs on it to one */
    char *counted
        [NODE_LIMITS_N]; /* on another host: what its kernel said last of the newest such; NULL */
    int watch;           /* of the calls of its program that wait for us; -1: none */
    struct loop_source *on_watch;
    struct host_link *link;      /* NULL: the node is on this host */
    struct power *power;         /* NULL: nobody ever took its host's */
    struct node_disk *faulty;    /* node_disk.c: what faults do to its disks; NULL: none ever did */
    struct far_rules *far_rules; /* far_rules.h: those in force, where its helper does it */
};

/* The wire as the harness sees it: its process and its socket. */
struct wire_link {
    struct process process; /* pid 0: never started, or ended */
    int fd;
    int64_t last_id;
    unsigned told, held; /* of what the store is asked */
    struct list queue;   /* answers that came while another one was waited for */
    struct loop_source *on_message, *on_end, *on_queue;
};

/* The process that serves the disks of nodes, where the plan wants such. */
struct disk_link {
    struct process process; /* pid 0: never started, or ended */
    int control;
    struct loop_source *on_end, *on_message, *on_queue;
    struct message *queue; /* that came while an answer was waited for */
    size_t queue_n;
};

struct cluster {
    const struct plan *plan;
    const struct isolation_ops *isolation;
    struct loop *loop;
    struct cluster_callbacks cb;
    void *arg;
    const struct folder *run; /* by which we write in there; the paths are for nodes and people */
    char *dir, *scratch, *disk_root, *shared; /* disk_root: what {shared} and the disks lie in */
    struct texts keep;                        /* paths of the host that must be seen in nodes */
    struct texts show;     /* the same for nodes that have a root file system of their own */
    struct texts writable; /* those that are the job's to write wherever they lie */
    bool as_root;          /* nodes have root's rights on the host, unless they are taken */
    struct bundle bundle;  /* what goes along into those */
    bool keep_scratch, captures;
    struct node **nodes;
    size_t nodes_n;
    struct wire_link wire;
    struct disk_link disks;
    struct cut *cut;
    struct far_cut *far_cut;    /* NULL: no node is on another host */
    uint32_t armed_kinds;       /* on other hosts */
    struct wanted_call *wanted; /* likewise: far_calls.h */
    size_t wanted_n;
    char given[GIVEN_KEY_TEXT]; /* likewise, as `setup` says it; "": nobody wants to know */
    uint64_t armed_step;
    struct wire_rules sorting; /* into planes, as the wire does it */
    struct list partitions;    /* that are in force */
    int64_t partitions_made;
    struct texts before;   /* the cgroups that there were when the run began */
    struct texts left;     /* what helpers could not take along */
    struct texts cgroups;  /* that processes of a node were seen in */
    struct process keeper; /* of the cgroups that we make; pid 0: none was made yet */
    int keeper_control;
    struct layer *layer; /* NULL: what the job writes stays */
    bool has_failed, going_down, is_down;
    struct loop_source *on_deadline, *on_beat;
};

/* Starts our own program as `VERB FD`, with one end of a channel; the other end, non-blocking, is
 * *ret_control. In new namespaces it dies with the harness; without (clone_flags 0) it lives on, to
 * clear up, until it sees that the channel is closed. */
int cluster_spawn(const char *verb, int clone_flags, struct process *ret, int *ret_control,
                  struct err *err);
/* The same for a node helper, with one end of a carrier and its lane. */
int cluster_spawn_helper(int clone_flags, struct process *ret, struct carrier_ends *ret_ends,
                         struct err *err);
void cluster_failed(struct cluster *c, const struct err *err);
/* The same of what is no consequence of taking it down. */
void cluster_lost(struct cluster *c, const struct err *err);
/* The harness had been silent for too long: what of the cluster has undone what lasted there. */
void cluster_healed(struct cluster *c, const char *who, const struct json *said);
/* A node helper has ended, and this it could not take along. */
void cluster_left(struct cluster *c, const char *who, const struct json *left);
/* A process of a node was in this cgroup. */
void cluster_saw_cgroup(struct cluster *c, const char *path);
/* Something has ended: goes on with cluster_down as far as it can. */
void cluster_settle(struct cluster *c);

/* The host's paths that a node must see although they may lie in a directory it has for itself. */
struct texts visible_paths(const struct plan *p, const char *dir);
/* Those that a node with a root file system of its own sees, its own folders left out. */
struct texts visible_shown(const char *dir);
/* The caller's directory and the run directory, which nodes write to wherever they lie. */
struct texts visible_writable(const char *dir);

/* A message to the helper: begun, and sent with what was put. */
struct json_writer node_say(struct buf *text, const char *op);
int node_say_send(struct node *n, struct buf *text, struct json_writer *w, struct err *err);

struct node *node_new(struct cluster *c, const struct plan_node *plan, int port);
struct node *node_free(struct node *n);
void node_kill(struct node *n);
void node_failed(struct node *n, struct err *err);
int node_say_net(struct node *n, struct err *err);   /* eth0 is there */
void node_beat(struct node *n);                      /* says that we are there */
void node_handle(struct node *n, struct message *m); /* what its helper says */
void node_up(struct node *n);                        /* it is on: told to whom it concerns */
void node_wired(struct node *n, const char *error);  /* the wire's answer to wire_link_add_port */

/* Makes the page of its wall clock for a new life, where the plan moves clocks: clock.c. */
int node_clock_make(struct node *n, struct err *err);
bool node_clock_is_wanted(const struct node *n);
int node_clock_shift(struct node *n, const struct clock_shift *shift, struct err *err);
void node_clock_close(struct node *n);

/* Which calls the plan wants to see of this node, as members of its setup (node_helper.h). */
void calls_put(const struct node *n, struct json_writer *w);
/* Takes the descriptor of a call_watch, in place of the one before; -1: none any more. */
void calls_watch(struct node *n, int fd);

/* node_disk.c. The rule as it is in force: with its root, where the place lies. 0, or -ENAMETOOLONG. */
int node_disk_place(const struct node *n, enum node_place place, struct disk_rule *rule,
                    struct err *err);
/* As struct node_ops has it. */
int node_disk_rule(struct node *n, const struct disk_rule *rule, enum node_place place, bool on,
                   struct err *err);
/* True: a fault decides about this call, and it has been dealt with. */
bool node_disk_call(struct node *n, const struct watched_call *c);
/* What the disk has told of a rule of ours (disk_keeper.h). */
void node_disk_struck(struct cluster *c, const struct json *m);
/* The same of its helper on another host (node_helper.h, `struck`). */
void node_disk_struck_there(struct node *n, const struct json *m);
/* The rules that are in force, for the disks of a new life. */
int node_disk_again(struct node *n, struct err *err);
void node_disk_watch(struct node *n); /* n->watch is another one: who waited has gone */
void node_disk_free(struct node *n);

/* isolation_ops.forget_connections of namespaces. */
int connections_forget(struct node *n, unsigned planes, struct err *err);

/* node_limits.c: as struct node_ops has it. */
int node_limit(struct node *n, enum node_limit what, int64_t value, struct err *err);
int node_unlimit(struct node *n, enum node_limit what, struct err *err);
void node_unlimit_all(struct node *n);
/* Lifts all, and their keeper ends; -EBUSY: one of their cgroups stays. */
int node_limits_end(struct cluster *c);
void node_limits_beat(struct cluster *c);

/* disk_link.c. Mounts for a new life of the node, of its disk and of the shared directory, the
 * caller's; -1: the plan wants none. Then, when it is off: what it had not synced is lost. */
bool disk_link_is_wanted(const struct cluster *c);
int disk_link_mount(struct node *n, int ret_mounts[2], struct err *err);
int disk_link_off(struct node *n, struct err *err);
int disk_link_rule(struct node *n, const struct disk_rule *rule, enum node_place place, bool on,
                   struct err *err);
/* What the disks have told while an answer was waited for. */
void disk_link_hear(struct cluster *c);
/* It is about to be killed: whoever waits for a rule goes on. */
void disk_link_let_go(struct node *n);
void disk_link_end(struct cluster *c);

struct partition {
    struct list link;
    bool cut;              /* nothing passes; else how it does */
    struct impairment how; /* of a cut only planes and direction */
    int64_t id;            /* of those in force each has another */
    int64_t since_ns;      /* in force; by the monotonic clock */
    int group[CLUSTER_NODES_MAX];
};

/* Adds n partitions of the nodes, or takes those like them away, and brings all of them in force at
 * once. */
int partition_set(struct cluster *c, const char *groups, const struct impairment *how, size_t n,
                  bool cut, bool on, struct err *err);
void partitions_free(struct cluster *c);

int wire_link_start(struct cluster *c, struct err *err);
void wire_link_end(struct cluster *c); /* lets it end by itself */
struct wire_link *wire_link_fini(struct wire_link *l);
int wire_link_add_port(struct cluster *c, struct node *n, int netns, struct err *err);
/* Returns when the rule is in force. */
int wire_link_silence(struct cluster *c, struct node *n, bool on, struct err *err);
/* Tells the wire of all partitions; returns when they are in force, and no others. */
int wire_link_partitions(struct cluster *c, struct err *err);
void wire_link_bootstrap(struct cluster *c, uint16_t tcp_port);
void wire_link_count(struct cluster *c);
void wire_link_beat(struct cluster *c); /* says that we are there */
