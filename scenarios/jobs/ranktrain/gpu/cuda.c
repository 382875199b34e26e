#include "scenarios/jobs/ranktrain/gpu/cuda.h"
#include "scenarios/jobs/ranktrain/gpu/device.h"
#include "scenarios/jobs/ranktrain/gpu/gpu.h"
#include "scenarios/jobs/ranktrain/gpu/kernels.h"
#include "scenarios/jobs/ranktrain/gpu/memory.h"
#include "scenarios/jobs/ranktrain/gpu/plan.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call that is left behind goes on using all of this, so that it is never freed then. */
struct cuda {
    struct device *device;
    const struct model *model;
    struct gpu_memory m;
    int wake_fd;
    int64_t limit_ns;
    int shards;        /* in use */
    cudaEvent_t *done; /* of each layer: its sums are in the host's memory; whole models alone */

    /* Of the call that the device's thread has in hand. */
    int layer;
    bool watched;
    const float *values;
    struct gpu_look *look;
};

static const int64_t shortest_ns = 20000, longest_ns = 2000000;

/* ---- in the device's thread ---- */

static int fail(struct cuda *c, cudaError_t e, const char *doing, struct err *err) {
    return e == cudaSuccess ? 0 : device_fail(c->device, e, doing, err);
}

static cudaError_t put(struct cuda *c, void *to, const void *from, size_t n) {
    return n ? cudaMemcpyAsync(to, from, n, cudaMemcpyHostToDevice, c->device->stream)
             : cudaSuccess;
}

static cudaError_t get(struct cuda *c, void *to, const void *from, size_t n) {
    return n ? cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToHost, c->device->stream)
             : cudaSuccess;
}

static int allocate(struct device *d, void *arg, struct err *err) {
    struct cuda *c = arg;
    c->device = d;
    int r = gpu_memory_open(&c->m, d, err);
    for (int i = 0; r == 0 && !c->m.layered && i < c->model->n; i++)
        r = fail(c, cudaEventCreateWithFlags(&c->done[i], cudaEventDisableTiming), "an event", err);
    return r;
}

/* What CUDA answers is of no interest any more: the process is about to end. */
static int release(struct device *d, void *arg, struct err *err) {
    struct cuda *c = arg;
    cudaStreamSynchronize(d->stream);
    for (int i = 0; i < c->model->n; i++)
        if (c->done[i])
            cudaEventDestroy(c->done[i]);
    gpu_memory_close(&c->m);
    return 0;
}

static int launch(struct cuda *c, const struct plan_kernel *k, void *of, size_t elements,
                  int shards, struct err *err) {
    struct dim3 grid = {(unsigned)((elements + KERNELS_BLOCK - 1) / KERNELS_BLOCK),
                        (unsigned)shards, 1};
    struct dim3 block = {KERNELS_BLOCK, 1, 1};
    void *args[] = {&of};
    if (elements == 0)
        return 0;
    return fail(c, cudaLaunchKernel(k->function, grid, block, args, 0, c->device->stream), k->name,
                err);
}

static int launch_layer(struct cuda *c, int layer, enum plan_way way, struct err *err) {
    const struct model_layer *l = &c->model->layers[layer];
    struct plan_step steps[PLAN_STEPS];
    int n = plan_layer(l, way, steps), r = 0;
    for (int i = 0; i < n && r == 0; i++)
        r = launch(c, steps[i].kernel, c->m.layers + layer, steps[i].elements,
                   steps[i].in_one_row ? 1 : c->shards, err);
    return r;
}

static int launch_network(struct cuda *c, enum plan_of_network what, struct err *err) {
    const struct plan_step s = plan_network(c->model, what);
    return launch(c, s.kernel, c->m.network, s.elements, s.in_one_row ? 1 : c->shards, err);
}

/* The images, and what is known of the step. */
static int begin(struct cuda *c, bool learning, struct err *err) {
    struct gpu_memory *m = &c->m;
    size_t images = (size_t)(c->shards * c->model->data.batch);
    m->host.step->shards = c->shards;
    m->host.step->learning = learning;
    cudaError_t e = put(c, m->network, m->host.step, sizeof(*m->host.step));
    if (e == cudaSuccess)
        e = put(c, m->images, m->host.images, images * m->image);
    if (e == cudaSuccess)
        e = put(c, m->labels, m->host.labels, images);
    if (e == cudaSuccess)
        e = cudaMemsetAsync(m->bad, 0, m->bad_bytes, c->device->stream);
    return e == cudaSuccess ? launch_network(c, PLAN_LOAD, err)
                            : fail(c, e, "copying to the GPU", err);
}

