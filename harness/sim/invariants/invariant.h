/* invariant: one promise of the protocol per file, judged after every change while a schedule runs.
 *
 * An invariant looks at the store's history and at the machines, never at a core: what an agent
 * believes is what is on trial. The judge (judge.c) counts what has been written and done, tells
 * every invariant of each change before it is counted, and counts it then. The first that is broken
 * ends the run. Where the live judge asks the same of a history, .check names its check. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sim;
struct op;
struct head_change;
struct round_spec;

struct invariant {
    const char *name;    /* as in `list invariants` */
    const char *number;  /* of the promise: I1 to I7, or the contract on which they rest */
    const char *summary; /* one line */
    const char *text;    /* what it means, for explain */
    const char *check;   /* of the live judge, NULL: only the store shows it */

    /* All may be NULL. */
    unsigned kinds; /* of keys, 1u << KEY_...: of these on_put is told */
    void (*on_put)(struct sim *c, const char *uid, const struct op *op);
    void (*on_head)(struct sim *c, const struct head_change *h);
    void (*on_start)(struct sim *c, int node, const struct round_spec *s); /* of a worker group */
    void (*on_stop)(struct sim *c, int node);           /* an agent ends its workers */
    void (*on_denied)(struct sim *c, int node);         /* an agent hears that it may not write */
    void (*on_exit)(struct sim *c, int node, int code); /* of an agent */
    void (*on_failure)(struct sim *c, int node, int64_t round); /* it names one of that round */
    void (*on_forgotten)(struct sim *c);      /* the job, by its lease: it has ended */
    void (*on_end)(struct sim *c, bool over); /* of the seed; over: the job ended, all are gone */
};

extern const struct invariant *const invariants[]; /* alphabetical, NULL-ended */
const struct invariant *invariant_find(const char *name);
