/* selection: what a command line asks to be run: every scenario of its files that has the wanted
 * tags, once for each point of its sweep. All is read and planned before anything is done. */
#pragma once

#include "harness/plan/plan.h"
#include "harness/play/files.h"

struct selected {
    const char *file;
    const char *const *sets;     /* those of the command line and the point's; NULL-ended */
    const char *const *includes; /* files; NULL-ended */
    struct scenario *scenario;
    struct plan *plan;
    uint64_t seed_first, seed_last; /* to be run with each of them */
    bool alone;                     /* not beside others: times are judged */
    size_t order;                   /* as the command line has them */
    int64_t estimate_ns;            /* budget.h: of one run */
    bool suspect;                   /* its last run did not pass */
    bool left_out;                  /* by --budget */
    struct texts *said; /* what is started on this host, of all of the selection: once each */
};

struct selection {
    const struct verb *verb; /* for messages */
    const char *const *sets; /* of all; NULL-ended */
    const char *const *tags; /* all must be there, of "!slow" none; NULL-ended */
    bool untrusted;          /* what they would start outside of nodes is a mistake in them */
    const char *within;      /* of the file that is being read; see files.h */
    bool has_seed;
    uint64_t seed_first, seed_last; /* given */
    bool
        counted; /* how often each is run was given: what files say of it (repeat) does not count */
    struct selected *v;
    size_t n;
    struct texts said;  /* plan_put_outside */
    struct arena arena; /* owns what is in no argument */
};

/* The point's, then those of the command line, which win. The list is the arena's, the texts stay
 * whose they are. */
const char **sets_join(struct arena *a, const char *const *point, const char *const *sets);

/* The same with the seed as an override: what a scenario draws is drawn when it is loaded. */
const char *const *sets_with_seed(struct arena *a, const char *const *sets, uint64_t seed);

/* Whether one of them is of this key: "cluster.hosts". */
bool sets_say(const char *const *sets, const char *key);

/* The file of the cache in which something of this kind is kept of the same file with the same
 * overrides, by_seed: and the same draws. Returns 0 or a -errno. */
int selected_cache(const struct selected *l, const char *kind, bool by_seed, char *ret,
                   size_t size);

/* Returns 0, or EXIT_USAGE_ERROR after saying on stderr all that is wrong with any of them, or that
 * nothing is left. */
int selection_read(struct selection *s, const struct scenario_files *files);
void selection_fini(struct selection *s);
