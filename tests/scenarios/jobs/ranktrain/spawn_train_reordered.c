/* ranktrain with a planted bug: every epoch has the order of the first. */
#define sampler_step sampler_step_rightly
#include "scenarios/jobs/ranktrain/data/sampler.c"
#undef sampler_step

const uint32_t *sampler_step(struct sampler *s, uint64_t step);

const uint32_t *sampler_step(struct sampler *s, uint64_t step) {
    return sampler_step_rightly(s, (step - 1) % sampler_steps_per_epoch(s) + 1);
}

#include "scenarios/jobs/ranktrain/main.c"
