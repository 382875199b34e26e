#include "harness/run/timeline.h"

#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/observe/log_matcher.h"
#include "harness/run/counting.h"
#include "harness/run/directory.h"
#include "harness/run/entry.h"
#include "harness/run/hand.h"
#include "harness/scenario/pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- arming: which senders have to wait ---- */

void timeline_arm(struct engine *e) {
    const struct timeline *t = own(e, timeline);
    uint32_t kinds = directory_holds_workers(e) ? observer_kind("worker-start") : 0;
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < t->n; i++) {
        const struct run_entry *a = &t->entries[i];
        const struct trigger *w = &a->entry->when;
        if (a->state != ENTRY_LOOKING || !w->hold)
            continue;
        if (w->has_step && !a->step_met) {
            kinds |= observer_kind("step");
            next = (uint64_t)w->step < next ? (uint64_t)w->step : next;
        }
        if (w->has_event && !a->event_met)
            kinds |= observer_kind(w->event);
        if (w->phase && !a->phase_met)
            kinds |= observer_kind(phase_kind(w->phase));
    }
    timeline_want_calls(own(e, timeline));
    observer_arm(e->observer, kinds, next == UINT64_MAX ? 0 : next);
    timeline_watch_store(own(e, timeline));
}

/* ---- one trigger ---- */

static void set_state(struct run_entry *a, enum entry_state s) {
    a->state = s;
    timeline_arm(a->owner->engine);
}

void entry_fail(struct run_entry *a, const char *why) {
    struct engine *e = a->owner->engine;
    entry_ask_no_more(a);
    set_state(a, ENTRY_FAILED);
    entry_release(a);
    if (a->stops) /* nobody is told of what is no fault */
        return;
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "fault-not-fired");
    json_put_string(w, "id", a->entry->id);
    json_put_string(w, "why", why);
    engine_recorded(e);
}

static bool all_met(const struct run_entry *a) {
    const struct trigger *w = &a->entry->when;
    return (!w->has_step || a->step_met) && (!w->has_event || a->event_met) &&
           (!w->phase || a->phase_met) && (!w->log || a->log_met) &&
           (!trigger_is_call(w) || a->call_met) && (!w->store || a->request_met) &&
           (!w->has_time || a->time_met);
}

static void conclude(struct run_entry *a, int64_t now) {
    if (a->state != ENTRY_LOOKING || !all_met(a))
        return;
    a->condition_ns = now;
    loop_timer_off(a->within);
    if (!a->entry->when.plus_ns) {
        entry_fire(a);
        return;
    }
    set_state(a, ENTRY_DELAYED);
    loop_timer_at(a->plus, now + a->entry->when.plus_ns);
}

static bool gate_open(const struct run_entry *a) {
    const struct trigger *w = &a->entry->when;
    const struct timeline *t = a->owner;
    size_t rounds = t->engine->rec.rounds->n;
    if (w->after >= 0 && !t->entries[w->after].in_force)
        return false;
    if (a->of && !a->of->lasts)
        return false;
    if (a->entry->times == TIMES_EACH_ROUND && (int)rounds <= a->round_base)
        return false;
    if (w->has_round && w->phase && phase_forms_round(w->phase))
        return rounds >= (size_t)w->round - 1;
    return !w->has_round || rounds >= (size_t)w->round;
}

static void set_time(struct run_entry *a) {
    const struct trigger *w = &a->entry->when;
    int64_t steady = a->owner->steady_ns;
    if (w->has_time && steady && !a->time_met)
        loop_timer_at(a->time, steady + w->time_ns);
}

static void begin_looking(struct run_entry *a) {
    const struct trigger *w = &a->entry->when;
    const struct limits *limits = &a->owner->engine->plan->scenario->limits;
    int64_t now = clock_monotonic_ns();
    a->step_met = a->event_met = a->phase_met = a->time_met = a->log_met = false;
    a->call_met = a->request_met = a->holds = false;
    a->events = 0;
    set_state(a, ENTRY_LOOKING);
    if (!a->of) /* what ends a fault has no deadline */
        loop_timer_at(a->within, now + (w->within_ns ? w->within_ns : limits->total_ns));
    set_time(a);
    conclude(a, now);
}

