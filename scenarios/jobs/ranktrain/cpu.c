/* ranktrain's arithmetic on a processor, by OpenBLAS on one core. */
#include "scenarios/jobs/ranktrain/compute.h"
#include "scenarios/jobs/ranktrain/fixed_point.h"
#include "scenarios/jobs/ranktrain/model/pass.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cpu {
    struct blas blas;
    struct pass *pass;
    const struct model *model;

    /* One layer at a time: a pass for each batch, and a gradient of the largest layer. */
    bool layered, learning;
    struct pass **passes;
    int batches, n; /* n: in use */
    const struct compute_batch *batch;
    float *gradient;
    size_t unit; /* numbers of it */
};

static int cpu_close(void *c, struct err *err) {
    struct cpu *cpu = c;
    if (!cpu)
        return 0;
    blas_close(&cpu->blas);
    pass_free(cpu->pass);
    for (int i = 0; i < cpu->batches; i++)
        pass_free(cpu->passes[i]);
    free(cpu->passes);
    free(cpu->gradient);
    free(cpu);
    return 0;
}

static void open_layers(struct cpu *cpu, const struct compute_place *at) {
    const struct model *m = at->model;
    for (int i = 0; i < m->n; i++) {
        size_t n = m->layers[i].trained + m->layers[i].running;
        cpu->unit = n > cpu->unit ? n : cpu->unit;
    }
    cpu->layered = true;
    cpu->batches = at->batches > 0 ? at->batches : 1;
    cpu->gradient = mem_array(float, cpu->unit);
    cpu->passes = mem_array(struct pass *, (size_t)cpu->batches);
    for (int i = 0; i < cpu->batches; i++)
        cpu->passes[i] = pass_new(m, &cpu->blas);
}

static int cpu_open(const struct compute_place *at, void **ret, char ret_label[COMPUTE_LABEL],
                    struct err *err) {
    struct cpu *cpu = mem_new(struct cpu);
    int r = blas_open(&cpu->blas, err);
    if (r < 0) {
        cpu_close(cpu, NULL);
        return r;
    }
    cpu->model = at->model;
    if (at->layered)
        open_layers(cpu, at);
    snprintf(ret_label, COMPUTE_LABEL, "cpu %s", cpu->blas.label);
    *ret = cpu;
    return 0;
}

/* Made when it is needed: who computes by passes of its own needs none. */
static struct pass *own_pass(struct cpu *cpu) {
    if (!cpu->pass)
        cpu->pass = pass_new(cpu->model, &cpu->blas);
    return cpu->pass;
}

static double cpu_gradient(void *c, const float *values, const uint8_t *const *images,
                           const uint8_t *labels, float *ret_gradient,
                           const struct pass_watch *watch) {
    struct cpu *cpu = c;
    return pass_gradient(own_pass(cpu), values, images, labels, ret_gradient, watch);
}

static bool are_numbers(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!(x[i] < FIXED_POINT_LIMIT && x[i] > -FIXED_POINT_LIMIT))
            return false;
    return true;
}

/* The last layer with parameters whose gradient is bad, the first that is computed backward; or the
 * first whose statistics are. */
static int find_bad(const struct model *m, const float *gradient, bool statistics) {
    for (int i = 0; i < m->n; i++) {
        const struct model_layer *l = &m->layers[statistics ? i : m->n - 1 - i];
        if (!are_numbers(gradient + (statistics ? l->running_at : l->trained_at),
                         statistics ? l->running : l->trained))
            return (int)(l - m->layers);
    }
    return -1;
}

static void cpu_blame(const void *c, const float *gradient, char ret[COMPUTE_LABEL]) {
    const struct cpu *cpu = c;
    const struct model *m = cpu->model;
    const char *what = "output";
    int layer = pass_first_bad(cpu->pass);
    if (layer < 0) {
        what = "gradient";
        layer = find_bad(m, gradient, false);
    }
    if (layer < 0) {
        what = "statistics";
        layer = find_bad(m, gradient, true);
    }
    ret[0] = '\0';
    if (layer >= 0)
        snprintf(ret, COMPUTE_LABEL, "the %s of layer %d (%s)", what, layer + 1,
                 m->layers[layer].kind->name);
}

