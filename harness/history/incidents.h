/* incidents: every fault of the timeline as it happened, with what it did to the job and the times
 * that followed from it.
 *
 * One incident is one firing of one entry of the timeline. It struck the newest round that had
 * begun when it came in force (t0), and it ended that round when one of its targets was a worker of
 * it that died, or when it was the last thing that fired before the round's first worker ended. All
 * times are differences of stamps in the harness's time; -1 where the stamps are missing:
 *
 *     t0 --detect--> the first worker on another node ends (one node: another worker; none left:
 *     the next start); one that ends with status 0 had finished, and noticed nothing
 *     --stop--> the last worker of the old round has ended
 *     --rendezvous--> the first worker of the next complete round starts
 *     --start--> its last    --init--> last ready    --load--> last resume
 *     --first step--> the last worker's first step
 *
 * recover is all of it, t0 to the last worker's first step (to the last start, when the job sends
 * no steps). */
#pragma once

#include "faults/effect.h"
#include "harness/history/history.h"
#include "harness/history/rounds.h"

enum phase {
    PHASE_DETECT,
    PHASE_STOP,
    PHASE_RENDEZVOUS,
    PHASE_START,
    PHASE_INIT,
    PHASE_LOAD,
    PHASE_FIRST_STEP,
    PHASE_N
};

const char *phase_name(enum phase p); /* "detect", ... "first step" */

struct incident_target {
    const char *what; /* node | agent | worker | store */
    const char *name; /* "n2/0 (rank 4)" */
    const char *node;
    int64_t pid;
    const struct worker *worker; /* that had this pid; NULL: no worker, or nobody saw it start */
};

struct incident {
    const char *id, *fault;
    int n; /* which firing of its entry, from 1 */
    bool fired, in_force, recovered;
    const char *failed;   /* why it could not be brought in force, NULL */
    const char *unhealed; /* recovered, and yet: why it could not be undone, NULL */
    int64_t fired_ns, t0_ns, recovered_ns, lag_ns;
    int64_t late_ns; /* t0 came so long after the moment that its trigger meant; -1 */
    int64_t step;    /* of the event it fired at, -1 */
    int64_t done;    /* steps its round had done by then, where nobody was held at that one; -1 */
    bool held;
    unsigned effects; /* EFFECT_*, as recorded when it came in force */
    int leave_signal; /* by which it asks to leave: SIGTERM, where the record says no other */
    int64_t fired_seq, force_seq, evidence_seq, evidence_ns; /* evidence_seq 0: none */
    const char *evidence;                                    /* in words, "" */
    const char *unfelt; /* why there may be none, in words, "" */
    const struct incident_target *targets;
    size_t targets_n;

    const struct round *round; /* the one it struck, NULL: none had begun */
    bool ended_round;
    const struct incident *beside; /* the next that ended the same round, NULL: none */
    const struct round *next;      /* the next complete round, NULL: none came */
    int64_t phase_ns[PHASE_N];
    int64_t recover_ns;
    /* So much may each be more or less, since their moments are of different hosts. */
    int64_t phase_bound_ns[PHASE_N], recover_bound_ns;
    int64_t t0_bound_ns;
    const char *t0_node; /* by whose clock t0 is; "": ours */
    bool by_signal;      /* the worker of detect was ended by a signal: the launcher acted */
};

struct incidents {
    struct arena arena;
    struct incident **v; /* in the order in which they fired */
    size_t n, cap;
    void *by_name;                /* of tsearch */
    const struct incident **ends; /* by round: the first that ended it */
    size_t ends_n;
};

void incidents_load(struct incidents *is, const struct history *h, const struct rounds *rs);
void incidents_fini(struct incidents *is);
static inline bool incident_has(const struct incident *i, unsigned effects) {
    return i->effects & effects; /* any of these */
}
const struct incident *incidents_find(const struct incidents *is, const char *id, int n);
/* A node that is there for the store alone was. */
bool incident_hits_store(const struct incident *i);
/* The first that ended the round, NULL: none; the others are beside it, in order. */
const struct incident *incidents_ended(const struct incidents *is, const struct round *r);
/* w itself was a target of i. */
bool incident_hits_worker(const struct incident *i, const struct worker *w);
/* w was a target of i: itself, its agent or its node. */
bool incident_hits(const struct incident *i, const struct worker *w);
