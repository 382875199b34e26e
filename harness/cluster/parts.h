/* parts: how cluster, node and wire_link lie together; of this room only. */
#pragma once

#include "agent/base/list.h"
#include "agent/sys/process.h"
#include "harness/cluster/baggage.h"
#include "harness/cluster/channel.h"
#include "harness/cluster/cluster.h"

enum node_state {
    NODE_OFF,
    NODE_SETUP,  /* its helper arranges the namespaces */
    NODE_WIRING, /* the wire makes its network card */
    NODE_ON,
};

struct node {
    struct cluster *cluster;
    const struct plan_node *plan;
    int port; /* of the wire: the node's place in the plan */
    char *disk;
    enum node_state state;
    bool killed; /* by us: its end is no surprise */
    bool silent; /* it has lost its power */
    bool wired;  /* the wire has a card whose other end is in the node's network */
    struct process init;
    int control, listener;
    int diag; /* kept after the node's end, to destroy the sockets it left; keeps its network */
    struct loop_source *on_control, *on_listener, *on_end, *on_late;
    struct process program;
};

/* The wire as the harness sees it: its process and its socket. */
struct wire_link {
    struct process process; /* pid 0: never started, or ended */
    int fd;
    int64_t last_id;
    struct list queue; /* answers that came while another one was waited for */
    struct loop_source *on_message, *on_end, *on_queue;
};

struct cluster {
    const struct plan *plan;
    struct loop *loop;
    struct cluster_callbacks cb;
    void *arg;
    char *dir, *scratch, *shared, *hosts;
    char **keep;            /* paths of the host that must be seen in nodes; NULL-ended */
    char **show;            /* the same for nodes that have a root file system of their own */
    struct baggage baggage; /* what goes along into those */
    bool keep_scratch;
    struct node **nodes;
    size_t nodes_n;
    struct wire_link wire;
    struct list partitions; /* that are in force */
    bool has_failed, going_down, is_down;
    struct loop_source *on_deadline;
};

/* Starts our own program as `VERB FD` in new namespaces, with one end of a channel; the other end,
 * non-blocking, is *ret_control. */
int cluster_spawn(const char *verb, int clone_flags, struct process *ret, int *ret_control,
                  struct err *err);
void cluster_failed(struct cluster *c, const struct err *err);
/* Something has ended: goes on with cluster_down as far as it can. */
void cluster_settle(struct cluster *c);

/* The host's paths that a node must see although they may lie in a directory it has for itself. */
char **visible_paths(const struct plan *p, const char *dir);
/* Those that a node with a root file system of its own sees, its own folders left out. */
char **visible_shown(const char *dir);
char *visible_program_dir(void); /* where our own programs lie; NULL: unknown */
char **visible_free(char **paths);

struct node *node_new(struct cluster *c, const struct plan_node *plan, int port);
struct node *node_free(struct node *n);
void node_kill(struct node *n);
void node_forget_sockets(struct node *n); /* destroys what it left and lets go of its network */
void node_wired(struct node *n, const char *error); /* the wire's answer to wire_link_add_port */

struct partition {
    struct list link;
    unsigned planes;
    int group[CLUSTER_NODES_MAX];
};

/* Adds a partition of the nodes, or takes one like it away. */
int partition_set(struct cluster *c, const char *groups, unsigned planes, bool on, struct err *err);
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
