/* Bytes as a schedule, for a fuzzer: ten for the world, seven for each fault. What is missing is
 * 0. */
#include "base/mem.h"
#include "harness/sim/schedule.h"

#include <stdlib.h>

enum { ENTRY = 7, ENTRIES_MAX = 24, STEP_MS = 4 };

struct bytes {
    const uint8_t *p;
    size_t left;
};

static int take(struct bytes *b) {
    if (!b->left)
        return 0;
    b->left--;
    return *b->p++;
}

/* Ends included. */
static int take_from(struct bytes *b, int least, int most) {
    return least + take(b) % (most - least + 1);
}

static void take_world(struct bytes *b, struct sim_schedule *s) {
    s->seed = (uint64_t)take(b);
    s->agents = take_from(b, 1, SIM_AGENTS_USUAL);
    s->max = take_from(b, 1, s->agents);
    s->min = take_from(b, 1, s->max);
    s->max_restarts = take_from(b, 0, 3);
    int odds = take(b);
    s->loss = odds & 1 ? 20 : 0;
    s->late = odds & 2 ? 15 : 0;
    s->fragile = odds & 4 ? 150 : 0;
    s->slow_ns = (odds & 8 ? 120 : 3) * SIM_MS;
    s->slow_answer_ns = odds & 16 ? 140 * SIM_MS : 0;
    s->even = odds & 32;
    s->lifeline = odds & 64;
    s->gang = odds & 128;
    s->spares = take_from(b, 0, s->agents - 1);
    s->work_ns = take_from(b, 2, 25) * 100 * SIM_MS;
    s->trouble_ns = take_from(b, 1, 40) * 100 * SIM_MS;
}

static struct sim_entry take_entry(struct bytes *b, const struct sim_schedule *s) {
    struct sim_entry e = {.node = SIM_NODE_NONE};
    int at = take(b) << 8;
    at += take(b);
    e.fault = take_from(b, 0, SIM_FAULTS_N - 1);
    const struct sim_fault *f = &sim_faults()[e.fault];
    e.at_ns = at * STEP_MS * SIM_MS % s->trouble_ns;
    int node = take_from(b, 0, s->agents), span = take(b), after = take(b), rest = take(b);
    e.after = after < 200 ? 0 : after - 199;
    if (f->on_node)
        e.node = node < s->agents ? node : e.after ? SIM_NODE_WRITER : 0;
    if (f->span_most_ns)
        e.span_ns = f->span_least_ns + (f->span_most_ns - f->span_least_ns) / 255 * span;
    if (f->returns && rest & 1)
        e.back_ns = (rest + 1) * 10 * SIM_MS;
    if (f->on_watch)
        e.watch = rest % 4;
    return e;
}

void sim_decode(const uint8_t *data, size_t n, struct sim_schedule *ret) {
    struct bytes b = {data, n};
    *ret = (struct sim_schedule){0};
    ret->entries = mem_array(struct sim_entry, ENTRIES_MAX);
    take_world(&b, ret);
    while (b.left >= ENTRY && ret->n_entries < ENTRIES_MAX) {
        struct sim_entry e = take_entry(&b, ret);
        if (sim_faults()[e.fault].weight) /* the core does not bear it yet */
            sim_schedule_add(ret, &e);
    }
}
