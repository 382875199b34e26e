#include "harness/shrink/smaller.h"

#include "base/str.h"
#include "harness/shrink/node_names.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* Less than this is not worth a run of its own. */
static const int64_t STEP_LEAST = 10, LENGTH_LEAST = 40, TIME_LEAST_NS = 1000000000;

const char *const smaller_part_text[SMALLER_PARTS_N] = {
#define X(NAME, text) text,
    SMALLER_PARTS(X)
#undef X
};

static struct scenario *copy_of(struct arena *a, const struct scenario *s) {
    struct scenario *c = arena_new(a, struct scenario);
    *c = *s;
    c->arena = (struct arena){0};
    return c;
}

static struct timeline_entry *lines_of(struct arena *a, struct scenario *c) {
    struct timeline_entry *v = arena_array(a, struct timeline_entry, c->timeline_n + 1);
    if (c->timeline_n)
        memcpy(v, c->timeline, c->timeline_n * sizeof(*v));
    c->timeline = v;
    return v;
}

/* ---- what is expected ---- */

/* A line that must come may come because of a fault. */
static bool waits_for_lines(const struct expect *e) {
    for (size_t i = 0; i < e->logs_n; i++)
        if (e->logs[i].count != LOG_NEVER)
            return true;
    return false;
}

bool smaller_is_counted(const struct scenario *s, const char *check) {
    if (str_eq(check, "outcome"))
        return s->expect.outcome != OUTCOME_SUCCEEDED;
    if (str_eq(check, "log"))
        return waits_for_lines(&s->expect);
    return str_eq(check, "world_sizes") || str_eq(check, "restarts");
}

static void forget_counts(struct expect *e) {
    e->has_world_sizes = e->world_sizes_ends = e->has_restarts = false;
    e->world_sizes_n = 0;
}

static void keep_own_checks(struct arena *a, struct scenario *c, const char *const *checks) {
    struct own_check *kept = arena_array(a, struct own_check, c->checks_n + 1);
    size_t n = 0;
    for (size_t i = 0; i < c->checks_n; i++)
        if (str_in(c->checks[i].label, checks))
            kept[n++] = c->checks[i];
    c->checks = kept;
    c->checks_n = n;
}

struct scenario *smaller_expect(struct arena *a, const struct scenario *s,
                                const char *const *checks) {
    struct scenario *c = copy_of(a, s);
    struct expect *e = &c->expect;
    if (!str_in("world_sizes", checks))
        e->has_world_sizes = e->world_sizes_ends = false, e->world_sizes_n = 0;
    e->has_restarts &= str_in("restarts", checks);
    e->detect_n = str_in("detect", checks) ? e->detect_n : 0;
    e->recover_n = str_in("recover", checks) ? e->recover_n : 0;
    e->phases_n = str_in("phases", checks) ? e->phases_n : 0;
    e->probes_n = str_in("probe", checks) ? e->probes_n : 0;
    e->logs_n = str_in("log", checks) ? e->logs_n : 0;
    e->model_same &= str_in("model", checks);
    e->weights = str_in("weights", checks) ? e->weights : WEIGHTS_ANY;
    e->epochs = str_in("epochs", checks) ? e->epochs : EPOCHS_ANY;
    e->goodput = str_in("goodput", checks) ? e->goodput : 0;
    e->loss_within = str_in("loss", checks) ? e->loss_within : 0;
    e->losses_n = str_in("loss", checks) ? e->losses_n : 0;
    if (!str_in("lost_work", checks))
        e->lost_steps = e->lost_ns = 0;
    keep_own_checks(a, c, checks);
    return c;
}

struct scenario *smaller_probes(struct arena *a, const struct scenario *s) {
    struct scenario *c = copy_of(a, s);
    c->probes_n = c->expect.probes_n = 0;
    return c;
}

/* ---- the timeline ---- */

