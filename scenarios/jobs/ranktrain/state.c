#include "scenarios/jobs/ranktrain/state.h"

#include "base/mem.h"
#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

void state_init_part(struct state *ret, const struct model *m, const struct optimizer_kind *k,
                     struct state_range held, struct state_range held_moments) {
    size_t weights = state_range_length(held), moment = state_range_length(held_moments);
    *ret = (struct state){.values = m->values,
                          .trained = m->trained,
                          .held = held,
                          .held_moments = held_moments,
                          .moments = optimizer_moments(k)};
    size_t floats = weights + (size_t)ret->moments * moment;
    ret->weights = mem_alloc(floats ? floats : 1, sizeof(float));
    for (int i = 0; i < ret->moments; i++)
        ret->moment[i] = ret->weights + weights + (size_t)i * moment;
}

void state_init(struct state *ret, const struct model *m, const struct optimizer_kind *k) {
    state_init_part(ret, m, k, (struct state_range){0, m->values},
                    (struct state_range){0, m->trained});
}

bool state_is_whole(const struct state *s) {
    return state_range_length(s->held) == s->values &&
           state_range_length(s->held_moments) == s->trained;
}

void state_fini(struct state *s) {
    free(s->weights);
    *s = (struct state){0};
}

void state_clear(struct state *s) {
    s->step = 0;
    memset(s->weights, 0, state_bytes(s));
}

size_t state_bytes(const struct state *s) {
    return (state_range_length(s->held) +
            (size_t)s->moments * state_range_length(s->held_moments)) *
           sizeof(float);
}

void state_put(float *to, struct state_range of, size_t at, const float *x, size_t n) {
    size_t lo = of.lo > at ? of.lo : at, hi = of.hi < at + n ? of.hi : at + n;
    if (lo < hi)
        memcpy(to + (lo - of.lo), x + (lo - at), (hi - lo) * sizeof(*x));
}

void state_copy(struct state *dst, const struct state *src) {
    dst->step = src->step;
    memcpy(dst->weights, src->weights, state_bytes(src));
}

bool state_is_alike(const struct state *a, const struct state *b) {
    return a->held.lo == b->held.lo && a->held.hi == b->held.hi &&
           a->held_moments.lo == b->held_moments.lo && a->held_moments.hi == b->held_moments.hi;
}

bool state_is_equal(const struct state *a, const struct state *b) {
    return a->step == b->step && state_bytes(a) == state_bytes(b) &&
           memcmp(a->weights, b->weights, state_bytes(a)) == 0;
}

void state_hash(const struct state *s, char ret[65]) {
    sha256_of(s->weights, state_range_length(s->held) * sizeof(float), ret);
}

void state_mark(const struct state *s, char ret[STATE_MARK]) {
    char whole[65];
    state_hash(s, whole);
    memcpy(ret, whole, STATE_MARK - 1);
    ret[STATE_MARK - 1] = '\0';
}
