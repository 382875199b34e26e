#include "scenarios/jobs/ranktrain/train.h"
#include "scenarios/jobs/ranktrain/finish.h"
#include "scenarios/jobs/ranktrain/meet.h"
#include "scenarios/jobs/ranktrain/mode/mode.h"
#include "scenarios/jobs/ranktrain/save.h"
#include "scenarios/jobs/ranktrain/setup.h"
#include "scenarios/jobs/ranktrain/trainer.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Those of this rank's samples that are of one epoch: a step may end one and begin the next. */
static void tell_epoch(struct trainer *t, uint64_t epoch) {
    uint32_t batch = (uint32_t)t->model->data.batch;
    uint64_t ids[SHARDS_MAX * LAYER_BATCH_MAX];
    size_t n = 0;
    for (int s = 0; s < t->n_shards; s++)
        for (uint32_t i = 0; i < batch; i++)
            if (sampler_epoch_of(&t->sampler, t->state.step, (uint32_t)t->shards[s] * batch + i) ==
                epoch)
                ids[n++] = t->read[(uint32_t)s * batch + i];
    if (n)
        rankquake_samples(&t->q, t->state.step, epoch, sampler_epoch_size(&t->sampler) * t->parts,
                          ids, n);
}

/* What the scenario asks for besides costs time: it is told only then. */
static void tell_samples(struct trainer *t) {
    if (!rankquake_asked(&t->q, RANKQUAKE_ASK_SAMPLES))
        return;
    uint64_t first = sampler_epoch_of(&t->sampler, t->state.step, 0);
    uint64_t last = sampler_epoch_of(&t->sampler, t->state.step, (uint32_t)t->o->batch_size - 1);
    for (uint64_t epoch = first; epoch <= last; epoch++)
        tell_epoch(t, epoch);
}

static int tell_step(struct trainer *t, double loss, struct err *err) {
    const struct state *s = &t->state;
    char mark[65];
    bool asked = rankquake_asked(&t->q, RANKQUAKE_ASK_WEIGHTS);
    int r = asked ? trainer_hash(t, mark, err) : 0;
    if (r < 0)
        return r;
    mark[STATE_MARK - 1] = '\0';
    pthread_mutex_lock(&t->speaking);
    tell_samples(t);
    /* Who is not waited for promises no shard: it says nothing of them. */
    int told = t->o->ps_async ? 0 : t->n_shards;
    rankquake_step_weights(&t->q, s->step, loss, (uint64_t)(t->n_shards * t->model->data.batch),
                           t->shards, (size_t)told, asked ? mark : NULL);
    pthread_mutex_unlock(&t->speaking);
    return 0;
}

static int step(struct trainer *t, struct err *err) {
    double loss;
    int r = t->loaders ? loaders_take(t->loaders, t->state.step + 1, t->asked.end_fd, err) : 0;
    if (r == 0)
        r = t->mode->step(t, &loss, err);
    if (r < 0)
        return r;
    if (trainer_leads(t) && t->o->log_every && t->state.step % (uint64_t)t->o->log_every == 0)
        printf("step %llu loss %.4f\n", (unsigned long long)t->state.step, loss);
    return tell_step(t, loss, err);
}

/* Asked to end, between two steps or within one: what has been trained is not lost. */
static int end_asked(struct trainer *t, struct err *err) {
    int r = save_last(t, err);
    return r < 0 ? r : -ECANCELED;
}

/* A peer is gone or silent; refused: it was there when the group was agreed on, and its door is there no more. */
static bool is_lost(int r) {
    return r == -ECONNRESET || r == -ECONNREFUSED || r == -EPIPE || r == -ETIMEDOUT;
}

/* Where no rank has all: r is what came of a step that all have made, and saved if one was asked to
 * end, or could not make. */
static int end_together(struct trainer *t, int r, const struct err *why) {
    if (!asked_is(&t->asked) || (r == 0 && !t->leaves) || (r < 0 && r != -ECANCELED && !is_lost(r)))
        return r;
    if (r < 0 && t->o->checkpoint_dir && t->durable_step != t->state.step)
        fprintf(
            stderr,
            "ranktrain: rank %d: asked to end, and step %llu cannot be saved: %s; the checkpoint "
            "before stays\n",
            t->o->rank, (unsigned long long)t->state.step,
            r == -ECANCELED ? "the --grace is over" : why->msg);
    return -ECANCELED;
}

