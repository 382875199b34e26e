/* invariant: one promise of the protocol per file, judged after every change of a simulated job, by
 * the simulator in virtual time and by the explorer in every state.
 *
 * An invariant looks at the store's history and at the machines, never at a core (judge.h). It is
 * told of each change before that is counted. The first that is broken ends the run. Where the live
 * judge asks the same of a history, .check names its check. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct judge;
struct op;
struct head_change;
struct round_spec;
struct judged_stop;

struct invariant {
    const char *name;    /* as in `list invariants` */
    const char *number;  /* of the promise: I1 to I7, or the contract on which they rest */
    const char *summary; /* one line */
    const char *text;    /* what it means, for explain */
    const char *check;   /* of the live judge, NULL: only the store shows it */

    bool outlasts; /* it is asked as well when the store was set back to an older state */

    /* All may be NULL. */
    unsigned kinds; /* of keys, 1u << KEY_...: of these on_put is told */
    void (*on_put)(struct judge *j, const struct op *op);
    void (*on_head)(struct judge *j, const struct head_change *h);
    void (*on_start)(struct judge *j, int node, const struct round_spec *s); /* of a group */
    void (*on_stop)(struct judge *j, int node,
                    const struct judged_stop *s); /* an agent ends them */
    void (*on_ended)(struct judge *j, int node);  /* they are about to be dead */
    void (*on_claim)(struct judge *j, int node, const char *what, int64_t round);
    void (*on_denied)(struct judge *j, int node);         /* an agent hears that it may not write */
    void (*on_exit)(struct judge *j, int node, int code); /* of an agent */
    void (*on_failure)(struct judge *j, int node, int64_t round); /* it names one of that round */
    void (*on_said)(struct judge *j, int node, const char *text); /* it ends with the outcome */
    /* It reads of a store that was set back. */
    void (*on_strange)(struct judge *j, int node, int64_t revision, int64_t known);
    void (*on_forgotten)(struct judge *j); /* the job, by its lease: it has ended */
    /* Of the run. over: the job ended, and all are gone; late: or it should have by now. */
    void (*on_end)(struct judge *j, bool over, bool late);
};

extern const struct invariant *const invariants[]; /* alphabetical, NULL-ended */
const struct invariant *invariant_find(const char *name);
