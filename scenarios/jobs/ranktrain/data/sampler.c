#include "scenarios/jobs/ranktrain/data/sampler.h"
#include "scenarios/jobs/ranktrain/data/draw.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

void sampler_init(struct sampler *s, uint64_t seed, uint32_t samples, uint32_t batch) {
    assert(batch > 0 && samples >= batch);
    *s = (struct sampler){
        .order = mem_array(uint32_t, samples),
        .samples = samples,
        .batch = batch,
        .seed = seed,
        .epoch = UINT64_MAX,
    };
}

void sampler_fini(struct sampler *s) {
    free(s->order);
    *s = (struct sampler){0};
}

uint64_t sampler_steps_per_epoch(const struct sampler *s) {
    return s->samples / s->batch;
}

static void shuffle(struct sampler *s, uint64_t epoch) {
    uint64_t state = draw_stream(s->seed, 1000 + epoch);
    for (uint32_t i = 0; i < s->samples; i++)
        s->order[i] = i;
    for (uint32_t i = s->samples - 1; i > 0; i--) {
        uint32_t j = draw_below(&state, i + 1), t = s->order[i];
        s->order[i] = s->order[j];
        s->order[j] = t;
    }
    s->epoch = epoch;
}

const uint32_t *sampler_step(struct sampler *s, uint64_t step) {
    assert(step > 0);
    uint64_t per_epoch = sampler_steps_per_epoch(s), epoch = (step - 1) / per_epoch;
    if (epoch != s->epoch)
        shuffle(s, epoch);
    return s->order + (step - 1) % per_epoch * s->batch;
}
