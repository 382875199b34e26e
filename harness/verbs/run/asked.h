/* asked: what `rankquake run` was asked for, and what its parts share until it ends. */
#pragma once

#include "harness/ci/pipeline.h"
#include "harness/play/changed.h"
#include "harness/play/selection.h"
#include "harness/play/shard.h"
#include "harness/play/suite.h"
#include "harness/verbs.h"

struct run_request {
    struct arena arena;
    struct scenario_files files;
    const char **sets;     /* NULL-ended */
    const char **replaced; /* the same with the command behind "--"; NULL: there is none */
    struct selection selection;
    const char **tags; /* to be freed */
    int64_t repeat;    /* 0: as the file says */
    int64_t jobs, budget_ns, began_ns;
    bool stress, ci;
    struct suite_options suite;
    struct headway headway;   /* of the runs, where there are several */
    int64_t runs, *todo;      /* that there will be, 0: nobody knows; those left of each selected */
    char place[48];           /* "2 of 6" */
    struct pipeline pipeline; /* with --ci */
    struct shard shard;
    struct changed_names changed;
    struct texts prepared; /* keys of control runs that were made before runs side by side */
};

extern const struct verb_option asked_options[]; /* ended by {0} */

/* Reads the command line into a zeroed request. 0, or the exit code after saying what is wrong. */
int asked_read(struct run_request *q, const struct arguments *a);
