/* How long a run may take, and how late the harness itself is: while it was away no limit runs. */
#include "harness/run/engine.h"

#include "base/sys/clock.h"
#include "harness/run/counting.h"
#include "harness/run/hang.h"
#include "harness/run/limits.h"

/* Three limits, each told once. `start`: until every worker of the first round has sent its first
 * step (a job without events: has started). `stall`: no step although nothing new is broken; a job
 * that never sent a step is not held to it. `total`: the run. Passing one ends the run; it is the
 * judge who says what that means. A fourth is not the scenario's: when the time that whoever runs
 * it has (until_ns) is up, the run is interrupted. */
struct limits_limit {
    struct engine *engine;
    const char *name;
    struct loop_source *timer;
    int64_t ns, at_ns; /* at: when it is passed; 0: it is not running */
};

struct limits_watch {
    struct limits_limit start, stall, total;
    struct loop_source *quiet;
    int64_t heard_ns;   /* when something last happened */
    bool steps;         /* one was seen */
    int64_t stopped_ns; /* the run stands still since then, and no limit runs; 0: it does not */
};

/* It is measured every 100 ms from when the nodes have been switched on, and told every second. */
enum { LAG_EVERY_NS = 100 * 1000000, LAG_WINDOW_NS = 1000000000 };

struct lag {
    struct loop_source *timer; /* NULL: it is not measured */
    int64_t due_ns, max_ns, window_ns;
};

static void measure_anew(struct engine *e) {
    struct lag *l = own(e, lag);
    l->due_ns = clock_monotonic_ns() + LAG_EVERY_NS;
    if (l->timer)
        loop_timer_at(l->timer, l->due_ns);
}

/* Who waits wants to know that it is the job that stands still, and how long that may last. */
static const int64_t quiet_ns = INT64_C(60000000000);

static void pass(void *arg, bool looked) {
    const struct limits_limit *l = arg;
    struct engine *e = l->engine;
    if (e->phase != ENGINE_RUNNING)
        return;
    measure_anew(e); /* it has kept itself from the loop on purpose, when the job was over anyway */
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "limit");
    json_put_string(w, "name", l->name);
    json_put_i64(w, "ns", l->ns);
    if (looked)
        json_put_string(w, "hang", "hang");
    engine_recorded(e);
    engine_end(e, "limit");
}

static void on_limit(void *arg, int64_t now) {
    struct limits_limit *l = arg;
    if (l->engine->phase == ENGINE_RUNNING)
        hang_look(l->engine, pass, l);
}

static void limit_make(struct limits_limit *l, struct engine *e, const char *name, int64_t ns) {
    *l = (struct limits_limit){e, name, loop_timer(e->loop, on_limit, l), ns, 0};
}

static void limit_run(struct limits_limit *l, int64_t from_ns) {
    const struct limits_watch *all = l->engine->own[PART_limits];
    l->at_ns = from_ns + l->ns;
    if (!all->stopped_ns)
        loop_timer_at(l->timer, l->at_ns);
}

static void limit_off(struct limits_limit *l) {
    loop_timer_off(l->timer);
    l->at_ns = 0;
}

static void limit_put_off(struct limits_limit *l, int64_t by_ns) {
    if (l->at_ns)
        loop_timer_at(l->timer, l->at_ns += by_ns);
}

static void on_until(void *arg, int64_t now) {
    struct engine *e = arg;
    if (e->phase >= ENGINE_ENDING)
        return;
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "interrupted");
    json_put_string(w, "why", "budget");
    engine_recorded(e);
    engine_end(e, "interrupted");
}

static void on_quiet(void *arg, int64_t now) {
    struct engine *e = arg;
    const struct limits_watch *l = e->own[PART_limits];
    bool stall = l->stall.at_ns && l->stall.at_ns < l->total.at_ns;
    const struct limits_limit *next = stall ? &l->stall : &l->total;
    if (e->phase != ENGINE_RUNNING)
        return;
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "quiet");
    json_put_i64(w, "ns", now - l->heard_ns);
    json_put_string(w, "limit", next->name);
    json_put_i64(w, "left_ns", next->at_ns - now);
    engine_recorded(e);
    loop_timer_at(l->quiet, now + (now - l->heard_ns)); /* less and less often */
}

static void begin(struct engine *e) {
    struct limits_watch *l = e->own[PART_limits];
    const struct limits *given = &e->plan->scenario->limits;
    limit_make(&l->start, e, "start", given->start_ns);
    limit_make(&l->stall, e, "stall", given->stall_ns);
    limit_make(&l->total, e, "total", given->total_ns);
    l->quiet = loop_timer(e->loop, on_quiet, e);
    if (e->spec->until_ns)
        loop_timer_at(loop_timer(e->loop, on_until, e), e->spec->until_ns);
}