static void cpu_memory(void *c, struct compute_memory *ret) {
    struct cpu *cpu = c;
    *ret = (struct compute_memory){.gradients = cpu->unit * sizeof(float)};
    for (int i = 0; i < cpu->batches; i++)
        ret->activations += pass_bytes(cpu->passes[i]);
    if (!cpu->layered)
        ret->activations = pass_bytes(own_pass(cpu));
}

static int wrong(const struct cpu *cpu, int batch, const char *what, int layer,
                 struct compute_wrong *ret) {
    ret->shard = cpu->batch[batch].shard;
    snprintf(ret->where, sizeof(ret->where), "the %s of layer %d (%s)", what, layer + 1,
             cpu->model->layers[layer].kind->name);
    return -ERANGE;
}

static int layers_begin(void *c, const struct compute_batch *batches, int n, bool learning,
                        struct err *err) {
    struct cpu *cpu = c;
    assert(n <= cpu->batches);
    cpu->n = n;
    cpu->batch = batches;
    cpu->learning = learning;
    for (int i = 0; i < n; i++)
        pass_begin(cpu->passes[i], batches[i].images);
    return 0;
}

static struct pass_values values_of(const struct cpu *cpu, int layer, const float *values) {
    return (struct pass_values){.learning = cpu->learning,
                                .trained = values,
                                .running = values + cpu->model->layers[layer].trained,
                                .ret_statistics = cpu->gradient,
                                .ret_d_trained = cpu->gradient};
}

static int layers_forward(void *c, int layer, const float *values, int64_t *sums,
                          struct compute_wrong *ret_wrong, struct err *err) {
    struct cpu *cpu = c;
    const struct pass_values v = values_of(cpu, layer, values);
    for (int i = 0; i < cpu->n; i++) {
        pass_forward(cpu->passes[i], layer, &v);
        if (cpu->learning &&
            !fixed_point_add(sums, cpu->gradient, cpu->model->layers[layer].running))
            return wrong(cpu, i, "statistics", layer, ret_wrong);
    }
    return 0;
}

static int layers_loss(void *c, int64_t *sum, struct compute_wrong *ret_wrong, struct err *err) {
    struct cpu *cpu = c;
    for (int i = 0; i < cpu->n; i++) {
        double loss = pass_loss(cpu->passes[i], cpu->batch[i].labels);
        int bad = pass_first_bad(cpu->passes[i]);
        if (bad >= 0 || !(loss < (double)FIXED_POINT_LIMIT))
            return wrong(cpu, i, "output", bad < 0 ? cpu->model->n - 1 : bad, ret_wrong);
        *sum += fixed_point_of(loss);
    }
    return 0;
}

static int layers_backward(void *c, int layer, const float *values, int64_t *ret_sums,
                           struct compute_wrong *ret_wrong, struct err *err) {
    struct cpu *cpu = c;
    size_t trained = cpu->model->layers[layer].trained;
    const struct pass_values v = values_of(cpu, layer, values);
    memset(ret_sums, 0, trained * sizeof(*ret_sums));
    for (int i = 0; i < cpu->n; i++) {
        pass_backward(cpu->passes[i], layer, &v);
        if (!fixed_point_add(ret_sums, cpu->gradient, trained))
            return wrong(cpu, i, "gradient", layer, ret_wrong);
    }
    return 0;
}

static int layers_classes(void *c, uint8_t *ret_classes, struct err *err) {
    struct cpu *cpu = c;
    pass_classes(cpu->passes[0], ret_classes);
    return 0;
}

static const struct compute_layers cpu_layers = {
    .begin = layers_begin,
    .forward = layers_forward,
    .loss = layers_loss,
    .backward = layers_backward,
    .classes = layers_classes,
};

static int cpu_classify(void *c, const float *values, const uint8_t *const *images,
                        uint8_t *ret_classes, struct err *err) {
    struct cpu *cpu = c;
    pass_classify(own_pass(cpu), values, images, ret_classes);
    return 0;
}

const struct compute compute_cpu = {
    .name = "cpu",
    .summary = "OpenBLAS on one core",
    .open = cpu_open,
    .gradient = cpu_gradient,
    .blame = cpu_blame,
    .layers = &cpu_layers,
    .memory = cpu_memory,
    .classify = cpu_classify,
    .close = cpu_close,
};
