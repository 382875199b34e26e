/* generate: a scenario written from a typed command, as text that can be edited, and the disasters
 * that `rankquake try` puts it through: five that are built in, and one for each fault that is
 * asked for besides. */
#pragma once

#include "base/buf.h"
#include "harness/scenario/command.h"

/* What is wanted otherwise than the command says; 0 and NULL: nothing. */
struct generate_overrides {
    int nodes, workers;
    const char *launcher; /* as `launcher:` takes it */
};

/* The cluster that a command is tried on. */
struct generated {
    const struct command *command;
    const char *launcher;   /* the one asked for; NULL: the command's */
    const char *const *run; /* job.run, NULL-ended: the command's, by the interpreter it names */
    int nodes;              /* that the job has */
    int min_nodes;          /* nodes, when the job cannot shrink */
    int workers, max_restarts;
    bool undone;              /* what it writes where it was started is gone after each run */
    bool spare;               /* one more node stands by for the one that is lost */
    const char *const *notes; /* what differs from the command, sentences; NULL-ended */
};

/* Returns 0, or -EINVAL with the sentence that helps. Everything lives in the arena or in c. */
int generate(struct arena *a, const struct command *c, const struct generate_overrides *w,
             struct generated *ret, struct err *err);

/* The job and its cluster, without faults. */
void generate_text(const struct generated *d, struct buf *out);

/* The same text with what --set says in it, as a file to be edited. False, with what is wrong added
 * to d. */
bool generate_sets(const char *text, const char *const *sets, struct buf *out,
                   struct diagnostics *d);

/* ---- the disasters ---- */

/* What is known of the job from its control run. */
struct generate_run {
    int64_t first_step, last_step; /* -1: it reports no steps */
    bool told;                     /* steps can be held: the job itself sends them */
    int64_t start_ns;              /* until steady state */
    int64_t train_ns;              /* from there to the end */
    int64_t steps_ns;              /* from there to the last step, 0: none is told after it */
    const char *saves; /* the event that tells of a save that is going on; NULL or "": none does */
    bool saves_told;   /* and can be held */
    int64_t commits;   /* saves that a worker has told to be whole */
};

/* When it is disturbed: at a step, else a time since the steady state. */
struct generate_moment {
    bool by_step, hold;
    int64_t step, time_ns;
    int few_steps; /* at a time although steps are told: so many, too few to choose one; else 0 */
};

/* False, with a sentence, when the job is too short to be hit surely. */
bool generate_moment(const struct generate_run *r, struct generate_moment *ret, struct err *err);
/* "step 40 of 100", "4.8 s of 12 s of work", and why not at a step */
void generate_moment_text(const struct generate_run *r, const struct generate_moment *m,
                          struct buf *out);

enum { GENERATE_FAULTS = 5 };

/* What a job that recovers comes to. */
enum generate_outcome {
    COMES_BACK,  /* with all of its workers, in however many rounds */
    RESTARTS,    /* once */
    MAY_RESTART, /* or not, as the job is */
    LOSES_NODE,  /* and goes on without it, or with the spare */
    TAKES_NODE,  /* that was off */
};

struct generate_fault {
    const char *name, *about, *words; /* words: for a list in a sentence */
    const char *id;                   /* of its entry */
    const char *entry;                /* what stands there behind `when`; a %: the node's number */
    const char *when;                 /* its own trigger; NULL: the moment */
    const char
        *before; /* another entry, and its own trigger is armed once that is in force; NULL: none */
    const char *before_when; /* the other's trigger; NULL: the moment */
    const char *on_disk;     /* its example, to be made one of what the job keeps; NULL: it is */
    int restarts;            /* that it takes at least; 0: any number */
    enum generate_outcome outcome;
    int64_t lasts_ns;  /* 0: it does not, or nobody knows */
    int64_t follow_ns; /* after which its second part comes, and it is not felt without; 0: none */
};
extern const struct generate_fault generate_faults[GENERATE_FAULTS];

/* One more where it is known how the job saves: by an event that it tells, or else by the directory
 * of its checkpoints, where the kernel sees a save. A worker is killed, and in the round that
 * follows rank 0 in the middle of a save. False: neither is known. In the arena. */
bool generate_saving(struct arena *a, const struct scenario *base, const struct generate_run *r,
                     struct generate_fault *ret);

/* A directory as globs of `file` are compared with: from a folder that they know on, or from /. */
const char *generate_below_known(const char *dir);

/* A fault on the job's disks as it was added: of the job's own files, on the node that saves, when it
 * does; what is done to files at rest is followed by the kill of a worker, so that somebody reads
 * them. Nothing for any other. In the arena. */
void generate_on_disk(struct arena *a, const struct scenario *base, const struct generate_run *r,
                      struct generate_fault *f);

/* What is known of a fault that is to be one more of them. */
struct generate_known {
    const char *name, *summary, *example; /* example: an entry of a timeline */
    unsigned effects;
    int64_t lasts_ns;  /* after which it ends by itself; 0: it does not */
    int64_t follow_ns; /* after which its second part comes; 0: there is none */
};

/* One more: the fault as its example has it, at the moment unless that waits for something else
 * than a step or a time, on the node that the five use or on a worker that is drawn. In the arena. */
struct generate_fault generate_also(struct arena *a, const struct generate_known *k);
/* Whether one of the five has this fault. */
bool generate_has(const char *fault);

/* The entries of the timeline, as text; `indent` stands in front of each. */
void generate_timeline(const struct generate_fault *f, const struct generated *d,
                       const struct generate_moment *m, const char *indent, struct buf *out);
/* A whole scenario that loads: base (loaded, without faults) disturbed by the fault, with what
 * that must come to; its limits follow from the control run where base has 0. */
void generate_scenario(const struct generate_fault *f, const struct generated *d,
                       const struct scenario *base, const struct generate_run *r,
                       const struct generate_moment *m, struct buf *out);
/* What one of them takes. */
struct generate_cost {
    int64_t least_ns; /* until the fault strikes: in less nothing is learnt */
    int64_t usual_ns; /* when the job recovers at once and makes all lost work again */
    int64_t long_ns; /* when survivors wait for the lost node as long as their launcher lets them */
    int64_t most_ns; /* its limits.total */
};

/* base and r as for generate_scenario. */
struct generate_cost generate_cost(const struct generate_fault *f, const struct scenario *base,
                                   const struct generate_run *r);
/* NULL, or in the arena why nothing could be learnt from this fault. */
const char *generate_why_not(struct arena *a, const struct generate_fault *f,
                             const struct generated *d, const struct scenario *base,
                             const struct generate_run *r);
