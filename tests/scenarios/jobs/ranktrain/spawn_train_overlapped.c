/* ranktrain whose backward pass waits where it is watched: when it has come to its second layer, and
 * so not to its end, until a sum over the ranks has begun. Then it says so; after 30 s it says that
 * none has. */
#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int begun; /* sums */

#define trainer_sum trainer_sum_rightly
#include "scenarios/jobs/ranktrain/trainer.c"
#undef trainer_sum

int trainer_sum(struct trainer *t, int64_t *data, size_t n, struct err *err);

int trainer_sum(struct trainer *t, int64_t *data, size_t n, struct err *err) {
    pthread_mutex_lock(&lock);
    begun++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return trainer_sum_rightly(t, data, n, err);
}

#define pass_gradient pass_gradient_rightly
double pass_gradient(struct pass *p, const float *values, const uint8_t *const *images,
                     const uint8_t *labels, float *ret_gradient, const struct pass_watch *watch);
#include "scenarios/jobs/ranktrain/model/pass.c"
#undef pass_gradient

static const struct pass_watch *watched;

static void wait_for_a_sum(int before) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30;
    pthread_mutex_lock(&lock);
    int r = 0;
    while (begun == before && r == 0)
        r = pthread_cond_timedwait(&changed, &lock, &until);
    printf("%s\n", begun > before ? "a sum has begun before the backward pass was over"
                                  : "no sum has begun before the backward pass was over");
    pthread_mutex_unlock(&lock);
}

static int before;

static void on_layer(void *arg, int layer) {
    watched->layer(watched->arg, layer);
    if (layer == 1)
        wait_for_a_sum(before);
}

double pass_gradient(struct pass *p, const float *values, const uint8_t *const *images,
                     const uint8_t *labels, float *ret_gradient, const struct pass_watch *watch) {
    const struct pass_watch own = {.layer = on_layer};
    watched = watch;
    before = begun;
    return pass_gradient_rightly(p, values, images, labels, ret_gradient, watch ? &own : NULL);
}

#include "scenarios/jobs/ranktrain/main.c"
