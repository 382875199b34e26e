#include "scenarios/jobs/ranktrain/checkpoints/writer.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

enum { STACK_BYTES = 1 << 20 };

struct checkpoint_writer {
    const struct checkpoint_place *place;
    struct rankquake *q;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool busy, ends;
    int part, parts; /* parts 0: the whole */
    struct state copy;
    struct checkpoint_part written;
    int result;
    struct err err;
};

static void work(struct checkpoint_writer *w, struct err *err) {
    int r = w->parts
                ? checkpoint_part_write(w->place, &w->copy, w->part, w->parts, &w->written, err)
                : checkpoint_save(w->place, &w->copy, w->q, err);
    pthread_mutex_lock(&w->lock);
    w->result = r;
    w->err = *err;
    w->busy = false;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void *live(void *arg) {
    struct checkpoint_writer *w = arg;
    for (;;) {
        struct err err = {0};
        pthread_mutex_lock(&w->lock);
        while (!w->busy && !w->ends)
            pthread_cond_wait(&w->changed, &w->lock);
        bool busy = w->busy;
        pthread_mutex_unlock(&w->lock);
        if (!busy)
            return NULL;
        work(w, &err);
    }
}

int writer_new(struct checkpoint_writer **ret, const struct checkpoint_place *p,
               struct rankquake *q, struct err *err) {
    struct checkpoint_writer *w = mem_new(struct checkpoint_writer);
    pthread_attr_t attributes;
    w->place = p;
    w->q = q;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int r = pthread_create(&w->thread, &attributes, live, w);
    pthread_attr_destroy(&attributes);
    if (r) {
        free(w);
        return err_set(err, -r, "start the thread that saves");
    }
    *ret = w;
    return 0;
}

struct checkpoint_writer *writer_free(struct checkpoint_writer *w) {
    if (!w)
        return NULL;
    pthread_mutex_lock(&w->lock);
    w->ends = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    state_fini(&w->copy);
    free(w);
    return NULL;
}

void writer_save_part(struct checkpoint_writer *w, const struct state *s, int part, int parts) {
    pthread_mutex_lock(&w->lock);
    if (w->copy.weights && !state_is_alike(&w->copy, s))
        state_fini(&w->copy);
    if (!w->copy.weights)
        state_init_part(&w->copy, w->place->model, w->place->optimizer, s->held, s->held_moments);
    state_copy(&w->copy, s);
    w->part = part;
    w->parts = parts;
    w->busy = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void writer_save(struct checkpoint_writer *w, const struct state *s) {
    writer_save_part(w, s, 0, 0);
}

/* With the lock. */
static int take_result(struct checkpoint_writer *w, struct err *err) {
    int r = w->result;
    w->result = 0;
    if (r < 0 && err)
        *err = w->err;
    return r;
}

int writer_poll(struct checkpoint_writer *w, struct err *err) {
    pthread_mutex_lock(&w->lock);
    int r = w->busy ? 0 : take_result(w, err);
    bool busy = w->busy;
    pthread_mutex_unlock(&w->lock);
    return r < 0 ? r : !busy;
}

int writer_wait(struct checkpoint_writer *w, struct err *err) {
    pthread_mutex_lock(&w->lock);
    while (w->busy)
        pthread_cond_wait(&w->changed, &w->lock);
    int r = take_result(w, err);
    pthread_mutex_unlock(&w->lock);
    return r;
}

const struct state *writer_state(const struct checkpoint_writer *w) {
    return &w->copy;
}

const struct checkpoint_part *writer_part(const struct checkpoint_writer *w) {
    return &w->written;
}
