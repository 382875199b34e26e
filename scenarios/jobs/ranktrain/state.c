#include "scenarios/jobs/ranktrain/state.h"

#include "base/mem.h"
#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

void state_init(struct state *ret, const struct model *m, const struct optimizer_kind *k) {
    *ret =
        (struct state){.values = m->values, .trained = m->trained, .moments = optimizer_moments(k)};
    ret->weights = mem_alloc(m->values + (size_t)ret->moments * m->trained, sizeof(float));
    for (int i = 0; i < ret->moments; i++)
        ret->moment[i] = ret->weights + m->values + (size_t)i * m->trained;
}

void state_fini(struct state *s) {
    free(s->weights);
    *s = (struct state){0};
}

size_t state_bytes(const struct state *s) {
    return (s->values + (size_t)s->moments * s->trained) * sizeof(float);
}

void state_copy(struct state *dst, const struct state *src) {
    dst->step = src->step;
    memcpy(dst->weights, src->weights, state_bytes(src));
}

bool state_is_equal(const struct state *a, const struct state *b) {
    return a->step == b->step && state_bytes(a) == state_bytes(b) &&
           memcmp(a->weights, b->weights, state_bytes(a)) == 0;
}

void state_hash(const struct state *s, char ret[65]) {
    sha256_of(s->weights, s->values * sizeof(float), ret);
}

void state_mark(const struct state *s, char ret[STATE_MARK]) {
    char whole[65];
    state_hash(s, whole);
    memcpy(ret, whole, STATE_MARK - 1);
    ret[STATE_MARK - 1] = '\0';
}
