/* keys: every word that may stand left of a colon in a scenario, as tables.
 *
 * One struct key per word; the loader, the errors about unknown keys, the defaults and `explain`
 * all read the same rows. Adding a key is one row in its section's file and, unless one of the
 * readers of reader.h fits, one function there. */
#pragma once

#include "harness/scenario/yaml.h"

struct reader;
struct key;
struct section;

/* Reads the value of one key into its section's struct, or adds what is wrong with it. */
typedef void key_read_fn(struct reader *r, const struct key *k, const struct yaml *n,
                         void *section);

struct key {
    const char *name;
    const char *type; /* for people: "a whole number", "a duration" */
    const char
        *default_text; /* the default, as it would be written; "(...)" is a remark; NULL: none */
    const char *text;
    const char *example; /* NULL: none */
    key_read_fn *read;   /* NULL: a word of the language that this build does not do yet */
    size_t offset;       /* of the member in the section's struct, for the readers of reader.h */
    int64_t min, max;    /* of a number; of a duration, in ns, 0: no bound */
    bool required;
    size_t place, said; /* of a struct place and of a bool in the section's struct, which take where
                           it stands and that it does; 0: none */
    const char *const *choices;  /* for reader_enum and reader_flag: what may stand there */
    const struct section *under; /* for reader_under: the words of the map that stands there */
    const char *form; /* what may stand there, for the schema; NULL: as its reader takes it, which
                         is one of reader.h's. Notation: word | other | <int> | [<text>] |
                         {<duration>} (any names) | {on: <node>} (these names) | <@when> (a
                         section); see harness/verbs/language/form.c */
};

struct section {
    const char *name; /* "job"; "scenario" is the top level */
    const char *text;
    const struct key *keys; /* ended by {0} */
    const char *any_of; /* one of these keys must be there, "step round", so none of them must be
                           for the schema; NULL: none in particular */
    const char *one_of; /* and of these exactly one */
};

/* In the order in which a scenario is written. */
#define SECTIONS(X)                                                                                \
    X(top)                                                                                         \
    X(cluster)                                                                                     \
    X(power)                                                                                       \
    X(job)                                                                                         \
    X(build)                                                                                       \
    X(checkpoint)                                                                                  \
    X(observe)                                                                                     \
    X(entry)                                                                                       \
    X(when) X(random) X(replay) X(expect) X(log) X(probe) X(checks) X(limits) X(repeat) X(suite)
#define X(name) extern const struct section section_##name;
SECTIONS(X)
#undef X
extern const struct section *const sections[]; /* NULL-ended */

const struct key *section_key(const struct section *s, const char *name); /* NULL: unknown */
/* The key of this name, or "job.run", in whatever section; *it_section (0 at first) moves on, so
 * that all of a name are found in turn. NULL: no more. */
const struct key *keys_find(const char *name, size_t *it_section, const struct section **ret);
/* The key at a path of the file, as --set takes it: "job.checkpoint.dir", "timeline.0.when.step".
 * What a list counts or a map names may be left out: "timeline.when.step". NULL: there is none. */
const struct key *keys_at(const char *path, const struct section **ret);
/* The paths of all keys of a scenario, with all that may be left out left out; NULL-ended. */
const char **keys_paths(struct arena *a);
/* The nearest known name for a typing error, or NULL. */
const char *section_nearest(const struct section *s, const char *name);
