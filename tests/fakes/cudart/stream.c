/* Streams, each a thread that works off what was enqueued, in order; and events. */
#include "cuda_runtime.h"
#include "fake.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum kind { COPY, FILL, LAUNCH, CALL, RECORD, WAIT };

struct work {
    struct work *next;
    enum kind kind;
    void *dst;
    const void *src;
    size_t n;
    int value; /* FILL: the byte; LAUNCH: the number of the launch */
    void (*function)(void *);
    dim3 grid, block;
    cudaEvent_t event;
    unsigned ticket; /* of the event: which record it is */
};

struct CUstream_st {
    pthread_t thread;
    struct work *first, **last;
    bool busy, end;
};

struct CUevent_st {
    unsigned asked, done; /* records */
};

__thread __attribute__((tls_model("initial-exec"))) struct dim3 threadIdx, blockIdx, blockDim,
    gridDim;

/* One lock for all of it: tests are small. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int streams, events, launches, functions;
static cudaStream_t everybodys; /* the one that NULL names */

void fake_stream_left(struct fake_left *ret) {
    pthread_mutex_lock(&lock);
    ret->streams = streams;
    ret->events = events;
    ret->launches = launches;
    pthread_mutex_unlock(&lock);
}

static void wait_for_a_function(void) {
    pthread_mutex_lock(&lock);
    while (functions == 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void run_kernel(const struct work *w) {
    const struct fake_plan *p = fake_plan();
    if (w->value == p->wait_at)
        wait_for_a_function();
    if (w->value == p->hang_at)
        fake_hang();
    if (w->value == p->sticky_at) {
        fake_spoil((cudaError_t)p->sticky_code);
        return;
    }
    gridDim = w->grid;
    blockDim = w->block;
    for (blockIdx.y = 0; blockIdx.y < w->grid.y; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < w->grid.x; blockIdx.x++)
            for (threadIdx.x = 0; threadIdx.x < w->block.x; threadIdx.x++)
                w->function(w->dst);
}

static void wait_for(cudaEvent_t e, unsigned ticket) {
    pthread_mutex_lock(&lock);
    while ((int)(e->done - ticket) < 0 && !fake_spoilt())
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void do_work(const struct work *w) {
    if (fake_spoilt() && w->kind != RECORD)
        return;
    switch (w->kind) {
    case COPY:
        memmove(w->dst, w->src, w->n);
        break;
    case FILL:
        memset(w->dst, w->value, w->n);
        break;
    case LAUNCH:
        run_kernel(w);
        break;
    case CALL:
        w->function(w->dst);
        break;
    case RECORD:
        break;
    case WAIT:
        wait_for(w->event, w->ticket);
        break;
    }
}

static void *serve(void *arg) {
    cudaStream_t s = arg;
    pthread_mutex_lock(&lock);
    while (s->first || !s->end) {
        struct work *w = s->first;
        if (!w) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        s->first = w->next;
        s->last = w->next ? s->last : &s->first;
        s->busy = true;
        pthread_mutex_unlock(&lock);
        do_work(w);
        pthread_mutex_lock(&lock);
        if (w->kind == RECORD)
            w->event->done = w->ticket;
        free(w);
        s->busy = false;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static cudaStream_t stream_new(void) {
    cudaStream_t s = calloc(1, sizeof(*s));
    s->last = &s->first;
    pthread_create(&s->thread, NULL, serve, s);
    return s;
}

/* With the lock held. */
static cudaStream_t stream_of(cudaStream_t s) {
    if (!s && !everybodys)
        everybodys = stream_new();
    return s ? s : everybodys;
}

static cudaError_t enqueue(cudaStream_t s, const struct work *work) {
    cudaError_t e = fake_context();
    if (e != cudaSuccess)
        return fake_answer(e);
    struct work *w = malloc(sizeof(*w));
    *w = *work;
    w->next = NULL;
    pthread_mutex_lock(&lock);
    s = stream_of(s);
    if (w->kind == LAUNCH)
        w->value = ++launches;
    functions += w->kind == CALL;
    if (w->kind == RECORD)
        w->ticket = ++w->event->asked;
    if (w->kind == WAIT)
        w->ticket = w->event->asked;
    *s->last = w;
    s->last = &w->next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return cudaSuccess; /* it is accepted, whatever becomes of it */
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    (void)flags;
    cudaError_t e = fake_context();
    if (e == cudaSuccess) {
        *stream = stream_new();
        pthread_mutex_lock(&lock);
        streams++;
        pthread_mutex_unlock(&lock);
    }
    return fake_answer(e);
}

/* What was enqueued is still done, as by the real one; but this waits for it. */
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    if (fake_spoilt() || !stream)
        return fake_answer(cudaErrorInvalidResourceHandle);
    pthread_mutex_lock(&lock);
    stream->end = true;
    streams--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(stream->thread, NULL);
    free(stream);
    return fake_answer(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    pthread_mutex_lock(&lock);
    stream = stream_of(stream);
    while (stream->first || stream->busy)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return fake_answer(cudaSuccess);
}

cudaError_t cudaDeviceSynchronize(void) {
    return cudaStreamSynchronize(NULL);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    pthread_mutex_lock(&lock);
    stream = stream_of(stream);
    bool idle = !stream->first && !stream->busy;
    pthread_mutex_unlock(&lock);
    return fake_spoilt() ? fake_answer(cudaSuccess) : idle ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    (void)kind;
    return enqueue(stream, &(struct work){.kind = COPY, .dst = dst, .src = src, .n = n});
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind) {
    cudaError_t e = cudaMemcpyAsync(dst, src, n, kind, NULL);
    return e == cudaSuccess ? cudaStreamSynchronize(NULL) : e;
}

cudaError_t cudaMemsetAsync(void *dst, int value, size_t n, cudaStream_t stream) {
    return enqueue(stream, &(struct work){.kind = FILL, .dst = dst, .value = value, .n = n});
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *arg) {
    return enqueue(stream, &(struct work){.kind = CALL, .function = fn, .dst = arg});
}

cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream) {
    struct work w = {.kind = LAUNCH, .grid = grid, .block = block, .dst = *(void **)args[0]};
    assert(grid.z == 1 && block.y == 1 && block.z == 1 && shared == 0);
    memcpy(&w.function, &func, sizeof(func));
    return enqueue(stream, &w);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    (void)flags;
    cudaError_t e = fake_context();
    if (e == cudaSuccess) {
        *event = calloc(1, sizeof(**event));
        pthread_mutex_lock(&lock);
        events++;
        pthread_mutex_unlock(&lock);
    }
    return fake_answer(e);
}

/* Whoever destroys one that is still waited for is found by a sanitizer. */
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    if (fake_spoilt() || !event)
        return fake_answer(cudaErrorInvalidResourceHandle);
    pthread_mutex_lock(&lock);
    events--;
    pthread_mutex_unlock(&lock);
    free(event);
    return fake_answer(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return enqueue(stream, &(struct work){.kind = RECORD, .event = event});
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    (void)flags;
    return enqueue(stream, &(struct work){.kind = WAIT, .event = event});
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    pthread_mutex_lock(&lock);
    bool done = event->done == event->asked;
    pthread_mutex_unlock(&lock);
    return fake_spoilt() ? fake_answer(cudaSuccess) : done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    pthread_mutex_lock(&lock);
    unsigned ticket = event->asked;
    pthread_mutex_unlock(&lock);
    wait_for(event, ticket);
    return fake_answer(cudaSuccess);
}
