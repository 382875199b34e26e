/* optimizer: stochastic gradient descent with momentum, the same bits on every rank. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct optimizer {
    float lr, momentum;
};

/* gradient = sum / samples; velocity = momentum * velocity + gradient; weight -= lr * velocity.
 * sums are fixed_point. */
void optimizer_step(const struct optimizer *o, const int64_t *sums, size_t n, unsigned samples,
                    float *weights, float *velocity);
