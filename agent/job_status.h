/* job_status: what the keys of one run say about it, read at one revision: for who looks at a job
 * from outside and takes no part in it. Pure; the rules of the round are agent/core's, here is only
 * what its keys (agent/core/keys.h) say. */
#pragma once

#include "agent/core/keys.h"
#include "agent/core/kv.h"
#include "base/arena.h"

struct job_member {
    char uid[UID_SIZE];
    struct member_value value; /* node "" when its key is not there, or not read */
    bool session;              /* it may have workers */
    bool planned;              /* it has a place in the round */
    struct plan_value plan;
    bool gone, acked, done; /* acked, done: of the last round that ran */
    enum gone_why gone_why;
    enum ack_why ack_why;
    /* Filled in by who listens: the beat that came next, after so long; -1: none came. */
    int64_t beat_ns;
    bool ended; /* its session ended meanwhile */
};

struct job_status {
    const char *run_id;
    bool found; /* false: nothing else is set */
    int64_t revision;
    struct cur_value cur;
    struct head_value head;
    /* The round that this is about: the head's, or the last that ran when the job ended while
     * another was proposed. */
    int64_t round;
    char pid[PID_SIZE];         /* its plan */
    int nodes, world;           /* world: 0 as long as it is not decided */
    int restarts;               /* of the budget; the failure that was one too many is not in it */
    char lead[UID_SIZE];        /* "": nobody coordinates */
    struct job_member *members; /* with a session or a place: those with a place first, by it */
    size_t n;
    size_t unread;     /* values that are none of this rankrun's */
    size_t unread_cur; /* the job's own value is one of them */
};

/* The range that holds every key of the run. */
void job_status_range(const char *run_id, char key[KEY_SIZE], char range_end[KEY_SIZE]);

/* Reads what was found there. ret->members live in the arena; run_id is lent. */
void job_status_read(struct arena *a, const char *run_id, int64_t revision,
                     const struct kv_pair *pairs, size_t n, struct job_status *ret);

/* NULL: none of those that were read. */
struct job_member *job_status_member(const struct job_status *s, const char *uid);

/* What a member is doing, as a word: running, done, spare ... */
const char *job_member_state(const struct job_status *s, const struct job_member *m);
/* joining, forming, running, stopping, closed */
const char *job_status_phase(const struct job_status *s);
