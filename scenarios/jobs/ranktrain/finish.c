#include "scenarios/jobs/ranktrain/finish.h"
#include "scenarios/jobs/ranktrain/mode/mode.h"

#include <errno.h>
#include <stdio.h>

/* A short run is tested on no more images than it was trained on: the first ones, whole batches. */
static uint32_t test_batches(const struct trainer *t) {
    uint64_t all = t->data.test.count / (uint32_t)t->model->data.batch;
    uint64_t trained = t->last_step * (uint64_t)t->o->shards;
    return (uint32_t)(trained && trained < all ? trained : all);
}

static int classify(struct trainer *t, const uint8_t *const *images, uint8_t *ret_classes,
                    struct err *err) {
    if (t->mode->classify)
        return t->mode->classify(t, images, ret_classes, err);
    return images ? t->compute->classify(t->c, t->state.weights, images, ret_classes, err) : 0;
}

/* Batch b; beyond the last one of this rank there is none. Adds up the right answers. */
static int test_batch(struct trainer *t, uint32_t b, bool there, int64_t *right, struct err *err) {
    const struct images *d = &t->data.test;
    uint32_t batch = (uint32_t)t->model->data.batch;
    const uint8_t *images[LAYER_BATCH_MAX];
    uint8_t classes[LAYER_BATCH_MAX];
    int r = 0;
    for (uint32_t i = 0; i < batch && there && r == 0; i++)
        r = (images[i] = images_read(d, b * batch + i, err)) ? 0 : -EBADMSG;
    if (r == 0)
        r = classify(t, there ? images : NULL, classes, err);
    for (uint32_t i = 0; i < batch && there && r == 0; i++)
        *right += classes[i] == images_label(d, b * batch + i);
    return r;
}

/* Every rank classifies its share of the test set; of a group that has broken up rank 0 alone all of
 * it. Returns the share of right answers. */
static int test(struct trainer *t, double *ret_accuracy, struct err *err) {
    uint32_t batches = test_batches(t), world = (uint32_t)t->o->world, rank = (uint32_t)t->o->rank;
    int64_t right = 0;
    int r = 0;
    if (t->broken_up) {
        world = 1;
        batches = trainer_leads(t) ? batches : 0;
        rank = 0;
    }
    uint32_t from = batches * rank / world, to = batches * (rank + 1) / world;
    for (uint32_t i = 0; r == 0 && i < (batches + world - 1) / world; i++)
        r = test_batch(t, from + i, from + i < to, &right, err);
    if (r == 0 && !t->broken_up)
        r = trainer_sum(t, &right, 1, err);
    *ret_accuracy = (double)right / (double)(batches * (uint32_t)t->model->data.batch);
    return r;
}

int finish(struct trainer *t, struct err *err) {
    char model[65];
    double accuracy;
    int64_t all = 1;
    int r = test(t, &accuracy, err);
    if (r < 0)
        return r;
    r = trainer_hash(t, model, err);
    if (r < 0)
        return r;
    rankquake_exit_barrier(&t->q);
    r = t->broken_up ? 0 : trainer_sum(t, &all, 1, err);
    if (r < 0)
        return r == -ECANCELED ? r : err_wrap(err, "exit barrier: ");
    rankquake_done(&t->q, model);
    if (!trainer_leads(t))
        return 0;
    printf("label %s, seed %lld\n", t->label, (long long)t->o->seed);
    printf("accuracy %.4f\n", accuracy);
    printf("model %s\n", model);
    return 0;
}