static void open_gates(struct timeline *t) {
    if (!t->started || t->finished)
        return;
    for (size_t i = 0; i < t->n; i++)
        if (t->entries[i].state == ENTRY_WAITING && gate_open(&t->entries[i]))
            begin_looking(&t->entries[i]);
}

void entry_look_again(struct run_entry *a) {
    bool more = a->of || a->entry->times == TIMES_EACH_ROUND || a->fired < a->entry->times_n;
    set_state(a, more ? ENTRY_WAITING : ENTRY_DONE);
}

bool entry_will_look_again(const struct run_entry *a) {
    return a->state == ENTRY_INJECTING && a->fired < a->entry->times_n;
}

void entry_rest(struct run_entry *a) {
    loop_timer_off(a->time);
    loop_timer_off(a->plus);
    set_state(a, ENTRY_WAITING);
    entry_release(a);
}

/* A job's event: does it make a condition of this trigger true? Holds the sender if so. */
static void hear(struct run_entry *a, const struct record *r) {
    struct event_client *from = a->owner->engine->sender;
    const struct trigger *w = &a->entry->when;
    bool step = w->has_step && !a->step_met && record_is(r, "step") && entry_hears_step(a, r);
    bool event = w->has_event && !a->event_met && str_eq(r->kind, w->event);
    bool phase = w->phase && !a->phase_met && entry_reaches_phase(a, r);
    if (!phase && ((!step && !event) || !entry_hears(a, r)))
        return;
    a->step_met |= step;
    a->event_met |= event && ++a->events == w->nth;
    a->phase_met |= phase && ++a->events == w->nth;
    if (!step && !a->event_met && !a->phase_met)
        return;
    if (w->hold && from && client_is_held(from)) {
        client_keep(from, a->tag);
        a->holds = true;
    }
    conclude(a, r->t_ns);
}

/* Time counts from here on. */
static void note_steady(struct timeline *t, int64_t now) {
    t->steady_ns = now;
    for (size_t i = 0; i < t->n; i++)
        if (t->entries[i].state == ENTRY_LOOKING)
            set_time(&t->entries[i]);
}

static void record(struct engine *e, const struct record *r) {
    struct timeline *t = own(e, timeline);
    bool node_gone = record_is(r, "node-down");
    t->steps_seen |= record_is(r, "step");
    for (size_t i = 0; i < t->n; i++) {
        struct run_entry *a = &t->entries[i];
        if (node_gone)
            entry_node_gone(a, r->node);
        entry_seen(a, r);
        if (!t->finished)
            entry_come_again(a);
        bool speaks =
            r->source == SOURCE_JOB || r->source == SOURCE_PROBE || r->source == SOURCE_LAUNCHER;
        if (a->state == ENTRY_LOOKING && speaks)
            hear(a, r);
        if (a->state == ENTRY_PATIENT && entry_may_find_target(r))
            entry_fire(a);
        if (!t->finished && entry_comes_again(a, r))
            entry_fire_again(a);
    }
    if (record_is(r, "fault-in-force") || record_is(r, "fault-recovered") ||
        record_is(r, "worker-start"))
        open_gates(t);
    if (record_is(r, "steady"))
        note_steady(t, r->t_ns);
}

static void note_closest(struct run_entry *a, const char *line) {
    enum { LINES_MAX = 20000 }; /* who prints more has been seen enough */
    size_t near = a->lines++ < LINES_MAX ? pattern_nearness(a->log, line) : 0;
    if (near <= a->nearness)
        return;
    a->nearness = near;
    snprintf(a->closest, sizeof(a->closest), "%s", line);
}

