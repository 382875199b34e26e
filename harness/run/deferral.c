/* Entries whose moment has come but whose target is not there, or is about to go (when.patient),
 * and those that come again when it has come back (sticky). */
#include "harness/run/entry.h"

#include "base/str.h"
#include "base/sys/clock.h"

void entry_wait_for_target(struct run_entry *a) {
    if (a->state == ENTRY_PATIENT)
        return;
    int64_t own = a->entry->when.within_ns;
    a->state = ENTRY_PATIENT;
    loop_timer_at(a->within, clock_monotonic_ns() +
                                 (own ? own : a->owner->engine->plan->scenario->limits.total_ns));
    timeline_arm(a->owner->engine);
}

bool entry_may_find_target(const struct record *r) {
    static const char *const kinds[] = {"worker-start", "worker-exit", "agent-start",
                                        "agent-exit",   "store-start", "store-exit",
                                        "node-up",      "node-down",   NULL};
    for (int i = 0; kinds[i]; i++)
        if (record_is(r, kinds[i]))
            return true;
    return false;
}

/* A fault of this kind ends the round in which its target has a worker. */
static bool ends_rounds(const struct fault *f) {
    return f && (fault_has(f, EFFECTS_TAKE_AGENT) || f->evidence & EVIDENCE(target_exit));
}

static bool has_hit(const struct run_entry *by, const struct round *r, size_t rounds) {
    if (!ends_rounds(by->plan->fault) || !by->fired || by->round_base != (int)rounds)
        return false;
    for (size_t i = 0; i < by->bound_n; i++) {
        const struct bound *b = &by->bound[i];
        if (b->worker ? b->worker->round == r->number : round_on_node(r, node_plan(b->node)->name))
            return true;
    }
    return false;
}

/* One worker of it has ended, or is about to: the launcher ends the others, and a fault would hit
 * who dies anyway. */
static bool breaks_up(const struct run_entry *a, const struct round *r) {
    const struct timeline *t = a->owner;
    for (size_t i = 0; i < r->n; i++)
        if (r->workers[i]->exit_ns)
            return true;
    for (size_t i = 0; i < t->n; i++)
        if (&t->entries[i] != a && has_hit(&t->entries[i], r, t->engine->rec.rounds->n))
            return true;
    return false;
}

bool entry_must_wait(const struct run_entry *a, const struct bound *found, size_t n) {
    const struct rounds *rs = a->owner->engine->rec.rounds;
    if (!a->entry->when.patient)
        return false;
    for (size_t i = 0; i < n; i++)
        if (found[i].worker && breaks_up(a, rs->v[found[i].worker->round - 1]))
            return true;
    return n == 0;
}

void entry_stick(struct run_entry *a) {
    if (!a->entry->sticky || a->stuck)
        return;
    a->stuck = arena_array(&a->owner->engine->arena, struct stuck, a->bound_n);
    a->stuck_n = a->bound_n;
    for (size_t i = 0; i < a->bound_n; i++)
        a->stuck[i] =
            (struct stuck){.node = a->bound[i].node,
                           .local_rank = a->bound[i].worker ? a->bound[i].worker->local_rank : -1};
}

bool entry_is_due(const struct run_entry *a) {
    for (size_t i = 0; i < a->stuck_n; i++)
        if (a->stuck[i].back)
            return true;
    return false;
}

bool entry_comes_again(struct run_entry *a, const struct record *r) {
    bool start = a->stuck_n && r->source == SOURCE_KERNEL &&
                 (record_is(r, "agent-start") || record_is(r, "store-start"));
    for (size_t i = 0; start && i < a->stuck_n; i++)
        a->stuck[i].back |= str_eq(node_plan(a->stuck[i].node)->name, r->node);
    return a->state == ENTRY_DONE && entry_is_due(a) && entry_may_find_target(r);
}

/* What lasts is ended before it comes again, so it comes to all of them. */
size_t entry_find_again(struct run_entry *a, struct bound ret[TARGETS_MAX]) {
    struct timeline_entry line = *a->entry;
    const struct planned_entry one = {
        .entry = &line, .fault = a->plan->fault, .args = a->plan->args};
    struct bound some[TARGETS_MAX];
    size_t total = 0;
    bool any = false;
    for (size_t i = 0; i < a->stuck_n; i++) {
        struct stuck *s = &a->stuck[i];
        if (!s->back && !a->lasts)
            continue;
        bool store = node_plan(s->node)->is_store;
        line.on = (struct target_spec){.what = store               ? TARGET_STORES
                                               : s->local_rank < 0 ? TARGET_NODES
                                                                   : TARGET_WORKERS,
                                       .pick = PICK_NAMED,
                                       .node = node_plan(s->node)->name,
                                       .local_rank = s->local_rank};
        size_t got = targets_resolve(a->owner->engine, &a->owner->rand, &one, some);
        for (size_t j = 0; j < got && total < TARGETS_MAX; j++)
            ret[total++] = some[j];
        any |= got && s->back;
        s->back &= !got;
    }
    return any ? total : 0;
}
