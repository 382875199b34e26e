/* How long a run may take, and how late the harness itself is: while it was away no limit runs. */
#include "harness/run/counting.h"
#include "harness/run/hang.h"

#include "agent/sys/clock.h"

/* Three limits, each told once. `start`: until every worker of the first round has sent its first
 * step (a job without events: has started). `stall`: no step although nothing new is broken; a job
 * that never sent a step is not held to it. `total`: the run. Passing one ends the run; it is the
 * judge who says what that means. A fourth is not the scenario's: when the time that whoever runs
 * it has (until_ns) is up, the run is interrupted. */
struct limits_watch {
    struct engine *engine;
    bool steady;
    struct loop_source *start, *stall, *total, *quiet, *until;
    int64_t start_at_ns, total_at_ns, stall_at_ns; /* 0: not running */
    int64_t heard_ns;                              /* when something last happened */
    bool steps;                                    /* one was seen */
};

/* It is measured every 100 ms from when the nodes have been switched on, and told every second. */
enum { LAG_EVERY_NS = 100 * 1000000, LAG_WINDOW_NS = 1000000000 };

struct lag {
    struct loop_source *timer; /* NULL: it is not measured */
    int64_t due_ns, max_ns, window_ns;
};

static void measure_anew(struct engine *e) {
    struct lag *l = e->own[PART_lag];
    l->due_ns = clock_monotonic_ns() + LAG_EVERY_NS;
    if (l->timer)
        loop_timer_at(l->timer, l->due_ns);
}

/* Who waits wants to know that it is the job that stands still, and how long that may last. */
static const int64_t quiet_ns = INT64_C(60000000000);

static void pass(struct limits_watch *l, const char *name, int64_t ns) {
    struct engine *e = l->engine;
    if (e->phase != ENGINE_RUNNING)
        return;
    bool looked = hang_look(e);
    measure_anew(e); /* it has kept itself from the loop on purpose, when the job was over anyway */
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "limit");
    json_put_string(w, "name", name);
    json_put_i64(w, "ns", ns);
    if (looked)
        json_put_string(w, "hang", "hang");
    engine_recorded(e);
    engine_end(e, "limit");
}

static const struct limits *given(const struct limits_watch *l) {
    return &l->engine->plan->scenario->limits;
}

static void on_start(void *arg, int64_t now) {
    (void)now;
    struct limits_watch *l = arg;
    if (!l->steady)
        pass(l, "start", given(l)->start_ns);
}

static void on_stall(void *arg, int64_t now) {
    (void)now;
    struct limits_watch *l = arg;
    pass(l, "stall", given(l)->stall_ns);
}

static void on_total(void *arg, int64_t now) {
    (void)now;
    struct limits_watch *l = arg;
    pass(l, "total", given(l)->total_ns);
}

static void on_until(void *arg, int64_t now) {
    (void)now;
    struct engine *e = ((struct limits_watch *)arg)->engine;
    if (e->phase >= ENGINE_ENDING)
        return;
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "interrupted");
    json_put_string(w, "why", "budget");
    engine_recorded(e);
    engine_end(e, "interrupted");
}

static void on_quiet(void *arg, int64_t now) {
    struct limits_watch *l = arg;
    struct engine *e = l->engine;
    bool stall = l->stall_at_ns && l->stall_at_ns < l->total_at_ns;
    if (e->phase != ENGINE_RUNNING)
        return;
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "quiet");
    json_put_i64(w, "ns", now - l->heard_ns);
    json_put_string(w, "limit", stall ? "stall" : "total");
    json_put_i64(w, "left_ns", (stall ? l->stall_at_ns : l->total_at_ns) - now);
    engine_recorded(e);
    loop_timer_at(l->quiet, now + (now - l->heard_ns)); /* less and less often */
}

static void set_timers(struct engine *e) {
    struct limits_watch *l = e->own[PART_limits];
    l->engine = e;
    l->start = loop_timer(e->loop, on_start, l);
    l->stall = loop_timer(e->loop, on_stall, l);
    l->total = loop_timer(e->loop, on_total, l);
    l->quiet = loop_timer(e->loop, on_quiet, l);
    l->until = loop_timer(e->loop, on_until, l);
    if (e->spec->until_ns)
        loop_timer_at(l->until, e->spec->until_ns);
}