static int forward(struct cuda *c, int layer, struct err *err) {
    int r = launch_layer(c, layer, PLAN_FORWARD, err);
    return r == 0 && c->m.host.step->learning ? launch_layer(c, layer, PLAN_STATISTICS, err) : r;
}

static int forward_all(struct cuda *c, bool learning, struct err *err) {
    int r = begin(c, learning, err);
    if (r == 0)
        r = fail(c, put(c, c->m.values, c->m.host.values, c->model->values * sizeof(float)),
                 "copying to the GPU", err);
    for (int i = 0; i < c->model->n && r == 0; i++)
        r = forward(c, i, err);
    return r;
}

static int loss(struct cuda *c, struct err *err) {
    int r = launch_network(c, PLAN_LOSS, err);
    return r == 0 ? launch_network(c, PLAN_LOSS_SUM, err) : r;
}

/* Errors of kernels show here: they are asynchronous. */
static int await(struct cuda *c, struct err *err) {
    struct gpu_memory *m = &c->m;
    cudaError_t e = get(c, m->host.bad, m->bad, (size_t)m->shards * sizeof(*m->bad));
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(c->device->stream);
    return fail(c, e, "computing", err);
}

/* The sums of a layer go to the host as soon as they are there, and an event says when. */
static int backward_watched(struct cuda *c, int layer, struct err *err) {
    const struct model_layer *l = &c->model->layers[layer];
    struct gpu_memory *m = &c->m;
    int r = launch_layer(c, layer, PLAN_BACKWARD, err);
    if (r < 0)
        return r;
    cudaError_t e = get(c, m->host.sums + l->trained_at, m->sums + l->trained_at,
                        l->trained * sizeof(*m->sums));
    if (e == cudaSuccess)
        e = cudaEventRecord(c->done[layer], c->device->stream);
    return fail(c, e, "copying from the GPU", err);
}

/* Puts a whole step into the stream, and waits for it unless it is watched. */
static int compute(struct device *d, void *arg, struct err *err) {
    struct cuda *c = arg;
    struct gpu_memory *m = &c->m;
    size_t trained = c->watched ? c->model->trained : 0;
    int r = forward_all(c, true, err);
    if (r == 0)
        r = loss(c, err);
    for (int i = c->model->n - 1; i >= 0 && r == 0; i--)
        r = c->watched ? backward_watched(c, i, err) : launch_layer(c, i, PLAN_BACKWARD, err);
    if (r == 0)
        r = fail(c,
                 get(c, m->host.sums + trained, m->sums + trained,
                     (c->model->values + 1 - trained) * sizeof(*m->sums)),
                 "copying from the GPU", err);
    return r == 0 && !c->watched ? await(c, err) : r;
}

static int finish(struct device *d, void *arg, struct err *err) {
    return await(arg, err);
}

/* Returns 1 when a layer's sums have come. */
static int look_at_layer(struct device *d, void *arg, struct err *err) {
    struct cuda *c = arg;
    cudaError_t e = cudaEventQuery(c->done[c->layer]);
    return e == cudaErrorNotReady ? 0 : e == cudaSuccess ? 1 : fail(c, e, "computing", err);
}

static int answer(struct device *d, void *arg, struct err *err) {
    struct cuda *c = arg;
    struct gpu_memory *m = &c->m;
    int r = c->m.layered ? 0 : forward_all(c, false, err);
    if (r == 0)
        r = launch_network(c, PLAN_CLASSIFY, err);
    if (r == 0)
        r = fail(c, get(c, m->host.answers, m->answers, (size_t)c->model->data.batch),
                 "copying from the GPU", err);
    return r == 0 ? await(c, err) : r;
}

/* Where it went wrong: looked for when it has. */
static int search(struct device *d, void *arg, struct err *err) {
    struct cuda *c = arg;
    struct gpu_memory *m = &c->m;
    int r = 0;
    for (int i = 0; i < c->model->n && r == 0; i++)
        r = launch_layer(c, i, PLAN_CHECK, err);
    if (r == 0)
        r = fail(c, get(c, m->host.wrong, m->wrong, m->wrong_bytes), "copying from the GPU", err);
    return r == 0 ? await(c, err) : r;
}

/* ---- one layer at a time, in the device's thread ---- */

