/* Memory: counted, so that what is not given back shows. */
#include "fake.h"

#include <pthread.h>
#include <stdlib.h>

struct block {
    struct block *next;
    void *p;
    size_t size;
    bool pinned;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks;
static size_t on_device, pinned_bytes, peak;
static int allocations;

void fake_memory_left(struct fake_left *ret) {
    pthread_mutex_lock(&lock);
    ret->bytes = on_device;
    ret->pinned = pinned_bytes;
    ret->peak = peak;
    pthread_mutex_unlock(&lock);
}

static bool fits(size_t size, bool pinned) {
    const struct fake_plan *p = fake_plan();
    if (pinned)
        return true;
    allocations++;
    return allocations != p->oom_at && size <= p->memory - on_device;
}

static cudaError_t allocate(void **ret, size_t size, bool pinned) {
    cudaError_t e = fake_context();
    if (e != cudaSuccess)
        return e;
    pthread_mutex_lock(&lock);
    if (fits(size, pinned)) {
        struct block *b = calloc(1, sizeof(*b));
        *b = (struct block){blocks, aligned_alloc(256, (size + 255) / 256 * 256), size, pinned};
        blocks = b;
        *(pinned ? &pinned_bytes : &on_device) += size;
        peak = on_device > peak ? on_device : peak;
        *ret = b->p;
    } else
        e = cudaErrorMemoryAllocation;
    pthread_mutex_unlock(&lock);
    return e;
}

static cudaError_t release(void *p, bool pinned) {
    cudaError_t e = fake_context();
    if (e != cudaSuccess || !p)
        return e;
    pthread_mutex_lock(&lock);
    struct block **at = &blocks;
    while (*at && !((*at)->p == p && (*at)->pinned == pinned))
        at = &(*at)->next;
    struct block *b = *at;
    if (b) {
        *at = b->next;
        *(pinned ? &pinned_bytes : &on_device) -= b->size;
        free(b->p);
        free(b);
    } else
        e = cudaErrorInvalidValue;
    pthread_mutex_unlock(&lock);
    return e;
}

cudaError_t cudaMalloc(void **ptr, size_t size) {
    return fake_answer(allocate(ptr, size, false));
}

cudaError_t cudaMallocHost(void **ptr, size_t size) {
    return fake_answer(allocate(ptr, size, true));
}

/* The real one waits for the device first; whoever frees what is in use is found by a sanitizer. */
cudaError_t cudaFree(void *ptr) {
    return fake_answer(release(ptr, false));
}

cudaError_t cudaFreeHost(void *ptr) {
    return fake_answer(release(ptr, true));
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *total) {
    cudaError_t e = fake_context();
    if (e == cudaSuccess) {
        *total = fake_plan()->memory;
        pthread_mutex_lock(&lock);
        *unused = *total - on_device;
        pthread_mutex_unlock(&lock);
    }
    return fake_answer(e);
}