static void hear_line(struct run_entry *a, const char *node, pid_t pid, const char *line) {
    bool matches = pattern_match(a->log, line, NULL);
    if ((!matches && a->events) || !entry_hears_line(a, node, pid))
        return;
    if (!matches) {
        note_closest(a, line);
        return;
    }
    a->log_met = ++a->events == a->entry->when.nth;
    if (!a->log_met)
        return;
    log_matcher_record(&a->owner->engine->rec, node, pid, "id", a->entry->id, line);
    conclude(a, clock_monotonic_ns());
}

void timeline_heard(struct engine *e, const char *node, pid_t pid, const char *line) {
    struct timeline *t = own(e, timeline);
    for (size_t i = 0; i < t->n; i++)
        if (t->entries[i].state == ENTRY_LOOKING && t->entries[i].log && !t->entries[i].log_met)
            hear_line(&t->entries[i], node, pid, line);
}

/* ---- system calls ---- */

static void hear_call(struct run_entry *a, const struct worker_call *f, const struct waiting *who) {
    int64_t now = clock_monotonic_ns();
    a->call_met = ++a->events == a->entry->when.nth;
    if (!a->call_met)
        return;
    if (a->entry->when.hold)
        entry_hold(a, who);
    a->holds |= a->entry->when.hold;
    entry_record_call(a, f);
    conclude(a, now);
}

static bool strikes(const struct run_entry *a, const struct worker *w) {
    for (size_t i = 0; i < a->bound_n; i++)
        if (a->bound[i].target.pid == w->pid)
            return true;
    return false;
}

/* A worker that is started again may be quicker than the word that the one before was struck. */
static bool comes_too_early(const struct run_entry *a, const struct worker_call *f) {
    return entry_will_look_again(a) && trigger_is_call(&a->entry->when) && !strikes(a, f->by) &&
           entry_hears_call(a, f);
}

/* Keeps it until the entry looks again. */
static bool hear_later(struct timeline *t, const struct worker_call *f, const struct waiting *who) {
    struct waiting later = *who;
    later.unheard = true;
    for (size_t i = 0; i < t->n; i++)
        if (comes_too_early(&t->entries[i], f)) {
            entry_hold(&t->entries[i], &later);
            return true;
        }
    return false;
}

bool timeline_called(struct engine *e, struct node *n, const struct watched_call *c) {
    struct timeline *t = own(e, timeline);
    struct worker_call f;
    if (t->finished || !worker_call_read(t, n, c, &f))
        return false;
    const struct waiting who = {.node = n, .call = *c};
    if (hear_later(t, &f, &who))
        return true;
    timeline_hold(t, &who);
    for (size_t i = 0; i < t->n; i++) {
        struct run_entry *a = &t->entries[i];
        if (a->state == ENTRY_LOOKING && !a->call_met && trigger_is_call(&a->entry->when) &&
            entry_hears_call(a, &f))
            hear_call(a, &f, &who);
    }
    return timeline_unhold(t, &who);
}

/* ---- requests to the store ---- */

static void hear_request(struct run_entry *a, const struct store_request *r,
                         const struct waiting *who) {
    int64_t now = clock_monotonic_ns();
    a->request_met = ++a->events == a->entry->when.nth;
    if (!a->request_met)
        return;
    bool held = r->waits && a->entry->when.hold;
    if (held)
        entry_hold(a, who);
    a->holds |= held;
    entry_record_request(a, r);
    conclude(a, now);
}

bool timeline_asked(struct engine *e, const struct store_request *r) {
    struct timeline *t = own(e, timeline);
    if (t->finished)
        return false;
    observer_drain(e->observer); /* what was told before counts before */
    const struct waiting who = {.request = r->waits};
    timeline_hold(t, &who);
    for (size_t i = 0; i < t->n; i++) {
        struct run_entry *a = &t->entries[i];
        if (a->state == ENTRY_LOOKING && !a->request_met && a->entry->when.store &&
            entry_hears_request(a, r))
            hear_request(a, r, &who);
    }
    return timeline_unhold(t, &who);
}