static int begin_batches(struct device *d, void *arg, struct err *err) {
    struct cuda *c = arg;
    int r = begin(c, c->watched, err);
    return r == 0 ? await(c, err) : r;
}

static int put_layer(struct cuda *c, struct err *err) {
    const struct model_layer *l = &c->model->layers[c->layer];
    size_t bytes = (l->trained + l->running) * sizeof(float);
    if (bytes)
        memcpy(c->m.host.values, c->values, bytes);
    return fail(c, put(c, c->m.values, c->m.host.values, bytes), "copying to the GPU", err);
}

static int forward_layer(struct device *d, void *arg, struct err *err) {
    struct cuda *c = arg;
    struct gpu_memory *m = &c->m;
    size_t running = c->m.host.step->learning ? c->model->layers[c->layer].running : 0;
    int r = put_layer(c, err);
    if (r == 0)
        r = forward(c, c->layer, err);
    if (r == 0)
        r = fail(c, get(c, m->host.sums, m->statistics_sums, running * sizeof(*m->sums)),
                 "copying from the GPU", err);
    return r == 0 ? await(c, err) : r;
}

static int backward_layer(struct device *d, void *arg, struct err *err) {
    struct cuda *c = arg;
    struct gpu_memory *m = &c->m;
    int r = put_layer(c, err);
    if (r == 0)
        r = launch_layer(c, c->layer, PLAN_BACKWARD, err);
    if (r == 0)
        r = fail(
            c, get(c, m->host.sums, m->sums, c->model->layers[c->layer].trained * sizeof(*m->sums)),
            "copying from the GPU", err);
    return r == 0 ? await(c, err) : r;
}

static int take_loss(struct device *d, void *arg, struct err *err) {
    struct cuda *c = arg;
    int r = loss(c, err);
    if (r == 0)
        r = fail(c, get(c, c->m.host.sums, c->m.loss, sizeof(*c->m.loss)), "copying from the GPU",
                 err);
    return r == 0 ? await(c, err) : r;
}

/* ---- in the caller's thread ---- */

static int cuda_close(void *arg, struct err *err) {
    struct cuda *c = arg;
    struct err ignored;
    if (!c)
        return device_close(NULL, err);
    if (c->device && !device_lost(c->device))
        device_do(c->device, release, c, &ignored);
    int r = device_close(c->device, err);
    if (r == 0) {
        free(c->m.host.layers); /* of a device that could not be opened */
        free(c->done);
        free(c);
    }
    return r;
}

static int cuda_open(const struct compute_place *at, void **ret, char ret_label[COMPUTE_LABEL],
                     struct err *err) {
    struct device_request q = {
        .local_rank = at->local_rank, .wake_fd = at->wake_fd, .limit_ns = at->limit_ns};
    struct cuda *c = mem_new(struct cuda);
    c->model = at->model;
    c->wake_fd = at->wake_fd;
    c->limit_ns = at->limit_ns;
    c->done = mem_array(cudaEvent_t, (size_t)at->model->n);
    gpu_memory_plan(&c->m, at->model, at->batches > 0 ? at->batches : 1, at->layered);
    int r = device_open(&q, &c->device, err);
    if (r == 0)
        r = device_do(c->device, allocate, c, err);
    if (r < 0) {
        cuda_close(c, NULL);
        return r;
    }
    const struct device *d = c->device;
    snprintf(ret_label, COMPUTE_LABEL, "cuda %s %d.%d/%d.%d", d->name, d->driver / 1000,
             d->driver % 1000 / 10, d->runtime / 1000, d->runtime % 1000 / 10);
    *ret = c;
    return 0;
}

static void put_images(struct cuda *c, int shard, const uint8_t *const *images) {
    int batch = c->model->data.batch;
    for (int i = 0; i < batch; i++)
        memcpy(c->m.host.images + (size_t)(shard * batch + i) * c->m.image, images[i], c->m.image);
}

static void put_batches(struct cuda *c, const struct compute_batch *batches, int n) {
    size_t batch = (size_t)c->model->data.batch;
    c->shards = n;
    for (int i = 0; i < n; i++) {
        put_images(c, i, batches[i].images);
        memcpy(c->m.host.labels + (size_t)i * batch, batches[i].labels, batch);
        c->m.numbers[i] = batches[i].shard;
    }
}

