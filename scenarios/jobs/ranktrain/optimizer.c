#include "scenarios/jobs/ranktrain/optimizer.h"
#include "scenarios/jobs/ranktrain/fixed_point.h"
#include "scenarios/jobs/ranktrain/wide.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define BETA1   0.9
#define BETA2   0.999
#define EPSILON 1e-8f

/* velocity = momentum * velocity + gradient; value -= lr * velocity */
WIDE static void sgd_step(const struct optimizer *o, const int64_t *sums, size_t n, double scale,
                          uint64_t step, float *values, float *const moments[OPTIMIZER_MOMENTS]) {
    float *velocity = moments[0];
    for (size_t i = 0; i < n; i++) {
        float g = (float)((double)sums[i] * scale);
        velocity[i] = o->momentum * velocity[i] + g;
        values[i] -= o->lr * velocity[i];
    }
}

/* By squaring: what libm makes of it may differ from version to version. */
static double power(double base, uint64_t exponent) {
    double result = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

WIDE static void adam_step(const struct optimizer *o, const int64_t *sums, size_t n, double scale,
                           uint64_t step, float *values, float *const moments[OPTIMIZER_MOMENTS]) {
    float *first = moments[0], *second = moments[1];
    float rate = (float)((double)o->lr / (1 - power(BETA1, step)));
    float unbias = (float)(1 / sqrt(1 - power(BETA2, step)));
    for (size_t i = 0; i < n; i++) {
        float g = (float)((double)sums[i] * scale);
        first[i] = (float)BETA1 * first[i] + (float)(1 - BETA1) * g;
        second[i] = (float)BETA2 * second[i] + (float)(1 - BETA2) * (g * g);
        values[i] -= rate * first[i] / (sqrtf(second[i]) * unbias + EPSILON);
    }
}

static const struct optimizer_kind table[] = {
    {"sgd", 0.05, {"velocity"}, sgd_step},
    {"adam", 0.001, {"first_moment", "second_moment"}, adam_step},
};

const struct optimizer_kind *optimizer_find(const char *name, struct err *err) {
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    err_say(err, -EINVAL, "--optimizer=%s: expected sgd or adam", name);
    return NULL;
}

int optimizer_moments(const struct optimizer_kind *k) {
    int n = 0;
    while (k->moments[n])
        n++;
    return n;
}

/* As PyTorch's batch norm does with its own momentum of 0.1. */
static void move_statistics(const int64_t *sums, size_t n, unsigned batches, float *values) {
    double scale = 0.1 / (FIXED_POINT_ONE * batches);
    for (size_t i = 0; i < n; i++)
        values[i] = (float)(0.9 * (double)values[i] + (double)sums[i] * scale);
}

void optimizer_step(const struct optimizer *o, const struct optimizer_update *u, float *values,
                    float *const moments[OPTIMIZER_MOMENTS]) {
    double scale = 1 / (FIXED_POINT_ONE * u->samples);
    o->kind->step(o, u->sums, u->trained, scale, u->step, values, moments);
    move_statistics(u->sums + u->trained, u->values - u->trained, u->batches, values + u->trained);
}
