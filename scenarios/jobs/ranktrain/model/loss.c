#include "scenarios/jobs/ranktrain/model/loss.h"

#include <math.h>

double loss_cross_entropy(const float *logits, const uint8_t *labels, int samples, int classes,
                          float *ret_d_logits) {
    double loss = 0;
    for (int n = 0; n < samples; n++, logits += classes, ret_d_logits += classes) {
        double sum = 0;
        float top = logits[0];
        for (int k = 1; k < classes; k++)
            top = logits[k] > top ? logits[k] : top;
        for (int k = 0; k < classes; k++)
            sum += exp((double)logits[k] - top);
        for (int k = 0; k < classes; k++)
            ret_d_logits[k] = (float)(exp((double)logits[k] - top) / sum - (k == labels[n]));
        loss += log(sum) - ((double)logits[labels[n]] - top);
    }
    return loss;
}