static int train_steps(struct trainer *t, struct err *err) {
    const struct state *s = &t->state;
    int r = 0;
    while (r == 0 && !t->ends && s->step < t->last_step) {
        uint64_t at = s->step + 1;
        r = step(t, err);
        if (r == 0)
            r = save_step(t, err);
        if (trainer_ends_together(t))
            r = end_together(t, r, err);
        else if (r == -ECANCELED || ((r == 0 || is_lost(r)) && asked_is(&t->asked)))
            r = end_asked(t, err);
        if (r < 0) /* of who is asked to end nobody reads it */
            err_wrap(err, "step %llu: ", (unsigned long long)at);
    }
    return r;
}

/* What each rank holds: the point of all modes but ddp. */
static void tell_memory(const struct trainer *t) {
    char text[RATION_TEXT];
    ration_print(&t->ration, text);
    printf("rank %d holds %s\n", t->o->rank, text);
}

static void tell_regions(struct trainer *t) {
    struct state *s = &t->state;
    rankquake_region(&t->q, "weights", s->weights,
                     state_range_length(s->held) * sizeof(*s->weights));
    for (int i = 0; i < s->moments; i++)
        rankquake_region(&t->q, t->optimizer.kind->moments[i], s->moment[i],
                         state_range_length(s->held_moments) * sizeof(*s->weights));
}

/* A peer is gone, and somebody starts that one again, alone: this one stays (--recover=in-process). A
 * group that nobody joins is no such loss. */
static bool has_lost_a_peer(const struct trainer *t, int r, bool met) {
    return is_lost(r) && (met || r != -ETIMEDOUT) && t->o->world > 1 &&
           strcmp(t->o->recover, "in-process") == 0;
}

/* Leaves the group that is broken; what this rank has in memory it keeps. */
static int leave_group(struct trainer *t, const struct err *why, struct err *err) {
    fprintf(stderr, "ranktrain: rank %d: %s; meets its peers again\n", t->o->rank, why->msg);
    if (t->ring)
        t->collective->abort(t->ring);
    int r = t->collective->close(t->ring, err);
    t->ring = NULL;
    if (t->mode->forget)
        t->mode->forget(t);
    if (r == 0 && t->writer)
        r = writer_wait(t->writer, err);
    t->in_memory = save_has_all(t) && t->state.step;
    t->ends = t->broken_up = false; /* of the next group that one says */
    return r;
}

/* From one group to the next, until all is done. */
static int live(struct trainer *t, struct err *err) {
    for (;;) {
        struct err why = {0};
        int r = meet(t, &why);
        bool met = r == 0;
        if (r == 0)
            r = save_open(t, &why);
        if (r == 0)
            r = train_steps(t, &why);
        if (r == 0)
            r = finish(t, &why);
        if (r < 0 && r != -ECANCELED)
            *err = why;
        if (!has_lost_a_peer(t, r, met))
            return r;
        r = leave_group(t, &why, err);
        if (r < 0)
            return r;
        *err = (struct err){0};
    }
}

static int run(struct trainer *t, struct err *err) {
    int r = rankquake_open(&t->q);
    if (r < 0)
        fprintf(stderr, "ranktrain: rank %d: no events: RANKQUAKE_EVENTS: %s\n", t->o->rank,
                strerror(-r));
    r = setup(t, err);
    if (r < 0)
        return r;
    rankquake_ready(&t->q);
    tell_memory(t);
    tell_regions(t);
    return live(t, err);
}

int train_run(const struct ranktrain_options *o, struct err *ret_stuck, struct err *err) {
    struct trainer *t = mem_new(struct trainer);
    t->o = o;
    t->asked = ASKED_CLOSED;
    t->compute = &compute_cpu;
    t->collective = &collective_tcp_ring;
    pthread_mutex_init(&t->speaking, NULL);
    int r = run(t, err);
    if (r < 0 && t->ring) /* who waits for this rank should know */
        t->collective->abort(t->ring);
    save_close(t);
    if (t->mode && t->mode->close) /* its threads use what is closed next */
        t->mode->close(t);
    if (t->collective->close(t->ring, ret_stuck) == 0)
        t->compute->close(t->c, ret_stuck);
    model_free(t->model);
    sampler_fini(&t->sampler);
    loaders_end(t->loaders);
    dataset_close(&t->data);
    rankquake_close(&t->q);
    asked_close(&t->asked);
    free(t->read);
    free(t);
    return r;
}
