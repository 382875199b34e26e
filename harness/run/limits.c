#include "harness/run/engine.h"

#include "agent/sys/clock.h"

/* Three limits, each told once. `start`: until every worker of the first round has sent its first
 * step (a job without events: has started). `stall`: no step although nothing new is broken; a job
 * that never sent a step is not held to it. `total`: the run. Passing one ends the run; it is the
 * judge who says what that means. */
struct limits_watch {
    struct engine *engine;
    struct loop_source *start, *stall, *total;
    bool steps; /* one was seen */
};

static void pass(struct limits_watch *l, const char *name, int64_t ns) {
    struct engine *e = l->engine;
    if (e->phase != ENGINE_RUNNING)
        return;
    bool looked = hang_look(e);
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
    if (!l->engine->steady_ns)
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

struct limits_watch *limits_new(struct engine *e) {
    struct limits_watch *l = arena_new(&e->arena, struct limits_watch);
    l->engine = e;
    l->start = loop_timer(e->loop, on_start, l);
    l->stall = loop_timer(e->loop, on_stall, l);
    l->total = loop_timer(e->loop, on_total, l);
    return l;
}

struct limits_watch *limits_free(struct limits_watch *l) {
    if (l) {
        loop_source_free(l->start);
        loop_source_free(l->stall);
        loop_source_free(l->total);
    }
    return NULL;
}

void limits_start(struct limits_watch *l) {
    int64_t now = clock_monotonic_ns();
    loop_timer_at(l->start, now + given(l)->start_ns);
    loop_timer_at(l->total, now + given(l)->total_ns);
}

/* torchrun's agents wait up to 300 s for each other at the end: no more steps are due then. */
static bool trained_to_the_end(const struct engine *e) {
    const struct rounds *rs = e->rec.rounds;
    const struct round *last = rs->n ? rs->v[rs->n - 1] : NULL;
    if (!e->plan->scenario->torchrun_semantics || !last || !last->complete)
        return false;
    for (size_t i = 0; i < last->n; i++) {
        const struct worker *w = last->workers[i];
        if (!w->exit_ns || !w->exit_known || w->exit_code || w->exit_signal)
            return false;
    }
    return true;
}

void limits_seen(struct limits_watch *l, const struct record *r) {
    bool step = record_is(r, "step");
    l->steps |= step;
    /* What was broken, and what the launcher then does about it, gets the whole limit anew. */
    if (l->steps && (step || record_is(r, "fault-in-force") || record_is(r, "worker-start")))
        loop_timer_at(l->stall, r->t_ns + given(l)->stall_ns);
    else if (record_is(r, "worker-exit") && trained_to_the_end(l->engine))
        loop_timer_off(l->stall);
}
