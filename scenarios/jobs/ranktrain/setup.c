#include "scenarios/jobs/ranktrain/setup.h"
#include "scenarios/jobs/ranktrain/data/dataset_kind.h"
#include "scenarios/jobs/ranktrain/mode/mode.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tell_data(const struct trainer *t) {
    const struct images *d = &t->data.train;
    const struct dataset_kind *k = t->data.kind;
    const char *dir = t->o->data_dir ? t->o->data_dir : k->dir;
    if (!trainer_leads(t))
        return;
    printf("data %s%s%s, %u images of %dx%dx%d", k->name, *dir ? " " : "", dir, d->count,
           d->shape.channels, d->shape.side, d->shape.side);
    if (d->parts > 1)
        printf(", part %u of %u", d->part, d->parts);
    if (d->pictures)
        printf(", decoded by %lld loaders of each rank", (long long)t->o->loaders);
    printf("\n");
}

/* Where the data is split each part is for as many ranks as any other, one node after another, as
 * the shards are: so an epoch has all of it once. Who is alone is trained on the part that it has. */
static int check_part(struct trainer *t, struct err *err) {
    const struct ranktrain_options *o = t->o;
    const struct images *d = &t->data.train;
    int serves = t->mode->serves, world = o->world - serves, rank = o->rank - serves;
    t->parts = world > 1 && d->parts > 1 ? d->parts : 1;
    if (t->parts == 1)
        return 0;
    if ((uint32_t)world % d->parts || (uint32_t)o->shards % d->parts)
        return err_say(err, -EINVAL,
                       "%s is part %u of %u: %d workers and %lld shards cannot be divided by %u",
                       d->path, d->part, d->parts, world, (long long)o->shards, d->parts);
    uint32_t due = rank < 0 ? d->part : (uint32_t)rank / ((uint32_t)world / d->parts);
    if (due == d->part)
        return 0;
    return err_say(err, -EINVAL,
                   "%s is part %u of %u, and rank %d of %d is due part %u: prepare it on each node "
                   "by --split=node",
                   d->path, d->part, d->parts, o->rank, o->world, due);
}

static int open_data(struct trainer *t, struct err *err) {
    const struct ranktrain_options *o = t->o;
    const struct dataset_kind *k = dataset_find(o->dataset, err);
    int sets = DATASET_TRAIN | DATASET_TEST | (o->loaders ? DATASET_UNPACKED : 0);
    int r = k ? dataset_open(k, o->data_dir, (int)o->image_size, sets, &t->data, err) : -EINVAL;
    if (r < 0)
        return r;
    if (t->data.train.parts > 1) /* as many as the smallest part has */
        t->data.train.count = t->data.train.whole / t->data.train.parts;
    if (o->samples && (uint32_t)o->samples < t->data.train.count)
        t->data.train.count = (uint32_t)o->samples;
    r = check_part(t, err);
    if (r < 0)
        return r;
    if (t->data.train.count < o->batch_size / t->parts)
        return err_say(err, -EINVAL, "%s holds %u images: a step takes %lld (--batch-size)",
                       t->data.train.path, t->data.train.count,
                       (long long)(o->batch_size / t->parts));
    sampler_init(&t->sampler, (uint64_t)o->seed, t->data.train.count, (uint32_t)o->batch_size,
                 t->parts, o->drop_last);
    t->read = mem_array(uint64_t, (size_t)o->batch_size);
    t->last_step =
        o->steps ? (uint64_t)o->steps : sampler_last_step(&t->sampler, (uint64_t)o->epochs);
    int serves = t->mode->serves;
    if (o->rank >= serves)
        t->n_shards = shards_of(o->rank - serves, o->world - serves, (int)o->shards, t->shards);
    tell_data(t);
    return 0;
}

/* They read the samples of this rank's shards. */
static int start_loaders(struct trainer *t, struct err *err) {
    uint32_t batch = (uint32_t)(t->o->batch_size / t->o->shards), n = 0;
    uint32_t *places = mem_array(uint32_t, (size_t)t->o->batch_size);
    for (int s = 0; s < t->n_shards; s++)
        for (uint32_t i = 0; i < batch; i++)
            places[n++] = (uint32_t)t->shards[s] * batch + i;
    const struct loaders_job job = {.images = &t->data.train,
                                    .seed = (uint64_t)t->o->seed,
                                    .batch = (uint32_t)t->o->batch_size,
                                    .parts = t->parts,
                                    .drop_last = t->o->drop_last,
                                    .places = places,
                                    .places_n = n,
                                    .loaders = (int)t->o->loaders,
                                    .last_step = t->last_step};
    int r = t->o->loaders ? loaders_start(&job, &t->loaders, err) : 0;
    t->data.train.ahead = t->loaders;
    free(places);
    return r;
}

_Static_assert((int)MODEL_CHANNELS == (int)IMAGES_CHANNELS &&
                   (int)MODEL_CLASSES == (int)IMAGES_CLASSES,
               "a model takes what images are");

struct model_data setup_model_data(const struct images_shape *s, int batch) {
    struct model_data d = {
        .channels = s->channels, .side = s->side, .classes = s->classes, .batch = batch};
    memcpy(d.mean, s->mean, sizeof(d.mean));
    memcpy(d.deviation, s->deviation, sizeof(d.deviation));
    return d;
}

/* The batch of a step, and so the rate, is the same for every world, unless asked for otherwise. */
static double learning_rate(const struct ranktrain_options *o, const struct optimizer_kind *k) {
    double lr = o->lr < 0 ? k->lr : o->lr;
    return o->scale_lr ? lr * o->world / (double)o->scale_lr : lr;
}

