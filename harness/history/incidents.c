#include "harness/history/incidents.h"

#include "base/str.h"

#include <assert.h>
#include <signal.h>
#include <search.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const char *phase_name(enum phase p) {
    static const char *const names[PHASE_N] = {"detect", "stop", "rendezvous", "start",
                                               "init",   "load", "first step"};
    assert(p < PHASE_N);
    return names[p];
}

static int by_name(const void *a, const void *b) {
    const struct incident *x = a, *y = b;
    int order = strcmp(x->id, y->id);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

const struct incident *incidents_find(const struct incidents *is, const char *id, int n) {
    const struct incident key = {.id = id, .n = n};
    void **at = id ? tfind(&key, &is->by_name, by_name) : NULL;
    return at ? *at : NULL;
}

bool incident_hits_store(const struct incident *i) {
    for (size_t k = 0; k < i->targets_n; k++)
        if (str_eq(i->targets[k].what, "store"))
            return true;
    return false;
}

const struct incident *incidents_ended(const struct incidents *is, const struct round *r) {
    return (size_t)r->number <= is->ends_n ? is->ends[r->number - 1] : NULL;
}

bool incident_hits_worker(const struct incident *i, const struct worker *w) {
    for (size_t k = 0; k < i->targets_n; k++)
        if (i->targets[k].worker == w)
            return true;
    return false;
}

bool incident_hits(const struct incident *i, const struct worker *w) {
    for (size_t k = 0; k < i->targets_n; k++) {
        const struct incident_target *t = &i->targets[k];
        if (str_eq(t->what, "worker") ? t->worker == w
                                      : !str_eq(t->what, "store") && str_eq(t->node, w->node))
            return true;
    }
    return false;
}

/* ---- reading the records ---- */

static struct incident *incident_of(struct incidents *is, const struct record *r) {
    const char *id = record_text(r, "id");
    int n = (int)record_i64(r, "n", 1);
    const struct incident *found = incidents_find(is, id, n);
    if (found)
        return (struct incident *)found;
    if (is->n == is->cap) {
        struct incident **old = is->v;
        is->cap = is->cap ? is->cap * 2 : 16;
        is->v = arena_array(&is->arena, struct incident *, is->cap);
        if (is->n)
            memcpy(is->v, old, is->n * sizeof(struct incident *));
    }
    struct incident *i = arena_new(&is->arena, struct incident);
    *i = (struct incident){.id = id,
                           .fault = "",
                           .n = n,
                           .late_ns = -1,
                           .step = -1,
                           .evidence = "",
                           .unfelt = "",
                           .t0_node = ""};
    is->v[is->n++] = i;
    if (!tsearch(i, &is->by_name, by_name))
        abort(); /* out of memory */
    return i;
}

/* Whoever writes a history may write any number. */
static int64_t within(int64_t v, int64_t min, int64_t max, int64_t absent) {
    return v < min || v > max ? absent : v;
}

static void read_fired(struct incident *i, const struct record *r) {
    i->fired = true;
    i->fired_ns = r->t_ns;
    i->fired_seq = r->seq;
    i->fault = record_text(r, "fault");
    i->step = record_i64(r, "step", -1);
    i->done = record_i64(r, "done", -1);
    i->lag_ns = within(record_i64(r, "lag_ns", 0), -i->fired_ns, i->fired_ns, 0);
    i->held = json_get_bool(r->fields, "held", false);
}

/* Histories of before effects were recorded say a name, and whether it takes the agent away. */
static unsigned effects_of(const struct incident *i, const struct record *r) {
    const struct json *said = record_get(r, "effects");
    unsigned effects = fault_effects(i->fault);
    if (said)
        return effects_take(said);
    bool took = effects & EFFECTS_TAKE_AGENT;
    if (json_get_bool(r->fields, "ends_node", took) == took)
        return effects;
    return took ? effects & ~(unsigned)EFFECTS_TAKE_AGENT : effects | EFFECT_ENDS_AGENT;
}

static struct incident_target read_target(const struct json *t, const struct rounds *rs,
                                          int64_t fired_ns) {
    int64_t pid = json_get_i64(t, "pid", 0);
    const char *what = json_get_string(t, "what", "");
    return (struct incident_target){
        .what = what,
        .name = json_get_string(t, "name", ""),
        .node = json_get_string(t, "node", ""),
        .pid = pid,
        .worker = str_eq(what, "worker") ? rounds_worker_at(rs, pid, fired_ns) : NULL,
    };
}

static void read_in_force(struct incidents *is, struct incident *i, const struct record *r,
                          const struct rounds *rs) {
    const struct json *targets = record_get(r, "targets");
    size_t n = targets && targets->type == JSON_ARRAY ? targets->length : 0;
    struct incident_target *v = arena_array(&is->arena, struct incident_target, n ? n : 1);
    i->in_force = true;
    i->force_seq = r->seq;
    i->leave_signal = (int)within(record_i64(r, "signal", SIGTERM), 1, SIGRTMAX, SIGTERM);
    i->t0_ns = record_i64(r, "t0", r->t_ns);
    i->t0_bound_ns = r->bound_ns;
    i->t0_node = r->bound_ns ? r->node : "";
    if (i->t0_ns < 0 || i->t0_ns > r->t_ns)
        i->t0_ns = r->t_ns;
    int64_t late_ns = i->t0_ns - i->fired_ns + i->lag_ns;
    i->late_ns = !i->fired ? -1 : late_ns < 0 ? 0 : late_ns;
    if (!i->fired_ns)
        i->fired_ns = i->t0_ns;
    if (!*i->fault)
        i->fault = record_text(r, "fault");
    i->effects = effects_of(i, r);
    json_each(t, n ? targets : NULL) v[i->targets_n++] = read_target(t, rs, i->fired_ns);
    i->targets = v;
}

static void read_record(struct incidents *is, const struct record *r, const struct rounds *rs) {
    if (strncmp(r->kind, "fault-", 6) != 0 || record_is(r, "fault-not-fired") ||
        !*record_text(r, "id"))
        return;
    bool harness = r->source == SOURCE_HARNESS;
    if (harness && record_is(r, "fault-fired")) {
        read_fired(incident_of(is, r), r);
    } else if (harness && record_is(r, "fault-in-force")) {
        struct incident *i = incident_of(is, r);
        if (!i->in_force) /* said twice, it came in force the first time */
            read_in_force(is, i, r, rs);
    } else if (harness && record_is(r, "fault-failed")) {
        incident_of(is, r)->failed = record_text(r, "error");
    } else if (harness && record_is(r, "fault-recovered")) {
        struct incident *i = incident_of(is, r);
        i->recovered = true;
        i->recovered_ns = r->t_ns;
        i->unhealed = record_get(r, "error") ? record_text(r, "error") : NULL;
    } else if (harness && record_is(r, "fault-unfelt")) {
        incident_of(is, r)->unfelt = record_text(r, "why");
    } else if (record_is(r, "fault-evidence") && source_is_evidence(r->source)) {
        struct incident *i = incident_of(is, r);
        i->evidence = record_text(r, "what");
        i->evidence_seq = r->seq;
        i->evidence_ns = r->t_ns;
    }
}

/* ---- what it did ---- */

/* What is asked of all rounds and incidents for each of them, found once. */
struct index {
    const struct rounds *rs;
    int64_t *begun_ns;         /* by round: the earliest start of it and of those after it */
    const struct round **next; /* by how many rounds lie before: next_rounds */
    int64_t *fired_ns;         /* of the incidents in force, rising */
    size_t fired_n;
    struct worker *voices; /* of each rank, rising, one that tells what any worker of it has told */
    size_t voices_n;       /* 0 where every worker tells all */
    bool steps;            /* the job tells its steps */
    int64_t over_ns; /* from here on the harness ended workers itself; INT64_MAX: it did not */
};

static int by_time(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int by_rank(const void *a, const void *b) {
    const struct worker *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* How many of n rising numbers are not above the limit. */
static size_t count_until(const int64_t *v, size_t n, int64_t limit) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (v[middle] <= limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The newest round that had begun by then. */
static const struct round *round_at(const struct index *x, int64_t t_ns) {
    size_t n = count_until(x->begun_ns, x->rs->n, t_ns);
    return n ? x->rs->v[n - 1] : NULL;
}

/* What the harness ends, of a run that is over its limit or was interrupted, shows nothing of the
 * job or its launcher. */
static bool is_over(const struct record *r) {
    return r->source == SOURCE_HARNESS &&
           (record_is(r, "limit") || record_is(r, "interrupted") ||
            (record_is(r, "job-end") && !str_eq(record_text(r, "why"), "ended")));
}

static int64_t find_over(const struct history *h) {
    history_each(r, h) if (is_over(r)) return r->t_ns;
    return INT64_MAX;
}

/* It was seen to end at or after t, and not by the harness. */
static bool ended_since(const struct index *x, const struct worker *w, int64_t t_ns) {
    return w->exit_ns && w->exit_ns >= t_ns && w->exit_ns < x->over_ns;
}

/* The first worker of r that did; NULL: none. */
static const struct worker *first_end(const struct index *x, const struct round *r, int64_t t_ns) {
    const struct worker *first = NULL;
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *w = r->workers[i];
        if (ended_since(x, w, t_ns) && (!first || w->exit_ns < first->exit_ns))
            first = w;
    }
    return first;
}

/* Of those in force no other fired between it and t. */
static bool is_last_before(const struct index *x, const struct incident *i, int64_t t_ns) {
    return count_until(x->fired_ns, x->fired_n, i->fired_ns) ==
           count_until(x->fired_ns, x->fired_n, t_ns);
}

/* What ends or stops a worker has ended it, whatever else was wrong by then; what only hinders it
 * has not where another fault came in between. */
static bool has_killed(const struct index *x, const struct incident *i, const struct worker *w) {
    unsigned ends = EFFECT_ENDS_WORKER | EFFECT_STOPS_WORKER | EFFECTS_TAKE_AGENT;
    return incident_has(i, ends) || is_last_before(x, i, w->exit_ns);
}

static bool killed_member(const struct index *x, const struct incident *i) {
    for (size_t k = 0; k < i->round->n; k++) {
        const struct worker *w = i->round->workers[k];
        if (incident_hits(i, w) && w->exit_ns >= i->fired_ns && worker_ended_badly(w) &&
            (incident_has(i, EFFECTS_TAKE_AGENT) || str_eq(i->targets[0].what, "worker")) &&
            has_killed(x, i, w))
            return true;
    }
    return false;
}

/* Among those that fired before the round began to end, only the last can be its cause. */
static bool ended_round(const struct index *x, const struct incident *i) {
    if (killed_member(x, i))
        return true;
    const struct worker *first = first_end(x, i->round, i->fired_ns);
    if (!first || (!worker_ended_badly(first) && (size_t)i->round->number == x->rs->n))
        return false;
    return is_last_before(x, i, first->exit_ns);
}

/* ---- times ---- */

static bool on_target_node(const struct incident *i, const struct worker *w) {
    for (size_t k = 0; k < i->targets_n; k++)
        if (str_eq(i->targets[k].node, w->node))
            return true;
    return false;
}

/* It had done its work, and noticed nothing. */
static bool ended_with_success(const struct worker *w) {
    return w->exit_known && !w->exit_code && !w->exit_signal;
}

/* The first bystander that ended, and not because it had finished: on another node if there is one,
 * else another worker. */
static const struct worker *detector(const struct index *x, const struct incident *i) {
    const struct worker *elsewhere = NULL, *beside = NULL;
    bool others = false;
    for (size_t k = 0; k < i->round->n; k++) {
        const struct worker *w = i->round->workers[k];
        bool other = !on_target_node(i, w);
        const struct worker **best = other ? &elsewhere : &beside;
        others |= other;
        if (!ended_since(x, w, i->fired_ns) || (!other && incident_hits(i, w)) ||
            ended_with_success(w))
            continue;
        if (!*best || w->exit_ns < (*best)->exit_ns)
            *best = w;
    }
    return others ? elsewhere : beside;
}

/* Of those that were not struck nobody can have noticed: the next start is the first sign. */
static bool alone(const struct incident *i) {
    for (size_t k = 0; k < i->round->n; k++)
        if (!incident_hits(i, i->round->workers[k]) && !ended_with_success(i->round->workers[k]))
            return false;
    return true;
}

static int64_t stamp_of(const struct worker *w, size_t offset) {
    int64_t one;
    memcpy(&one, (const char *)w + offset, sizeof(one));
    return one;
}

/* Whether a worker of that rank has ever told it. */
static bool is_ever_told(const struct index *x, int rank, size_t offset) {
    const struct worker key = {.rank = rank};
    const struct worker *voice =
        x->voices_n ? bsearch(&key, x->voices, x->voices_n, sizeof(key), by_rank) : NULL;
    return !x->rs->printed || (voice && stamp_of(voice, offset));
}

/* The latest of one stamp over all workers of a round; 0 when one of them lacks it. Where it is
 * read from the job's output, often one worker prints for all: of ranks that never do nothing is
 * waited for. */
static int64_t latest_told(const struct index *x, const struct round *r, size_t offset) {
    int64_t last = 0;
    for (size_t i = 0; i < r->n; i++) {
        int64_t one = stamp_of(r->workers[i], offset);
        if (!one && is_ever_told(x, r->workers[i]->rank, offset))
            return 0;
        last = one > last ? one : last;
    }
    return last;
}

#define TOLD(x, round, field) latest_told((x), (round), offsetof(struct worker, field))

/* The next complete round; the first of those that got to a step, when there is one. */
static void find_next_rounds(struct index *x) {
    const struct round *complete = NULL, *stepping = NULL;
    for (size_t i = x->rs->n; i-- > 0;) {
        const struct round *r = x->rs->v[i];
        complete = r->complete ? r : complete;
        stepping = r->complete && TOLD(x, r, first_step_ns) ? r : stepping;
        x->next[i] = stepping ? stepping : complete;
    }
}

/* A stamp, and whose clock it is of. */
struct stamp {
    int64_t ns, bound_ns;
    const char *node; /* "": ours; NULL: of several */
};

static struct stamp by_worker(const struct worker *w, int64_t ns, enum worker_moment m) {
    return (struct stamp){ns, w->bound_ns[m], w->bound_ns[m] ? w->node : ""};
}

/* The first or the last of what workers of a round did: no more off than any of theirs. */
static struct stamp by_round(const struct round *r, int64_t ns, enum worker_moment m) {
    struct stamp s = {.ns = ns, .node = r->n ? r->workers[0]->node : ""};
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *w = r->workers[i];
        s.bound_ns = w->bound_ns[m] > s.bound_ns ? w->bound_ns[m] : s.bound_ns;
        if (s.node && !str_eq(s.node, w->node))
            s.node = NULL;
    }
    if (!s.bound_ns)
        s.node = "";
    return s;
}

/* Two of one clock are as far apart as they seem. */
static int64_t bound_between(const struct stamp *a, const struct stamp *b) {
    return a->node && b->node && str_eq(a->node, b->node) ? 0 : a->bound_ns + b->bound_ns;
}

static int64_t since(int64_t from_ns, int64_t to_ns) {
    if (!from_ns || !to_ns)
        return -1;
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

static void measure_phase(struct incident *i, int p, const struct stamp *from,
                          const struct stamp *to) {
    i->phase_ns[p] = since(from->ns, to->ns);
    i->phase_bound_ns[p] = i->phase_ns[p] < 0 ? 0 : bound_between(from, to);
}

/* The moments between which the phases lie; 0 where one was not seen. */
static void find_stamps(struct stamp stamps[PHASE_N + 1], struct incident *i,
                        const struct index *x) {
    const struct worker *first = detector(x, i);
    const struct round *next = i->next;
    stamps[0] = (struct stamp){i->t0_ns, i->t0_bound_ns, i->t0_node};
    if (first) {
        stamps[1] = by_worker(first, first->exit_ns, WORKER_ENDS);
        i->by_signal = first->exit_known && first->exit_signal;
    } else if (alone(i) && next) {
        stamps[1] = by_round(next, next->first_start_ns, WORKER_STARTS);
    }
    stamps[2] = by_round(i->round, round_ended_ns(i->round), WORKER_ENDS);
    if (!next)
        return;
    stamps[3] = by_round(next, next->first_start_ns, WORKER_STARTS);
    stamps[4] = by_round(next, next->last_start_ns, WORKER_STARTS);
    stamps[5] = by_round(next, TOLD(x, next, ready_ns), WORKER_READY);
    stamps[6] = by_round(next, TOLD(x, next, resume_ns), WORKER_RESUMES);
    stamps[7] = by_round(next, TOLD(x, next, first_step_ns), WORKER_STEPS);
}

static void measure(struct incident *i, const struct index *x) {
    struct stamp stamps[PHASE_N + 1] = {{0}};
    i->next = x->next[i->round->number];
    find_stamps(stamps, i, x);
    const struct stamp *trains = &stamps[x->steps ? 7 : 4];
    if (i->next)
        i->recover_ns = since(i->t0_ns, trains->ns);
    if (i->recover_ns >= 0)
        i->recover_bound_ns = bound_between(&stamps[0], trains);
    for (int p = 0; p < PHASE_INIT; p++)
        measure_phase(i, p, &stamps[p], &stamps[p + 1]);
    /* A job need not tell all of its own phases: one counts from the newest that is known. */
    const struct stamp *known = &stamps[PHASE_INIT];
    for (int p = PHASE_INIT; p < PHASE_N; p++) {
        measure_phase(i, p, known, &stamps[p + 1]);
        known = stamps[p + 1].ns ? &stamps[p + 1] : known;
    }
}

static void consequences(struct incident *i, const struct index *x) {
    for (int p = 0; p < PHASE_N; p++)
        i->phase_ns[p] = -1;
    i->recover_ns = -1;
    if (!i->in_force)
        return;
    i->round = round_at(x, i->t0_ns);
    if (!i->round)
        return;
    i->ended_round = ended_round(x, i);
    if (i->ended_round)
        measure(i, x);
}

/* ---- what is found once for all ---- */

static void find_voices(struct index *x, struct arena *a) {
    const struct rounds *rs = x->rs;
    size_t n = 0;
    x->voices = arena_array(a, struct worker, rs->workers_n + 1);
    for (size_t i = 0; i < rs->workers_n; i++)
        x->voices[i] = *rs->workers[i];
    qsort(x->voices, rs->workers_n, sizeof(*x->voices), by_rank);
    for (size_t i = 0; i < rs->workers_n; i++) {
        struct worker one = x->voices[i], *of = n ? &x->voices[n - 1] : NULL;
        if (!of || of->rank != one.rank) {
            x->voices[n++] = one;
            continue;
        }
        of->ready_ns = of->ready_ns ? of->ready_ns : one.ready_ns;
        of->resume_ns = of->resume_ns ? of->resume_ns : one.resume_ns;
        of->first_step_ns = of->first_step_ns ? of->first_step_ns : one.first_step_ns;
    }
    x->voices_n = n;
}

static void index_begin(struct index *x, const struct incidents *is, const struct history *h,
                        const struct rounds *rs, struct arena *a) {
    *x = (struct index){.rs = rs,
                        .over_ns = find_over(h),
                        .begun_ns = arena_array(a, int64_t, rs->n + 1),
                        .next = arena_array(a, const struct round *, rs->n + 1),
                        .fired_ns = arena_array(a, int64_t, is->n + 1)};
    int64_t earliest = INT64_MAX;
    for (size_t i = rs->n; i-- > 0;) {
        if (rs->v[i]->first_start_ns < earliest)
            earliest = rs->v[i]->first_start_ns;
        x->begun_ns[i] = earliest;
    }
    for (size_t i = 0; i < is->n; i++)
        if (is->v[i]->in_force)
            x->fired_ns[x->fired_n++] = is->v[i]->fired_ns;
    qsort(x->fired_ns, x->fired_n, sizeof(*x->fired_ns), by_time);
    for (size_t i = 0; i < rs->workers_n && !x->steps; i++)
        x->steps = rs->workers[i]->first_step_ns;
    if (rs->printed)
        find_voices(x, a);
    find_next_rounds(x);
}

static void find_ends(struct incidents *is, const struct rounds *rs) {
    is->ends = arena_array(&is->arena, const struct incident *, rs->n + 1);
    is->ends_n = rs->n;
    for (size_t k = is->n; k-- > 0;) {
        struct incident *i = is->v[k];
        if (!i->ended_round)
            continue;
        const struct incident **first = &is->ends[i->round->number - 1];
        i->beside = *first;
        *first = i;
    }
}

void incidents_load(struct incidents *is, const struct history *h, const struct rounds *rs) {
    ARENA_FINI struct arena scratch = {0};
    struct index x;
    *is = (struct incidents){0};
    history_each(r, h) read_record(is, r, rs);
    if (is->n)
        index_begin(&x, is, h, rs, &scratch);
    for (size_t i = 0; i < is->n; i++)
        consequences(is->v[i], &x);
    find_ends(is, rs);
}

static void in_the_arena(void *entry) {
}

void incidents_fini(struct incidents *is) {
    if (!is)
        return;
    tdestroy(is->by_name, in_the_arena);
    arena_fini(&is->arena);
    *is = (struct incidents){0};
}