/* Whether a trigger says more than what it comes after, and how much later. */
static int conditions(const struct trigger *t) {
    return t->has_step + t->has_round + t->has_time + t->has_event + (t->phase != NULL) +
           (t->log != NULL) + (t->file != NULL) + (t->syscall != NULL) + (t->store != NULL);
}

/* It may have come after several that are gone, one after the other. */
static void rechain(const struct scenario *s, const bool *gone, struct trigger *t) {
    while (t->after >= 0 && gone[t->after]) {
        const struct trigger *before = &s->timeline[t->after].when;
        struct trigger own = *t;
        if (!conditions(t)) {
            *t = *before;
            t->plus_ns += own.plus_ns;
            t->within_ns = own.within_ns;
            t->patient |= own.patient;
        } else {
            t->after = before->after;
            t->after_id = before->after_id;
        }
    }
}

/* id NULL: of no entry. */
static bool is_gone(const struct scenario *s, const bool *gone, const char *id) {
    for (size_t i = 0; i < s->timeline_n && id; i++)
        if (gone[i] && str_eq(s->timeline[i].id, id))
            return true;
    return false;
}

static const struct budget *budgets_without(struct arena *a, const struct scenario *s,
                                            const bool *gone, const struct budget *v, size_t *n) {
    struct budget *kept = arena_array(a, struct budget, *n + 1);
    size_t kept_n = 0;
    for (size_t i = 0; i < *n; i++)
        if (!is_gone(s, gone, v[i].id))
            kept[kept_n++] = v[i];
    *n = kept_n;
    return kept;
}

static void logs_without(struct arena *a, const struct scenario *s, const bool *gone,
                         struct expect *e) {
    struct log_expect *kept = arena_array(a, struct log_expect, e->logs_n + 1);
    size_t n = 0;
    for (size_t i = 0; i < e->logs_n; i++)
        if (!is_gone(s, gone, e->logs[i].after))
            kept[n++] = e->logs[i];
    e->logs = kept;
    e->logs_n = n;
}

/* What ended it is gone: then it lasts. */
static void move_untils(struct arena *a, struct timeline_entry *v, size_t n, const bool *gone,
                        const int *place) {
    for (size_t i = 0; i < n; i++) {
        int after = v[i].until ? v[i].until->after : -1;
        if (after < 0)
            continue;
        struct trigger *t = arena_new(a, struct trigger);
        *t = *v[i].until;
        t->after = place[after];
        v[i].until = gone[after] ? NULL : t;
    }
}

struct scenario *smaller_timeline(struct arena *a, const struct scenario *s, bool *gone) {
    struct scenario *c = copy_of(a, s);
    struct timeline_entry *v = arena_array(a, struct timeline_entry, s->timeline_n + 1);
    int *place = arena_array(a, int, s->timeline_n + 1);
    struct expect *e = &c->expect;
    size_t n = 0;
    for (size_t i = 0; i < s->timeline_n; i++) {
        const struct timeline_entry *line = &s->timeline[i];
        gone[i] |= line->heal >= 0 && gone[line->heal];
        if (gone[i])
            continue;
        place[i] = (int)n;
        v[n] = *line;
        rechain(s, gone, &v[n].when);
        v[n].when.after = v[n].when.after >= 0 ? place[v[n].when.after] : -1;
        v[n].heal = line->heal >= 0 ? place[line->heal] : -1;
        n++;
    }
    if (n == s->timeline_n)
        return NULL;
    move_untils(a, v, n, gone, place);
    c->timeline = v;
    c->timeline_n = n;
    e->detect_within = budgets_without(a, s, gone, e->detect_within, &e->detect_n);
    e->recover_within = budgets_without(a, s, gone, e->recover_within, &e->recover_n);
    logs_without(a, s, gone, e);
    forget_counts(e);
    return c;
}

struct scenario *smaller_rounds(struct arena *a, const struct scenario *s) {
    struct scenario *c = copy_of(a, s);
    struct timeline_entry *v = lines_of(a, c);
    bool any = false;
    for (size_t i = 0; i < c->timeline_n; i++)
        if (v[i].when.has_round && (conditions(&v[i].when) > 1 || v[i].when.after >= 0)) {
            v[i].when.has_round = false;
            any = true;
        }
    return any ? c : NULL;
}

