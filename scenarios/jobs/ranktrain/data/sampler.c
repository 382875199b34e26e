#include "scenarios/jobs/ranktrain/data/sampler.h"
#include "scenarios/jobs/ranktrain/data/draw.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

void sampler_init(struct sampler *s, uint64_t seed, uint32_t samples, uint32_t batch,
                  uint32_t parts, bool drop_last) {
    assert(batch > 0 && batch % parts == 0 && samples >= batch / parts);
    *s = (struct sampler){
        .order = mem_array(uint32_t, samples),
        .taken = mem_array(uint32_t, batch),
        .samples = samples,
        .batch = batch,
        .block = batch / parts,
        .drop_last = drop_last,
        .seed = seed,
        .epoch = UINT64_MAX,
    };
}

void sampler_fini(struct sampler *s) {
    free(s->order);
    free(s->taken);
    *s = (struct sampler){0};
}

uint64_t sampler_steps_per_epoch(const struct sampler *s) {
    return s->samples / s->block;
}

uint64_t sampler_epoch_size(const struct sampler *s) {
    return s->drop_last ? sampler_steps_per_epoch(s) * s->block : s->samples;
}

uint64_t sampler_last_step(const struct sampler *s, uint64_t epochs) {
    return (epochs * sampler_epoch_size(s) + s->block - 1) / s->block;
}

/* In the orders of all epochs one after another. */
static uint64_t place_of(const struct sampler *s, uint64_t step, uint32_t i) {
    return (step - 1) * s->block + i % s->block;
}

uint64_t sampler_epoch_of(const struct sampler *s, uint64_t step, uint32_t i) {
    return place_of(s, step, i) / sampler_epoch_size(s);
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
    if (s->step == step)
        return s->taken;
    for (uint32_t i = 0; i < s->batch; i++) {
        uint64_t epoch = sampler_epoch_of(s, step, i);
        if (epoch != s->epoch)
            shuffle(s, epoch);
        s->taken[i] = s->order[place_of(s, step, i) % sampler_epoch_size(s)];
    }
    s->step = step;
    return s->taken;
}
