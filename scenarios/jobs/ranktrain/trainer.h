/* trainer: all that one worker has in hand while it trains. The rooms of its life are setup.h (what
 * it brings), meet.h (the group and where it goes on), mode/mode.h (a step), save.h and finish.h. */
#pragma once

#include "scenarios/jobs/rankquake.h"
#include "scenarios/jobs/ranktrain/asked.h"
#include "scenarios/jobs/ranktrain/checkpoint.h"
#include "scenarios/jobs/ranktrain/checkpoints/resume.h"
#include "scenarios/jobs/ranktrain/checkpoints/writer.h"
#include "scenarios/jobs/ranktrain/compute.h"
#include "scenarios/jobs/ranktrain/data/dataset.h"
#include "scenarios/jobs/ranktrain/data/loaders.h"
#include "scenarios/jobs/ranktrain/data/sampler.h"
#include "scenarios/jobs/ranktrain/gpu/backend.h"
#include "scenarios/jobs/ranktrain/net/collective.h"
#include "scenarios/jobs/ranktrain/optimizer.h"
#include "scenarios/jobs/ranktrain/options.h"
#include "scenarios/jobs/ranktrain/ration.h"
#include "scenarios/jobs/ranktrain/shards.h"
#include "scenarios/jobs/ranktrain/state.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct mode;

struct trainer {
    const struct ranktrain_options *o;
    struct rankquake q;
    const struct mode *mode;
    void *m; /* the mode's own */

    struct dataset data;
    struct sampler sampler;
    uint32_t parts;          /* that the data is split into, one for each rank; 1: it is not */
    struct loaders *loaders; /* NULL: none */
    struct model *model;
    struct optimizer optimizer;
    const struct compute *compute;
    void *c;
    char label[COMPUTE_LABEL];
    const struct gpu_backend *gpu; /* NULL: not opened */
    const struct collective *collective;
    void *ring;
    bool reduced;   /* the first collective has been announced */
    bool ends;      /* the server has said that no step follows */
    bool broken_up; /* a rank has gone, and the others have trained to the end: they meet no more */
    bool leaves; /* some rank has been asked to end: all save the step that they are at together */
    struct asked asked;

    struct training training;
    struct checkpoint_place place;
    struct resume resume;             /* where this group went on */
    struct checkpoint_writer *writer; /* NULL: saves are not made beside the training */
    bool parts_pending;               /* it is at a part of a checkpoint that is not complete yet */
    bool in_memory;           /* the state is that of its step: this rank has outlived a group */
    pthread_mutex_t speaking; /* held while q is told something and the writer is at work */
    uint64_t last_step, saved_step, save_every;
    uint64_t durable_step; /* of this run: what is saved up to there can be lost no more */
    int shards[SHARDS_MAX], n_shards;
    struct state state;
    float *gradient;
    struct ration ration; /* the memory of this rank's device */
    int64_t *sums;        /* of the gradient and, behind it, of the losses */
    uint64_t *read;       /* the samples of the last step */
};

static inline bool trainer_leads(const struct trainer *t) {
    return t->o->rank == 0;
}

/* The hash of all weights. Every rank calls it. Returns 0 or an error of trainer_exchange. */
int trainer_hash(struct trainer *t, char ret[65], struct err *err);

/* No rank has all of the state, so that none can save alone what it has: all end a step before one
 * of them leaves. */
bool trainer_ends_together(const struct trainer *t);

/* Tells, once, that the first collective begins; trainer_exchange does so itself. */
void trainer_announce(struct trainer *t);

/* Exchanges something and waits until it is done; the deadline is put into the call. Returns 0,
 * -ECANCELED when woken, or an error of collective.h. */
int trainer_exchange(struct trainer *t, struct collective_call *call, struct err *err);

/* The same: sums data[0..n) over the ranks. */
int trainer_sum(struct trainer *t, int64_t *data, size_t n, struct err *err);
