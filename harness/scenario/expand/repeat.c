/* Loads repeat: how often a scenario is run, and with which seeds. */
#include "harness/scenario/reader.h"

#include <stddef.h>

static void read_seeds(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    static const char *const choices[] = {"same", "each", NULL};
    ((struct repeat_spec *)out)->each_seed = reader_choice(r, k, n, choices, NULL) == 1;
}

static void read_until(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    static const char *const choices[] = {"end", "failure", NULL};
    ((struct repeat_spec *)out)->until_failure = reader_choice(r, k, n, choices, NULL) == 1;
}

#define AT(member) .offset = offsetof(struct repeat_spec, member)

const struct section section_repeat = {
    "repeat",
    "How often a scenario is run, and how many of the runs may fail. The command line overrides "
    "it. Nothing is repeated until it passes.",
    (const struct key[]){
        {"runs", "a whole number", "1", "How often.", "runs: 20", reader_int, AT(runs), .min = 1,
         .max = 1000000},
        {"seeds", "same or each", "same",
         "same: all with one seed; each: the first with the seed, the next with the one after it.",
         "seeds: each", read_seeds, .form = "same | each"},
        {"until", "end or failure", "end", "failure: no more after the first that failed.",
         "until: failure", read_until, .form = "end | failure"},
        {"failures", "a whole number", "0",
         "How many runs may fail without the whole failing; every failure is reported all the "
         "same. Only failures (exit code 1) are forgiven, not what is inconclusive or broken.",
         "failures: 1", reader_int, AT(failures), .min = 0, .max = 1000000},
        {0},
    },
};
