#include "scenarios/jobs/ranktrain/mode/part.h"

#include "base/mem.h"
#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64 * 1024 };

static size_t begin_of(const struct trainer *t, int rank) {
    return t->model->trained * (size_t)rank / (size_t)t->o->world;
}

struct state_range part_of_moments(const struct trainer *t, int rank) {
    return (struct state_range){begin_of(t, rank), begin_of(t, rank + 1)};
}

struct state_range part_of_weights(const struct trainer *t, int rank) {
    size_t end = rank == t->o->world - 1 ? t->model->values : begin_of(t, rank + 1);
    return (struct state_range){begin_of(t, rank), end};
}

void part_bounds(const struct trainer *t, struct state_range range, size_t size,
                 size_t ret_bounds[BOOTSTRAP_MEMBERS + 1]) {
    for (int r = 0; r < t->o->world; r++) {
        size_t at = begin_of(t, r);
        at = at < range.lo ? range.lo : at > range.hi ? range.hi : at;
        ret_bounds[r] = (at - range.lo) * size;
    }
    ret_bounds[t->o->world] = state_range_length(range) * size;
}

int part_visit(struct trainer *t, part_of *of, const float *own, part_take *take, void *arg,
               struct err *err) {
    float *block = mem_array(float, BLOCK);
    int r = 0;
    for (int rank = 0; rank < t->o->world && r == 0; rank++) {
        struct state_range part = of(t, rank);
        for (size_t at = part.lo; at < part.hi && r == 0; at += BLOCK) {
            size_t n = part.hi - at < BLOCK ? part.hi - at : BLOCK;
            if (rank == t->o->rank)
                memcpy(block, own + (at - part.lo), n * sizeof(*block));
            struct collective_call call = {.op = COLLECTIVE_BROADCAST,
                                           .data = block,
                                           .bytes = n * sizeof(*block),
                                           .peer = rank};
            r = trainer_exchange(t, &call, err);
            if (r == 0)
                take(arg, at, block, n);
        }
    }
    free(block);
    return r;
}

/* What is wanted of a tensor, and where it goes. */
struct wish {
    float *to; /* NULL: nothing */
    struct state_range of;
};

static void put(void *arg, size_t at, const float *x, size_t n) {
    const struct wish *w = arg;
    if (w->to)
        state_put(w->to, w->of, at, x, n);
}

int part_gather_of(struct trainer *t, part_of *moments, struct state *ret, struct err *err) {
    const struct state *s = &t->state;
    struct wish w = {ret ? ret->weights : NULL, ret ? ret->held : s->held};
    int r = 0;
    if (ret)
        ret->step = s->step;
    if (state_range_length(s->held) == s->values)
        put(&w, 0, s->weights, s->values);
    else
        r = part_visit(t, part_of_weights, s->weights, put, &w, err);
    for (int i = 0; i < s->moments && r == 0; i++) {
        w = (struct wish){ret ? ret->moment[i] : NULL, ret ? ret->held_moments : s->held_moments};
        r = part_visit(t, moments, s->moment[i], put, &w, err);
    }
    return r;
}

int part_gather(struct trainer *t, struct state *ret, struct err *err) {
    return part_gather_of(t, part_of_moments, ret, err);
}

static void add_to_hash(void *arg, size_t at, const float *x, size_t n) {
    sha256_update(arg, x, n * sizeof(*x));
}

int part_hash(struct trainer *t, char ret[65], struct err *err) {
    struct sha256 hash;
    sha256_init(&hash);
    int r = part_visit(t, part_of_weights, t->state.weights, add_to_hash, &hash, err);
    if (r == 0)
        sha256_hex(&hash, ret);
    return r;
}
