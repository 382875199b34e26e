/* mode: how the ranks share the work of a step and what each holds of the state. One file per mode
 * ends in one const struct and has one line in MODES, in alphabetical order. Whatever the mode, the
 * same seed ends with the same bits at every world size. */
#pragma once

#include "scenarios/jobs/ranktrain/trainer.h"

#include "base/err.h"

struct mode {
    const char *name, *summary;
    bool pairs;   /* its ranks send one another something */
    bool serves;  /* rank 0 has no shards: one more rank than shards may take part */
    bool alone;   /* one process */
    bool layered; /* computes one layer at a time (compute.h) */

    /* Of the options and the world alone. NULL: all are right. */
    int (*check)(const struct ranktrain_options *o, struct err *err);

    /* Before anybody is met, with model, data and compute at hand: memory for what this rank holds
     * of the state (trainer.state, all zero) and for what a step needs. Returns 0 or an error. */
    int (*open)(struct trainer *t, struct err *err);

    /* Step state.step + 1, from nothing computed to the update applied and counted in state.step.
     * Every rank calls it. Returns 0 and the mean loss; -ECANCELED when woken; or an error whose
     * sentence names the shard or the peer. */
    int (*step)(struct trainer *t, double *ret_loss, struct err *err);

    /* NULL where every rank holds the whole state. Else hands it out, between two steps: each rank
     * gets what ret holds, all of it or a range, and nothing for NULL. Every rank calls it. */
    int (*gather)(struct trainer *t, struct state *ret, struct err *err);

    /* NULL where every rank holds all weights. Else the model's hash, on every rank. */
    int (*hash)(struct trainer *t, char ret[65], struct err *err);

    /* NULL for what the rank's own weights say. Else every rank calls it as often as all others,
     * without images where it has no more. */
    int (*classify)(struct trainer *t, const uint8_t *const *images, uint8_t *ret_classes,
                    struct err *err);

    /* NULL: nothing is. The group is lost and another will be formed (--recover=in-process): what was
     * under way is forgotten. */
    void (*forget)(struct trainer *t);

    /* NULL is allowed; after open, whatever it returned. */
    void (*close)(struct trainer *t);
};

#define MODES(X) X(ddp) X(dp) X(fsdp) X(manual) X(ps) X(zero)

#define MODE_DECLARE(name) extern const struct mode mode_##name;
MODES(MODE_DECLARE)
#undef MODE_DECLARE

/* By its name; NULL and a sentence that lists them. */
const struct mode *mode_find(const char *name, struct err *err);
