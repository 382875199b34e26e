#include "scenarios/jobs/ranktrain/gpu/cuda.h"
#include "scenarios/jobs/ranktrain/gpu/device.h"
#include "scenarios/jobs/ranktrain/gpu/kernels.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call that is left behind goes on using all of this, so that it is never freed then. */
struct cuda {
    struct device *device;
    struct network *network;     /* on the device */
    struct network_input *in;    /* pinned */
    struct network_output *out;  /* pinned */
    struct network_shard *shard; /* of an inspection */
    int inspected;
};

struct kernel {
    const char *name;
    const void *function;
    int elements;
};

#define KERNEL_ROW(kernel, elements) {#kernel, (const void *)(kernel), (elements)},
static const struct kernel forward[] = {KERNELS_FORWARD(KERNEL_ROW)};
static const struct kernel backward[] = {KERNELS_BACKWARD(KERNEL_ROW)};
static const struct kernel sum = {"kernel_sum", (const void *)kernel_sum, LENET_PARAMETERS + 1};
static const struct kernel classes = {"kernel_classify", (const void *)kernel_classify,
                                      NETWORK_SHARDS *NETWORK_BATCH};

enum {
    FORWARD = sizeof(forward) / sizeof(*forward),
    BACKWARD = sizeof(backward) / sizeof(*backward)
};

