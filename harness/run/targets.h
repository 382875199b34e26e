/* targets: `on:` of an entry of the timeline, resolved against what is alive. */
#pragma once

#include "base/rand.h"
#include "harness/run/engine.h"

enum { TARGETS_MAX = 256 };

struct bound {
    struct target target;
    struct node *node;
    const struct worker *worker; /* NULL: a node or an agent */
    int64_t exit_ns; /* seen to end (switched on: to start) since the fault fired; 0: not yet */
    void *known[EVIDENCES_N]; /* what each kind of evidence keeps, in the engine's arena */
    bool failed;              /* the fault did not come in force there */
    bool answered;
    bool undoing;     /* it was told to end what it has of the fault, and has not answered */
    int kept_pidfd;   /* ours, 0: none */
    const char *kept; /* what the fault keeps, in the run's directory; NULL: nothing */
};

/* The plan's arguments; those of a shape with its groups, drawn among the nodes that are on. -ENOENT:
 * too few are. */
int targets_shape(struct engine *e, const struct planned_entry *pa, struct fault_args *ret,
                  struct err *err);
/* Fills ret with what the entry's fault will hit now; returns how many, 0 when nothing matches.
 * Draws in the order of names. */
size_t targets_resolve(struct engine *e, struct rand *rand, const struct planned_entry *pa,
                       struct bound ret[TARGETS_MAX]);

/* Whether the kernel says that it has not ended. */
bool targets_worker_lives(struct engine *e, const struct worker *w);
/* Of those that are meant. */
bool targets_any_worker_lives(struct engine *e, const struct target_spec *on);
/* Whether an event of this worker counts for a trigger aimed at `on`. */
bool targets_listens_to(struct engine *e, const struct target_spec *on, const struct fault *f,
                        const struct worker *w);
/* The same for what an agent says, on that node. */
bool targets_listens_to_agent(struct engine *e, const struct target_spec *on, const char *node);