static void close_limits(struct engine *e) {
    struct limits_watch *l = e->own[PART_limits];
    loop_source_free(l->start);
    loop_source_free(l->stall);
    loop_source_free(l->total);
    loop_source_free(l->quiet);
    loop_source_free(l->until);
}

static void start(struct engine *e) {
    struct limits_watch *l = e->own[PART_limits];
    int64_t now = clock_monotonic_ns();
    loop_timer_at(l->start, l->start_at_ns = now + given(l)->start_ns);
    l->total_at_ns = now + given(l)->total_ns;
    loop_timer_at(l->total, l->total_at_ns);
    l->heard_ns = now;
    loop_timer_at(l->quiet, now + quiet_ns);
}

/* torchrun's agents wait up to 300 s for each other at the end: no more steps are due then. */
static bool trained_to_the_end(const struct engine *e) {
    const struct rounds *rs = e->rec.rounds;
    const struct round *last = rs->n ? rs->v[rs->n - 1] : NULL;
    return e->plan->scenario->torchrun_semantics && last && round_ended_well(last);
}

/* The harness's words about itself do not count. */
static void hear(struct limits_watch *l, const struct record *r) {
    if (!l->heard_ns || record_is(r, "quiet") || record_is(r, "lag") || record_is(r, "wire"))
        return;
    l->heard_ns = r->t_ns;
    loop_timer_at(l->quiet, r->t_ns + quiet_ns);
}

static void record(struct engine *e, const struct record *r) {
    struct limits_watch *l = e->own[PART_limits];
    bool step = record_is(r, "step");
    l->steps |= step;
    l->steady |= record_is(r, "steady");
    hear(l, r);
    /* What was broken, and what the launcher then does about it, gets the whole limit anew. */
    if (l->steps && (step || record_is(r, "fault-in-force") || record_is(r, "worker-start")))
        loop_timer_at(l->stall, l->stall_at_ns = r->t_ns + given(l)->stall_ns);
    else if (record_is(r, "worker-exit") && trained_to_the_end(e))
        loop_timer_off(l->stall), l->stall_at_ns = 0;
}

static void put_off(struct loop_source *timer, int64_t *at_ns, int64_t by_ns) {
    if (*at_ns)
        loop_timer_at(timer, *at_ns += by_ns);
}

/* Nothing was seen meanwhile: what the job did in that time is only being read now. */
static void stand_still(struct limits_watch *l, int64_t ns) {
    if (l->engine->phase != ENGINE_RUNNING)
        return;
    if (!l->steady)
        put_off(l->start, &l->start_at_ns, ns);
    put_off(l->stall, &l->stall_at_ns, ns);
    put_off(l->total, &l->total_at_ns, ns);
}

const struct run_part run_part_limits = {
    .size = sizeof(struct limits_watch),
    .begin = set_timers,
    .start = start,
    .record = record,
    .close = close_limits,
};

/* ---- how late the harness is ---- */

static void note_late(struct lag *l, int64_t now) {
    int64_t late = now - l->due_ns;
    l->max_ns = late > l->max_ns ? late : l->max_ns;
}

static void record_lag(struct engine *e, int64_t now) {
    struct lag *l = e->own[PART_lag];
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
    struct lag *l = e->own[PART_lag];
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

static void begin(struct engine *e) {
    struct lag *l = e->own[PART_lag];
    if (e->phase != ENGINE_STARTING) /* the nodes could not be switched on */
        return;
    l->window_ns = clock_monotonic_ns();
    l->timer = loop_timer(e->loop, on_lag_timer, e);
    measure_anew(e);
}

static void down(struct engine *e) {
    struct lag *l = e->own[PART_lag];
    int64_t now = clock_monotonic_ns();
    if (!l->timer)
        return;
    note_late(l, now);
    record_lag(e, now);
}

static void close_lag(struct engine *e) {
    struct lag *l = e->own[PART_lag];
    loop_source_free(l->timer);
}

const struct run_part run_part_lag = {
    .size = sizeof(struct lag),
    .begin = begin,
    .down = down,
    .close = close_lag,
};
