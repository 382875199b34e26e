/* run: a plan carried out once: the cluster built, the timeline played, everything seen written to
 * the history, everything undone. Nothing is judged here. */
#pragma once

#include "base/sys/folder.h"
#include "harness/history/history.h"
#include "harness/history/rounds.h"
#include "harness/plan/plan.h"

/* What the job of the control run gave; see control.h. */
struct control {
    char model[72];                /* 64 hex digits, "" when the job does not say */
    char label[64];                /* what the hash holds for, as the job says it */
    int64_t step_ns;               /* median of one worker's steps, 0: no steps */
    int64_t pace_ns;               /* goodput_pace_ns: mean of all; 0: no two steps */
    int64_t first_step, last_step; /* that any worker told; -1: no steps */
    bool told;                     /* its steps can be held: the job itself sends them */
    bool beside;                   /* others ran meanwhile: its pace is that of a busy host */
    int64_t start_ns, train_ns; /* begin to steady state, and from there to the last worker's end */
    int64_t steps_ns;           /* from steady state to the last step, 0: none came after it */
    int64_t kept;    /* complete checkpoints that it keeps, of more; -1: all, or nobody knows */
    char saves[24];  /* what its workers tell while they save: checkpoint-write, else -begin; "" */
    bool saves_told; /* and can be held at */
    int64_t commits; /* saves that a worker has told to be whole */
    int64_t saved;   /* the newest complete checkpoint at its end; -1: nobody saw one */
    int64_t saved_gap;  /* the most that lay between two that followed each other; 0: not known */
    int workers, named; /* of its last round, and how many of these named a model */
    bool has_loss;
    double loss; /* of its last step, the mean over the ranks that told one */
    bool cached;
    char dir[512];  /* the cache folder, or the run directory that it comes from */
    char made[512]; /* the run directory that it was made in; it may be gone */
};

struct run_spec {
    const struct plan *plan;
    const struct folder *folder;   /* the run directory; its path is absolute */
    const char *bin;               /* the folder of our programs */
    const struct control *control; /* NULL: this is the control run */
    const char *const *sets;       /* what was overridden, key=value, NULL-ended; or NULL */
    bool keep;                     /* keep the cluster's scratch directory */
    bool pcap;                     /* write down the frames of every node */
    bool reads;                    /* write down what of the caller's tree is opened: reads.h */
    bool interactive, paused; /* it takes faults by hand (hand.h); its start waits for a word */
    /* With faults by hand the scenario that has them, the caller's to free; else untouched. */
    struct scenario **ret_grown;
    int64_t until_ns; /* on the monotonic clock: interrupted then, if it has not ended; 0: never */
    /* Told of every record as it is written: the live view. May be NULL. */
    void (*seen)(void *arg, const struct record *r);
    void *seen_arg;
};

/* Returns 0 when the history tells the whole story, also of a run that was interrupted or whose job
 * failed; else a -errno: the harness or the host broke, and what was started has been taken down.
 */
int run_execute(const struct run_spec *spec, struct history *h, struct rounds *rs, struct err *err);
