#include "harness/run/evidence/clock_told.h"

#include "base/sys/clock.h"

/* What is set before the fault is brought in force is an earlier one's, or none. */
void *clock_told_begin(struct run_entry *a, struct bound *b) {
    struct clock_known *c = arena_new(&a->owner->engine->arena, struct clock_known);
    struct clock_setting s;
    c->since_ns = clock_realtime_ns();
    if (node_clock_told(b->node, c->since_ns, &s, &c->told) == 0)
        c->generation = s.generation;
    return c;
}

bool clock_told_felt(struct bound *b, struct clock_known *c,
                     bool (*shows)(const struct clock_shift *s, const struct clock_told *c)) {
    struct clock_setting s;
    if (!c || node_clock_told(b->node, c->since_ns, &s, &c->told) != 0)
        return false;
    return s.generation != c->generation && c->told.any && shows(&s.shift, &c->told);
}

void clock_told_put(const struct clock_known *c, struct json_writer *w) {
    json_put_string(w, "program", c->told.program);
    json_put_i64(w, "told", c->told.last.said_ns);
    json_put_i64(w, "ahead_least", clock_ahead_by(&c->told.least));
    json_put_i64(w, "ahead_most", clock_ahead_by(&c->told.most));
}
