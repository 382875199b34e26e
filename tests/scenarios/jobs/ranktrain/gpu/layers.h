/* What a GPU library computes, held against the CPU's layer by layer.
 *
 * The CPU's products are summed in double precision here (naive_blas.h), so that all the difference
 * is the GPU's: a float sum of k terms is off by about sqrt(k) / 2^25 of the largest, and k is at
 * most 1568 (a weight of the first layer), which gives 1.2e-6; layers add up, so 1e-5 of the
 * largest number of a layer is what none may exceed. Choices of the maxima must be the same: the
 * images are random, so that no two candidates are as near to each other as that. */
#pragma once

#include "scenarios/jobs/ranktrain/fixed_point.h"
#include "scenarios/jobs/ranktrain/gpu/backend.h"
#include "scenarios/jobs/ranktrain/gpu/network.h"
#include "scenarios/jobs/ranktrain/model/pass.h"
#include "scenarios/jobs/ranktrain/data/draw.h"
#include "tests/scenarios/jobs/ranktrain/model/fashion.h"
#include "tests/scenarios/jobs/ranktrain/model/naive_blas.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LAYERS_TOLERANCE 1e-5

/* The CPU's layers, in the order of the network. */
enum { CONV1, POOL1, CONV2, POOL2, FLAT, DENSE1, DENSE2, DENSE3 };

struct layers {
    struct model *model;
    struct pass *cpu;
    struct compute_place place; /* for who opens a library */
    struct network_shard gpu;
    float parameters[LENET_PARAMETERS], gradient[LENET_PARAMETERS];
    uint8_t pixels[NETWORK_SHARDS][LENET_BATCH][LENET_PIXELS];
    struct compute_batch batches[NETWORK_SHARDS];
    int64_t sums[LENET_PARAMETERS + 1];
    double loss;
};

struct difference {
    const char *name;
    double error, largest; /* of a difference and of a number */
};

enum { LAYERS = 14 };

/* The library that works without a GPU, built beside the tests. */
static inline void layers_fake(char ret[PATH_MAX]) {
    ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 64);
    ret[n > 0 ? n : 0] = 0;
    char *tests = strstr(ret, "/tests/");
    if (tests)
        snprintf(tests, 64, "/tests/fakes/ranktrain_cuda.so");
}

static inline struct layers *layers_new(void) {
    struct layers *l = calloc(1, sizeof(*l));
    uint64_t seed = 29;
    if (!l)
        abort();
    l->model = fashion_model("lenet", 0);
    l->cpu = pass_new(l->model, &naive_blas);
    l->place =
        (struct compute_place){.model = l->model, .wake_fd = -1, .limit_ns = INT64_C(60000000000)};
    model_init(l->model, 5, l->parameters);
    for (int k = 0; k < NETWORK_SHARDS; k++)
        for (int n = 0; n < LENET_BATCH; n++) {
            l->batches[k].shard = k;
            l->batches[k].images[n] = l->pixels[k][n];
            l->batches[k].labels[n] = (uint8_t)draw_below(&seed, LENET_CLASSES);
            for (int i = 0; i < LENET_PIXELS; i++)
                l->pixels[k][n][i] = (uint8_t)draw_below(&seed, 256);
        }
    return l;
}

static inline void layers_free(struct layers *l) {
    pass_free(l->cpu);
    model_free(l->model);
    free(l);
}

/* All batches by the library, and the k-th one by the CPU too. */
static inline int layers_compute(struct layers *l, const struct gpu_backend *gpu, void *c, int k,
                                 struct err *err) {
    const struct compute_batch *b = &l->batches[k];
    int shard;
    int r = gpu->compute->sum(c, l->parameters, l->batches, NETWORK_SHARDS, l->sums, &shard, err);
    if (r == 0)
        r = gpu->inspect(c, k, &l->gpu, err);
    l->loss = pass_gradient(l->cpu, l->parameters, b->images, b->labels, l->gradient, NULL);
    return r;
}

static inline struct difference layers_compare(const char *name, const float *want,
                                               const float *got, size_t n) {
    struct difference l = {.name = name};
    for (size_t i = 0; i < n; i++) {
        double size = fabs((double)want[i]), error = fabs((double)want[i] - (double)got[i]);
        l.largest = size > l.largest ? size : l.largest;
        l.error = error >= l.error || error != error ? error : l.error;
    }
    return l;
}

/* A gradient before the cut, as the CPU leaves it, after it. */
static inline void layers_cut(const float *out, const float *d_out, float *ret, size_t n) {
    for (size_t i = 0; i < n; i++)
        ret[i] = out[i] > 0 ? d_out[i] : 0;
}

/* The images with the border that the GPU has around them. */
static inline const float *layers_input(const struct pass *p) {
    static float padded[LENET_BATCH][NETWORK_PADDED][NETWORK_PADDED];
    const float *images = pass_look(p, LAYER_IMAGES).out;
    for (int n = 0; n < LENET_BATCH; n++)
        for (int y = 0; y < LENET_SIDE; y++, images += LENET_SIDE)
            memcpy(&padded[n][y + 2][2], images, LENET_SIDE * sizeof(*images));
    return &padded[0][0][0];
}

static inline int layers_look(struct layers *l, struct difference ret[LAYERS]) {
    const struct network_shard *g = &l->gpu;
    struct pass_layer c[DENSE3 + 1];
    for (int i = 0; i <= DENSE3; i++)
        c[i] = pass_look(l->cpu, i);
    float loss = (float)l->loss, sum = 0;
    static float cut[6 * 8 * 14 * 14], flat[8 * 400];
    int n = 0;
    for (int i = 0; i < LENET_BATCH; i++)
        sum += (float)g->losses[i];
#define ROW(name, want, got)                                                                       \
    ret[n++] = layers_compare(name, want, got, sizeof(got) / sizeof(*(got)))
    ROW("input", layers_input(l->cpu), g->input);
    ROW("pooled1", c[POOL1].out, g->pooled1);
    ROW("pooled2", c[FLAT].out, g->pooled2);
    ROW("hidden1", c[DENSE1].out, g->hidden1);
    ROW("hidden2", c[DENSE2].out, g->hidden2);
    ROW("logits", c[DENSE3].out, g->logits);
    ret[n++] = layers_compare("loss", &loss, &sum, 1);
    ROW("d_logits", c[DENSE3].d_out, g->d_logits);
    ROW("d_hidden2", c[DENSE2].d_out, g->d_hidden2);
    ROW("d_hidden1", c[DENSE1].d_out, g->d_hidden1);
    layers_cut(c[FLAT].out, c[FLAT].d_out, flat, 8 * 400);
    ROW("d_pooled2", flat, g->d_pooled2);
    layers_cut(c[POOL1].out, c[POOL1].d_out, cut, 6 * 8 * 14 * 14);
    ROW("d_pooled1", cut, g->d_pooled1);
    ROW("gradient", l->gradient, g->gradient);
#undef ROW
    ret[n] = (struct difference){.name = "choices of the maxima", .largest = 1};
    for (int i = 0; i < 6 * 8 * 14 * 14; i++)
        ret[n].error += c[POOL1].choice[i] != g->choice1[i];
    return n + 1;
}

static inline bool layers_agree(const struct difference *l) {
    return l->error <= LAYERS_TOLERANCE * l->largest;
}
