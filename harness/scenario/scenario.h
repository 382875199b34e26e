/* scenario: what a scenario file says, as plain data. Read this first.
 *
 * The loader (load.c) fills a struct scenario from YAML; defaults are applied, every value has been
 * checked for type and range, and nothing has been done. Whether the named faults exist and the
 * targets can match is the plan's business (harness/plan). The words are explained one by one in
 * keys.h, from which the help, `explain` and the schema are printed. All memory is the arena's. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "faults/mechanism/store_operation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a value stands, for messages. line 0: it is a default; below 0: it came from the -line'th
 * --set of the command line. */
struct place {
    int line, column; /* from 1 */
    int file;         /* 0: the file itself, else which of those that it includes, from 1 */
};

struct pair {
    const char *key, *value;
    struct place place;
};

enum store_kind { STORE_EMBEDDED, STORE_ETCD, STORE_ETCD_3, STORE_NONE };

/* How nodes are kept apart. auto: namespaces where this host lets them be made, else processes. */
/* The last is that of a cluster with a provider, and nobody asks for it by this name. */
enum isolation {
    ISOLATION_AUTO,
    ISOLATION_NAMESPACES,
    ISOLATION_PROCESSES,
    ISOLATION_HOSTS,
    ISOLATION_N
};
extern const char *const isolation_names[ISOLATION_N + 1]; /* NULL-ended */
extern const char *const provider_names[];                 /* NULL-ended, "none" first */

/* What the directories of nodes forget when a node goes off. */
enum disk_spec { DISK_SPEC_KEPT, DISK_SPEC_LOSING, DISK_SPEC_SERVED, DISK_SPEC_N };
extern const char *const disk_spec_names[DISK_SPEC_N + 1]; /* NULL-ended */

enum scheduler { SCHEDULER_NONE, SCHEDULER_SLURM };
extern const char *const scheduler_names[]; /* "none", "slurm"; NULL-ended */

/* The operator's commands by which a host loses its power and has it again; NULL-ended. */
struct power_spec {
    const char *const *off, *const *on; /* NULL: power is not to be had */
    size_t off_n, on_n;
    int64_t within_ns; /* until it is off, and until it answers again */
    struct place place;
};

struct cluster_spec {
    int nodes; /* n0 .. n(nodes-1) exist */
    int start; /* the first `start` are switched on at the beginning */
    /* In nodes of its own, "store" or "store-0".., unless store_on. STORE_EMBEDDED is the
     * launcher's own: rankrun's in a node of its own, torchrun's c10d in the agent of n0. */
    enum store_kind store;
    int store_quota_mb;            /* how much an etcd keeps before it is full; 0: its own 2 GiB */
    const char *const *store_args; /* further options of rankrun's store; NULL-ended */
    size_t store_args_n;
    const char *store_on; /* NULL, or the node whose agent serves the store */
    const char *rootfs;   /* of every node but the store's; NULL: the host's */
    bool has_gpus;        /* gpus_per_node was said; else all of the host are dealt out */
    int gpus_per_node;    /* 0: none */
    enum isolation isolation;
    enum disk_spec disk;
    enum scheduler scheduler; /* what starts the job's launcher: job.run is a script for it */
    bool privileged;          /* the job keeps all rights of whoever starts the harness */
    int provider; /* of provider_names: how the nodes' hosts are reached; 0: they are here */
    const char *const *hosts; /* of n0, n1, ..; NULL-ended; NULL: none are named */
    size_t hosts_n;
    const char *ssh; /* the words before a host; NULL: as the provider has it */
    struct power_spec power;
    const int *rack_of; /* by node: its rack, from 1; 0: in none. NULL: there are none */
    int racks;
    struct place place, nodes_place, start_place, store_place, quota_place, args_place,
        scheduler_place, provider_place, hosts_place;
};

/* What `rankquake crashpoints` is told of a job; see job.checkpoint. */
struct crash_points_spec {
    const char *result;                    /* a file; NULL: what the job says that it has become */
    const char *const *fs, *const *deaths; /* NULL: as usual */
    size_t fs_n, deaths_n;
    const char *shared_fs; /* of {shared} */
    int loss_band;         /* per cent; 0: none */
    int max_states;
    int64_t budget_ns;
};

