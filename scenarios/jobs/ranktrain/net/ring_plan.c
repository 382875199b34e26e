#include "scenarios/jobs/ranktrain/net/ring_plan.h"

enum { SEGMENT = 256 * 1024 };

static size_t segments(const struct ring_plan *p) {
    return p->call->bytes / SEGMENT + (p->call->bytes % SEGMENT != 0 || p->call->bytes == 0);
}

int ring_plan_phases(const struct ring_plan *p) {
    if (p->world == 1)
        return 0;
    if (p->call->op == COLLECTIVE_ALL_REDUCE)
        return 2 * (p->world - 1);
    if (p->call->op == COLLECTIVE_BROADCAST)
        return (int)segments(p) + p->world - 2;
    return p->world - 1;
}

static size_t chunk_begin(const struct ring_plan *p, int chunk) {
    if (p->call->op != COLLECTIVE_ALL_REDUCE)
        return p->call->bounds[chunk];
    size_t n = p->call->bytes / sizeof(int64_t);
    return n * (size_t)chunk / (size_t)p->world * sizeof(int64_t);
}

/* The chunk that a rank sends in a phase. What goes round complete is, at first, one's own; what is
 * added ends with one's own, or, where it goes on round the ring, with that of the next. */
static int chunk_sent(const struct ring_plan *p, int rank, int phase) {
    int half = p->world - 1, chunk = rank - phase;
    if (p->call->op == COLLECTIVE_REDUCE_SCATTER)
        chunk = rank - phase - 1;
    if (p->call->op == COLLECTIVE_ALL_REDUCE && phase >= half)
        chunk = rank + 1 - (phase - half);
    return (chunk + 2 * p->world) % p->world;
}

static bool adds(const struct ring_plan *p, int phase) {
    return p->call->op == COLLECTIVE_REDUCE_SCATTER ||
           (p->call->op == COLLECTIVE_ALL_REDUCE && phase < p->world - 1);
}

static bool segment_at(const struct ring_plan *p, int segment, size_t *ret_at, size_t *ret_bytes) {
    if (segment < 0 || (size_t)segment >= segments(p))
        return false;
    *ret_at = (size_t)segment * SEGMENT;
    size_t left = p->call->bytes - *ret_at;
    *ret_bytes = left < SEGMENT ? left : SEGMENT;
    return true;
}

/* A rank that is d behind the root sends what it got in the phase before. */
static struct ring_move broadcast_move(const struct ring_plan *p, int phase) {
    struct ring_move m = {0};
    int d = (p->rank - p->call->peer + p->world) % p->world;
    m.sends = d < p->world - 1 && segment_at(p, phase - d, &m.out, &m.out_bytes);
    m.gets = d > 0 && segment_at(p, phase - d + 1, &m.in, &m.in_bytes);
    return m;
}

struct ring_move ring_plan_move(const struct ring_plan *p, int phase) {
    if (p->call->op == COLLECTIVE_BROADCAST)
        return broadcast_move(p, phase);
    int before = (p->rank + p->world - 1) % p->world;
    int out = chunk_sent(p, p->rank, phase), in = chunk_sent(p, before, phase);
    return (struct ring_move){.sends = true,
                              .gets = true,
                              .adds = adds(p, phase),
                              .out = chunk_begin(p, out),
                              .out_bytes = chunk_begin(p, out + 1) - chunk_begin(p, out),
                              .in = chunk_begin(p, in),
                              .in_bytes = chunk_begin(p, in + 1) - chunk_begin(p, in)};
}

size_t ring_plan_staging(const struct ring_plan *p) {
    size_t most = 0;
    for (int i = 0; i < ring_plan_phases(p) && adds(p, i); i++) {
        struct ring_move m = ring_plan_move(p, i);
        most = m.in_bytes > most ? m.in_bytes : most;
    }
    return most;
}

int ring_plan_last_sent(const struct ring_plan *p) {
    int phase = ring_plan_phases(p) - 1;
    while (phase >= 0 && !ring_plan_move(p, phase).sends)
        phase--;
    return phase;
}
