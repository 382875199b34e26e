/* yaml: text as a tree of scalars, lists and maps, every value with its place.
 *
 * libfyaml reads, this keeps what a scenario needs. Aliases, tags, merge keys and a second document
 * are refused with a sentence, so the tree is never larger than its text; size, depth, the
 * number of values and that of the marks which libfyaml makes tokens of are limited, so that no
 * file takes more than some 80 MB to read. Scalars stay text: what they mean is decided by the key
 * they are under. All memory is the arena's. */
#pragma once

#include "harness/scenario/scenario.h"

enum {
    YAML_SIZE_MAX = 1 << 20,
    YAML_DEPTH_MAX = 24,
    YAML_VALUES_MAX = 30000,
    YAML_MARKS_MAX = 4 * YAML_VALUES_MAX
};

enum yaml_type { YAML_SCALAR, YAML_LIST, YAML_MAP };

struct yaml {
    enum yaml_type type;
    const char *key; /* of a member of a map, else NULL */
    struct place place, key_place;
    const char *text;    /* scalar */
    bool quoted;         /* scalar: in quotes or a block, so never a number, a bool or nothing */
    struct yaml *parent; /* NULL: the root */
    struct yaml *first, *last, *next;
    size_t length; /* children */
};

#define yaml_each(it, parent)                                                                      \
    for (const struct yaml *it = (parent) ? (parent)->first : NULL; it; it = it->next)

/* The tree of text, an empty scalar when there is nothing in it, or NULL with at least one error
 * added to d; keys that are given twice are errors too, but the rest can be read on. set: 0 for the
 * file, else which --set the text is of (places are -set). */
struct yaml *yaml_parse(struct arena *a, const char *text, size_t len, int set,
                        struct diagnostics *d);

struct yaml *yaml_get(const struct yaml *map, const char *key); /* NULL: absent, or no map */
bool yaml_is_null(const struct yaml *n);                        /* nothing, ~ or null, unquoted */
/* Puts child under parent (a list or a map), in place of a member with the same key. */
void yaml_put(struct yaml *parent, struct yaml *child);
const char *yaml_type_name(const struct yaml *n); /* "a list" */
