/* verb: one command of rankquake. One file per verb, one const struct, one line in verbs.h; help is
 * printed from the table. */
#pragma once

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

struct verb {
    const char *name, *usage, *summary;
    const char *example; /* what may be typed after "rankquake"; tried by tests/live/explain.sh */
    const struct verb_option *options;  /* ended by {0} */
    int (*main)(int argc, char **argv); /* argv[0] is the verb; returns the exit code */
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

/* Says what is wrong with the arguments on stderr; returns EXIT_USAGE_ERROR. */
int verb_usage_error(const struct verb *v, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