/* What is built on the host before the job can be run; kept under its key. No placeholders. */
struct build_spec {
    const char *const *run; /* argv, NULL-ended; NULL: nothing is built */
    size_t run_n;
    const char *const *inputs, *const *outputs; /* NULL-ended; outputs lie below the caller's dir */
    size_t inputs_n, outputs_n;
    int64_t within_ns;
    struct place place;
};

struct job_spec {
    int min_nodes, max_nodes; /* nnodes: "MIN:MAX" */
    int workers_per_node;
    int spawns; /* ranks that each of them starts by itself; 1: it is one */
    int max_restarts;
    const char *launcher; /* "rankrun" | "torchrun" (whatever takes its options) | "template" */
    const char *const *launcher_argv; /* the words that start it, or the template's; NULL-ended */
    const char *const *launcher_args; /* further options of it, placeholders unresolved; NULL-ended
                                         or NULL */
    size_t launcher_args_n;
    const char *rdzv_backend; /* NULL: as the launcher and the store want it */
    const struct pair *rdzv_conf;
    size_t rdzv_conf_n;
    const char *const *run; /* argv as written, placeholders unresolved; NULL-ended */
    size_t run_n;
    const char *const *needs; /* modules of Python, NULL-ended */
    size_t needs_n;
    const struct pair *env;
    size_t env_n;
    bool writes_undone; /* what it writes where the harness was started is gone after a run */
    const char *checkpoint_dir; /* job.checkpoint.dir, else taken from --checkpoint-dir= of run */
    const char
        *checkpoint_complete; /* COMMAND that prints complete steps; NULL: ranktrain's format */
    struct crash_points_spec crash;
    struct build_spec build;
    struct place place, nnodes_place, run_place, workers_place, backend_place, launcher_place,
        needs_place, complete_place;
};

/* How many ranks a node of the job has. */
int job_ranks_per_node(const struct job_spec *j);

enum file_op { FILE_OP_OPEN, FILE_OP_WRITE, FILE_OP_RENAME, FILE_OP_CLOSE };
extern const char *const file_op_names[]; /* NULL-ended */

/* A trigger: all that is set must have come true, in any order. */
struct trigger {
    int64_t step;
    int round;
    bool has_step, has_round, has_time, has_event;
    int64_t time_ns;   /* since steady state */
    int64_t plus_ns;   /* after the condition */
    int64_t within_ns; /* 0: limits.total */
    const char *event; /* kind of a job's event */
    int nth;           /* of that kind, or of such lines, from 1 */
    int after;         /* index of an earlier entry that must be in force, -1: none */
    const char *after_id;
    const char *phase;   /* join | last-call | ack | start | first-collective | exit-barrier */
    bool failpoint;      /* phase is one of those, which only a debug build of rankrun tells */
    const char *log;     /* a pattern on the target's output */
    const char *file;    /* a glob on files of the job; NULL: none */
    enum file_op op;     /* what is about to be done to it */
    const char *syscall; /* the name of a system call that is about to be made; NULL: none */
    int syscall_number;
    const char *store; /* what the store is about to be asked for; NULL: none */
    enum store_operation operation;
    bool hold;    /* stop the sender until the fault is in force; default: step and event,
                          unless they are read from its output */
    bool patient; /* a target that is not there then is waited for */
    bool ends;    /* until: it ends a fault, and listens to all */
    struct place place;
};

/* Whether it waits for a system call, which the kernel can hold. */
static inline bool trigger_is_call(const struct trigger *t) {
    return t->file || t->syscall;
}

/* What is read from a job's output: where a line tells an event of that kind. */
struct observed {
    const char *kind;    /* "step", "loss", "checkpoint-commit" ... */
    const char *pattern; /* see pattern.h; the first group is the value */
    bool own;            /* of the file, not of the preset */
    struct place place;
};

struct observe_spec {
    const char *preset; /* NULL: none */
    const struct observed *v;
    size_t n;
};

enum target_what { TARGET_NODES, TARGET_AGENTS, TARGET_WORKERS, TARGET_STORES, TARGET_RACKS };

