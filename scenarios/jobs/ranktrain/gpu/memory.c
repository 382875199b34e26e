#include "scenarios/jobs/ranktrain/gpu/memory.h"

#include "base/mem.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNED = 256 };

/* Places are given out twice: to learn how many bytes there are, and to give them. */
static void *place(char *base, size_t *at, size_t bytes) {
    char *p = base ? base + *at : NULL;
    *at += (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    return p;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* The most that any layer has. */
static size_t most_trained(const struct model *m) {
    size_t most = 0;
    for (int i = 0; i < m->n; i++)
        most = larger(most, m->layers[i].trained);
    return most;
}

static size_t most_running(const struct model *m) {
    size_t most = 0;
    for (int i = 0; i < m->n; i++)
        most = larger(most, m->layers[i].running);
    return most;
}

static size_t most_values(const struct model *m) {
    size_t most = 0;
    for (int i = 0; i < m->n; i++)
        most = larger(most, m->layers[i].trained + m->layers[i].running);
    return most;
}

static size_t values_bytes(const struct gpu_memory *m) {
    return (m->layered ? most_values(m->model) : m->model->values) * sizeof(float);
}

static size_t sums_bytes(const struct gpu_memory *m) {
    size_t n = m->layered ? most_trained(m->model) + most_running(m->model) : m->model->values;
    return (n + 1) * sizeof(int64_t);
}

static size_t samples(const struct gpu_memory *m) {
    return (size_t)m->shards * (size_t)m->model->data.batch;
}

/* A shard's room: what each layer has in it. Returns its floats. */
static size_t lay_room(struct gpu_memory *m, char *base) {
    const struct model *model = m->model;
    const struct layer_shape images = {
        .channels = model->data.channels, .side = model->data.side, .batch = model->data.batch};
    size_t at = 0;
    m->input = place(base, &at, layer_floats(&images) * sizeof(float));
    for (int i = 0; i < model->n; i++) {
        const struct model_layer *l = &model->layers[i];
        struct network_layer *n = &m->host.layers[i];
        size_t rows = l->running ? KEPT_ROWS * (size_t)l->in.channels : 0;
        n->out = place(base, &at, layer_floats(&l->out) * sizeof(float));
        n->d_out = place(base, &at, layer_floats(&l->out) * sizeof(float));
        n->kept = place(base, &at, rows * sizeof(float));
        n->choice = place(base, &at, l->choices * sizeof(int32_t));
    }
    return at / sizeof(float);
}

static void lay_device(struct gpu_memory *m, char *base) {
    const struct model *model = m->model;
    size_t at = 0, shards = (size_t)m->shards, n = (size_t)model->n;
    m->network = place(base, &at, sizeof(*m->network));
    m->layers = place(base, &at, n * sizeof(*m->layers));
    m->images = place(base, &at, samples(m) * m->image);
    m->labels = place(base, &at, samples(m));
    m->answers = place(base, &at, samples(m));
    m->losses = place(base, &at, samples(m) * sizeof(*m->losses));
    m->bad_bytes = at;
    m->bad = place(base, &at, shards * sizeof(*m->bad));
    m->wrong = place(base, &at, m->wrong_bytes);
    m->bad_bytes = at - m->bad_bytes;
    m->held.activations = at;
    m->values = place(base, &at, values_bytes(m));
    m->held.parameters = at - m->held.activations;
    m->gradient = place(base, &at, shards * most_trained(model) * sizeof(float));
    m->statistics = place(base, &at, shards * most_running(model) * sizeof(float));
    m->sums = place(base, &at, sums_bytes(m));
    m->held.gradients = at - m->held.activations - m->held.parameters;
    size_t before = at;
    char *rooms = place(base, &at, shards * m->room * sizeof(float));
    m->held.activations += at - before;
    m->bytes = at;
    if (base)
        lay_room(m, rooms);
    m->statistics_sums = m->layered ? m->sums + most_trained(model) : m->sums;
    m->loss = m->sums + sums_bytes(m) / sizeof(*m->sums) - 1;
}

static void lay_host(struct gpu_memory *m, char *base) {
    size_t at = 0;
    m->host.step = place(base, &at, sizeof(*m->host.step));
    m->host.images = place(base, &at, samples(m) * m->image);
    m->host.labels = place(base, &at, samples(m));
    m->host.answers = place(base, &at, samples(m));
    m->host.values = place(base, &at, values_bytes(m));
    m->host.sums = place(base, &at, sums_bytes(m));
    m->host.bad = place(base, &at, (size_t)m->shards * sizeof(*m->host.bad));
    m->host.wrong = place(base, &at, m->wrong_bytes);
    m->host.bytes = at;
}

void gpu_memory_plan(struct gpu_memory *ret, const struct model *m, int shards, bool layered) {
    *ret = (struct gpu_memory){.model = m, .shards = shards, .layered = layered};
    assert(shards > 0 && shards <= GPU_MEMORY_SHARDS);
    ret->host.layers = mem_array(struct network_layer, (size_t)m->n);
    ret->image = (size_t)(m->data.channels * m->data.side * m->data.side);
    ret->wrong_bytes = (size_t)m->n * WRONG_ROWS * (size_t)shards * sizeof(*ret->wrong);
    ret->room = lay_room(ret, NULL);
    lay_device(ret, NULL);
    lay_host(ret, NULL);
}

/* Numbers of a layer, among those of all or alone. */
static void point_to_numbers(const struct gpu_memory *m, int i) {
    const struct model_layer *l = &m->model->layers[i];
    struct network_layer *n = &m->host.layers[i];
    n->values = m->values + (m->layered ? 0 : l->trained_at);
    n->statistics_so_far = m->values + (m->layered ? l->trained : l->running_at);
    n->gradient = m->gradient;
    n->statistics = m->statistics;
    n->sums = m->sums + (m->layered ? 0 : l->trained_at);
    n->statistics_sums = m->statistics_sums + (m->layered ? 0 : l->running_at);
    n->wrong = m->wrong + (size_t)i * WRONG_ROWS * (size_t)m->shards;
    n->wrong_row = m->shards;
}

static void describe_layer(const struct gpu_memory *m, int i) {
    const struct model_layer *l = &m->model->layers[i];
    struct network_layer *n = &m->host.layers[i], *layers = m->host.layers;
    n->network = m->network;
    n->channels = l->in.channels;
    n->side = l->in.side ? l->in.side : 1;
    n->outs = l->out.channels;
    n->out_side = l->out.side ? l->out.side : 1;
    n->kernel = l->kernel;
    n->stride = l->stride;
    n->padding = l->padding;
    n->bias = l->bias;
    n->relu = l->relu;
    n->trained = (int32_t)l->trained;
    n->running = (int32_t)l->running;
    n->in = l->input < 0 ? m->input : layers[l->input].out;
    n->second = l->second < 0 ? NULL : layers[l->second].out;
    point_to_numbers(m, i);
}

/* Backward, from the last layer on: whoever comes first to a layer's gradient writes it. */
static void point_to_gradients(const struct gpu_memory *m) {
    struct network_layer *layers = m->host.layers;
    bool *begun = mem_array(bool, (size_t)m->model->n);
    for (int i = m->model->n - 1; i >= 0; i--) {
        int in = m->model->layers[i].input, second = m->model->layers[i].second;
        layers[i].d_in = in < 0 ? NULL : layers[in].d_out;
        layers[i].adds_in = in >= 0 && begun[in];
        layers[i].d_second = second < 0 ? NULL : layers[second].d_out;
        layers[i].adds_second = second >= 0 && begun[second];
        if (in >= 0)
            begun[in] = true;
        if (second >= 0)
            begun[second] = true;
    }
    free(begun);
}

static struct network describe(const struct gpu_memory *m) {
    const struct model_data *d = &m->model->data;
    const struct network_layer *last = &m->host.layers[m->model->n - 1];
    struct network n = {.batch = d->batch,
                        .channels = d->channels,
                        .side = d->side,
                        .classes = d->classes,
                        .room = m->room,
                        .images = m->images,
                        .labels = m->labels,
                        .input = m->input,
                        .logits = last->out,
                        .d_logits = last->d_out,
                        .losses = m->losses,
                        .loss = m->loss,
                        .answers = m->answers,
                        .bad = m->bad};
    memcpy(n.mean, d->mean, sizeof(n.mean));
    memcpy(n.deviation, d->deviation, sizeof(n.deviation));
    return n;
}

int gpu_memory_open(struct gpu_memory *m, struct device *d, struct err *err) {
    cudaError_t e = cudaMalloc((void **)&m->all, m->bytes);
    if (e != cudaSuccess)
        return device_fail(d, e, "allocating the network", err);
    e = cudaMallocHost((void **)&m->host.all, m->host.bytes);
    if (e != cudaSuccess)
        return device_fail(d, e, "allocating pinned memory", err);
    memset(m->host.all, 0, m->host.bytes);
    lay_device(m, m->all);
    lay_host(m, m->host.all);
    for (int i = 0; i < m->model->n; i++)
        describe_layer(m, i);
    point_to_gradients(m);
    struct network n = describe(m);
    e = cudaMemsetAsync(m->all, 0, m->bytes, d->stream);
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(m->network, &n, sizeof(n), cudaMemcpyHostToDevice, d->stream);
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(m->layers, m->host.layers, (size_t)m->model->n * sizeof(*m->layers),
                            cudaMemcpyHostToDevice, d->stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(d->stream);
    return e == cudaSuccess ? 0 : device_fail(d, e, "clearing the network", err);
}

void gpu_memory_close(struct gpu_memory *m) {
    cudaFree(m->all);
    cudaFreeHost(m->host.all);
    free(m->host.layers);
    m->host.layers = NULL;
}
