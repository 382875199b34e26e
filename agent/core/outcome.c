#include "agent/core/state.h"

/* The sentence with which every agent of the job ends: the same on all of them. */

static const char *how_it_ended(struct arena *a, int status) {
    int signo = status & 0x7f;
    return signo ? arena_printf(a, "was killed by signal %d", signo)
                 : arena_printf(a, "exited with code %d", status >> 8 & 0xff);
}

const char *outcome_text(struct rendezvous *r) {
    const struct head_value *h = &r->head;
    const struct failure *f = &h->failure;
    if (h->outcome != OUTCOME_FAILED)
        return "";
    if (!f->uid[0])
        return arena_printf(&r->arena, "run \"%s\" failed: %s", r->config.run_id, f->error);
    return arena_printf(&r->arena,
                        "run \"%s\" failed: rank %d (local rank %d on node %s) %s%s%s; "
                        "max_restarts %d is used up",
                        r->config.run_id, f->rank, f->local_rank, f->node,
                        how_it_ended(&r->arena, f->wait_status), f->error[0] ? ": " : "", f->error,
                        r->cur.max_restarts);
}
