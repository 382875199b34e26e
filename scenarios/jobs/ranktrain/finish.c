#include "scenarios/jobs/ranktrain/finish.h"

#include <errno.h>
#include <stdio.h>

/* A short run is tested on no more images than it was trained on: the first ones, whole batches. */
static uint32_t test_batches(const struct trainer *t) {
    uint64_t all = t->data.test.count / LAYER_BATCH, trained = t->state.step * SHARDS;
    return (uint32_t)(trained && trained < all ? trained : all);
}

/* Every rank classifies its share of the test set. Returns the share of right answers. */
static int test(struct trainer *t, double *ret_accuracy, struct err *err) {
    const struct idx *d = &t->data.test;
    uint32_t batches = test_batches(t), world = (uint32_t)t->o->world;
    uint32_t rank = (uint32_t)t->o->rank;
    int64_t right = 0;
    int r = 0;
    for (uint32_t b = batches * rank / world; r == 0 && b < batches * (rank + 1) / world; b++) {
        const uint8_t *images[LAYER_BATCH];
        uint8_t classes[LAYER_BATCH];
        for (uint32_t i = 0; i < LAYER_BATCH; i++)
            images[i] = idx_image(d, b * LAYER_BATCH + i);
        r = t->compute->classify(t->c, t->state.weights, images, classes, err);
        for (uint32_t i = 0; i < LAYER_BATCH && r == 0; i++)
            right += classes[i] == idx_label(d, b * LAYER_BATCH + i);
    }
    if (r == 0)
        r = trainer_sum(t, &right, 1, err);
    *ret_accuracy = (double)right / (double)(batches * LAYER_BATCH);
    return r;
}

int finish(struct trainer *t, struct err *err) {
    char model[65];
    double accuracy;
    int64_t all = 1;
    int r = test(t, &accuracy, err);
    if (r < 0)
        return r;
    rankquake_exit_barrier(&t->q);
    r = trainer_sum(t, &all, 1, err);
    if (r < 0)
        return r == -ECANCELED ? r : err_wrap(err, "exit barrier: ");
    state_hash(&t->state, model);
    rankquake_done(&t->q, model);
    if (!trainer_leads(t))
        return 0;
    printf("label %s, seed %lld\n", t->label, (long long)t->o->seed);
    printf("accuracy %.4f\n", accuracy);
    printf("model %s\n", model);
    return 0;
}
