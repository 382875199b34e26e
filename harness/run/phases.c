#include "harness/run/timeline.h"

#include "agent/base/str.h"

/* The places of a round, and who tells of them: a launcher by its claims, rankprobe by a worker's
 * start, the job by its events. A claim may say when something is to be broken; it proves nothing.
 */
static const struct phase_word {
    const char *phase, *kind;
    bool by_agent, forms_round;
} words[] = {
    {"join", "launcher", true, true},
    {"last-call", "launcher", true, true},
    {"ack", "launcher", true, true},
    {"start", "worker-start", false, true},
    {"first-collective", "first-collective", false, false},
    {"exit-barrier", "exit-barrier", false, false},
    /* failpoints, see agent/failpoint.h */
    {"answer-lost", "launcher", true, true},
    {"certified-under-ack", "launcher", true, true},
    {"coordinator-unheard", "launcher", true, true},
    {0},
};

static const struct phase_word *find(const char *phase) {
    const struct phase_word *w = words;
    while (w->phase && !str_eq(w->phase, phase))
        w++;
    return w;
}

const char *phase_kind(const char *phase) {
    return find(phase)->kind;
}

bool phase_forms_round(const char *phase) {
    return find(phase)->forms_round;
}

bool act_reaches_phase(struct act *a, const struct record *r) {
    const struct trigger *t = &a->action->when;
    const struct phase_word *w = find(t->phase);
    struct engine *e = a->owner->engine;
    if (!str_eq(r->kind, w->kind))
        return false;
    if (w->by_agent)
        return str_eq(json_get_string(r->fields, "what", ""), w->phase) &&
               targets_listens_to_agent(e, &a->action->on, r->node);
    const struct worker *by = rounds_worker(e->rec.rounds, r->pid);
    return by && (!t->has_round || by->round >= t->round) &&
           targets_listens_to(e, &a->action->on, a->plan->fault, by);
}