/* ---- timers ---- */

static void on_time(void *arg, int64_t now) {
    struct run_entry *a = arg;
    a->time_met = true;
    conclude(a, now);
}

static void on_plus(void *arg, int64_t now) {
    entry_fire(arg);
}

static void on_within(void *arg, int64_t now) {
    struct run_entry *a = arg;
    bool patient = a->state == ENTRY_PATIENT || a->state == ENTRY_ASKING;
    entry_fail(a, patient ? "its target did not come back within the time given"
                          : "its trigger did not come true within the time given");
}

/* What is still being read for it must be read while it lasts. */
static void on_until(void *arg, int64_t now) {
    struct run_entry *a = arg;
    a->overdue = a->looks_open > 0;
    if (!a->overdue)
        entry_recover(a);
}

static void on_next(void *arg, int64_t now) {
    struct run_entry *a = arg;
    a->again = true;
    entry_come_again(a);
}

static void on_follow(void *arg, int64_t now) {
    entry_follow(arg);
}

static void on_step(void *arg, int64_t now) {
    struct run_entry *a = arg;
    a->stepped++;
    if (a->lasts) {
        counting_ask(a->owner->engine);
        entry_count_step(a);
    }
}

/* ---- the whole ---- */

static struct run_entry *add_entry(struct timeline *t, const struct planned_entry *pa) {
    struct engine *e = t->engine;
    struct run_entry *a = &t->entries[t->n++];
    a->owner = t;
    a->plan = pa;
    a->entry = pa->entry;
    if (pa->fault)
        a->course = plan_entry_course(e->plan, pa);
    a->tag = (int)t->n;
    a->time = loop_timer(e->loop, on_time, a);
    a->plus = loop_timer(e->loop, on_plus, a);
    a->within = loop_timer(e->loop, on_within, a);
    a->until = loop_timer(e->loop, on_until, a);
    a->next = loop_timer(e->loop, on_next, a);
    a->follow = loop_timer(e->loop, on_follow, a);
    a->step = loop_timer(e->loop, on_step, a);
    if (a->entry->when.log) /* the loader has refused all that are wrong */
        a->log = pattern_new(a->entry->when.log, NULL);
    return a;
}

/* `until` is a heal that waits whenever the fault of its entry is in force. It listens to all: who
 * is in trouble often says nothing. */
static void add_end(struct timeline *t, struct run_entry *of, int line) {
    struct timeline_entry *heal = arena_new(&t->engine->arena, struct timeline_entry);
    struct planned_entry *pa = arena_new(&t->engine->arena, struct planned_entry);
    *heal = (struct timeline_entry){.id = of->entry->id,
                                    .heal = line,
                                    .when = *of->entry->until,
                                    .on = {.what = TARGET_NODES, .local_rank = -1},
                                    .times_n = 1};
    pa->entry = heal;
    of->end = add_entry(t, pa);
    of->end->of = of;
}

static void begin(struct engine *e) {
    struct timeline *t = own(e, timeline);
    size_t lines = e->plan->entries_n;
    t->engine = e;
    rand_init(&t->rand, e->plan->seed);
    size_t by_hand = e->spec->interactive ? 2 * HAND_FAULTS_MAX : 0;
    t->entries = arena_array(&e->arena, struct run_entry, 2 * lines + by_hand + 1);
    for (size_t i = 0; i < lines; i++)
        add_entry(t, &e->plan->entries[i]);
    for (size_t i = 0; i < lines; i++)
        if (t->entries[i].entry->until)
            add_end(t, &t->entries[i], (int)i);
}

void timeline_add(struct engine *e, const struct planned_entry *pa, bool stops) {
    struct timeline *t = own(e, timeline);
    add_entry(t, pa)->stops = stops;
    open_gates(t);
}

