/* When the job has come to its steady state: its first round is complete and trains. */
#include "harness/run/engine.h"

struct steady {
    bool told;
    bool job_speaks; /* a worker has sent an event: steps are to be expected */
};

/* Of a job whose steps are read from its output nobody knows which workers print them: one will do.
 * In a control run the expression itself is on trial: then its workers need only run. */
static bool is_stepping(const struct engine *e, const struct steady *s, const struct round *r) {
    if (scenario_observes(e->plan->scenario, "step"))
        return !e->spec->control || round_stepped(r) > 0;
    return !s->job_speaks || round_stepped(r) == r->n;
}

static void record(struct engine *e, const struct record *r) {
    struct steady *s = own(e, steady);
    const struct rounds *rs = e->rec.rounds;
    s->job_speaks |= r->source == SOURCE_JOB && !*record_text(r, "from");
    if (s->told || (!record_is(r, "step") && !record_is(r, "worker-start")) || !rs->n ||
        !rs->v[0]->complete || !is_stepping(e, s, rs->v[0]))
        return;
    s->told = true;
    engine_record(e, SOURCE_HARNESS, "steady");
    engine_recorded(e);
}

const struct run_part run_part_steady = {
    .size = sizeof(struct steady),
    .record = record,
};
