/* said_line: a line that rankrun's agent has printed of a round, of a worker that failed or of the
 * outcome, taken apart; as text ("rankrun: ...") or as an object of --log-format json. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

enum said_kind {
    SAID_NOTHING, /* none of these, or not as rankrun prints it */
    SAID_ROUND,   /* a round has begun */
    SAID_WORKER,  /* the first of this node that failed in it */
    SAID_FIRST,   /* the first failure of the job's last round */
    SAID_OUTCOME,
};

struct said_line {
    enum said_kind kind;
    int64_t round;
    const char *cause; /* of SAID_ROUND: start, join, failure, membership, elsewhere */
    int64_t world, nodes, restarts, restarts_max; /* restarts_max -1: not said */
    int64_t stop_ms, rendezvous_ms, start_ms;
    const char *node;              /* that is named; NULL: none is */
    int64_t rank, local_rank, pid; /* -1: not said */
    int64_t code, signal;          /* how the worker ended; -1: not so */
    const char *signal_name;       /* "KILL", in place of its number; NULL: not said */
    const char *run_id;
    bool succeeded; /* of SAID_OUTCOME */
    /* What an object says beside its text that is not what the text says; NULL: it says the same. */
    const char *differs;
};

void said_line_read(struct arena *a, const char *line, struct said_line *ret);