struct scenario *smaller_draws(struct arena *a, const struct scenario *s,
                               const char *const *struck) {
    struct scenario *c = copy_of(a, s);
    struct timeline_entry *v = lines_of(a, c);
    bool any = false;
    for (size_t i = 0; i < c->timeline_n; i++)
        if (struck[i] && (v[i].on.pick == PICK_RANDOM || v[i].on.pick == PICK_PERCENT ||
                          v[i].on.pick == PICK_MAJORITY)) {
            v[i].on.text = struck[i];
            v[i].on.pick = PICK_NAMED;
            v[i].on.rack = 0;
            any = true;
        }
    return any ? c : NULL;
}

/* ---- the cluster ---- */

/* false: one of them would have no nodes. */
static bool move_racks(struct arena *a, struct cluster_spec *c, const bool *gone, const int *to,
                       int nodes) {
    int *rack_of = arena_array(a, int, (size_t)nodes + 1);
    bool *has = arena_array(a, bool, (size_t)c->racks + 1);
    for (int i = 0; c->rack_of && i < nodes; i++)
        if (!gone[i])
            has[rack_of[to[i]] = c->rack_of[i]] = true;
    for (int rack = 1; rack <= c->racks; rack++)
        if (!has[rack])
            return false;
    c->rack_of = c->rack_of ? rack_of : NULL;
    return true;
}

struct scenario *smaller_cluster(struct arena *a, const struct scenario *s, const bool *gone) {
    struct scenario *c = copy_of(a, s);
    int *to = arena_array(a, int, (size_t)s->cluster.nodes + 1), kept = 0;
    for (int i = 0; i < s->cluster.nodes; i++) {
        to[i] = kept;
        kept += !gone[i];
        c->cluster.start -= gone[i] && i < s->cluster.start;
    }
    if (kept == s->cluster.nodes || kept < 1 || c->cluster.start < 1 ||
        !move_racks(a, &c->cluster, gone, to, s->cluster.nodes))
        return NULL;
    c->cluster.nodes = kept;
    if (c->job.max_nodes > c->cluster.nodes)
        c->job.max_nodes = c->cluster.nodes;
    if (c->job.min_nodes > c->job.max_nodes)
        c->job.min_nodes = c->job.max_nodes;
    node_names_move(a, c, to, s->cluster.nodes);
    forget_counts(&c->expect);
    return c;
}

struct scenario *smaller_workers(struct arena *a, const struct scenario *s, int per_node) {
    struct scenario *c = copy_of(a, s);
    if (per_node < 1 || per_node >= s->job.workers_per_node)
        return NULL;
    c->job.workers_per_node = per_node;
    forget_counts(&c->expect);
    return c;
}

/* ---- one entry ---- */

static bool drop(bool *has, const struct trigger *t) {
    if (!*has || (conditions(t) < 2 && t->after < 0))
        return false;
    *has = false;
    return true;
}

static bool drop_text(const char **text, const struct trigger *t) {
    bool has = *text != NULL;
    if (!drop(&has, t))
        return false;
    *text = NULL;
    return true;
}

static bool clear_ns(int64_t *ns) {
    bool any = *ns != 0;
    *ns = 0;
    return any;
}

static bool halve_ns(int64_t *ns) {
    static const int64_t MS = 1000000;
    if (*ns < TIME_LEAST_NS)
        return false;
    *ns = *ns / 2 / MS * MS;
    return true;
}

static bool make_sooner(struct trigger *t) {
    bool any = t->has_time && halve_ns(&t->time_ns);
    any |= halve_ns(&t->plus_ns);
    if (t->has_step && t->step >= STEP_LEAST) {
        t->step /= 2;
        any = true;
    }
    return any;
}