void timeline_fire(struct engine *e) {
    struct timeline *t = own(e, timeline);
    struct run_entry *a = &t->entries[t->n - 1];
    if (!t->started || t->finished || (a->state != ENTRY_WAITING && a->state != ENTRY_LOOKING))
        return; /* its time comes when the job is there */
    loop_timer_off(a->time);
    a->condition_ns = clock_monotonic_ns();
    entry_fire(a);
}

int timeline_heal(struct engine *e, const char *id, struct err *err) {
    struct timeline *t = own(e, timeline);
    for (size_t i = 0; i < t->n; i++)
        if (!t->entries[i].of && t->entries[i].lasts && str_eq(t->entries[i].entry->id, id)) {
            entry_recover(&t->entries[i]);
            return 0;
        }
    return err_say(err, -ENOENT, "heal %.60s: nothing of that name is in force", id);
}

int64_t timeline_steady_ns(const struct engine *e) {
    return own(e, timeline)->steady_ns;
}

static void close_timeline(struct engine *e) {
    struct timeline *t = own(e, timeline);
    for (size_t i = 0; i < t->n; i++) {
        struct run_entry *a = &t->entries[i];
        pattern_free(a->log);
        entry_ask_no_more(a);
        entry_read_no_more(a);
        entry_let_go(a);
    }
    free(t->waiting);
}

static void start(struct engine *e) {
    own(e, timeline)->started = true;
    open_gates(own(e, timeline));
}

bool timeline_may_start_node(const struct engine *e) {
    const struct timeline *t = own(e, timeline);
    for (size_t i = 0; i < t->n; i++) {
        const struct run_entry *a = &t->entries[i];
        bool starts = a->plan->fault && fault_has(a->plan->fault, EFFECT_STARTS_NODE);
        if (starts && (a->state == ENTRY_DELAYED || a->state == ENTRY_INJECTING))
            return true;
    }
    return false;
}

bool timeline_returns_node(const struct engine *e) {
    const struct timeline *t = own(e, timeline);
    for (size_t i = 0; i < t->n; i++)
        if (t->entries[i].lasts && fault_returns_node(t->entries[i].plan->fault))
            return true;
    return false;
}

static int64_t last_step(const struct rounds *rs) {
    int64_t last = 0;
    for (size_t i = 0; i < rs->workers_n; i++)
        last = rs->workers[i]->last_step > last ? rs->workers[i]->last_step : last;
    return last;
}

static const char *why_no_line(const struct run_entry *a) {
    struct arena *m = &a->owner->engine->arena;
    if (a->events)
        return arena_printf(m, "only %d of %d lines came that match /%.60s/", a->events,
                            a->entry->when.nth, a->entry->when.log);
    if (!a->lines)
        return "the target printed nothing while the line was waited for";
    return arena_printf(m, "none of %zu lines matched /%.60s/%s%s", a->lines, a->entry->when.log,
                        *a->closest ? "; the closest: " : ", and none is like it", a->closest);
}

/* ended: why the job did. */
static const char *why_not(const struct run_entry *a, const char *ended) {
    static const char *const done[] = {"opened to write", "written", "renamed", "closed"};
    const struct trigger *w = &a->entry->when;
    struct engine *e = a->owner->engine;
    if (!str_eq(ended, "ended"))
        return str_eq(ended, "interrupted") ? "the run was interrupted before its time came"
                                            : "the run was stopped before its time came";
    if (a->state == ENTRY_WAITING)
        return "what it waited for did not come";
    if (a->state == ENTRY_PATIENT)
        return "its target was not there any more when the trigger came true";
    if (a->state == ENTRY_ASKING)
        return "the job ended before the store had said whom it means";
    if (w->log)
        return why_no_line(a);
    if (w->file)
        return arena_printf(&e->arena, "only %d of %d times was a file like %.60s about to be %s",
                            a->events, w->nth, w->file, done[w->op]);
    if (w->syscall)
        return arena_printf(&e->arena, "only %d of %d times was %s about to be called", a->events,
                            w->nth, w->syscall);
    if (w->store)
        return arena_printf(&e->arena,
                            "only %d of %d times was the store asked for %s over the wire by whom "
                            "it is about; only plain HTTP can be read there",
                            a->events, w->nth, w->store);
    if (w->has_step && !a->owner->steps_seen && scenario_observes(e->plan->scenario, "step"))
        return "no line of the job's output told a step (observe.step)";
    if (w->has_step && !a->owner->steps_seen)
        return "the job reported no steps: a trigger on a step needs a job that tells them "
               "(scenarios/jobs/rankquake.h or rankquake.py); else use time:";
    if (w->has_step && last_step(e->rec.rounds) < w->step)
        return arena_printf(&e->arena, "the job ended after step %lld, step %lld never came",
                            (long long)last_step(e->rec.rounds), (long long)w->step);
    return "the job ended before its trigger came true";
}