/* `on:` as written. Resolved when the trigger fires, against what is alive then. */
struct target_spec {
    enum target_what what;
    /* The last two are for the store to say: the node whose agent coordinates, and of the store's
     * the one that leads. */
    enum {
        PICK_ALL,
        PICK_NAMED,
        PICK_RANK,
        PICK_RANDOM,
        PICK_PERCENT,
        PICK_MAJORITY,
        PICK_COORDINATOR,
        PICK_LEADER
    } pick;
    const char *node; /* PICK_NAMED: "n2" */
    int local_rank;   /* PICK_NAMED worker "n2/0": 0; -1: all workers of the node */
    int rank;         /* PICK_RANK: "rank 0"; node_of_rank: its node instead */
    bool node_of_rank;
    bool rack_of_rank; /* the nodes of its node's rack instead */
    int rack;          /* only of the nodes of this rack, from 1; 0: of all */
    int count;         /* PICK_RANDOM: how many; PICK_PERCENT: per cent */
    const char *text;  /* as written */
    struct place place;
};

enum times_kind { TIMES_N, TIMES_EACH_ROUND };

/* One entry of the timeline: a fault, or the healing of an earlier one. */
/* From this time after the fault came in force on, with these parameters in place of `with`'s. */
struct profile_step {
    int64_t at_ns;
    const struct pair *with;
    size_t with_n;
    struct place place;
};

struct timeline_entry {
    const char *id;    /* given, or the fault's name and a number */
    const char *fault; /* name; NULL: heal */
    int heal;          /* index of the entry whose fault is ended; -1 */
    struct trigger when;
    struct target_spec on;
    const struct pair *with;
    size_t with_n;
    const struct profile_step *profile; /* in the order of their times, the first at 0 */
    size_t profile_n;
    enum times_kind times;
    int times_n;
    bool sticky;    /* done again on the same node whenever its agent comes back */
    int64_t for_ns; /* a lasting fault ends by itself after this; 0: lasts to finally */
    const struct trigger *until; /* or when this has come true, if it ever does; NULL: not given */
    struct place place, fault_place, for_place, heal_place, sticky_place;
};

enum outcome {
    OUTCOME_SUCCEEDED,
    OUTCOME_FAILED,
    OUTCOME_STOPPED,
    OUTCOME_UNKNOWN,
    OUTCOME_REFUSED
};

struct budget {
    const char *id; /* NULL: every fault that ends a round */
    int64_t ns;
    struct place place;
};

/* What is expected of a probe's answers: all within tolerance, or only those before the first fault
 * and after the last recovery and settle_ns. */
struct probe_expect {
    const char *name;
    bool always;
    int64_t settle_ns;
    struct place place;
};

/* How many lines that programs print may match, of those of one window. */
enum log_count { LOG_NEVER, LOG_ONCE, LOG_SEEN };

struct log_expect {
    enum log_count count;
    const char *pattern;   /* see pattern.h */
    struct target_spec on; /* who prints it; text NULL: anybody */
    const char *after; /* id of an entry of the timeline; NULL: the window begins with the run */
    int64_t within_ns; /* its length, from steady state where there is no after; 0: to the end */
    struct place place;
};

/* What the weights after each step must be equal to; the job is asked for them. */
enum weights_expected { WEIGHTS_ANY, WEIGHTS_OF_ALL_RANKS, WEIGHTS_OF_CONTROL };
/* What must hold of the samples of an epoch; the job is asked for them. */
enum epochs_expected { EPOCHS_ANY, EPOCHS_WHOLE, EPOCHS_SHUFFLED };

/* What the loss of a step must be, whoever tells it. */
struct loss_expect {
    int64_t step;
    const char *tolerance; /* see tolerance_fits: a number, a bound or a range */
    struct place place;
};

struct expect {
    enum outcome outcome;
    const struct log_expect *logs;
    size_t logs_n;
    const struct probe_expect *probes;
    size_t probes_n;
    bool has_world_sizes, world_sizes_ends; /* {ends: [..]}: the tail only */
    const int *world_sizes;                 /* -1 is "*" */
    size_t world_sizes_n;
    bool has_restarts;
    int restarts_min, restarts_max;
    bool model_same; /* model: same-as-undisturbed */
    enum weights_expected weights;
    enum epochs_expected epochs;
    const struct budget *detect_within, *recover_within;
    size_t detect_n, recover_n;
    const struct budget *phases_within; /* id: the name of a phase, as phase_name */
    size_t phases_n;
    int64_t lost_steps, lost_ns;      /* lost_work: at most; 0: not said */
    int goodput;                      /* at least so many per cent; 0: not said */
    int loss_within;                  /* per cent of the control run's; 0: not said */
    const struct loss_expect *losses; /* as they are known from elsewhere */
    size_t losses_n;
    struct place place, world_sizes_place, restarts_place;
};