static int open_model(struct trainer *t, struct err *err) {
    const struct ranktrain_options *o = t->o;
    const struct model_data data =
        setup_model_data(&t->data.train.shape, (int)(o->batch_size / o->shards));
    const struct optimizer_kind *k = optimizer_find(o->optimizer, err);
    t->model = k ? model_new(o->network, (int)o->width, &data, err) : NULL;
    if (!t->model)
        return -EINVAL;
    t->optimizer = (struct optimizer){
        .kind = k, .lr = (float)learning_rate(o, k), .momentum = (float)o->momentum};
    t->place = (struct checkpoint_place){.dir = o->checkpoint_dir,
                                         .model = t->model,
                                         .optimizer = t->optimizer.kind,
                                         .run_id = o->run_id,
                                         .round = o->round,
                                         .seed = o->seed,
                                         .world = o->world,
                                         .keep = (int)o->checkpoint_keep,
                                         .speaking = &t->speaking};
    t->save_every = o->checkpoint_every > 0
                        ? (uint64_t)o->checkpoint_every
                        : (uint64_t)-o->checkpoint_every * sampler_steps_per_epoch(&t->sampler);
    if (trainer_leads(t))
        printf("network %s of width %d, %zu parameters, %s\n", t->model->name, t->model->width,
               t->model->trained, k->name);
    return 0;
}

/* From here on SIGTERM is not delivered but read; every wait looks at it. */
static int catch_sigterm(struct trainer *t, struct err *err) {
    int r = asked_open(&t->asked, err);
    return r == 0 && trainer_ends_together(t) ? asked_allow(&t->asked, t->o->grace_ns, err) : r;
}

static int open_gpu(struct trainer *t, const struct compute_place *at, struct err *err) {
    int r = backend_open(&t->gpu, err);
    if (r < 0)
        return r;
    t->compute = t->gpu->compute;
    return t->compute->open(at, &t->c, t->label, err);
}

/* What a checkpoint says of how it was trained. */
static void describe_training(struct trainer *t) {
    const struct ranktrain_options *o = t->o;
    const struct images *d = &t->data.train;
    const struct optimizer_kind *k = t->optimizer.kind;
    t->training = (struct training){.images = d->count,
                                    .sum = d->parts > 1 ? 0 : d->tail,
                                    .batch_size = o->batch_size,
                                    .shards = o->shards,
                                    .drop_last = o->drop_last,
                                    .lr = o->lr < 0 ? k->lr : o->lr,
                                    .momentum = o->momentum,
                                    .scale_lr = o->scale_lr};
    snprintf(t->training.dataset, sizeof(t->training.dataset), "%s", t->data.kind->name);
    snprintf(t->training.mode, sizeof(t->training.mode), "%s%s", t->mode->name,
             o->ps_async ? "-async" : "");
    snprintf(t->training.computes, sizeof(t->training.computes), "%s", t->label);
    t->place.training = &t->training;
}

/* What computes. With --device=auto a machine without a GPU is no error; one with a GPU that cannot
 * be used is. A driver starts threads, so SIGTERM must have been caught before. */
static int open_compute(struct trainer *t, struct err *err) {
    const struct ranktrain_options *o = t->o;
    const struct compute_place at = {.model = t->model,
                                     .batches = t->mode->alone ? 1 : t->n_shards,
                                     .layered = t->mode->layered,
                                     .local_rank = o->local_rank,
                                     .wake_fd = t->asked.end_fd,
                                     .limit_ns = o->device_ns};
    if (strcmp(o->device, "cpu") != 0) {
        int r = open_gpu(t, &at, err);
        bool may_go_on = r == -ENOENT || r == -ENODEV;
        if (r == 0 || !may_go_on || strcmp(o->device, "auto") != 0)
            return r;
        if (trainer_leads(t))
            fprintf(stderr, "ranktrain: %s; computing on the CPU\n", err->msg);
        *err = (struct err){0};
    }
    t->compute = &compute_cpu;
    return t->compute->open(&at, &t->c, t->label, err);
}

static int choose_collective(struct trainer *t, struct err *err) {
    if (strcmp(t->o->dist_backend, "nccl") != 0)
        return 0;
    if (t->compute == &compute_cpu)
        return err_say(err, -EINVAL,
                       "--dist-backend=nccl sums on GPUs and this rank computes on the CPU: use "
                       "--dist-backend=tcp");
    if (!t->gpu->collective)
        return err_say(err, -ENOSYS, "this GPU library has no NCCL: use --dist-backend=tcp");
    t->collective = t->gpu->collective;
    return t->collective->prepare ? t->collective->prepare(err) : 0;
}

int setup(struct trainer *t, struct err *err) {
    if (trainer_leads(t) && t->o->renamed_backend)
        printf("--dist-backend=%s is another name of tcp\n", t->o->renamed_backend);
    t->mode = mode_find(t->o->mode, err);
    t->ration.limit = (size_t)t->o->device_memory;
    int r = t->mode ? open_data(t, err) : -EINVAL;
    if (r == 0)
        r = start_loaders(t, err);
    if (r == 0)
        r = open_model(t, err);
    if (r == 0)
        r = catch_sigterm(t, err);
    if (r == 0)
        r = open_compute(t, err);
    if (r == 0)
        describe_training(t);
    if (r == 0)
        r = choose_collective(t, err);
    return r == 0 && t->mode->open ? t->mode->open(t, err) : r;
}
