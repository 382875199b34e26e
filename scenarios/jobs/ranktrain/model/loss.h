/* loss: softmax and cross entropy. */
#pragma once

#include <stdint.h>

/* Returns the sum of the samples' losses; ret_d_logits[sample][class] is its gradient. */
double loss_cross_entropy(const float *logits, const uint8_t *labels, int samples, int classes,
                          float *ret_d_logits);
