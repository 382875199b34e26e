#include "harness/run/engine.h"

#include "base/sys/clock.h"

static const struct run_part *const parts[PARTS_N] = {
#define X(name) &run_part_##name,
#include "harness/run/parts.h"
#undef X
};

#define in_order(verb, ...)                                                                        \
    do {                                                                                           \
        for (size_t i = 0; i < PARTS_N; i++)                                                       \
            if (parts[i]->verb)                                                                    \
                parts[i]->verb(__VA_ARGS__);                                                       \
    } while (0)

#define backwards(verb, ...)                                                                       \
    do {                                                                                           \
        for (size_t i = PARTS_N; i-- > 0;)                                                         \
            if (parts[i]->verb)                                                                    \
                parts[i]->verb(__VA_ARGS__);                                                       \
    } while (0)

/* ---- records ---- */

struct json_writer *engine_record(struct engine *e, enum source s, const char *kind) {
    return recorder_begin(&e->rec, clock_monotonic_ns(), s, kind);
}

void engine_recorded(struct engine *e) {
    recorder_end(&e->rec, NULL);
}

static void on_record(void *arg, const struct record *r, struct event_client *from) {
    struct engine *e = arg;
    const struct rounds *rs = e->rec.rounds;
    if (e->spec->seen)
        e->spec->seen(e->spec->seen_arg, r);
    struct event_client *of_another = e->sender; /* records nest */
    e->sender = from;
    in_order(record, e, r);
    e->sender = of_another;
    if (!record_is(r, "worker-exit"))
        return;
    while (e->rounds_ended < rs->n && round_ended_ns(rs->v[e->rounds_ended])) {
        const struct round *over = rs->v[e->rounds_ended++];
        in_order(round_end, e, over);
    }
}

/* ---- from one phase to the next ---- */

void engine_start(struct engine *e) {
    e->phase = ENGINE_RUNNING;
    in_order(start, e);
}

void engine_end(struct engine *e, const char *why) {
    if (e->phase >= ENGINE_ENDING)
        return;
    e->phase = ENGINE_ENDING;
    backwards(end, e, why);
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "job-end");
    json_put_string(w, "why", why);
    engine_recorded(e);
}

void engine_fail(struct engine *e, const struct err *err) {
    if (!e->failure.code)
        e->failure = *err;
    engine_end(e, "error");
}

void engine_take_down(struct engine *e) {
    e->phase = ENGINE_DOWN;
    backwards(take_down, e);
}

void engine_down(struct engine *e, const char *const *left) {
    backwards(down, e);
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "health");
    json_array(w, "left");
    for (const char *const *l = left; *l; l++)
        json_put_string(w, NULL, *l);
    json_end_array(w);
    json_put_bool(w, "complete", !*left);
    json_put_i64(w, "cpu_ns", clock_cpu_ns());
    engine_recorded(e);
    loop_stop(e->loop);
}

/* ---- the whole ---- */

static int open_all(struct engine *e, struct err *err) {
    int r = 0;
    for (size_t i = 0; i < PARTS_N; i++)
        e->own[i] = arena_alloc(&e->arena, parts[i]->size);
    for (size_t i = 0; i < PARTS_N && r == 0; i++)
        r = parts[i]->open ? parts[i]->open(e, err) : 0;
    return r;
}

static int play(struct engine *e, struct err *err) {
    e->rec.fn = on_record;
    e->rec.arg = e;
    in_order(begin, e);
    int r = loop_run(e->loop, err);
    if (r < 0 || !e->failure.code)
        return r;
    *err = e->failure;
    return e->failure.code;
}

int run_execute(const struct run_spec *spec, struct history *h, struct rounds *rs,
                struct err *err) {
    struct engine e = {.spec = spec, .plan = spec->plan, .rec = {.history = h, .rounds = rs}};
    e.loop = loop_new(err);
    if (!e.loop)
        return err->code;
    int r = open_all(&e, err);
    if (r == 0)
        r = play(&e, err);
    e.rec.fn = NULL;
    backwards(close, &e);
    loop_free(e.loop);
    arena_fini(&e.arena);
    return r;
}