/* A question that is asked again and again while the job runs. */
struct own_probe {
    const char *name;
    const char *const *cmd; /* placeholders unresolved; NULL-ended; NULL: it asks over HTTP */
    size_t cmd_n;
    const char *url;       /* likewise; NULL: it runs cmd */
    const char *metric;    /* of the page at url, in Prometheus' format; NULL: the page itself */
    const char *on;        /* the node in whose namespaces it runs; NULL: none is said */
    int64_t every_ns;      /* from one question to the next */
    int64_t until_ns;      /* since steady state; 0: until the job ends */
    int64_t within_ns;     /* an answer that takes longer is none */
    const char *tolerance; /* see tolerance_fits; NULL: exit status 0 alone */
    struct place place;
};

/* Whether what a probe printed is within the tolerance: "/regex/", a number, "< 3", ">= 2.5",
 * "1..5"; NULL: always. Numbers are compared with the last word that it printed. */
bool tolerance_fits(const char *tolerance, const char *said);

/* Whether that is a tolerance of numbers: all of them but a regular expression. */
bool tolerance_is_numeric(const char *tolerance);

/* A check of the user's own: a program that reads the history and answers. */
struct own_check {
    const char *name, *label;   /* label: "own:NAME", as it is called in a verdict */
    const char *const *program; /* NULL-ended */
    size_t program_n;
    int64_t within_ns;
    struct place place;
};

/* How often a file is run when the command line does not say. */
struct repeat_spec {
    int runs;
    bool each_seed;     /* with the next seed each time, else with the same */
    bool until_failure; /* no more after the first that failed */
    int failures;       /* at most so many may fail */
    struct place place;
};

struct limits {
    int64_t start_ns, stall_ns, total_ns, grace_ns;
    int64_t fault_ns;    /* no fault lasts longer; 0: as long as its entry says */
    int64_t dead_man_ns; /* what lasts is undone when the harness has said nothing for so long */
    int faults;          /* at most so many in force at once; 0: as many as there are */
};

struct scenario {
    const char *file; /* as given */
    const char *name, *about, *source;
    const char *const *tags;
    size_t tags_n;
    const char *const
        *features; /* that the host must have, "cpus 4"; see harness/plan/features.h */
    size_t features_n;
    struct place features_place;
    uint64_t seed;
    bool has_seed;
    bool torchrun_semantics; /* judged by torchrun's promises, not by rankrun's */
    bool has_semantics;
    struct cluster_spec cluster;
    struct job_spec job;
    struct observe_spec observe;
    struct repeat_spec repeat;
    const struct timeline_entry *timeline; /* that of the file, then what was drawn */
    size_t timeline_n;
    const char *drawn; /* what of it was drawn, and by what, a sentence; NULL: nothing */
    struct expect expect;
    const struct own_probe *probes;
    size_t probes_n;
    const struct own_check *checks;
    size_t checks_n;
    struct limits limits;
    bool sound; /* nothing is wrong with it, but for entries of the timeline if it was told so */
    struct arena arena; /* owns everything above */
};

enum { DIAGNOSTICS_SHOWN = 50 }; /* nobody reads more */

/* Everything wrong with a file, all at once; printed as "file:line:col: message" with the line and
 * a caret below it. {0} is an empty one. */
struct diagnostics {
    const char *file;
    const char *within; /* nothing outside of this directory is read (source_root); NULL: all is */
    const char *const *set; /* the overrides, for places below 0; NULL-ended or NULL */
    struct buf source;      /* the text, for the offending lines */
    struct included {
        char *file;
        struct buf source;
    } * included;            /* what the file includes, by place.file - 1 */
    int included_n, reading; /* reading: the file whose text is being parsed, as place.file */
    struct buf out;          /* what to print, in the order of the lines */
    int errors;
    struct {
        struct place place;
        size_t at; /* where its message begins in out */
    } said[DIAGNOSTICS_SHOWN];
};

