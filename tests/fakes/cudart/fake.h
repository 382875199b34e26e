/* The rooms of the fake runtime among themselves. */
#pragma once

#include "cuda_runtime_api.h"

#include <stdbool.h>
#include <stdint.h>

/* What RANKTRAIN_FAKE_CUDA says; read once. */
struct fake_plan {
    int devices, driver, mode;
    size_t memory;
    bool busy, full, hang_at_init;
    int oom_at, sticky_code, sticky_at, hang_at, wait_at; /* counted from 1; 0: never */
    char report[512];
};

const struct fake_plan *fake_plan(void);

/* The error of the context if it is spoilt; else e, which is remembered as the last error. Every
 * call of the API ends in it. */
cudaError_t fake_answer(cudaError_t e);
void fake_spoil(cudaError_t e);
cudaError_t fake_spoilt(void);

/* cudaSuccess when there is a context to work in: the first call that needs one makes it. */
cudaError_t fake_context(void);

void fake_hang(void) __attribute__((noreturn));

/* What has been asked for and not given back. */
struct fake_left {
    size_t bytes, pinned, peak;
    int streams, events, launches;
};
void fake_memory_left(struct fake_left *ret);
void fake_stream_left(struct fake_left *ret);