static void start(struct engine *e) {
    struct limits_watch *l = e->own[PART_limits];
    l->heard_ns = clock_monotonic_ns();
    limit_run(&l->start, l->heard_ns);
    limit_run(&l->total, l->heard_ns);
    loop_timer_at(l->quiet, l->heard_ns + quiet_ns);
}

/* torchrun's agents wait up to 300 s for each other at the end: no more steps are due then. */
static bool trained_to_the_end(const struct engine *e) {
    const struct rounds *rs = e->rec.rounds;
    const struct round *last = rs->n ? rs->v[rs->n - 1] : NULL;
    return e->plan->scenario->torchrun_semantics && last && round_ended_well(last);
}

/* The harness's words about itself do not count. */
static void hear(struct limits_watch *l, const struct record *r) {
    if (!l->heard_ns || record_is(r, "quiet") || record_is(r, "lag") || record_is(r, "wire") ||
        record_is(r, "clock") || record_is(r, "clock-step"))
        return;
    l->heard_ns = r->t_ns;
    if (!l->stopped_ns)
        loop_timer_at(l->quiet, r->t_ns + quiet_ns);
}

static void record(struct engine *e, const struct record *r) {
    struct limits_watch *l = e->own[PART_limits];
    bool step = record_is(r, "step");
    l->steps |= step;
    hear(l, r);
    if (record_is(r, "steady"))
        limit_off(&l->start);
    /* What was broken, and what the launcher then does about it, gets the whole limit anew. */
    if (l->steps && (step || record_is(r, "fault-in-force") || record_is(r, "worker-start")))
        limit_run(&l->stall, r->t_ns);
    else if (record_is(r, "worker-exit") && trained_to_the_end(e))
        limit_off(&l->stall);
}

/* Nothing was seen meanwhile: what the job did in that time is only being read now. */
static void stand_still(struct limits_watch *l, int64_t ns) {
    if (l->total.engine->phase != ENGINE_RUNNING)
        return;
    limit_put_off(&l->start, ns);
    limit_put_off(&l->stall, ns);
    limit_put_off(&l->total, ns);
}

void limits_stop(struct engine *e) {
    struct limits_watch *l = e->own[PART_limits];
    struct limits_limit *all[] = {&l->start, &l->stall, &l->total};
    l->stopped_ns = clock_monotonic_ns();
    for (size_t i = 0; i < 3; i++)
        loop_timer_off(all[i]->timer);
    loop_timer_off(l->quiet);
}

void limits_go_on(struct engine *e) {
    struct limits_watch *l = e->own[PART_limits];
    int64_t ns = clock_monotonic_ns() - l->stopped_ns;
    l->stopped_ns = 0;
    stand_still(l, ns);
    loop_timer_at(l->quiet, clock_monotonic_ns() + quiet_ns);
}

const struct run_part run_part_limits = {
    .size = sizeof(struct limits_watch),
    .begin = begin,
    .start = start,
    .record = record,
};

/* ---- how late the harness is ---- */

static void note_late(struct lag *l, int64_t now) {
    int64_t late = now - l->due_ns;
    l->max_ns = late > l->max_ns ? late : l->max_ns;
}

static void record_lag(struct engine *e, int64_t now) {
    struct lag *l = own(e, lag);
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "lag");
    json_put_i64(w, "max_ns", l->max_ns);
    json_put_i64(w, "window_ns", now - l->window_ns);
    engine_recorded(e);
    l->max_ns = 0;
    l->window_ns = now;
}

/* A budget is not judged in a window in which the harness was slow. Of all timers this one was due
 * first after it was away, so no limit has been passed for that. */
static void on_lag_timer(void *arg, int64_t now) {
    struct engine *e = arg;
    struct lag *l = own(e, lag);
    int64_t late = now - l->due_ns;
    note_late(l, now);
    if (late > HISTORY_AWAY_NS) {
        stand_still(e->own[PART_limits], late);
        counting_wait_anew(e);
    }
    if (now - l->window_ns >= LAG_WINDOW_NS)
        record_lag(e, now);
    measure_anew(e);
}

static void begin_lag(struct engine *e) {
    struct lag *l = own(e, lag);
    if (e->phase != ENGINE_STARTING) /* the nodes could not be switched on */
        return;
    l->window_ns = clock_monotonic_ns();
    l->timer = loop_timer(e->loop, on_lag_timer, e);
    measure_anew(e);
}

static void down(struct engine *e) {
    struct lag *l = own(e, lag);
    int64_t now = clock_monotonic_ns();
    if (!l->timer)
        return;
    note_late(l, now);
    record_lag(e, now);
}

const struct run_part run_part_lag = {
    .size = sizeof(struct lag),
    .begin = begin_lag,
    .down = down,
};
