/* To whom an entry of the timeline listens: what is told by a worker, an agent or the store counts
 * when it is of the target. */
#include "harness/run/entry.h"

#include "base/str.h"

/* Whether a worker of that rank has ever told such a thing, in whatever round. */
static bool rank_tells(const struct engine *e, int rank, const char *kind) {
    const struct rounds *rs = e->rec.rounds;
    bool steps = str_eq(kind, "step");
    for (size_t i = 0; i < rs->workers_n && steps; i++)
        if (rs->workers[i]->rank == rank && rs->workers[i]->first_step_ns)
            return true;
    if (steps)
        return false;
    history_each(r, e->rec.history) {
        const struct worker *w =
            r->source == SOURCE_JOB && str_eq(r->kind, kind) ? rounds_worker(rs, r->pid) : NULL;
        if (w && w->rank == rank)
            return true;
    }
    return false;
}

/* Often one worker prints for all. Then what it prints is told of a target that never prints. */
static bool prints_nothing(const struct run_entry *a, const char *kind) {
    struct engine *e = a->owner->engine;
    const struct rounds *rs = e->rec.rounds;
    for (size_t i = 0; i < rs->workers_n; i++)
        if (targets_listens_to(e, &a->entry->on, a->plan->fault, rs->workers[i]) &&
            rank_tells(e, rs->workers[i]->rank, kind))
            return false;
    return true;
}

/* What a worker wrote before it was struck is read afterwards: that makes nothing true once more, */
static bool wrote_before(const struct run_entry *a, const struct worker *w) {
    return w && a->fired && !targets_worker_lives(a->owner->engine, w);
}

/* and nor does what others print while those that were struck are not there again. */
static bool are_gone(const struct run_entry *a) {
    const struct target_spec *on = &a->entry->on;
    return a->fired && on->what == TARGET_WORKERS &&
           !targets_any_worker_lives(a->owner->engine, on);
}

bool entry_hears(const struct run_entry *a, const struct record *r) {
    struct engine *e = a->owner->engine;
    const struct worker *by = rounds_worker(e->rec.rounds, r->pid);
    if (*record_text(r, "from") && (wrote_before(a, by) || are_gone(a)))
        return false;
    if (targets_listens_to(e, &a->entry->on, a->plan->fault, by))
        return true;
    return by && *record_text(r, "from") && prints_nothing(a, r->kind);
}

/* A step read from the output may be told late, or among others not at all. */
bool entry_hears_step(const struct run_entry *a, const struct record *r) {
    int64_t step = json_get_i64(r->fields, "step", -1), wanted = a->entry->when.step;
    return *record_text(r, "from") ? step >= wanted : step == wanted;
}

bool entry_hears_line(const struct run_entry *a, const char *node, pid_t pid) {
    const struct target_spec *on = &a->entry->on;
    struct engine *e = a->owner->engine;
    const struct plan_node *n = plan_find_node(e->plan, node);
    if (on->what == TARGET_STORES)
        return !pid && n && plan_serves_store(e->plan, n);
    const struct worker *by = pid ? rounds_worker(e->rec.rounds, pid) : NULL;
    if (pid)
        return targets_listens_to(e, on, a->plan->fault, by) && !wrote_before(a, by);
    return !(n && n->is_store) && on->what != TARGET_WORKERS &&
           targets_listens_to_agent(e, on, node);
}

/* ---- the places of a round ---- */

/* Who tells of them: a launcher by its claims, rankprobe by a worker's
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

bool entry_reaches_phase(struct run_entry *a, const struct record *r) {
    const struct trigger *t = &a->entry->when;
    const struct phase_word *w = find(t->phase);
    struct engine *e = a->owner->engine;
    if (!str_eq(r->kind, w->kind))
        return false;
    if (w->by_agent)
        return str_eq(json_get_string(r->fields, "what", ""), w->phase) &&
               targets_listens_to_agent(e, &a->entry->on, r->node);
    const struct worker *by = rounds_worker(e->rec.rounds, r->pid);
    return by && (!t->has_round || by->round >= t->round) &&
           targets_listens_to(e, &a->entry->on, a->plan->fault, by);
}
