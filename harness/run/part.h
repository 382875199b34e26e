/* part: what a run is made of. Each part watches one thing, or does one, and keeps what it knows in
 * a struct that its own file alone can see. The engine calls all of them in the order of parts.h,
 * and in the opposite order where something ends.
 *
 * A part that must ask another does so by that part's header. A verb that is NULL has nothing to
 * do. */
#pragma once

#include "harness/history/rounds.h"

struct engine;

struct run_part {
    size_t size; /* of its own struct: zeroed, in engine->own, there before open and after close */
    /* In order. Makes what it needs; records nothing. 0, or a -errno with err, and then there is no
     * run. The cluster and the observer exist for those behind `nodes`. */
    int (*open)(struct engine *e, struct err *err);
    /* In order, when all are open. Makes what cannot fail, and records what belongs before the
     * nodes are switched on, which `nodes` does at its turn. */
    void (*begin)(struct engine *e);
    /* In order: every node is up, every store answers, and the job's agents are about to start. */
    void (*start)(struct engine *e);
    /* In order, for each record that has been written. A part may record more meanwhile; everybody
     * is told of that before the next part is told of this. */
    void (*record)(struct engine *e, const struct record *r);
    /* In order: the last worker of the round has ended, and all were told of its end. */
    void (*round_end)(struct engine *e, const struct round *r);
    /* Backwards: the job ends, for why (engine_end), and the record that says so follows. */
    void (*end)(struct engine *e, const char *why);
    /* Backwards: what had to be counted is counted, and the nodes are about to be taken down. */
    void (*take_down)(struct engine *e);
    /* Backwards: no node is left, and the last record follows. */
    void (*down)(struct engine *e);
    /* Backwards, always, also of a part that was not opened: nothing is recorded any more. */
    void (*close)(struct engine *e);
};

enum {
#define X(name) PART_##name,
#include "harness/run/parts.h"
#undef X
    PARTS_N
};

#define X(name) extern const struct run_part run_part_##name;
#include "harness/run/parts.h"
#undef X
