/* crashing: one `crashpoints`: a typed command, the record of what it does to its directory, the
 * states that the directory could be left in, and what the command makes of each.
 *
 * Points are numbers of operations of the record: so many had been done. An anchor is a point at
 * which all of a save is there, and its trial is what the job resumes from a whole checkpoint. */
#pragma once

#include "base/sys/folder.h"
#include "harness/crash/causes.h"
#include "harness/crash/marks.h"
#include "harness/crash/stage.h"
#include "harness/crash/states.h"
#include "harness/plan/plan.h"
#include "harness/run/presence.h"
#include "harness/scenario/pattern.h"
#include "harness/verbs.h"
#include "reports/crash_points.h"
#include "reports/headway.h"

#include <limits.h>

/* What came of one start of the command. */
struct resumption {
    enum attempt_how {
        ATTEMPT_NONE,  /* not tried */
        ATTEMPT_ENDED, /* with exit code 0 */
        ATTEMPT_FAILED,
        ATTEMPT_HUNG,
        ATTEMPT_BROKEN, /* the stage was: why says */
    } how;
    int status;
    int64_t ran_ns;
    int64_t resumed; /* the step from which it went on; -1: it did not say so */
    bool disagree;   /* its ranks told different models, or went on from different steps */
    bool has_loss;
    double loss;     /* the last that it printed */
    char model[65];  /* what it said that it has become; "" */
    char sum[65];    /* of the files of the last save */
    char result[65]; /* of --result */
    char why[400];   /* its last lines */
};

struct save {
    size_t from, to;           /* operations; what follows `to` belongs to the next one */
    size_t whole;              /* a point: all of it is there */
    int64_t step;              /* as the job told; -1 */
    struct resumption attempt; /* of the trial with all that is there at `whole` */
};

struct observed_pattern {
    const char *kind; /* "step", "resume", "loss", "model" */
    struct pattern *pattern;
};

struct crashing {
    const struct arguments *arguments;
    struct arena arena;
    /* what was asked for */
    const char *const *words;  /* the command, {dir} in it; of a scenario, ours that starts it */
    const char *const *argv;   /* the same with the directory in its place */
    struct scenario *scenario; /* NULL: a command */
    struct plan *plan;         /* of it */
    const char *dir;           /* absolute */
    const char *cwd, *only, *earlier, *junit;
    const char *result_asked, *result; /* {dir} may stand in the first */
    bool placed;                       /* {dir} stands in the command */
    bool namespaces, network, copied, all, keep_going;
    int64_t jobs, budget_ns, until_ns, limit_ns, limit_asked_ns, seed, states_max, saves_asked;
    uint64_t max_bytes;
    unsigned models, deaths, shared_model; /* shared_model: as in struct crash_ask */
    double band;                           /* of the loss, a part of it; below 0: none */
    const char *record_by;
    struct observed_pattern observed[16];
    size_t observed_n;
    /* what was found */
    struct folder out;
    struct presence own; /* the note in it */
    struct disk_record record;
    const char *recorded_by;
    bool in_memory;         /* {dir} lies in /dev/shm now, though there are no namespaces */
    const char *not_memory; /* why it did not while the record was made; NULL: it did */
    uint64_t across;
    bool record_full;
    struct resumption baseline;
    char whole[65];      /* the hash of the directory that it left; "" */
    bool unseen;         /* which is not that of the record */
    const char **finals; /* files of the last save, NULL-ended */
    struct save *saves;
    size_t saves_n, first; /* first: of those whose points are tried */
    size_t from, to;       /* the first point and the last */
    bool comparable, tells_steps;
    struct crash_states states;
    struct resumption *trials; /* of the states; room for more */
    size_t trials_n, tried, not_tried;
    struct crash_points report;
    volatile int *interrupted;
    struct headway_wish wish;
};

/* ---- scene.c: of a scenario ---- */

/* Its file, what it says of crash points, and whether it can be had here. 0, or the exit code after
 * saying why not. */
