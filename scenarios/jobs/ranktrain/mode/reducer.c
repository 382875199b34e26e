#include "scenarios/jobs/ranktrain/mode/reducer.h"

#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct reducer {
    struct trainer *t;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct {
        int64_t *data;
        size_t n;
    } calls[REDUCER_CALLS];
    int put, done; /* calls; done: have ended, well or not */
    bool ends;
    int r;
    struct err err;
};

/* With the lock held. Returns false when nothing will come any more. */
static bool next_call(struct reducer *r) {
    while (r->done == r->put && !r->ends)
        pthread_cond_wait(&r->changed, &r->lock);
    return r->done < r->put && !r->ends;
}

static void *reducer_run(void *arg) {
    struct reducer *r = arg;
    pthread_mutex_lock(&r->lock);
    while (next_call(r)) {
        int i = r->done, failed = r->r;
        pthread_mutex_unlock(&r->lock);
        int e = failed ? failed : trainer_sum(r->t, r->calls[i].data, r->calls[i].n, &r->err);
        pthread_mutex_lock(&r->lock);
        r->r = e;
        r->done++;
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

struct reducer *reducer_new(struct trainer *t, struct err *err) {
    struct reducer *r = mem_new(struct reducer);
    r->t = t;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    int e = pthread_create(&r->thread, NULL, reducer_run, r);
    if (e == 0)
        return r;
    free(r);
    err_set(err, -e, "start a thread that sums");
    return NULL;
}

void reducer_free(struct reducer *r) {
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->ends = true;
    if (r->done < r->put) /* the peers notice, and so does the thread */
        r->t->collective->abort(r->t->ring);
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->changed);
    free(r);
}

void reducer_put(struct reducer *r, int64_t *data, size_t n) {
    trainer_announce(r->t);
    pthread_mutex_lock(&r->lock);
    assert(r->put < REDUCER_CALLS);
    r->calls[r->put].data = data;
    r->calls[r->put++].n = n;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

int reducer_wait(struct reducer *r, struct err *err) {
    pthread_mutex_lock(&r->lock);
    while (r->done < r->put)
        pthread_cond_wait(&r->changed, &r->lock);
    r->put = r->done = 0;
    int e = r->r;
    r->r = 0; /* the next group begins anew */
    pthread_mutex_unlock(&r->lock);
    if (e < 0 && err)
        *err = r->err;
    return e;
}
