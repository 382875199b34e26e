/* programs: what is executed in a node, from what the scenario says: placeholders and environment.
 */
#pragma once

#include "harness/cluster/cluster.h"

struct places { /* what the placeholders stand for on one node */
    const char *shared, *disk, *out, *seed, *node;
    const char *output; /* where rankprobe makes files for what workers print; NULL: nowhere */
    const char *tmp;    /* NULL: /tmp */
    const char *events; /* RANKQUAKE_EVENTS; NULL: as in namespaces */
    const char *token;  /* NAME=value, for who asks the run's own store; NULL: none */
    bool far;           /* it is on another host, where the caller is somebody else */
    bool told_node;     /* RANKQUAKE_NODE says which it is: to who records its disks */
    int64_t wait_ns;    /* RANKQUAKE_WAIT: how long a worker waits for a harness that is stopped */
};

/* Text with {shared} {disk} {tmp} {out} {seed} {node} filled in; other braces stay as they are. */
const char *placeholders_fill(struct arena *a, const char *text, const struct places *p);
const char *const *placeholders_fill_all(struct arena *a, const char *const *argv, size_t n,
                                         const struct places *p);

/* The caller's environment less what a launcher around us had set, with our programs first in PATH,
 * the event socket, how long to wait there, the job's own variables and then `more` (NULL-ended or
 * NULL). Later entries win. NULL-ended. */
const char *const *programs_env(struct arena *a, const struct job_spec *job, const char *bin,
                                const struct places *p, const char *const *more);

/* clock_env.c: env with what makes programs ask the node's own wall clock, where it has one; env
 * itself when not. programs: where the node sees ours. */
const char *const *clock_env(struct arena *a, const struct node *n, const char *programs,
                             const char *const *env);

/* device_env.c: env (NULL-ended) with what the job on this node is told about its accelerators,
 * where the scenario (or, as far as it is not about this host, the caller) does not say it already;
 * env itself when the node has none. logs: the node's folder. */
const char *const *device_env(struct arena *a, const struct plan *p, const struct plan_node *node,
                              const char *logs, const char *const *env);
