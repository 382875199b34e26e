/* ranktrain's arithmetic on a processor, by OpenBLAS on one core. */
#include "scenarios/jobs/ranktrain/compute.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

struct cpu {
    struct blas blas;
    struct lenet *lenet;
};

static int cpu_close(void *c, struct err *err) {
    struct cpu *cpu = c;
    if (!cpu)
        return 0;
    blas_close(&cpu->blas);
    lenet_free(cpu->lenet);
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
    cpu->lenet = lenet_new();
    snprintf(ret_label, COMPUTE_LABEL, "cpu %s", cpu->blas.label);
    *ret = cpu;
    return 0;
}

static double cpu_gradient(void *c, const float *parameters,
                           const uint8_t *const images[LENET_BATCH],
                           const uint8_t labels[LENET_BATCH],
                           float ret_gradient[LENET_PARAMETERS]) {
    struct cpu *cpu = c;
    return lenet_gradient(cpu->lenet, &cpu->blas, parameters, images, labels, ret_gradient);
}

static int cpu_classify(void *c, const float *parameters, const uint8_t *const images[LENET_BATCH],
                        uint8_t ret_classes[LENET_BATCH], struct err *err) {
    struct cpu *cpu = c;
    lenet_classify(cpu->lenet, &cpu->blas, parameters, images, ret_classes);
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