static bool drop_after(struct trigger *t) {
    if (t->after < 0 || !conditions(t))
        return false;
    t->after = -1;
    t->after_id = NULL;
    return true;
}

static bool make_once(struct timeline_entry *l) {
    bool any = l->times != TIMES_N || l->times_n > 1 || l->sticky;
    l->sticky = false;
    l->times = TIMES_N;
    l->times_n = 1;
    return any;
}

/* Then it lasts to the end of the run. */
static bool drop_until(struct timeline_entry *l) {
    bool any = l->until != NULL;
    l->until = NULL;
    return any;
}

static bool simplify(struct timeline_entry *l, enum smaller_part part) {
    struct trigger *t = &l->when;
    bool counts = t->has_event || t->phase || t->log || t->store || trigger_is_call(t),
         patient = t->patient;
    switch (part) {
    case SMALLER_AFTER:
        return drop_after(t);
    case SMALLER_ROUND:
        return drop(&t->has_round, t);
    case SMALLER_EVENT:
        return drop(&t->has_event, t);
    case SMALLER_LOG:
        return drop_text(&t->log, t);
    case SMALLER_FILE:
        return drop_text(&t->file, t);
    case SMALLER_SYSCALL:
        return drop_text(&t->syscall, t);
    case SMALLER_STORE:
        return drop_text(&t->store, t);
    case SMALLER_PHASE:
        return drop_text(&t->phase, t);
    case SMALLER_TIME:
        return drop(&t->has_time, t);
    case SMALLER_STEP:
        return drop(&t->has_step, t);
    case SMALLER_PLUS:
        return clear_ns(&t->plus_ns);
    case SMALLER_PATIENT:
        t->patient = false;
        return patient;
    case SMALLER_WITHIN:
        return clear_ns(&t->within_ns);
    case SMALLER_NTH:
        counts &= t->nth > 1;
        t->nth = 1;
        return counts;
    case SMALLER_TIMES:
        return make_once(l);
    case SMALLER_UNTIL:
        return drop_until(l);
    case SMALLER_SOONER:
        return make_sooner(t);
    case SMALLER_SHORTER:
        return halve_ns(&l->for_ns);
    case SMALLER_PARTS_N:
        break;
    }
    assert(false);
    return false;
}

struct scenario *smaller_line(struct arena *a, const struct scenario *s, size_t line,
                              enum smaller_part part) {
    struct scenario *c = copy_of(a, s);
    struct timeline_entry *v = lines_of(a, c);
    assert(line < c->timeline_n);
    if (!simplify(&v[line], part))
        return NULL;
    struct trigger *t = &v[line].when;
    t->hold &= t->has_step || t->has_event || t->phase ||
               trigger_is_call(t); /* else nobody is there to be held */
    forget_counts(&c->expect);
    return c;
}

/* ---- the job ---- */

static int64_t last_step_waited_for(const struct scenario *s) {
    int64_t last = 0;
    for (size_t i = 0; i < s->timeline_n; i++) {
        const struct trigger *ends[] = {&s->timeline[i].when, s->timeline[i].until};
        for (size_t k = 0; k < 2; k++)
            if (ends[k] && ends[k]->has_step && ends[k]->step > last)
                last = ends[k]->step;
    }
    return last;
}

struct scenario *smaller_steps(struct arena *a, const struct scenario *s) {
    static const char option[] = "--steps=";
    const char **run = arena_array(a, const char *, s->job.run_n + 1);
    struct scenario *c = copy_of(a, s);
    bool any = false;
    for (size_t i = 0; i <= s->job.run_n; i++) {
        int64_t steps;
        run[i] = s->job.run[i];
        if (!run[i] || !str_starts(run[i], option) ||
            !str_to_i64(run[i] + strlen(option), LENGTH_LEAST, INT64_MAX, &steps) ||
            steps / 2 <= last_step_waited_for(s))
            continue;
        run[i] = arena_printf(a, "%s%" PRId64, option, steps / 2);
        any = true;
    }
    c->job.run = run;
    return any ? c : NULL;
}
