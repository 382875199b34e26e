/* judging: what the invariants are told, and what they may ask. */
#pragma once

#include "harness/sim/invariants/invariants.h"
#include "harness/sim/simulation.h"

/* A head is written. judge.head is still the one before it, judge.last the members of the last
 * round that ran, judge.form those of the round that is being formed. */
struct head_change {
    const char *uid; /* who wrote it */
    const struct key *key;
    const struct head_value *to;
    bool settles; /* it says what the last round has cost */
    bool lost;    /* then: a member was lost in that round */
    int restarts; /* that the judge has counted, with that round */
    bool recalls; /* then: they go on from those that agents brought from a store of before */
    bool anew;    /* the first of a job that replaces another */
};

/* The run ends; only the first that is broken is kept. */
void invariant_broken(struct sim *c, const struct invariant *i, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The member of that uid, NULL: none. */
struct last_member *member_find(struct last_member *m, int n, const char *uid);
/* Whether a key is in the store, and its value; ret may be NULL. */
bool judge_key(struct sim *c, struct key key, union value *ret);
int64_t judge_version(struct sim *c, struct key key); /* 0: it is not there */