static int allocate(struct device *d, void *arg, struct err *err) {
    struct cuda *c = arg;
    cudaError_t e = cudaMalloc((void **)&c->network, sizeof(*c->network));
    if (e != cudaSuccess)
        return device_fail(d, e, "allocating the network", err);
    e = cudaMallocHost((void **)&c->in, sizeof(*c->in));
    if (e == cudaSuccess)
        e = cudaMallocHost((void **)&c->out, sizeof(*c->out));
    if (e != cudaSuccess)
        return device_fail(d, e, "allocating pinned memory", err);
    memset(c->in, 0, sizeof(*c->in));
    e = cudaMemsetAsync(c->network, 0, sizeof(*c->network), d->stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(d->stream);
    return e == cudaSuccess ? 0 : device_fail(d, e, "clearing the network", err);
}

/* What CUDA answers is of no interest any more: the process is about to end. */
static int release(struct device *d, void *arg, struct err *err) {
    struct cuda *c = arg;
    cudaStreamSynchronize(d->stream);
    cudaFree(c->network);
    cudaFreeHost(c->in);
    cudaFreeHost(c->out);
    return 0;
}

static int launch(struct cuda *c, const struct kernel *k, int shards, struct err *err) {
    struct dim3 grid = {(unsigned)(k->elements + KERNELS_BLOCK - 1) / KERNELS_BLOCK,
                        (unsigned)shards, 1};
    struct dim3 block = {KERNELS_BLOCK, 1, 1};
    void *args[] = {&c->network};
    cudaError_t e = cudaLaunchKernel(k->function, grid, block, args, 0, c->device->stream);
    return e == cudaSuccess ? 0 : device_fail(c->device, e, k->name, err);
}

static int launch_all(struct cuda *c, const struct kernel *k, int n, struct err *err) {
    int r = 0;
    for (int i = 0; i < n && r == 0; i++)
        r = launch(c, k + i, c->in->shards, err);
    return r;
}

static int send(struct cuda *c, struct err *err) {
    struct device *d = c->device;
    cudaError_t e =
        cudaMemcpyAsync(&c->network->in, c->in, sizeof(*c->in), cudaMemcpyHostToDevice, d->stream);
    if (e == cudaSuccess)
        e = cudaMemsetAsync(&c->network->out, 0, sizeof(c->network->out), d->stream);
    return e == cudaSuccess ? 0 : device_fail(d, e, "copying to the GPU", err);
}

/* Errors of kernels show here: they are asynchronous. */
static int receive(struct cuda *c, struct err *err) {
    struct device *d = c->device;
    cudaError_t e = cudaMemcpyAsync(c->out, &c->network->out, sizeof(*c->out),
                                    cudaMemcpyDeviceToHost, d->stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(d->stream);
    return e == cudaSuccess ? 0 : device_fail(d, e, "computing", err);
}

static int compute(struct device *d, void *arg, struct err *err) {
    struct cuda *c = arg;
    int r = send(c, err);
    if (r == 0)
        r = launch_all(c, forward, FORWARD, err);
    if (r == 0)
        r = launch_all(c, backward, BACKWARD, err);
    if (r == 0)
        r = launch(c, &sum, 1, err);
    return r == 0 ? receive(c, err) : r;
}

static int classify(struct device *d, void *arg, struct err *err) {
    struct cuda *c = arg;
    int r = send(c, err);
    if (r == 0)
        r = launch_all(c, forward, FORWARD, err);
    if (r == 0)
        r = launch(c, &classes, 1, err);
    return r == 0 ? receive(c, err) : r;
}

static int look(struct device *d, void *arg, struct err *err) {
    struct cuda *c = arg;
    cudaError_t e = cudaMemcpyAsync(c->shard, &c->network->shards[c->inspected], sizeof(*c->shard),
                                    cudaMemcpyDeviceToHost, d->stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(d->stream);
    return e == cudaSuccess ? 0 : device_fail(d, e, "copying from the GPU", err);
}

static int cuda_close(void *arg, struct err *err) {
    struct cuda *c = arg;
    struct err ignored;
    if (!c)
        return device_close(NULL, err);
    if (c->device && !device_lost(c->device))
        device_do(c->device, release, c, &ignored);
    int r = device_close(c->device, err);
    if (r == 0)
        free(c);
    return r;
}

/* The kernels are written for one network, and for the pixels of Fashion-MNIST. */
static int check_model(const struct model *m, struct err *err) {
    bool fashion = m->data.channels == 1 && m->data.mean[0] == 0.2860f;
    if (m->data.batch != LENET_BATCH)
        return err_say(err, -EOPNOTSUPP,
                       "the GPU library computes shards of %d samples, not of %d: choose another "
                       "--batch-size or --shards, or use --device=cpu",
                       LENET_BATCH, m->data.batch);
    if (m->values == LENET_PARAMETERS && strcmp(m->name, "lenet") == 0 && fashion)
        return 0;
    if (m->values == LENET_PARAMETERS && strcmp(m->name, "lenet") == 0)
        return err_say(err, -EOPNOTSUPP,
                       "the GPU library computes on Fashion-MNIST and generated images alone: use "
                       "--device=cpu");
    return err_say(err, -EOPNOTSUPP,
                   "the GPU library computes --network=lenet as published, not %s of width %d: use "
                   "--device=cpu",
                   m->name, m->width);
}

static int cuda_open(const struct compute_place *at, void **ret, char ret_label[COMPUTE_LABEL],
                     struct err *err) {
    int fits = check_model(at->model, err);
    if (fits == 0 && at->batches > NETWORK_SHARDS)
        fits = err_say(err, -EOPNOTSUPP,
                       "the GPU library computes at most %d shards, and this rank has %d: start "
                       "more workers, or use fewer --shards",
                       NETWORK_SHARDS, at->batches);
    if (fits < 0)
        return fits;
    struct device_request q = {
        .local_rank = at->local_rank, .wake_fd = at->wake_fd, .limit_ns = at->limit_ns};
    struct cuda *c = mem_new(struct cuda);
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

static void put_images(struct cuda *c, int at, const uint8_t *const *images) {
    for (int i = 0; i < LENET_BATCH; i++)
        memcpy(c->in->images[at][i], images[i], LENET_PIXELS);
}

static int cuda_sum(void *arg, const float *parameters, const struct compute_batch *batches, int n,
                    int64_t *ret_sums, int *ret_shard, struct err *err) {
    struct cuda *c = arg;
    assert(n >= 0 && n <= NETWORK_SHARDS);
    memset(ret_sums, 0, sizeof(c->out->sums));
    if (n == 0)
        return 0;
    if (device_lost(c->device))
        return device_do(c->device, compute, c, err);
    memcpy(c->in->parameters, parameters, sizeof(c->in->parameters));
    c->in->shards = n;
    for (int i = 0; i < n; i++) {
        put_images(c, i, batches[i].images);
        memcpy(c->in->labels[i], batches[i].labels, LENET_BATCH);
    }
    int r = device_do(c->device, compute, c, err);
    for (int i = 0; i < n && r == 0; i++)
        if (c->out->bad[i]) {
            *ret_shard = batches[i].shard;
            return -ERANGE;
        }
    if (r == 0)
        memcpy(ret_sums, c->out->sums, sizeof(c->out->sums));
    return r;
}

static int cuda_classify(void *arg, const float *parameters, const uint8_t *const *images,
                         uint8_t *ret_classes, struct err *err) {
    struct cuda *c = arg;
    if (device_lost(c->device))
        return device_do(c->device, classify, c, err);
    memcpy(c->in->parameters, parameters, sizeof(c->in->parameters));
    c->in->shards = 1;
    put_images(c, 0, images);
    int r = device_do(c->device, classify, c, err);
    if (r == 0)
        memcpy(ret_classes, c->out->classes[0], LENET_BATCH);
    return r;
}

static void cuda_device(void *arg, struct compute_device *ret) {
    const struct cuda *c = arg;
    snprintf(ret->uuid, sizeof(ret->uuid), "%s", c->device->uuid);
    ret->index = c->device->index;
}

int cuda_inspect(void *arg, int shard, struct network_shard *ret, struct err *err) {
    struct cuda *c = arg;
    assert(shard >= 0 && shard < NETWORK_SHARDS);
    c->shard = ret;
    c->inspected = shard;
    return device_do(c->device, look, c, err);
}

const struct compute compute_cuda = {
    .name = "cuda",
    .summary = "kernels of our own on one GPU",
    .open = cuda_open,
    .sum = cuda_sum,
    .classify = cuda_classify,
    .device = cuda_device,
    .close = cuda_close,
};