/* The first layer whose output, the last whose gradient, or the first whose statistics are wrong. */
static int find_wrong(const struct cuda *c, int shard, int *ret_what) {
    int n = c->model->n;
    for (*ret_what = WRONG_OUTPUT; *ret_what < WRONG_ROWS; ++*ret_what)
        for (int i = 0; i < n; i++) {
            int layer = *ret_what == WRONG_GRADIENT ? n - 1 - i : i;
            if (c->m.host.wrong[(layer * WRONG_ROWS + *ret_what) * c->m.shards + shard])
                return layer;
        }
    return -1;
}

/* Returns 0, or -ERANGE when a number of the last computation was none or too large. */
static int judge(struct cuda *c, struct compute_wrong *ret_wrong, struct err *err) {
    static const char *const names[] = {[WRONG_OUTPUT] = "output",
                                        [WRONG_GRADIENT] = "gradient",
                                        [WRONG_STATISTICS] = "statistics"};
    int shard = 0, what, layer;
    while (shard < c->shards && !c->m.host.bad[shard])
        shard++;
    if (shard == c->shards)
        return 0;
    int r = device_do(c->device, search, c, err);
    if (r < 0)
        return r;
    layer = find_wrong(c, shard, &what);
    if (layer < 0) { /* the loss alone */
        layer = c->model->n - 1;
        what = WRONG_OUTPUT;
    }
    ret_wrong->shard = c->m.numbers[shard];
    snprintf(ret_wrong->where, sizeof(ret_wrong->where), "the %s of layer %d (%s)", names[what],
             layer + 1, c->model->layers[layer].kind->name);
    return -ERANGE;
}

/* Lets a share of the time pass that has passed since. Returns false when woken. */
static bool pass_time(const struct cuda *c, int64_t since_ns) {
    struct pollfd p = {.fd = c->wake_fd, .events = POLLIN};
    int64_t ns = (deadline_now_ns() - since_ns) / 8;
    ns = ns < shortest_ns ? shortest_ns : ns > longest_ns ? longest_ns : ns;
    struct timespec t = {.tv_nsec = ns};
    ppoll(&p, 1, &t, NULL);
    return !p.revents;
}

/* Hands out the sums of one layer after another, while the layers before it are computed. Who is
 * woken, or has waited too long, waits no more here: the wait for all that follows says why. */
static int hand_out(struct cuda *c, const struct pass_watch *watch, int64_t *ret_sums,
                    struct err *err) {
    int64_t begun_ns = deadline_now_ns();
    for (c->layer = c->model->n - 1; c->layer >= 0; c->layer--) {
        const struct model_layer *l = &c->model->layers[c->layer];
        int r;
        while ((r = device_do(c->device, look_at_layer, c, err)) == 0)
            if (!pass_time(c, begun_ns) || deadline_now_ns() - begun_ns > c->limit_ns)
                return 0;
        if (r < 0)
            return r;
        memcpy(ret_sums + l->trained_at, c->m.host.sums + l->trained_at,
               l->trained * sizeof(*ret_sums));
        watch->layer(watch->arg, c->layer);
    }
    return 0;
}

static int cuda_sum(void *arg, const float *values, const struct compute_batch *batches, int n,
                    const struct pass_watch *watch, int64_t *ret_sums,
                    struct compute_wrong *ret_wrong, struct err *err) {
    struct cuda *c = arg;
    size_t trained = watch ? c->model->trained : 0, all = c->model->values + 1;
    assert(n >= 0 && n <= c->m.shards && !c->m.layered);
    if (n == 0)
        memset(ret_sums, 0, all * sizeof(*ret_sums));
    if (n == 0)
        return 0;
    c->watched = watch != NULL;
    if (!device_lost(c->device)) {
        memcpy(c->m.host.values, values, c->model->values * sizeof(*values));
        put_batches(c, batches, n);
    }
    int r = device_do(c->device, compute, c, err);
    if (r == 0 && watch)
        r = hand_out(c, watch, ret_sums, err);
    if (r == 0 && watch)
        r = device_do(c->device, finish, c, err);
    if (r == 0)
        r = judge(c, ret_wrong, err);
    if (r == 0)
        memcpy(ret_sums + trained, c->m.host.sums + trained, (all - trained) * sizeof(*ret_sums));
    return r;
}

static int cuda_classify(void *arg, const float *values, const uint8_t *const *images,
                         uint8_t *ret_classes, struct err *err) {
    struct cuda *c = arg;
    if (!device_lost(c->device)) {
        memcpy(c->m.host.values, values, c->model->values * sizeof(*values));
        c->shards = 1;
        put_images(c, 0, images);
    }
    int r = device_do(c->device, answer, c, err);
    if (r == 0)
        memcpy(ret_classes, c->m.host.answers, (size_t)c->model->data.batch);
    return r;
}