static bool is_cut_off(const struct timeline *t, const struct node *n) {
    for (size_t i = 0; i < t->n; i++)
        if (entry_cuts_off(&t->entries[i], node_plan(n)->name))
            return true;
    return false;
}

void timeline_heal_the_last(struct engine *e) {
    struct timeline *t = own(e, timeline);
    size_t cut = 0;
    cluster_each(n, e->cluster) {
        if (node_plan(n)->is_store || !node_is_on(n) || !node_program_pid(n))
            continue;
        if (!is_cut_off(t, n))
            return;
        cut++;
    }
    for (size_t i = 0; cut && i < t->n; i++)
        if (t->entries[i].plan->fault && t->entries[i].plan->fault->evidence & EVIDENCE(links_cut))
            entry_recover(&t->entries[i]);
}

void timeline_seen_far(struct engine *e) {
    struct timeline *t = own(e, timeline);
    for (size_t i = 0; i < t->n; i++)
        if (t->entries[i].looking)
            evidence_seen_far(&t->entries[i]);
}

void timeline_heal_all(struct engine *e) {
    struct timeline *t = own(e, timeline);
    for (size_t i = 0; i < t->n; i++)
        entry_recover(&t->entries[i]);
}

/* Notes what did not fire, ends what lasts. */
static void end(struct engine *e, const char *why) {
    struct timeline *t = own(e, timeline);
    t->finished = true;
    for (size_t i = 0; i < t->n; i++) {
        struct run_entry *a = &t->entries[i];
        loop_timer_off(a->time);
        loop_timer_off(a->plus);
        loop_timer_off(a->within);
        loop_timer_off(a->next);
        loop_timer_off(a->follow);
        loop_timer_off(a->step);
        bool enough = a->entry->times == TIMES_EACH_ROUND && a->fired;
        if (a->state == ENTRY_INJECTING)
            entry_withdraw(a, "the job ended before it was in force");
        else if (a->state != ENTRY_DONE && a->state != ENTRY_FAILED && !enough && !a->of)
            entry_fail(a, why_not(a, why));
        else if (entry_is_due(a))
            entry_fail(a, "its node came back, but what it strikes there did not");
        else if (a->again_n)
            entry_fail(a, arena_printf(&e->arena, "the job ended after %d of its %d times",
                                       a->course.times - a->again_n, a->course.times));
        entry_recover(a);
        entry_release(a);
    }
}

/* All is counted: notes why what fired was not felt. */
static void down(struct engine *e) {
    struct timeline *t = own(e, timeline);
    for (size_t i = 0; i < t->n; i++)
        entry_undone(&t->entries[i]);
    for (size_t i = 0; i < t->n; i++)
        if (!t->entries[i].of)
            evidence_close(&t->entries[i]);
}

const struct run_part run_part_timeline = {
    .size = sizeof(struct timeline),
    .begin = begin,
    .start = start,
    .record = record,
    .end = end,
    .down = down,
    .close = close_timeline,
};
