/* ranktrain's arithmetic on a processor, by OpenBLAS on one core. */
#include "scenarios/jobs/ranktrain/compute.h"
#include "scenarios/jobs/ranktrain/fixed_point.h"
#include "scenarios/jobs/ranktrain/model/pass.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

struct cpu {
    struct blas blas;
    struct pass *pass;
    const struct model *model;
};

static int cpu_close(void *c, struct err *err) {
    struct cpu *cpu = c;
    if (!cpu)
        return 0;
    blas_close(&cpu->blas);
    pass_free(cpu->pass);
    free(cpu);
    return 0;
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

static struct pass *cpu_pass(void *c) {
    struct cpu *cpu = c;
    return pass_new(cpu->model, &cpu->blas);
}

static size_t cpu_bytes(void *c) {
    return pass_bytes(own_pass(c));
}

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
    .pass = cpu_pass,
    .bytes = cpu_bytes,
    .classify = cpu_classify,
    .close = cpu_close,
};
