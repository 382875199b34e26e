/* One process with several devices, as PyTorch's DataParallel: at every step the weights go to all
 * devices, the batch is split over them, and what they have computed is gathered. On a processor a
 * device is a thread with memory of its own. */
#include "scenarios/jobs/ranktrain/mode/mode.h"
#include "scenarios/jobs/ranktrain/mode/work.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include "base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct dp_device {
    struct dp *dp;
    pthread_t thread;
    bool started;
    int shards[SHARDS_MAX], n;
    void *c; /* of compute */
    float *weights, *gradient;
    int64_t *sums;
    uint64_t *read;
    int r;
    struct err err;
};

struct dp {
    struct trainer *t;
    int n;
    bool ends;
    pthread_barrier_t begun, done; /* of a step; the devices and who leads them */
    struct dp_device devices[SHARDS_MAX];
};

static int dp_check(const struct ranktrain_options *o, struct err *err) {
    if (o->devices <= o->shards)
        return 0;
    return err_say(err, -EINVAL,
                   "--devices=%lld: at most %lld, for the batch has %lld shards; --shards makes "
                   "more of it",
                   (long long)o->devices, (long long)o->shards, (long long)o->shards);
}

static void compute_part(struct dp_device *d) {
    struct trainer *t = d->dp->t;
    const struct shards_work work = {.compute = t->compute,
                                     .c = d->c,
                                     .model = t->model,
                                     .data = &t->data.train,
                                     .scratch = d->gradient};
    bool asked = rankquake_asked(&t->q, RANKQUAKE_ASK_SAMPLES);
    memcpy(d->weights, t->state.weights, t->model->values * sizeof(*d->weights));
    d->r = shards_sum(&work, d->weights, sampler_step(&t->sampler, t->state.step + 1), d->shards,
                      d->n, d->sums, asked ? d->read : NULL, &d->err);
}

static void *device_run(void *arg) {
    struct dp_device *d = arg;
    for (;;) {
        pthread_barrier_wait(&d->dp->begun);
        if (d->dp->ends)
            return NULL;
        compute_part(d);
        pthread_barrier_wait(&d->dp->done);
    }
}

/* The numbers of a device's shards lie one after another in what all have read. */
static int open_device(struct dp *dp, int i, struct err *err) {
    struct trainer *t = dp->t;
    struct dp_device *d = &dp->devices[i];
    size_t values = t->model->values;
    char label[COMPUTE_LABEL];
    struct ration ration = {.limit = t->ration.limit};
    struct compute_place at = {.model = t->model,
                               .local_rank = t->o->local_rank + i,
                               .wake_fd = t->asked.end_fd,
                               .limit_ns = t->o->device_ns};
    d->dp = dp;
    d->n = shards_of(i, dp->n, (int)t->o->shards, d->shards);
    d->read = t->read + d->shards[0] * t->model->data.batch;
    at.batches = d->n;
    int r = t->compute->open(&at, &d->c, label, err);
    if (r == 0)
        r = work_count_compute(&ration, t->compute, d->c, err);
    if (r < 0)
        return r;
    d->weights = ration_alloc(&ration, RATION_PARAMETERS, values, sizeof(float), err);
    if (d->weights && !t->compute->sum)
        d->gradient = ration_alloc(&ration, RATION_GRADIENTS, values, sizeof(float), err);
    if (d->weights && (t->compute->sum || d->gradient))
        d->sums = ration_alloc(&ration, RATION_GRADIENTS, values + 1, sizeof(int64_t), err);
    return d->sums ? 0 : -ENOMEM;
}

static int dp_open(struct trainer *t, struct err *err) {
    int r = work_open(t, err);
    struct dp *dp = t->m = mem_new(struct dp);
    dp->t = t;
    dp->n = (int)t->o->devices;
    pthread_barrier_init(&dp->begun, NULL, (unsigned)dp->n + 1);
    pthread_barrier_init(&dp->done, NULL, (unsigned)dp->n + 1);
    for (int i = 0; i < dp->n && r == 0; i++)
        r = open_device(dp, i, err);
    for (int i = 0; i < dp->n && r == 0; i++) {
        int e = pthread_create(&dp->devices[i].thread, NULL, device_run, &dp->devices[i]);
        if (e)
            return err_set(err, -e, "start a thread for device %d", i);
        dp->devices[i].started = true;
    }
    return r;
}

/* What the devices have computed, in their order. */
static int gather(struct dp *dp, struct err *err) {
    struct trainer *t = dp->t;
    memset(t->sums, 0, (t->model->values + 1) * sizeof(*t->sums));
    for (int i = 0; i < dp->n; i++) {
        const struct dp_device *d = &dp->devices[i];
        if (d->r < 0) {
            *err = d->err;
            return err_wrap(err, "device %d: ", i);
        }
        for (size_t k = 0; k <= t->model->values; k++)
            t->sums[k] += d->sums[k];
    }
    return 0;
}

static int dp_step(struct trainer *t, double *ret_loss, struct err *err) {
    struct dp *dp = t->m;
    int64_t begun_ns = deadline_now_ns();
    (void)sampler_step(&t->sampler, t->state.step + 1); /* drawn before the devices ask */
    pthread_barrier_wait(&dp->begun);
    pthread_barrier_wait(&dp->done);
    int r = gather(dp, err);
    if (r == 0)
        r = work_floor(t, begun_ns, err);
    if (r == 0)
        *ret_loss = work_update(t);
    return r;
}

static void device_close(struct dp_device *d, const struct compute *compute) {
    if (d->started)
        pthread_join(d->thread, NULL);
    compute->close(d->c, NULL);
    free(d->weights);
    free(d->gradient);
    free(d->sums);
}

/* Of some that were started and some that were not, those would wait at the barrier for these: then none is told, and
 * nothing given back. */
static void dp_close(struct trainer *t) {
    struct dp *dp = t->m;
    int started = 0, n = dp ? dp->n : 0;
    for (int i = 0; i < n; i++)
        started += dp->devices[i].started;
    bool all = started == n, none = started == 0;
    if (dp && all) {
        dp->ends = true;
        pthread_barrier_wait(&dp->begun);
    }
    if (all || none) {
        for (int i = 0; i < n; i++)
            device_close(&dp->devices[i], t->compute);
        free(dp);
    }
    work_close(t);
}

const struct mode mode_dp = {
    .name = "dp",
    .summary = "one process, the batch split over --devices",
    .alone = true,
    .check = dp_check,
    .open = dp_open,
    .step = dp_step,
    .close = dp_close,
};
