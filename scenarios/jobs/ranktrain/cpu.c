/* ranktrain's arithmetic on a processor, by OpenBLAS on one core. */
#include "scenarios/jobs/ranktrain/compute.h"
#include "scenarios/jobs/ranktrain/model/pass.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

struct cpu {
    struct blas blas;
    struct pass *pass;
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
    cpu->pass = pass_new(at->model, &cpu->blas);
    snprintf(ret_label, COMPUTE_LABEL, "cpu %s", cpu->blas.label);
    *ret = cpu;
    return 0;
}

static double cpu_gradient(void *c, const float *values, const uint8_t *const *images,
                           const uint8_t *labels, float *ret_gradient) {
    struct cpu *cpu = c;
    return pass_gradient(cpu->pass, values, images, labels, ret_gradient);
}

static int cpu_classify(void *c, const float *values, const uint8_t *const *images,
                        uint8_t *ret_classes, struct err *err) {
    struct cpu *cpu = c;
    pass_classify(cpu->pass, values, images, ret_classes);
    return 0;
}

const struct compute compute_cpu = {
    .name = "cpu",
    .summary = "OpenBLAS on one core",
    .open = cpu_open,
    .gradient = cpu_gradient,
    .classify = cpu_classify,
    .close = cpu_close,
};
