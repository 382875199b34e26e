/* verbs: the table, in alphabetical order. A verb is a file in harness/verbs that ends in `const
 * struct verb verb_NAME` and a line here; one without a summary is the harness's own and in no
 * help.
 */
#pragma once

#include "base/arena.h"
#include "harness/verb.h"

#include <stdint.h>
#include <stdio.h>

#define VERBS(X)                                                                                   \
    X(ask)                                                                                         \
    X(cache)                                                                                       \
    X(certify)                                                                                     \
    X(cgroups)                                                                                     \
    X(clean)                                                                                       \
    X(compare)                                                                                     \
    X(coverage)                                                                                    \
    X(crashpoints)                                                                                 \
    X(disk)                                                                                        \
    X(doctor)                                                                                      \
    X(enter)                                                                                       \
    X(explain)                                                                                     \
    X(forecast)                                                                                    \
    X(halt)                                                                                        \
    X(help)                                                                                        \
    X(history)                                                                                     \
    X(init)                                                                                        \
    X(inquire)                                                                                     \
    X(judge)                                                                                       \
    X(lint)                                                                                        \
    X(list)                                                                                        \
    X(node)                                                                                        \
    X(plan)                                                                                        \
    X(power)                                                                                       \
    X(preflight)                                                                                   \
    X(report)                                                                                      \
    X(run)                                                                                         \
    X(schema)                                                                                      \
    X(shrink)                                                                                      \
    X(sim)                                                                                         \
    X(start)                                                                                       \
    X(subject)                                                                                     \
    X(try)                                                                                         \
    X(watch)                                                                                       \
    X(wire)

#define X(name) extern const struct verb verb_##name;
VERBS(X)
#undef X

extern const struct verb *const verbs[]; /* NULL-ended */

const struct verb *verb_find(const char *name);        /* NULL: no such verb */
const char *verb_nearest(const char *name);            /* "did you mean", or NULL */
void verb_print_help(const struct verb *v, FILE *out); /* its usage and options */
void verbs_print_help(FILE *out);                      /* all of them */

struct headway_wish;

/* What was typed after a verb, taken apart by its table of options: --name VALUE, --name=VALUE, and
 * a flag alone. */
struct arguments {
    const struct verb *verb;
    char **argv;        /* all of it, from the verb on */
    const char **files; /* what is no option, NULL-ended; points into argv */
    size_t files_n;
    char **rest; /* what stood behind "--", NULL-ended; NULL: there was none */
    const char **names, **values;
    size_t options_n;
};

/* Returns 0, or the exit code after saying what is wrong on stderr. */
int arguments_read(struct arguments *ret, const struct verb *v, int argc, char **argv);
void arguments_fini(struct arguments *a);
/* The last value of an option, "" for a flag, NULL when it was not given. */
const char *arguments_value(const struct arguments *a, const char *name);
/* A whole number, when it was given; returns 0, or the exit code after saying what is wrong. */
int arguments_number(const struct arguments *a, const char *name, int64_t least, int64_t most,
                     int64_t *ret);
/* The same for a duration above 0. */
int arguments_duration(const struct arguments *a, const char *name, int64_t *ret_ns);
/* --quiet and --json-progress (VERB_HEADWAY). The descriptor is not passed on to what is started. Returns
 * 0, or the exit code after saying what is wrong. */
int arguments_headway(const struct arguments *a, struct headway_wish *ret);
/* All values of it in order, NULL-ended, to be freed with free(). */
const char **arguments_all(const struct arguments *a, const char *name);
/* What overrides the file: every --set and --observe, then --launcher and --rootfs as such;
 * NULL-ended, in the arena. */
const char **arguments_sets(const struct arguments *a, struct arena *arena);
/* KEY="VALUE", the value quoted as YAML takes it; in the arena. */
const char *arguments_set(struct arena *arena, const char *key, const char *value);