int crashing_take_scenario(struct crashing *c);
/* The scenario as it is started, in the run directory. */
int crashing_write_scenario(struct crashing *c);
/* What is recorded of a stage's directory, and is in a state: of a scenario what {shared} and the
 * nodes' disks lie in. */
const char *crashing_disks(const struct crashing *c, const char *dir, char ret[PATH_MAX]);
/* The same, made anew and empty. */
int crashing_make_disks(const struct crashing *c, const char *dir, struct err *err);
/* What a start of a scenario has come to, by its exit code. */
void crashing_read_end(struct resumption *o);

/* ---- crashpoints.c ---- */

/* The command with this directory in the place of {dir}, and as the directory of a stage. */
void crashing_place(struct crashing *c, const char *dir);

/* ---- baseline.c ---- */

/* Runs the command once and records it, or takes an earlier run's record. 0, or the exit code after
 * saying why. */
int crashing_record(struct crashing *c);

/* Copies what is in one directory into another. */
int crashing_copy(const char *from, const char *to, struct err *err);

/* ---- saves.c ---- */

/* Parts the record into saves. 0, or the exit code after saying that there is none. */
int crashing_find_saves(struct crashing *c);
/* What the job resumes from whole checkpoints; the same. */
int crashing_try_anchors(struct crashing *c);
/* The step that must not be lost on a way; -1: not known. */
int64_t crashing_necessary(const struct crashing *c, const struct crash_way *way);

/* ---- trials.c ---- */

struct trial_ask {
    size_t state;
    const char
        *removed;     /* of its directory, before the command is started; "": nothing; NULL: all */
    const char *copy; /* a directory that is the state; NULL: it is made out of the record */
};
/* Tries them, some side by side, until the budget is spent. False: interrupted. */
bool crashing_try(struct crashing *c, const struct trial_ask *asks, struct resumption *ret,
                  size_t n);
/* What a directory is compared by: the files of the last save, or all. For struct stage_spec. */
int crashing_sum(const struct crashing *c, const char *path, char ret[65]);
/* The spec of a stage for the command, without its directory's content. */
struct stage_spec crashing_stage(const struct crashing *c);
/* Where a job on a stage tells its events: a path below scratch/told, of which a stage in namespaces
 * shows the folder; elsewhere an abstract name, when that path is longer than an address may be. */
const char *crashing_events(const struct crashing *c, struct arena *arena, const char *name);
/* Reads what a stage that has ended has left. output: what it printed. */
void attempt_read(const struct crashing *c, const struct stage_end *end, int output,
                  struct resumption *o);
/* What a job has told while it was on the stage. */
struct attempt_told {
    int64_t resumed_least, resumed_most; /* -1: none */
    char model[65];
    bool disagree;
};
void attempt_heard(struct attempt_told *t, const char *kind, int64_t step, const char *text);
void attempt_take_told(struct resumption *o, const struct attempt_told *t);
/* What two runs are compared by; "" */
const char *attempt_result(const struct crashing *c, const struct resumption *o);

/* ---- judging.c ---- */

/* What a state is where it is reached on this way. lost: steps, with LOST. */
enum crash_point_verdict crashing_judge(const struct crashing *c, const struct resumption *o,
                                        const struct crash_way *way, int64_t *ret_lost);
/* Fills the report out of the trials: points, findings, counts. */
void crashing_conclude(struct crashing *c);
/* What has to be deleted so that the job starts; in the arena; NULL: nothing helps, or not known. */
const char *crashing_find_deletion(struct crashing *c, size_t state, size_t point,
                                   struct resumption *ret);

/* ---- telling.c ---- */

void crashing_say(const struct crashing *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Files in the run directory, the table, the findings. 0 or a -errno. */
int crashing_tell(struct crashing *c, struct err *err);
/* "47/3fa2b1c0" */
const char *crashing_name(struct crashing *c, size_t state, size_t point);
