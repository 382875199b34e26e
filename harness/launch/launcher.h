/* launcher: how the job is started on a node. One file per launcher, ending in a const struct, and
 * a line in launchers.h. Pure: from a plan to command lines. */
#pragma once

#include "base/arena.h"
#include "harness/plan/plan.h"

/* What a command on one node is made of. Placeholders of the scenario ({shared} ...) are resolved
 * in run and args. */
struct launch {
    const struct plan *plan;
    const struct plan_node *node;
    const char *bin;         /* the folder of our programs */
    const char *disk;        /* the node's own */
    const char *shared;      /* of all nodes */
    const char *const *run;  /* the job's command; NULL-ended */
    const char *const *args; /* further options of the launcher; NULL-ended or NULL */
};

struct launcher {
    const char *name; /* "rankrun" */
    const char *text; /* for lists: what it is */
    bool shows_token; /* its agents show the variable RANKRUN_STORE_TOKEN to an embedded store */
    /* The argv of the agent on this node, workers behind rankprobe; NULL-ended. */
    const char *const *(*agent_argv)(struct arena *a, const struct launch *l);
    /* What the agent's environment needs for that, NAME=value; NULL-ended. */
    const char *const *(*agent_env)(struct arena *a, const struct launch *l);
};

extern const struct launcher *const launchers[]; /* NULL-ended */
const struct launcher *launcher_of(const struct plan *p);

/* The argv of a store's node: rankrun's own store, or a member of etcd; NULL-ended. */
const char *const *store_argv(struct arena *a, const struct launch *l);
/* A line with this text in its log says that the store answers. */
/* What it keeps on the node's disk, a name in there; NULL: nothing. */
const char *store_data(const struct plan *p);
const char *store_ready_line(const struct plan *p);
