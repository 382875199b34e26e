/* How long one step of a network of ranktrain takes: 96 samples, from the weights to the new weights.
 *
 *     spawn_step cpu|cuda [STEPS [NETWORK [WIDTH]]]
 *
 * Prints "label ...", "step_us P50 P10 P90", and "fixed_us P50", of which one addition of a gradient
 * in fixed point takes. cuda opens the library that $RANKTRAIN_CUDA names.
 * Exit: 0, 1 when a step failed, 3 when there is nothing to compute on. */
#include "scenarios/jobs/ranktrain/data/draw.h"
#include "scenarios/jobs/ranktrain/fixed_point.h"
#include "scenarios/jobs/ranktrain/gpu/backend.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"
#include "scenarios/jobs/ranktrain/optimizer.h"
#include "scenarios/jobs/ranktrain/shards.h"
#include "scenarios/jobs/ranktrain/state.h"
#include "tests/scenarios/jobs/ranktrain/model/fashion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM = 20, STEPS_MAX = 100000 };

static struct {
    struct model *model;
    struct optimizer optimizer;
    struct state state;
    float *gradient;
    int64_t *sums;
    uint8_t file[SHARDS_BATCH * FASHION_PIXELS], labels[SHARDS_BATCH];
} s;

static int by_time(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int step(const struct compute *compute, void *c, const struct images *data,
                struct err *err) {
    static const int shards[SHARDS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    static uint32_t samples[SHARDS_BATCH];
    const struct shards_work w = {
        .compute = compute, .c = c, .model = s.model, .data = data, .scratch = s.gradient};
    for (uint32_t i = 0; i < SHARDS_BATCH; i++)
        samples[i] = i;
    int r = shards_sum(&w, s.state.weights, samples, shards, SHARDS, s.sums, NULL, err);
    const struct optimizer_update u = {.sums = s.sums,
                                       .trained = s.model->trained,
                                       .values = s.model->values,
                                       .samples = SHARDS_BATCH,
                                       .batches = SHARDS,
                                       .step = ++s.state.step};
    if (r == 0)
        optimizer_step(&s.optimizer, &u, s.state.weights, s.state.moment);
    return r;
}

static int measure(const struct compute *compute, void *c, int steps, struct err *err) {
    static double us[STEPS_MAX];
    struct images data = {.shape = {.channels = 1, .side = 28, .classes = FASHION_CLASSES},
                          .bytes = FASHION_PIXELS,
                          .pixels = s.file,
                          .labels = s.labels,
                          .count = SHARDS_BATCH};
    uint64_t seed = 7;
    model_init(s.model, 1, s.state.weights);
    for (size_t i = 0; i < sizeof(s.file); i++)
        s.file[i] = (uint8_t)draw_below(&seed, 256);
    for (size_t i = 0; i < sizeof(s.labels); i++)
        s.labels[i] = (uint8_t)draw_below(&seed, FASHION_CLASSES);
    int r = 0;
    for (int i = -WARM; i < steps && r == 0; i++) {
        int64_t begin = deadline_now_ns();
        r = step(compute, c, &data, err);
        if (i >= 0)
            us[i] = (double)(deadline_now_ns() - begin) / 1e3;
    }
    if (r < 0)
        return r;
    qsort(us, (size_t)steps, sizeof(*us), by_time);
    printf("step_us %.1f %.1f %.1f\n", us[steps / 2], us[steps / 10], us[steps * 9 / 10]);
    return 0;
}

static void measure_fixed_point(int times) {
    static double us[STEPS_MAX];
    for (int i = 0; i < times; i++) {
        int64_t begin = deadline_now_ns();
        fixed_point_add(s.sums, s.gradient, s.model->values);
        us[i] = (double)(deadline_now_ns() - begin) / 1e3;
    }
    qsort(us, (size_t)times, sizeof(*us), by_time);
    printf("fixed_us %.1f\n", us[times / 2]);
}

int main(int argc, char **argv) {
    const struct gpu_backend *gpu;
    const struct compute *compute = &compute_cpu;
    struct err err = {0};
    char label[COMPUTE_LABEL];
    void *c = NULL;
    int steps = argc > 2 ? atoi(argv[2]) : 300, r = 0;
    if (argc < 2 || steps < 1 || steps > STEPS_MAX)
        return 64;
    s.model = fashion_model(argc > 3 ? argv[3] : "lenet", argc > 4 ? atoi(argv[4]) : 0);
    s.optimizer = (struct optimizer){optimizer_find("sgd", &err), 0.05f, 0.9f};
    state_init(&s.state, s.model, s.optimizer.kind);
    s.gradient = calloc(s.model->values, sizeof(*s.gradient));
    s.sums = calloc(s.model->values + 1, sizeof(*s.sums));
    const struct compute_place place = {
        .model = s.model, .wake_fd = -1, .limit_ns = INT64_C(60000000000)};
    if (strcmp(argv[1], "cuda") == 0) {
        r = backend_open(&gpu, &err);
        compute = r == 0 ? gpu->compute : NULL;
    }
    if (r == 0)
        r = compute->open(&place, &c, label, &err);
    if (r < 0) {
        fprintf(stderr, "spawn_step: %s\n", err.msg);
        return 3;
    }
    printf("label %s\n", label);
    r = measure(compute, c, steps, &err);
    if (r == 0)
        measure_fixed_point(steps);
    compute->close(c, NULL);
    if (r < 0)
        fprintf(stderr, "spawn_step: %s\n", err.msg);
    return r < 0;
}
