/* Asks of each entry of the timeline whether it fired, came in force and was felt. */
#include "harness/judge/checks/check.h"

#include "base/str.h"

static const char broken[] = "Faults: every fault of the timeline happens and is felt.";

/* What of the timeline is said not to have fired: read once, for it is asked of each entry. */
struct unfired {
    const struct record **v;
    size_t n;
};

static struct unfired find_unfired(const struct trial *t) {
    struct unfired u = {0};
    history_each(r, t->history) u.n += record_is(r, "fault-not-fired");
    u.v = arena_array(t->arena, const struct record *, u.n + 1);
    u.n = 0;
    history_each(r, t->history) {
        if (record_is(r, "fault-not-fired"))
            u.v[u.n++] = r;
    }
    return u;
}

/* NULL: it is not said. */
static const struct record *not_fired(const struct unfired *u, const char *id) {
    for (size_t i = 0; i < u->n; i++)
        if (str_eq(record_text(u->v[i], "id"), id))
            return u->v[i];
    return NULL;
}

static const char *why_not(const struct unfired *u, const char *id) {
    const struct record *r = not_fired(u, id);
    return r ? record_text(r, "why") : "its moment did not come";
}

static const int64_t LATE_NS = 1000000000;

/* Within it nobody could have noticed. */
static const int64_t MOMENT_NS = 100000000;

static bool is_at_a_point(const struct trial *t, const struct incident *i) {
    for (size_t k = 0; k < t->scenario->timeline_n; k++) {
        const struct trigger *w = &t->scenario->timeline[k].when;
        if (str_eq(t->scenario->timeline[k].id, i->id))
            return w->has_step || w->has_event || w->log || trigger_is_call(w);
    }
    return false;
}

/* ---- too late ---- */

/* A moment that is counted from another one, or read from what was printed a while before: there
 * may be nothing left of the job by then. Whoever names a place at the end of the job means it. */
static bool may_be_late(const struct trial *t, const struct incident *i, int64_t *ret_step) {
    for (size_t k = 0; k < t->scenario->timeline_n; k++) {
        const struct trigger *w = &t->scenario->timeline[k].when;
        if (!str_eq(t->scenario->timeline[k].id, i->id))
            continue;
        *ret_step = w->has_step ? w->step : -1;
        return !w->phase && !w->has_event && !w->log && !trigger_is_call(w) && !i->held &&
               (w->has_time || (w->has_step && scenario_observes(t->scenario, "step")));
    }
    return false;
}

/* The workers that it struck had ended, all of them well, or did so within a moment. */
static bool all_had_finished(const struct incident *i) {
    size_t well = 0;
    for (size_t k = 0; k < i->round->n; k++) {
        const struct worker *w = i->round->workers[k];
        bool ended = w->exit_known && w->exit_ns && w->exit_ns <= i->fired_ns + MOMENT_NS;
        bool good = ended && !w->exit_code && !w->exit_signal;
        if (!good && !(ended && incident_has(i, EFFECTS_TAKE_AGENT) && incident_hits(i, w)))
            return false;
        well += good;
    }
    return well > 0;
}

/* Of those that were struck nothing is asked. */
static bool somebody_ended_well(const struct rounds *rs) {
    const struct round *last = rounds_last_complete(rs);
    for (size_t k = 0; last && k < last->n; k++) {
        const struct worker *w = last->workers[k];
        if (w->exit_known && !w->exit_code && !w->exit_signal)
            return true;
    }
    return false;
}

static int64_t newest_step_ns(const struct history *h) {
    const struct record *newest = history_newest(h, SOURCE_JOB, "step");
    return newest ? newest->t_ns : 0;
}

/* The last step of the whole job had been made when it came; others may tell the same a moment
 * later. */
static bool no_step_was_left(const struct trial *t, const struct incident *i, int64_t step) {
    int64_t made = -1;
    if (newest_step_ns(t->history) > i->fired_ns + MOMENT_NS)
        return false;
    history_each(r, t->history) {
        if (r->source != SOURCE_JOB || !record_is(r, "step"))
            continue;
        int64_t one = record_i64(r, "step", -1);
        if (r->t_ns > i->fired_ns + MOMENT_NS || (r->t_ns > i->fired_ns && one > made))
            return false;
        made = one > made ? one : made;
    }
    return made > step && somebody_ended_well(t->rounds);
}

