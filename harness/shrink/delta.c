#include "harness/shrink/delta.h"

bool delta_try(struct delta *d, void *candidate) {
    enum delta_answer answer = d->stopped ? DELTA_STOP : d->try(d->arg, candidate);
    d->stopped = answer == DELTA_STOP;
    d->found += answer == DELTA_SAME;
    return answer == DELTA_SAME;
}

void delta_halves(struct delta *d, size_t (*n)(void *arg),
                  size_t (*without)(void *arg, size_t left, size_t many)) {
    for (size_t many = (n(d->arg) + 1) / 2; many; many /= 2)
        for (size_t left = n(d->arg); left;)
            left = without(d->arg, left, many);
}

void delta_run(struct delta *d, void (*const *passes)(void *arg), int times_max) {
    int before = -1;
    for (int i = 0; i < times_max && d->found != before && !d->stopped; i++) {
        before = d->found;
        for (size_t k = 0; passes[k]; k++)
            passes[k](d->arg);
    }
}
