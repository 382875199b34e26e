#include "scenarios/jobs/ranktrain/optimizer.h"
#include "scenarios/jobs/ranktrain/fixed_point.h"
#include "scenarios/jobs/ranktrain/wide.h"

WIDE void optimizer_step(const struct optimizer *o, const int64_t *sums, size_t n, unsigned samples,
                         float *weights, float *velocity) {
    double scale = 1 / (FIXED_POINT_ONE * samples);
    for (size_t i = 0; i < n; i++) {
        float g = (float)((double)sums[i] * scale);
        velocity[i] = o->momentum * velocity[i] + g;
        weights[i] -= o->lr * velocity[i];
    }
}