static bool came_too_late(const struct trial *t, struct finding *f, const struct incident *i) {
    int64_t step;
    if (!i->round || !may_be_late(t, i, &step))
        return false;
    bool finished = !i->next && (size_t)i->round->number == t->rounds->n && all_had_finished(i);
    if (!finished && !no_step_was_left(t, i, step))
        return false;
    finding_unknown(f, broken, "%s (%s) came too late: the job had %s", i->id, i->fault,
                    finished ? "finished" : "made its last step");
    return true;
}

/* ---- somebody else ---- */

static bool is_there(const struct trial *t, const struct target_spec *on, const char *node,
                     const char *struck) {
    int rack = on->rack_of_rank ? scenario_rack_of(t->scenario, node) : 0;
    return str_eq(node, struck) || (rack && scenario_rack_of(t->scenario, struck) == rack);
}

/* What was struck serves the store: there for it alone, or as the node that the scenario says. */
static bool serves_store(const struct trial *t, const struct incident_target *struck) {
    const char *host = scenario_store_host(t->scenario);
    return str_eq(struck->what, "store") || (host && str_eq(struck->node, host));
}

/* Who leads, as the store had said it for this firing; NULL: it was not asked, or did not say. */
static const char *told(const struct trial *t, const struct incident *i) {
    const char *node = NULL;
    history_each(r, t->history) {
        if (r->source == SOURCE_HARNESS && record_is(r, "store-said") && r->seq < i->fired_seq &&
            str_eq(record_text(r, "id"), i->id) && record_i64(r, "n", 1) == i->n)
            node = r->node;
    }
    return node;
}

static bool is_leader(const struct trial *t, const struct incident *i, const struct target_spec *on,
                      const struct incident_target *struck) {
    bool one = on->pick == PICK_LEADER && t->scenario->cluster.store != STORE_ETCD_3;
    return one ? serves_store(t, struck) : str_eq(struck->node, told(t, i));
}

/* Whether what was struck is what is named: by the kernel's number, and by what that worker was
 * given when it started. Drawn ones cannot be wrong. */
static bool is_named(const struct trial *t, const struct incident *i, const struct target_spec *on,
                     const struct incident_target *struck) {
    const struct rounds *rs = t->rounds;
    const struct worker *w = struck->worker;
    if (on->pick == PICK_COORDINATOR || on->pick == PICK_LEADER)
        return is_leader(t, i, on, struck);
    if (on->what == TARGET_STORES && on->text)
        return serves_store(t, struck) &&
               (on->pick != PICK_NAMED || str_eq(struck->node, on->node));
    if (on->pick == PICK_NAMED && on->node)
        return str_eq(struck->node, on->node) &&
               (!w || on->local_rank < 0 || w->local_rank == on->local_rank);
    if (on->rack)
        return scenario_rack_of(t->scenario, struck->node) == on->rack;
    if (on->pick != PICK_RANK)
        return true;
    if (w && !on->node_of_rank)
        return w->rank == on->rank;
    for (size_t k = 0; k < rs->workers_n; k++) /* the node of that rank */
        if (rs->workers[k]->rank == on->rank && is_there(t, on, rs->workers[k]->node, struck->node))
            return true;
    return false;
}

static bool was_struck(const struct incident *i, const char *node) {
    for (size_t k = 0; k < i->targets_n; k++)
        if (str_eq(i->targets[k].node, node))
            return true;
    return false;
}

/* What is sticky comes again where it was, whoever is there now. */
static bool strayed(struct finding *f, const struct incident *i, const struct incident *first) {
    for (size_t k = 0; k < i->targets_n; k++)
        if (!was_struck(first, i->targets[k].node)) {
            finding_fail(f, broken, "sticky: node", "%s (%s) came again on %s, where it was not",
                         i->id, i->fault, i->targets[k].node);
            return true;
        }
    return false;
}

