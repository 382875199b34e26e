#include "scenarios/jobs/ranktrain/train.h"
#include "scenarios/jobs/rankquake.h"
#include "scenarios/jobs/ranktrain/net/bootstrap.h"
#include "scenarios/jobs/ranktrain/checkpoint.h"
#include "scenarios/jobs/ranktrain/net/collective.h"
#include "scenarios/jobs/ranktrain/compute.h"
#include "scenarios/jobs/ranktrain/data/dataset.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"
#include "scenarios/jobs/ranktrain/gpu/backend.h"
#include "scenarios/jobs/ranktrain/fixed_point.h"
#include "scenarios/jobs/ranktrain/optimizer.h"
#include "scenarios/jobs/ranktrain/data/sampler.h"
#include "scenarios/jobs/ranktrain/shards.h"
#include "scenarios/jobs/ranktrain/state.h"

#include "base/mem.h"
#include "base/sha256.h"
#include "base/sys/file.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

_Static_assert((int)BOOTSTRAP_MEMBERS >= (int)SHARDS, "every shard may have a rank of its own");

/* A group has as long to form, however short the collectives' deadline is: on a busy machine the
 * slowest worker may still be unpacking its data. */
static const int64_t group_ns = INT64_C(30000000000);

enum { COMMUNICATOR_DIGITS = 16 };

/* Where rank 0 decides that a round goes on; it shares the state itself behind it. */
struct decision {
    uint64_t step;
    char path[PATH_MAX]; /* "": a fresh start */
};

struct train {
    const struct ranktrain_options *o;
    struct rankquake q;
    struct dataset data;
    struct model *model;
    const struct compute *compute;
    void *c;
    char label[COMPUTE_LABEL];
    const struct gpu_backend *gpu; /* NULL: not opened */
    const struct collective *collective;
    void *ring;
    bool reduced; /* the first collective has been announced */
    int wake_fd;  /* readable: SIGTERM is pending */

    struct sampler sampler;
    struct optimizer optimizer;
    struct checkpoint_place place;
    uint64_t last_step, saved_step;
    int shards[SHARDS], n_shards;
    struct decision decision;
    struct state state;
    float *gradient;
    int64_t *sums;               /* of the gradient and, behind it, of the losses */
    uint64_t read[SHARDS_BATCH]; /* the samples of the last step */
};

static bool leads(const struct train *t) {
    return t->o->rank == 0;
}

static int open_data(struct train *t, struct err *err) {
    const struct ranktrain_options *o = t->o;
    int r = dataset_open(o->data_dir, &t->data, err);
    if (r < 0)
        return r;
    if (o->samples && (uint32_t)o->samples < t->data.train.count)
        t->data.train.count = (uint32_t)o->samples;
    sampler_init(&t->sampler, (uint64_t)o->seed, t->data.train.count, SHARDS_BATCH);
    t->place = (struct checkpoint_place){.dir = o->checkpoint_dir,
                                         .model = t->model,
                                         .optimizer = t->optimizer.kind,
                                         .run_id = o->run_id,
                                         .round = o->round,
                                         .seed = o->seed,
                                         .world = o->world,
                                         .keep = (int)o->checkpoint_keep};
    t->last_step =
        o->steps ? (uint64_t)o->steps : (uint64_t)o->epochs * sampler_steps_per_epoch(&t->sampler);
    t->n_shards = shards_of(o->rank, o->world, t->shards);
    if (leads(t) && t->data.generated)
        printf("data generated: %s does not hold Fashion-MNIST (package dataset-fashion-mnist)\n",
               o->data_dir);
    else if (leads(t))
        printf("data %s, %u images\n", o->data_dir, t->data.train.count);
    return 0;
}

static int open_model(struct train *t, struct err *err) {
    static const struct model_data fashion = {.channels = 1,
                                              .side = IDX_SIDE,
                                              .classes = IDX_CLASSES,
                                              .mean = 0.2860f,
                                              .deviation = 0.3530f};
    const struct ranktrain_options *o = t->o;
    const struct optimizer_kind *k = optimizer_find(o->optimizer, err);
    t->model = k ? model_new(o->network, (int)o->width, &fashion, err) : NULL;
    if (!t->model)
        return -EINVAL;
    t->optimizer = (struct optimizer){
        .kind = k, .lr = (float)(o->lr < 0 ? k->lr : o->lr), .momentum = (float)o->momentum};
    state_init(&t->state, t->model, k);
    t->gradient = mem_array(float, t->model->values);
    t->sums = mem_array(int64_t, t->model->values + 1);
    if (leads(t))
        printf("network %s of width %d, %zu parameters, %s\n", t->model->name, t->model->width,
               t->model->trained, k->name);
    return 0;
}