void diagnostics_fini(struct diagnostics *d);
/* The text that places of this file are in. */
struct buf *diagnostics_source(struct diagnostics *d, int file);
/* Returns false, so that what has found something wrong returns it. */
bool diagnostics_add(struct diagnostics *d, struct place p, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Reads and validates a file. `set` are --set key=value overrides ("job.max_restarts=2"),
 * NULL-ended or NULL. Returns a scenario to be freed with scenario_free, or NULL with the
 * diagnostics filled. */
struct scenario *scenario_load(const char *file, const char *const *set, struct diagnostics *d);
/* The same for who can tell more of what is wrong (plan_check_entries): with d->errors it returns
 * what could be read, which is good for nothing else. Never NULL. */
struct scenario *scenario_load_flawed(const char *file, const char *const *set,
                                      struct diagnostics *d);
struct scenario *scenario_free(struct scenario *s); /* NULL is allowed; returns NULL */

/* The runs that a `sweep` makes of a file: for each the overrides that choose it, NULL-ended. One
 * without any when there is no sweep, or something wrong with the file, which scenario_load says.
 * What `set` gives already is in none of them. within: as in the diagnostics. */
struct sweep {
    const char *const **v;
    size_t n;
    struct arena arena; /* owns everything above */
};

struct sweep *scenario_sweep(const char *file, const char *const *set, const char *within);

/* The directory that a scenario of somebody else's cannot lead out of, by include, trace, suite or
 * link: the one the caller is in where the file or folder named lies below it, else that folder
 * itself, or the file's own. A real path; false: there is no such folder. */
bool source_root(const char *path, bool is_folder, char *ret, size_t size);
struct sweep *sweep_free(struct sweep *s); /* NULL is allowed; returns NULL */

/* A file that only names scenarios, folders of them or other suites (`suite: [files]`), to be run
 * one after the other. */
struct suite {
    const char *file, *about;
    const char *const *files;   /* as seen from where the suite was */
    const struct place *places; /* where each is named */
    size_t n;
    struct arena arena; /* owns everything above */
};

/* NULL when the file is none, or (d->errors) a wrong one. What is neither is for scenario_load to
 * tell. */
struct suite *suite_load(const char *file, struct diagnostics *d);
struct suite *suite_free(struct suite *u); /* NULL is allowed; returns NULL */

/* Nodes that are on at some time: those of the start, and all when one can be switched on. */
int scenario_nodes_ever_on(const struct scenario *s);

/* The node whose agent serves the store; NULL: nodes of its own do, or there is none. */
const char *scenario_store_host(const struct scenario *s);

/* The rack of the node with this name, from 1; 0: it is in none. */
int scenario_rack_of(const struct scenario *s, const char *node);

/* What the job's rdzv_conf says under that key, the last word where it is there twice; NULL: nothing. */
const char *job_rdzv_conf(const struct job_spec *job, const char *key);

/* What the launcher is told of that option ("--on-node-loss"), as rankrun and torchrun read it: the
 * value, "" where none stands there, as behind a flag; NULL: nothing. '_' is '-', a beginning is
 * enough, the last word holds, and job.env's PET_ON_NODE_LOSS where job.launcher_args says nothing
 * (a flag's "0" there says nothing). */
const char *job_launcher_told(const struct job_spec *job, const char *option);

/* What is read from the job's output about that kind of event, or NULL. */
const struct observed *scenario_observes(const struct scenario *s, const char *kind);
/* Whether what programs print is looked through for lines: by a trigger, or by what is expected. */
bool scenario_waits_for_lines(const struct scenario *s);
/* Whether job.launcher_args has the option: "--log-dir", alone, with "=..." or as "--log_dir", or one of
 * a letter ("-t"), also with its value behind it. */
bool scenario_gives_launcher(const struct scenario *s, const char *option);

/* Whether somebody reads what programs print. */
bool scenario_reads_output(const struct scenario *s);
/* Whether workers write into files of their own, because somebody reads their output. Where the
 * launcher's options say where it goes, and only agents' or the store's lines are asked for, it
 * goes there. */
bool scenario_reads_workers(const struct scenario *s);

/* A shape of output that a tool gives to every job that uses it. */
struct preset {
    const char *name;
    const char *summary; /* of which tool, and which of its versions was looked at */
    const struct observed *v;
    size_t n;
};
extern const struct preset presets[]; /* in alphabetical order, ended by {0} */

/* The resolved scenario as YAML that loads again to the same. */
void scenario_print(const struct scenario *s, struct buf *out);
