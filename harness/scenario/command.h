/* command: a command line as it is typed today, taken apart into what a scenario says: which
 * launcher, how many nodes and workers, what is left for the launcher, and the worker's command.
 *
 * torchrun, python -m torch.distributed.run (or .launch) and rankrun are known by any path, behind
 * `env A=b` and with flags of Python between; the options are torchrun's (docs/torchrun.md), with
 * dashes or underscores, as --opt=v or --opt v, or cut short as argparse allows it. Any other
 * program is a worker's command, to be started by rankrun as it stands. Nothing is looked up here:
 * whether the programs exist is the plan's business. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "harness/scenario/scenario.h"

struct command {
    const char *const *launcher; /* the words that start it, NULL-ended; NULL: the command names
                                    none, so rankrun starts it */
    const char *const *python;   /* those that name the interpreter of the launcher, and so of its
                                  scripts, NULL-ended; NULL: none is named */
    bool by_python;              /* the launcher gives what it runs to an interpreter */
    bool rankrun;                /* they are rankrun's, or there are none */
    bool has_nnodes, standalone;
    int min_nodes, max_nodes;
    int workers;         /* on each node; 0: not said, or not in a number */
    int max_restarts;    /* -1: not said */
    const char *backend; /* job.rdzv_backend, NULL: not said, or what is the default anyway */
    bool etcd;           /* the backend needs an etcd */
    const struct pair *conf, *env; /* --rdzv-conf, and what stood before as A=b */
    size_t conf_n, env_n;
    const char *const *args;  /* further options of the launcher, NULL-ended */
    const char *const *run;   /* job.run, NULL-ended */
    const char *script;       /* the file that an interpreter is to read, NULL: none is named */
    const char *name;         /* of what is run, for names: "train" */
    const char *const *notes; /* what was left out or is done otherwise, sentences; NULL-ended */
};

/* Takes argv (NULL-ended) apart; everything in ret lives in the arena or in argv. Returns 0, or
 * -EINVAL with the sentence that helps. */
int command_parse(struct arena *a, const char *const *argv, struct command *ret, struct err *err);