/* From here on SIGTERM is not delivered but read; every wait looks at it. */
static int catch_sigterm(struct train *t, struct err *err) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    t->wake_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return t->wake_fd < 0 ? err_set(err, -errno, "signalfd") : 0;
}

static bool asked_to_end(const struct train *t) {
    struct pollfd p = {.fd = t->wake_fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

static void say_ignored(void *arg, const char *sentence) {
    fprintf(stderr, "ranktrain: rank 0: %s\n", sentence);
}

static int open_gpu(struct train *t, const struct compute_place *at, struct err *err) {
    int r = backend_open(&t->gpu, err);
    if (r < 0)
        return r;
    t->compute = t->gpu->compute;
    return t->compute->open(at, &t->c, t->label, err);
}

/* What computes. With --device=auto a machine without a GPU is no error; one with a GPU that cannot
 * be used is. A driver starts threads, so SIGTERM must have been caught before. */
static int open_compute(struct train *t, struct err *err) {
    const struct ranktrain_options *o = t->o;
    const struct compute_place at = {.model = t->model,
                                     .local_rank = o->local_rank,
                                     .wake_fd = t->wake_fd,
                                     .limit_ns = o->device_ns};
    if (strcmp(o->device, "cpu") != 0) {
        int r = open_gpu(t, &at, err);
        bool may_go_on = r == -ENOENT || r == -ENODEV;
        if (r == 0 || !may_go_on || strcmp(o->device, "auto") != 0)
            return r;
        if (leads(t))
            fprintf(stderr, "ranktrain: %s; computing on the CPU\n", err->msg);
        *err = (struct err){0};
    }
    t->compute = &compute_cpu;
    return t->compute->open(&at, &t->c, t->label, err);
}

static int choose_collective(struct train *t, struct err *err) {
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

/* Rank 0 chooses, once per round, where to go on. */
static int decide(struct train *t, struct err *err) {
    struct decision *d = &t->decision;
    int found = 0;
    if (t->o->checkpoint_dir)
        found =
            checkpoint_load(&t->place, t->last_step, &t->state, d->path, say_ignored, NULL, err);
    if (found == 0)
        model_init(t->model, (uint64_t)t->o->seed, t->state.weights);
    d->step = t->state.step;
    return found < 0 ? found : 0;
}

/* All that must be equal on all ranks for them to compute the same. */
static void describe_job(const struct train *t, unsigned char ret[DOOR_DIGEST]) {
    char text[512], hex[65];
    int n = snprintf(
        text, sizeof(text), "%s|%s|%s|%lld|%s|%d|%s|%.9g|%.9g|%llu|%d|%u|%d", RANKQUAKE_VERSION,
        t->label, t->collective->name, (long long)t->o->seed, t->model->name, t->model->width,
        t->optimizer.kind->name, (double)t->optimizer.lr, (double)t->optimizer.momentum,
        (unsigned long long)t->last_step, t->data.generated, t->data.train.count, SHARDS_BATCH);
    sha256_of(text, (size_t)n, hex);
    memcpy(ret, hex, DOOR_DIGEST);
}

/* Tells which device this rank computes on, and which communicator it has joined: an id must serve
 * one round, and no other. */
static void tell_device(struct train *t, const struct peer_group *g) {
    struct compute_device d = {.index = -1};
    char hex[65];
    if (!t->compute->device)
        return;
    t->compute->device(t->c, &d);
    sha256_of(g->token, sizeof(g->token), hex);
    rankquake_event_named(&t->q, "device", "\"uuid\":\"%s\",\"index\":%d%s%.*s%s", d.uuid, d.index,
                          t->collective->token ? ",\"communicator\":\"" : "",
                          t->collective->token ? COMMUNICATOR_DIGITS : 0, hex,
                          t->collective->token ? "\"" : "");
}

/* The token is drawn when all are there and know what they are to do: whoever draws one and forms
 * no group leaves something behind. */
static int open_collective(struct train *t, struct bootstrap *b, struct err *err) {
    const struct collective *c = t->collective;
    int r = c->token && leads(t) ? c->token(b->group.token, err) : 0;
    if (r == 0 && c->token)
        r = bootstrap_share(b, b->group.token, sizeof(b->group.token), err);
    if (r == 0)
        r = c->open(&t->ring, &b->group, &b->request.wait, err);
    if (r == 0 && c->token)
        r = bootstrap_meet(b, err);
    return r;
}

static int form_group(struct train *t, struct bootstrap *b, struct err *err) {
    const struct ranktrain_options *o = t->o;
    int64_t span = o->collective_ns > group_ns ? o->collective_ns : group_ns;
    struct bootstrap_request q = {
        .rank = o->rank,
        .world = o->world,
        .master_addr = o->master_addr,
        .master_port = o->master_port,
        .run_id = o->run_id,
        .round = o->round,
        .wait = {.deadline_ns = deadline_in_ns(span), .wake_fd = t->wake_fd}};
    describe_job(t, q.job);
    int r = bootstrap_join(b, &q, err);
    if (r == 0 && leads(t))
        r = decide(t, err);
    if (r == 0)
        r = bootstrap_share(b, &t->decision, sizeof(t->decision), err);
    t->state.step = t->decision.step;
    if (r == 0)
        r = bootstrap_share(b, t->state.weights, state_bytes(&t->state), err);
    if (r == 0)
        r = open_collective(t, b, err);
    if (r == 0)
        tell_device(t, &b->group);
    return r;
}

static int meet(struct train *t, struct err *err) {
    struct bootstrap *b = mem_new(struct bootstrap);
    int r = form_group(t, b, err);
    bootstrap_end(b);
    free(b);
    if (r < 0)
        return r;
    const struct state *s = &t->state;
    t->saved_step = s->step;
    rankquake_resume(&t->q, s->step, t->decision.path);
    if (!leads(t))
        return 0;
    printf("world %d, round %lld, %llu steps\n", t->o->world, (long long)t->o->round,
           (unsigned long long)t->last_step);
    if (*t->decision.path)
        printf("resumed step %llu from %s\n", (unsigned long long)s->step, t->decision.path);
    return 0;
}

/* Sums over the ranks. */
static int reduce(struct train *t, int64_t *data, size_t n, struct err *err) {
    if (!t->reduced)
        rankquake_first_collective(&t->q);
    t->reduced = true;
    int r = t->collective->start(t->ring, data, n, deadline_in_ns(t->o->collective_ns), err);
    while (r == 0)
        r = t->collective->poll(t->ring, -1, err);
    return r < 0 ? r : 0;
}

static int compute_step(struct train *t, uint64_t step, struct err *err) {
    struct link_wait floor = {.deadline_ns = deadline_in_ns(t->o->compute_ns),
                              .wake_fd = t->wake_fd};
    const uint32_t *samples = sampler_step(&t->sampler, step);
    const struct shards_work w = {.compute = t->compute,
                                  .c = t->c,
                                  .model = t->model,
                                  .data = &t->data.train,
                                  .scratch = t->gradient};
    int r = shards_sum(&w, t->state.weights, samples, t->shards, t->n_shards, t->sums,
                       rankquake_asked(&t->q, RANKQUAKE_ASK_SAMPLES) ? t->read : NULL, err);
    if (r == 0 && t->o->compute_ns && link_ready(-1, 0, &floor) == -ECANCELED)
        r = -ECANCELED;
    return r;
}

static int save(struct train *t, struct err *err) {
    if (!leads(t) || !t->o->checkpoint_dir || t->saved_step == t->state.step)
        return 0;
    t->saved_step = t->state.step;
    return checkpoint_save(&t->place, &t->state, &t->q, err);
}

/* What the scenario asks for besides costs time: it is told only then. */
static void tell_samples(struct train *t) {
    uint64_t per_epoch = sampler_steps_per_epoch(&t->sampler);
    if (rankquake_asked(&t->q, RANKQUAKE_ASK_SAMPLES))
        rankquake_samples(&t->q, t->state.step, (t->state.step - 1) / per_epoch,
                          per_epoch * SHARDS_BATCH, t->read, (size_t)t->n_shards * LAYER_BATCH);
}

static void tell_step(struct train *t, double loss) {
    const struct state *s = &t->state;
    char mark[STATE_MARK];
    bool asked = rankquake_asked(&t->q, RANKQUAKE_ASK_WEIGHTS);
    if (asked)
        state_mark(s, mark);
    tell_samples(t);
    rankquake_step_weights(&t->q, s->step, loss, (uint64_t)t->n_shards * LAYER_BATCH, t->shards,
                           (size_t)t->n_shards, asked ? mark : NULL);
}

/* One step, from nothing computed to the update applied and told. */
static int step(struct train *t, struct err *err) {
    struct state *s = &t->state;
    int r = compute_step(t, s->step + 1, err);
    if (r == 0)
        r = reduce(t, t->sums, t->model->values + 1, err);
    if (r < 0)
        return r;
    const struct optimizer_update u = {.sums = t->sums,
                                       .trained = t->model->trained,
                                       .values = t->model->values,
                                       .samples = SHARDS_BATCH,
                                       .batches = SHARDS,
                                       .step = ++s->step};
    optimizer_step(&t->optimizer, &u, s->weights, s->moment);
    double loss = fixed_point_value(t->sums[t->model->values]) / SHARDS_BATCH;
    if (leads(t) && t->o->log_every && s->step % (uint64_t)t->o->log_every == 0)
        printf("step %llu loss %.4f\n", (unsigned long long)s->step, loss);
    tell_step(t, loss);
    return 0;
}

static int train_steps(struct train *t, struct err *err) {
    const struct state *s = &t->state;
    int r = 0;
    while (r == 0 && s->step < t->last_step) {
        r = step(t, err);
        bool end = r == 0 && asked_to_end(t);
        if (end || (r == 0 && s->step % (uint64_t)t->o->checkpoint_every == 0))
            r = save(t, err);
        if (r == 0 && end)
            r = -ECANCELED;
        if (r < 0 && r != -ECANCELED)
            err_wrap(err, "step %llu: ", (unsigned long long)s->step);
    }
    return r == 0 ? save(t, err) : r;
}

/* A short run is tested on no more images than it was trained on: the first ones, whole batches. */
static uint32_t test_batches(const struct train *t) {
    uint64_t all = t->data.test.count / LAYER_BATCH, trained = t->state.step * SHARDS;
    return (uint32_t)(trained && trained < all ? trained : all);
}

/* Every rank classifies its share of the test set. Returns the share of right answers. */
static int test(struct train *t, double *ret_accuracy, struct err *err) {
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
        r = reduce(t, &right, 1, err);
    *ret_accuracy = (double)right / (double)(batches * LAYER_BATCH);
    return r;
}

static int finish(struct train *t, struct err *err) {
    char model[65];
    double accuracy;
    int64_t all = 1;
    int r = test(t, &accuracy, err);
    if (r < 0)
        return r;
    rankquake_exit_barrier(&t->q);
    r = reduce(t, &all, 1, err);
    if (r < 0)
        return r == -ECANCELED ? r : err_wrap(err, "exit barrier: ");
    state_hash(&t->state, model);
    rankquake_done(&t->q, model);
    if (!leads(t))
        return 0;
    printf("label %s, seed %lld\n", t->label, (long long)t->o->seed);
    printf("accuracy %.4f\n", accuracy);
    printf("model %s\n", model);
    return 0;
}

static int run(struct train *t, struct err *err) {
    int r = rankquake_open(&t->q);
    if (r < 0)
        fprintf(stderr, "ranktrain: rank %d: no events: RANKQUAKE_EVENTS: %s\n", t->o->rank,
                strerror(-r));
    r = open_model(t, err);
    if (r == 0)
        r = open_data(t, err);
    if (r == 0)
        r = catch_sigterm(t, err);
    if (r == 0)
        r = open_compute(t, err);
    if (r == 0)
        r = choose_collective(t, err);
    if (r < 0)
        return r;
    rankquake_ready(&t->q);
    struct state *s = &t->state;
    rankquake_region(&t->q, "weights", s->weights, s->values * sizeof(*s->weights));
    for (int i = 0; i < s->moments; i++)
        rankquake_region(&t->q, t->optimizer.kind->moments[i], s->moment[i],
                         s->trained * sizeof(*s->weights));
    r = meet(t, err);
    if (r == 0)
        r = train_steps(t, err);
    return r < 0 ? r : finish(t, err);
}

int train_run(const struct ranktrain_options *o, struct err *ret_stuck, struct err *err) {
    struct train *t = mem_new(struct train);
    t->o = o;
    t->wake_fd = -1;
    t->compute = &compute_cpu;
    t->collective = &collective_tcp_ring;
    int r = run(t, err);
    if (r < 0 && t->ring) /* who waits for this rank should know */
        t->collective->abort(t->ring);
    if (t->collective->close(t->ring, ret_stuck) == 0)
        t->compute->close(t->c, ret_stuck);
    state_fini(&t->state);
    free(t->gradient);
    free(t->sums);
    model_free(t->model);
    sampler_fini(&t->sampler);
    dataset_close(&t->data);
    rankquake_close(&t->q);
    file_close(&t->wake_fd);
    free(t);
    return r;
}
