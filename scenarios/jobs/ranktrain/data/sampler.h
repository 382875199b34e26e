/* sampler: which samples make up a step, the same for every world size.
 *
 * Each epoch has an order of its own, a permutation drawn from (seed, epoch), and the orders follow
 * one another without a gap: step s takes the samples at the places (s - 1) * batch and on. So the
 * position in the data is the number of the step and nothing else, a run resumes exactly at whatever
 * world size, and each epoch has every sample once: where it does not end with a step, that step
 * goes on with the next. drop_last: what is left of an epoch is left out instead.
 *
 * Where the data is split, and each rank has one of `parts`, the samples are those of its part, and
 * each of so many equal blocks of a step takes the next of one: so an epoch has all samples of all
 * parts once, too. The places of other blocks say nothing about other parts' samples. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sampler {
    uint32_t *order, *taken; /* of an epoch, and of the step that was asked for last */
    uint32_t samples, batch;
    uint32_t block; /* places of a step that are one part's; without parts: batch */
    bool drop_last;
    uint64_t seed, epoch; /* of order; epochs count from 0, UINT64_MAX: none yet */
    uint64_t step;        /* of taken; 0: none yet */
};

/* batch is a multiple of parts; samples, of one part, >= batch / parts > 0. */
void sampler_init(struct sampler *s, uint64_t seed, uint32_t samples, uint32_t batch,
                  uint32_t parts, bool drop_last);
void sampler_fini(struct sampler *s);

/* Whole steps of an epoch. */
uint64_t sampler_steps_per_epoch(const struct sampler *s);

/* The step (from 1) with which so many epochs are done. */
uint64_t sampler_last_step(const struct sampler *s, uint64_t epochs);

/* How many samples an epoch trains on, of one part. */
uint64_t sampler_epoch_size(const struct sampler *s);

/* The epoch of the i-th sample of a step. */
uint64_t sampler_epoch_of(const struct sampler *s, uint64_t step, uint32_t i);

/* The samples of a step, `batch` of them; valid until another step is asked for. */
const uint32_t *sampler_step(struct sampler *s, uint64_t step);
