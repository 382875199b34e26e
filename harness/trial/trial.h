/* trial: one fault tried out: a scratch cluster of two nodes and a spare one, a subject on each, the
 * fault as its own example has it, aimed at n1, and what the history of that run says of it. A fault
 * on the store has a trial for each kind of store that it suits. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "faults/fault.h"
#include "harness/history/history.h"
#include "harness/plan/plan.h"

struct fault_trial {
    const struct fault *fault;
    bool etcd;        /* its store is one */
    const char *name; /* of its scenario, and so of its file and its run directory */
};

/* All trials of a fault, at most two. etcd: there is one on this host. */
enum { TRIALS_OF_FAULT = 2 };
size_t trials_of(struct arena *a, const struct fault *f, bool etcd,
                 struct fault_trial ret[TRIALS_OF_FAULT]);

/* The scenario. program: rankquake's own. */
void trial_scenario(const struct fault_trial *t, const char *program, struct buf *out);

/* ---- what came of it ---- */

enum trial_kind {
    TRIAL_WORKS,
    TRIAL_LESS,   /* it was felt and undone, and `why` says what of it is less than it could be */
    TRIAL_CANNOT, /* `why` says what did not come, and of what it may be */
    TRIAL_UNTRIED /* nobody can say: the trial itself came to nothing */
};

struct trial_outcome {
    enum trial_kind kind;
    const char *why, *fix; /* NULL where there is nothing to say */
    const char *seen;      /* what has shown it; NULL: nothing */
    bool refused;          /* before anything was begun: the host lacks what it needs */
};

/* Of a run's history. Texts are the arena's or the history's. */
struct trial_outcome trial_read(struct arena *a, const struct fault *f, const struct history *h);
/* Of the same fault tried twice: as good as the worse, and of one that works on one of them alone
 * there is less. other: the name of the second, for the sentence. */
struct trial_outcome trial_both(struct arena *a, struct trial_outcome first,
                                struct trial_outcome second, const char *other);
