/* verb: one command of rankquake. One file per verb, one const struct, one line in verbs.h; help is
 * printed from the table. */
#pragma once

struct arguments;
struct err;

struct verb_option {
    const char *name;  /* "--seed" */
    const char *value; /* "N", or NULL for a flag */
    const char *text;  /* NULL: for our own processes, not told to people */
};

/* Of verbs that judge a run which somebody else may have made. */
#define VERB_PROGRAMS                                                                              \
    {"--programs", NULL,                                                                           \
     "start the programs that the scenario names under checks, with your rights"},                 \
    {                                                                                              \
        "--no-programs", NULL, "leave those checks unanswered (the default)"                       \
    }

/* Of verbs whose work may take long: reports/headway.h. */
#define VERB_HEADWAY                                                                               \
    {"--quiet", NULL, "say nothing while it runs, only what came of it"}, {                        \
        "--json-progress", "FD",                                                                   \
            "write how far it is to descriptor FD (2: standard error), a JSON object a line"       \
    }

struct verb {
    const char *name, *usage, *summary;
    const char *example; /* what may be typed after "rankquake"; tried by tests/live/explain.sh */
    const struct verb_option *options; /* ended by {0} */
    /* What the words are that are no options, for completions: SCENARIO, RUN, NAME, VERB,
     * FILE, DIR, several parted by |, or words that are typed as they stand; NULL: there are none.
     */
    const char *operands;
    /* One of these does it and returns the exit code: what was typed taken apart by the options
     * (verbs.h), or as it stands, argv[0] being the verb. */
    int (*run)(const struct arguments *a);
    int (*main)(int argc, char **argv);
};

enum exit_status {
    EXIT_PASS = 0,
    EXIT_FAIL = 1,
    EXIT_INCONCLUSIVE = 2,
    EXIT_BROKEN = 3,
    EXIT_SKIPPED = 4,
    EXIT_LEFTOVERS = 5,
    EXIT_USAGE_ERROR = 64,
    EXIT_INTERRUPTED = 130,
};

/* What people are told of these; ended by {NULL, NULL}. */
extern const char *const exit_meanings[][2];

/* Says what went wrong on stderr; returns EXIT_BROKEN. */
int verb_broken(const struct verb *v, const struct err *err);
/* Says what is wrong with the arguments on stderr; returns EXIT_USAGE_ERROR. */
int verb_usage_error(const struct verb *v, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
