/* causes: why states are bad: each different reason once, by the smallest way to it, in words. */
#pragma once

#include "base/arena.h"
#include "harness/crash/states.h"

enum crash_verdict { CRASH_UNTRIED, CRASH_GOOD, CRASH_BAD };

struct crash_judge {
    /* Whether a state is bad where it is reached this way: one that has nothing of a checkpoint is
     * well before it was committed. May try a state that was not tried yet (`found_later`: it was
     * not in the list), or say CRASH_UNTRIED. */
    enum crash_verdict (*verdict)(void *arg, size_t state, const struct crash_way *way);
    void *arg;
    bool may_add; /* smaller losses than those that were found are asked about too */
};

struct crash_cause {
    size_t state;                /* the smallest bad one */
    const struct crash_way *way; /* and how it is reached: no loss can be left out */
    const char *sentence; /* "rename of latest.tmp to latest before fsync of step-20/model.pt: after
                             power loss `latest` names an empty file" */
    const char *missing;  /* "no fsync of step-20/model.pt between its last write (operation 5) and
                             the rename of latest.tmp to latest (operation 9)"; NULL: no sync would
                             have helped, a process died */
    const size_t *steps;  /* the operations that it takes, in order */
    size_t steps_n;
    const size_t *states; /* all bad states that have this reason */
    size_t states_n;
};

/* In the order of their states' trials. Everything is in the arena. */
void crash_causes_find(struct crash_states *s, const struct crash_judge *judge, struct arena *arena,
                       const struct crash_cause **ret, size_t *ret_n);
