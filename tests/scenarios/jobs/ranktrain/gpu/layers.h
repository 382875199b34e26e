/* What a GPU library computes, held against the CPU's layer by layer.
 *
 * The CPU's products are summed in double precision here (naive_blas.h), so that all the difference
 * is the GPU's: a float sum of k terms is off by about sqrt(k) / 2^25 of the largest, and layers add
 * up, so that 1e-5 of the largest number of a layer is what none of LeNet's may exceed, and ten times
 * as much with batch norm, which divides by what may be small. Choices of the maxima must be the
 * same: the images are random, so that no two candidates are as near to each other as that. */
#pragma once

#include "scenarios/jobs/ranktrain/data/draw.h"
#include "scenarios/jobs/ranktrain/fixed_point.h"
#include "scenarios/jobs/ranktrain/gpu/backend.h"
#include "scenarios/jobs/ranktrain/model/pass.h"
#include "scenarios/jobs/ranktrain/shards.h"
#include "tests/scenarios/jobs/ranktrain/model/fashion.h"
#include "tests/scenarios/jobs/ranktrain/model/naive_blas.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct layers {
    struct model *model;
    struct pass *cpu;
    struct compute_place place; /* for who opens a library */
    float *values, *gradient;
    int64_t *sums;
    uint8_t pixels[SHARDS][LAYER_BATCH][FASHION_PIXELS];
    struct compute_batch batches[SHARDS];
    double loss, tolerance;
};

/* Together they have every kind of layer, strides and what is added to twice. */
static const struct layers_network {
    const char *name;
    int width;
    double tolerance;
} layers_networks[] = {{"lenet", 0, 1e-5}, {"resnet18", 4, 1e-4}, {"vgg11", 4, 1e-4}};
enum { LAYERS_NETWORKS = sizeof(layers_networks) / sizeof(*layers_networks) };

struct difference {
    char name[64];
    double error, largest; /* of a difference and of a number */
};

/* The library that works without a GPU, built beside the tests. */
static inline void layers_fake(char ret[PATH_MAX]) {
    ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 64);
    ret[n > 0 ? n : 0] = 0;
    char *tests = strstr(ret, "/tests/");
    if (tests)
        snprintf(tests, 64, "/tests/fakes/ranktrain_cuda.so");
}

static inline struct layers *layers_new(const struct layers_network *network) {
    struct layers *l = calloc(1, sizeof(*l));
    uint64_t seed = 29;
    if (!l)
        abort();
    l->model = fashion_model(network->name, network->width);
    l->tolerance = network->tolerance;
    l->cpu = pass_new(l->model, &naive_blas);
    l->place = (struct compute_place){
        .model = l->model, .batches = SHARDS, .wake_fd = -1, .limit_ns = INT64_C(60000000000)};
    l->values = calloc(l->model->values, sizeof(*l->values));
    l->gradient = calloc(l->model->values, sizeof(*l->gradient));
    l->sums = calloc(l->model->values + 1, sizeof(*l->sums));
    model_init(l->model, 5, l->values);
    for (int k = 0; k < SHARDS; k++)
        for (int n = 0; n < LAYER_BATCH; n++) {
            l->batches[k].shard = k;
            l->batches[k].images[n] = l->pixels[k][n];
            l->batches[k].labels[n] = (uint8_t)draw_below(&seed, FASHION_CLASSES);
            for (int i = 0; i < FASHION_PIXELS; i++)
                l->pixels[k][n][i] = (uint8_t)draw_below(&seed, 256);
        }
    return l;
}

static inline void layers_free(struct layers *l) {
    pass_free(l->cpu);
    model_free(l->model);
    free(l->values);
    free(l->gradient);
    free(l->sums);
    free(l);
}

/* n batches from the k-th one on by the library; all sums. */
static inline int layers_sum(struct layers *l, const struct gpu_backend *gpu, void *c, int k, int n,
                             int64_t *ret_sums, struct err *err) {
    struct compute_wrong wrong;
    return gpu->compute->sum(c, l->values, l->batches + k, n, NULL, ret_sums, &wrong, err);
}

/* The k-th batch alone, by the library and by the CPU. */
static inline int layers_compute(struct layers *l, const struct gpu_backend *gpu, void *c, int k,
                                 struct err *err) {
    const struct compute_batch *b = &l->batches[k];
    l->loss = pass_gradient(l->cpu, l->values, b->images, b->labels, l->gradient, NULL);
    return layers_sum(l, gpu, c, k, 1, l->sums, err);
}

static inline struct difference layers_compare(const char *name, const float *want,
                                               const float *got, size_t n) {
    struct difference l = {.largest = 0};
    snprintf(l.name, sizeof(l.name), "%s", name);
    for (size_t i = 0; i < n; i++) {
        double size = fabs((double)want[i]), error = fabs((double)want[i] - (double)got[i]);
        l.largest = size > l.largest ? size : l.largest;
        l.error = error >= l.error || error != error ? error : l.error;
    }
    return l;
}

static inline bool layers_agree(const struct layers *l, const struct difference *d) {
    return d->error <= l->tolerance * d->largest;
}

enum { LAYERS_ROWS = 3 }; /* of a layer: output, gradient, choices */

/* What layers_compute has left of layer i. Returns how many rows, or an error. */
static inline int layers_look(struct layers *l, const struct gpu_backend *gpu, void *c, int i,
                              struct difference ret[LAYERS_ROWS], struct err *err) {
    static float out[1 << 20], d_out[1 << 20];
    static int32_t choice[1 << 20];
    const struct pass_layer want = pass_look(l->cpu, i);
    const struct model_layer *layer = i < 0 ? NULL : &l->model->layers[i];
    struct gpu_look q = {.layer = i, .out = out, .d_out = d_out, .choice = choice};
    size_t n = layer ? layer_floats(&layer->out) : LAYER_BATCH * FASHION_PIXELS;
    char name[64];
    int r = gpu->inspect(c, &q, err);
    if (r < 0 || n > 1 << 20)
        return r < 0 ? r : -1;
    snprintf(name, sizeof(name), "%s %d (%s)", l->model->name, i + 1,
             layer ? layer->kind->name : "images");
    ret[0] = layers_compare(name, want.out, out, n);
    if (!layer)
        return 1;
    strcat(name, " gradient");
    ret[1] = layers_compare(name, want.d_out, d_out, n);
    ret[2] = (struct difference){.largest = 1};
    snprintf(ret[2].name, sizeof(ret[2].name), "%s %d choices", l->model->name, i + 1);
    for (size_t k = 0; k < layer->choices; k++)
        ret[2].error += want.choice[k] != choice[k];
    return layer->choices ? 3 : 2;
}

/* The gradient of all parameters, the statistics, and the loss. */
static inline void layers_look_at_sums(const struct layers *l, struct difference ret[2]) {
    size_t values = l->model->values;
    float *got = calloc(values, sizeof(*got)), want = (float)l->loss, loss;
    for (size_t i = 0; i < values; i++)
        got[i] = (float)fixed_point_value(l->sums[i]);
    loss = (float)fixed_point_value(l->sums[values]);
    char name[64];
    snprintf(name, sizeof(name), "%s gradient of all parameters", l->model->name);
    ret[0] = layers_compare(name, l->gradient, got, values);
    snprintf(name, sizeof(name), "%s loss", l->model->name);
    ret[1] = layers_compare(name, &want, &loss, 1);
    free(got);
}