static bool struck_another(const struct trial *t, struct finding *f, const struct incident *i,
                           const struct timeline_entry *a) {
    for (size_t k = 0; k < a->with_n; k++)
        if (str_eq(a->with[k].key, "groups")) /* instead of on */
            return false;
    for (size_t k = 0; k < i->targets_n; k++) {
        if (is_named(t, i, &a->on, &i->targets[k]))
            continue;
        finding_fail(f, broken, a->on.text, "%s (%s) struck %s on %s", i->id, i->fault,
                     i->targets[k].name, i->targets[k].node);
        return true;
    }
    return false;
}

/* ---- not gone ---- */

static bool say_lives(struct finding *f, const struct incident *i, int64_t start_seq,
                      const char *who, const char *node) {
    finding_prove(f, i->force_seq, start_seq);
    return finding_unknown(f, broken,
                           "%s (%s) is said to have ended %s, but %s there was never seen to end",
                           i->id, i->fault, node, who);
}

/* Whoever was never seen to end. */
struct left {
    struct agent_end *agents;
    const struct worker **workers;
    size_t agents_n, workers_n;
};

static void find_left(const struct trial *t, struct left *l) {
    const struct rounds *rs = t->rounds;
    size_t n;
    *l = (struct left){.agents = check_agents(t, &n),
                       .workers = arena_array(t->arena, const struct worker *, rs->workers_n)};
    for (size_t k = 0; k < n; k++)
        if (!l->agents[k].exit_ns)
            l->agents[l->agents_n++] = l->agents[k];
    for (size_t k = 0; k < rs->workers_n; k++)
        if (!rs->workers[k]->exit_ns)
            l->workers[l->workers_n++] = rs->workers[k];
}

/* What ran on a node that a fault has taken away must have been seen to end; of an agent's node
 * that is the agent alone. */
static bool judge_target(struct finding *f, const struct incident *i,
                         const struct incident_target *struck, const struct left *l) {
    for (size_t k = 0; k < l->agents_n; k++) {
        const struct agent_end *a = &l->agents[k];
        if (a->start_ns <= i->t0_ns && str_eq(a->node, struck->node))
            return say_lives(f, i, a->seq, "the agent", struck->node);
    }
    for (size_t k = 0; k < l->workers_n && str_eq(struck->what, "node"); k++) {
        const struct worker *w = l->workers[k];
        if (w->start_ns <= i->t0_ns && str_eq(w->node, struck->node))
            return say_lives(f, i, w->start_seq, "a worker", struck->node);
    }
    return true;
}

static bool judge_ends(const struct trial *t, struct finding *f) {
    struct left l;
    bool gone = true;
    find_left(t, &l);
    for (size_t k = 0; k < t->incidents->n && gone; k++) {
        const struct incident *i = t->incidents->v[k];
        for (size_t j = 0; incident_has(i, EFFECTS_TAKE_AGENT) && j < i->targets_n && gone; j++)
            gone = judge_target(f, i, &i->targets[j], &l);
    }
    return gone;
}

/* ---- one entry of the timeline ---- */

static bool judge_incident(const struct trial *t, struct finding *f, const struct incident *i) {
    finding_prove(f, i->force_seq ? i->force_seq : i->fired_seq);
    if (i->failed || !i->in_force) {
        const char *expected = finding_expected(f, "%s (%s) in force", i->id, i->fault);
        return finding_fail(f, broken, expected, "it could not be brought in force: %s",
                            i->failed ? i->failed : "no word came back");
    }
    if (!i->evidence_seq)
        return finding_unknown(
            f, broken, "%s (%s) was in force, but nothing outside shows that it was felt%s%s",
            i->id, i->fault, *i->unfelt ? ": " : "", i->unfelt);
    if (i->unhealed)
        return finding_unknown(f, broken, "%s (%s) could not be undone when its time was up: %s",
                               i->id, i->fault, i->unhealed);
    /* Whoever is held waits; a step, an event or a line that is not held goes by. */
    if (!i->held && i->lag_ns > LATE_NS && is_at_a_point(t, i))
        return finding_unknown(f, broken,
                               "%s (%s) fired %.1f s after its moment: the harness was late", i->id,
                               i->fault, (double)i->lag_ns / 1e9);
    return !came_too_late(t, f, i);
}

