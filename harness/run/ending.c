/* When the job is over: no agent runs any more and none will. And when a control run has failed. */
#include "harness/run/engine.h"

#include "base/str.h"
#include "harness/run/timeline.h"

#include <signal.h>

struct ending {
    bool outcome_seen;   /* an agent has ended with the job's outcome, 0 or 1 */
    bool control_failed; /* a round of the control run has ended in failure */
};

static bool an_agent_runs(const struct engine *e) {
    cluster_each(n, e->cluster) {
        if (!node_plan(n)->is_store && node_is_on(n) && node_is_busy(n))
            return true;
    }
    return false;
}

static void record(struct engine *e, const struct record *r) {
    struct ending *x = own(e, ending);
    bool agent = record_is(r, "agent-exit");
    x->outcome_seen |= agent && record_i64(r, "code", 2) <= 1;
    if (e->phase != ENGINE_RUNNING)
        return;
    if (x->control_failed && record_is(r, "worker-start"))
        engine_end(e, "worker failed");
    if (!agent && !record_is(r, "store-exit") && !record_is(r, "node-down"))
        return;
    if (x->outcome_seen)
        timeline_heal_the_last(e);
    bool returns = !x->outcome_seen && timeline_returns_node(e);
    if (!an_agent_runs(e) && !timeline_may_start_node(e) && !returns)
        engine_end(e, "ended");
}

/* Without faults only a launcher asks a worker to end, and where none failed by itself it did so for
 * a node that was late. */
static bool failed_by_itself(const struct round *r) {
    for (size_t i = 0; i < r->n; i++)
        if (worker_failed(r->workers[i]) && r->workers[i]->exit_signal != SIGTERM)
            return true;
    return false;
}

/* In a control run a round that failed says it all: what launchers would do about it is of no
 * interest, and a script with a mistake in it would only fail again and again. Other launchers than
 * ours may still hold what the workers printed: by the next start, or by their own end, they have
 * let go of it. And of a host that is lost its workers may tell first. */
static void round_end(struct engine *e, const struct round *r) {
    struct ending *x = own(e, ending);
    if (e->spec->control || e->phase != ENGINE_RUNNING || !failed_by_itself(r))
        return;
    x->control_failed = true;
    if (str_eq(e->plan->scenario->job.launcher, "rankrun") && !e->plan->provider)
        engine_end(e, "worker failed");
}

const struct run_part run_part_ending = {
    .size = sizeof(struct ending),
    .record = record,
    .round_end = round_end,
};
