/* built: what job.build makes, kept under its key in built/KEY of the cache: the files 0, 1 ... in the
 * order of the outputs, and built.json, which names them. */
#pragma once

#include "base/err.h"
#include "harness/plan/plan.h"

enum built_how {
    BUILT_NOTHING, /* the scenario builds nothing */
    BUILT_HERE,    /* all outputs are what was kept */
    BUILT_KEPT,    /* they were taken from the cache */
    BUILT_NOW,     /* the command was run */
    BUILT_MISSING, /* nothing is kept, and nobody wanted it built */
};

struct built {
    enum built_how how;
    char key[65];
    int64_t took_ns; /* of the command, BUILT_NOW */
};

/* Brings the outputs of the plan's job into place: from the cache, or, where make is true and it has
 * none of this key (or fresh is set), by the command, and keeps them. Others that want the same at
 * the same time wait. -ENOENT: an input or, after the command, an output is not there; -EPROTO: the
 * command failed, with the last that it printed; others of the calls. */
int built_ready(const struct plan *p, bool make, bool fresh, struct built *ret, struct err *err);