static bool healed(const struct trial *t, const struct timeline_entry *a) {
    const struct timeline_entry *fault = &t->scenario->timeline[a->heal];
    for (size_t i = 0; i < t->incidents->n; i++)
        if (str_eq(t->incidents->v[i]->id, fault->id) && t->incidents->v[i]->recovered)
            return true;
    return false;
}

/* each-round: in every round that was complete. */
static int times_wanted(const struct trial *t, const struct timeline_entry *a) {
    int rounds = 0;
    if (a->times == TIMES_N)
        return a->times_n > 0 ? a->times_n : 1;
    for (size_t i = 0; i < t->rounds->n; i++)
        rounds += t->rounds->v[i]->complete;
    return rounds ? rounds : 1;
}

static bool came_whenever_it_had_to(const struct unfired *u, struct finding *f,
                                    const struct timeline_entry *a) {
    const struct record *r = not_fired(u, a->id);
    if (!r)
        return true;
    finding_prove(f, r->seq);
    return finding_unknown(f, broken, "%s (%s) did not come again: %s", a->id, a->fault,
                           record_text(r, "why"));
}

static bool judge_entry(const struct trial *t, struct finding *f, const struct timeline_entry *a,
                        const struct unfired *u) {
    int n = 0, wanted = times_wanted(t, a);
    const struct incident *first = NULL;
    if (!a->fault) {
        if (healed(t, a))
            return true;
        return finding_fail(f, broken, "the healing of the timeline happens", "%s did not heal: %s",
                            a->id, why_not(u, a->id));
    }
    for (size_t i = 0; i < t->incidents->n; i++) {
        if (!str_eq(t->incidents->v[i]->id, a->id))
            continue;
        const struct incident *now = t->incidents->v[i];
        first = first ? first : now;
        bool again = a->sticky && n > 0;
        if (!judge_incident(t, f, now) ||
            (again ? strayed(f, now, first) : struck_another(t, f, now, a)))
            return false;
        n++;
    }
    if (n >= wanted)
        return came_whenever_it_had_to(u, f, a);
    const char *expected =
        finding_expected(f, "%s (%s) fires %d time%s%s", a->id, a->fault, wanted,
                         wanted == 1 ? "" : "s", a->times == TIMES_N ? "" : ", once in each round");
    return finding_fail(f, broken, expected, "it fired %d time%s: %s", n, n == 1 ? "" : "s",
                        why_not(u, a->id));
}

static bool judge(const struct trial *t, struct finding *f) {
    size_t n = t->scenario->timeline_n;
    struct unfired u = find_unfired(t);
    for (size_t i = 0; i < n; i++)
        if (!judge_entry(t, f, &t->scenario->timeline[i], &u))
            return false;
    if (!n)
        return finding_pass(f, "the timeline is empty: nothing was to be injected");
    *f = (struct finding){.check = f->check, .class = f->class};
    if (!judge_ends(t, f))
        return false;
    return finding_pass(f, "%zu of %zu fired, came in force and left evidence", n, n);
}

const struct check check_fired = {
    .name = "fired",
    .summary = "every fault of the timeline fired, came in force and left evidence",
    .text = "A run in which a fault did not happen shows nothing, so it is inconclusive, however "
            "well the job did. Evidence is a process that ended, frames that the wire dropped, an "
            "agent that started: never what the job or the launcher says. It must have struck whom "
            "the scenario names, and what ran on a node that it took away must have been seen to "
            "end. Where nobody was held, a "
            "fault that came a second after its moment is not counted either, nor one that came "
            "when the job had nothing left to do: at a time, or at a step that was read from what "
            "the job printed.",
    .example = "rankquake run scenarios/tour.yaml",
    .class = CLASS_FAULTS,
    .sources = SOURCES(KERNEL) | SOURCES(WIRE) | SOURCES(DISK) | SOURCES(PROBE) | SOURCES(JOB),
    .judge = judge,
};
