/* sampler: which samples make up a step, the same for every world size.
 *
 * Each epoch has an order of its own, a permutation drawn from (seed, epoch); step s takes the next
 * `batch` samples of it. So the position in the data is the number of the step and nothing else,
 * and a run resumes exactly at whatever world size. Samples left over at the end of an epoch are
 * skipped in that epoch. */
#pragma once

#include <stdint.h>

struct sampler {
    uint32_t *order;
    uint32_t samples, batch;
    uint64_t seed, epoch; /* of order; epochs count from 0, UINT64_MAX: none yet */
};

/* samples >= batch > 0. */
void sampler_init(struct sampler *s, uint64_t seed, uint32_t samples, uint32_t batch);
void sampler_fini(struct sampler *s);
uint64_t sampler_steps_per_epoch(const struct sampler *s);

/* The samples of a step (from 1), `batch` of them; valid until the next call. */
const uint32_t *sampler_step(struct sampler *s, uint64_t step);
