#include "scenarios/jobs/ranktrain/finish.h"

#include <errno.h>
#include <stdio.h>

/* A short run is tested on no more images than it was trained on: the first ones, whole batches. */
static uint32_t test_batches(const struct trainer *t) {
    uint64_t all = t->data.test.count / (uint32_t)t->model->data.batch;
    uint64_t trained = t->state.step * (uint64_t)t->o->shards;
    return (uint32_t)(trained && trained < all ? trained : all);
}

/* Every rank classifies its share of the test set. Returns the share of right answers. */
static int test(struct trainer *t, double *ret_accuracy, struct err *err) {
    const struct images *d = &t->data.test;
    uint32_t batches = test_batches(t), world = (uint32_t)t->o->world;
    uint32_t rank = (uint32_t)t->o->rank, batch = (uint32_t)t->model->data.batch;
    int64_t right = 0;
    int r = 0;
    for (uint32_t b = batches * rank / world; r == 0 && b < batches * (rank + 1) / world; b++) {
        const uint8_t *images[LAYER_BATCH_MAX];
        uint8_t classes[LAYER_BATCH_MAX];
        for (uint32_t i = 0; i < batch && r == 0; i++)
            r = (images[i] = images_read(d, b * batch + i, err)) ? 0 : err->code;
        if (r < 0)
            return r;
        r = t->compute->classify(t->c, t->state.weights, images, classes, err);
        for (uint32_t i = 0; i < batch && r == 0; i++)
            right += classes[i] == images_label(d, b * batch + i);
    }
    if (r == 0)
        r = trainer_sum(t, &right, 1, err);
    *ret_accuracy = (double)right / (double)(batches * batch);
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
