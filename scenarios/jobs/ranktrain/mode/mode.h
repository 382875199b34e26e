/* mode: how the ranks share the work of a step and what each holds of the state. One file per mode
 * ends in one const struct and has one line in MODES, in alphabetical order. Whatever the mode, the
 * same seed ends with the same bits at every world size. */
#pragma once

#include "scenarios/jobs/ranktrain/trainer.h"

#include "base/err.h"

struct mode {
    const char *name, *summary;

    /* Before anybody is met, with model, data and compute at hand: memory for what this rank holds
     * of the state (trainer.state, all zero) and for what a step needs. Returns 0 or an error. */
    int (*open)(struct trainer *t, struct err *err);

    /* Step state.step + 1, from nothing computed to the update applied and counted in state.step.
     * Every rank calls it. Returns 0 and, on all ranks, the mean loss; -ECANCELED when woken; or an
     * error whose sentence names the shard or the peer. */
    int (*step)(struct trainer *t, double *ret_loss, struct err *err);

    /* NULL is allowed; after open, whatever it returned. */
    void (*close)(struct trainer *t);
};

#define MODES(X) X(ddp)

#define MODE_DECLARE(name) extern const struct mode mode_##name;
MODES(MODE_DECLARE)
#undef MODE_DECLARE

/* By its name; NULL and a sentence that lists them. */
const struct mode *mode_find(const char *name, struct err *err);
