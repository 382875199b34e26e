#include "harness/run/evidence/clock_told.h"

#include "base/sys/clock.h"

#include <string.h>

/* A coarse clock of the kernel's lags by one of its ticks. */
static const int64_t lag_ns = 20000000;

void *clock_told_begin(struct run_entry *a, struct bound *b) {
    struct clock_told *c = arena_new(&a->owner->engine->arena, struct clock_told);
    c->since_ns = clock_realtime_ns();
    return c;
}

static void take(struct clock_told *c, const struct clock_reader *r) {
    if (!c->any || r->first.real_ns < c->first.real_ns)
        c->first = r->first;
    if (!c->any || r->last.real_ns > c->last.real_ns)
        c->last = r->last;
    if (!c->any || clock_ahead_by(&r->least) < clock_ahead_by(&c->least))
        c->least = r->least;
    if (!c->any || clock_ahead_by(&r->most) > clock_ahead_by(&c->most))
        c->most = r->most;
    memcpy(c->program, r->program, sizeof(c->program));
    c->any = true;
}

bool clock_told_felt(struct bound *b, struct clock_told *c,
                     bool (*shows)(const struct clock_shift *s, const struct clock_told *c)) {
    static struct clock_witness w; /* large */
    struct clock_setting s;
    if (!c || node_clock_witness(b->node, &s, &w) != 0)
        return false;
    c->any = false;
    for (size_t i = 0; i < w.n; i++)
        if (w.v[i].first.real_ns >= c->since_ns - lag_ns)
            take(c, &w.v[i]);
    return c->any && shows(&s.shift, c);
}

void clock_told_put(const struct clock_told *c, struct json_writer *w) {
    json_put_string(w, "program", c->program);
    json_put_i64(w, "told", c->last.said_ns);
    json_put_i64(w, "ahead_least", clock_ahead_by(&c->least));
    json_put_i64(w, "ahead_most", clock_ahead_by(&c->most));
}
