/* A layer by itself, with random numbers in all that it is given; what lies behind each of its rooms is to stay as it is. */
#pragma once

#include "scenarios/jobs/ranktrain/data/draw.h"
#include "scenarios/jobs/ranktrain/model/layer.h"
#include "tests/scenarios/jobs/ranktrain/model/naive_blas.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { SCENE_ROOMS = 16, SCENE_BEHIND = 16 };

struct scene {
    struct model_layer l;
    struct layer_pass p;
    float *in, *second, *trained, *pull;
    size_t n_in, n_out;
    struct scene_room {
        float *p;
        size_t n;
    } rooms[SCENE_ROOMS];
    int rooms_n;
};

/* Another behind each room: what is copied too far is seen. */
static inline float scene_mark(int room) {
    return 4711 + (float)room;
}

static inline float *scene_floats(struct scene *s, size_t n) {
    float *p = calloc(n + SCENE_BEHIND, sizeof(*p));
    if (!p || s->rooms_n == SCENE_ROOMS)
        abort();
    for (size_t i = 0; i < SCENE_BEHIND; i++)
        p[n + i] = scene_mark(s->rooms_n);
    s->rooms[s->rooms_n++] = (struct scene_room){p, n};
    return p;
}

static inline void scene_randomize(float *x, size_t n, uint64_t *seed) {
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(2 * draw_unit(seed) - 1);
}

/* Of so many samples; 0: as many as a shard has. */
static inline void scene_open(struct scene *s, struct model_layer l) {
    uint64_t seed = 3;
    *s = (struct scene){.l = l};
    s->l.in.batch = l.in.batch ? l.in.batch : LAYER_BATCH;
    assert_true(s->l.kind->plan(&s->l));
    s->n_in = layer_floats(&s->l.in);
    s->n_out = layer_floats(&s->l.out);
    s->in = scene_floats(s, s->n_in);
    s->second = scene_floats(s, s->n_in);
    s->trained = scene_floats(s, s->l.trained);
    s->pull = scene_floats(s, s->n_out);
    s->p = (struct layer_pass){.l = &s->l,
                               .blas = &naive_blas,
                               .learning = true,
                               .in = s->in,
                               .second = s->second,
                               .trained = s->trained,
                               .running = scene_floats(s, s->l.running),
                               .out = scene_floats(s, s->n_out),
                               .kept = scene_floats(s, s->l.kept),
                               .choice = (int32_t *)(void *)scene_floats(s, s->l.choices),
                               .ret_statistics = scene_floats(s, s->l.running),
                               .d_out = scene_floats(s, s->n_out),
                               .ret_d_trained = scene_floats(s, s->l.trained),
                               .borrowed = scene_floats(s, s->l.borrowed),
                               .ret_d_in = scene_floats(s, s->n_in),
                               .ret_d_second = scene_floats(s, s->n_in)};
    scene_randomize(s->in, s->n_in, &seed);
    scene_randomize(s->second, s->n_in, &seed);
    scene_randomize(s->trained, s->l.trained, &seed);
    scene_randomize(s->pull, s->n_out, &seed);
}

static inline void scene_close(struct scene *s) {
    for (int i = 0; i < s->rooms_n; i++) {
        for (size_t k = 0; k < SCENE_BEHIND; k++)
            if (s->rooms[i].p[s->rooms[i].n + k] != scene_mark(i))
                fail_msg("%s: room %d is written beyond its end", s->l.kind->name, i);
        free(s->rooms[i].p);
    }
}

#define IMAGES(c, s) .in = {.channels = (c), .side = (s)}, .second = LAYER_NONE