static int layers_begin(void *arg, const struct compute_batch *batches, int n, bool learning,
                        struct err *err) {
    struct cuda *c = arg;
    assert(n > 0 && n <= c->m.shards && c->m.layered);
    c->watched = learning;
    if (!device_lost(c->device))
        put_batches(c, batches, n);
    return device_do(c->device, begin_batches, c, err);
}

static int layers_forward(void *arg, int layer, const float *values, int64_t *sums,
                          struct compute_wrong *ret_wrong, struct err *err) {
    struct cuda *c = arg;
    c->layer = layer;
    c->values = values;
    int r = device_do(c->device, forward_layer, c, err);
    if (r == 0)
        r = judge(c, ret_wrong, err);
    for (size_t i = 0; r == 0 && sums && i < c->model->layers[layer].running; i++)
        sums[i] += c->m.host.sums[i];
    return r;
}

static int layers_loss(void *arg, int64_t *sum, struct compute_wrong *ret_wrong, struct err *err) {
    struct cuda *c = arg;
    int r = device_do(c->device, take_loss, c, err);
    if (r == 0)
        r = judge(c, ret_wrong, err);
    if (r == 0)
        *sum += c->m.host.sums[0];
    return r;
}

static int layers_backward(void *arg, int layer, const float *values, int64_t *ret_sums,
                           struct compute_wrong *ret_wrong, struct err *err) {
    struct cuda *c = arg;
    c->layer = layer;
    c->values = values;
    int r = device_do(c->device, backward_layer, c, err);
    if (r == 0)
        r = judge(c, ret_wrong, err);
    if (r == 0)
        memcpy(ret_sums, c->m.host.sums, c->model->layers[layer].trained * sizeof(*ret_sums));
    return r;
}

static int layers_classes(void *arg, uint8_t *ret_classes, struct err *err) {
    struct cuda *c = arg;
    int r = device_do(c->device, answer, c, err);
    if (r == 0)
        memcpy(ret_classes, c->m.host.answers, (size_t)c->model->data.batch);
    return r;
}

static void cuda_memory(void *arg, struct compute_memory *ret) {
    const struct cuda *c = arg;
    *ret = c->m.held;
}

static void cuda_device(void *arg, struct compute_device *ret) {
    const struct cuda *c = arg;
    snprintf(ret->uuid, sizeof(ret->uuid), "%s", c->device->uuid);
    ret->index = c->device->index;
}

static int look(struct device *d, void *arg, struct err *err) {
    struct cuda *c = arg;
    struct gpu_look *q = c->look;
    bool images = q->layer == LAYER_IMAGES;
    const struct network_layer *l = images ? NULL : &c->m.host.layers[q->layer];
    const struct layer_shape input = {.channels = c->model->data.channels,
                                      .side = c->model->data.side,
                                      .batch = c->model->data.batch};
    size_t n = layer_floats(images ? &input : &c->model->layers[q->layer].out) * sizeof(float);
    size_t shard = (size_t)q->batch * c->m.room;
    cudaError_t e = get(c, q->out, (images ? c->m.input : l->out) + shard, n);
    if (e == cudaSuccess && !images)
        e = get(c, q->d_out, l->d_out + shard, n);
    if (e == cudaSuccess && !images && c->model->layers[q->layer].choices)
        e = get(c, q->choice, l->choice + shard, n);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(c->device->stream);
    return fail(c, e, "copying from the GPU", err);
}

int cuda_inspect(void *arg, struct gpu_look *q, struct err *err) {
    struct cuda *c = arg;
    assert(q->batch >= 0 && q->batch < c->m.shards);
    c->look = q;
    return device_do(c->device, look, c, err);
}

static const struct compute_layers cuda_layers = {
    .begin = layers_begin,
    .forward = layers_forward,
    .loss = layers_loss,
    .backward = layers_backward,
    .classes = layers_classes,
};

const struct compute compute_cuda = {
    .name = "cuda",
    .summary = "kernels of our own on one GPU",
    .open = cuda_open,
    .layers = &cuda_layers,
    .memory = cuda_memory,
    .sum = cuda_sum,
    .classify = cuda_classify,
    .device = cuda_device,
    .close = cuda_close,
};
