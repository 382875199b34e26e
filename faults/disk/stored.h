/* stored: one file among those that the job has on its disks, as the faults at rest choose it: by
 * `path`, a pattern that begins with {shared}/ or {disk}/, and `which` of those that match. The seed
 * and what lies there decide alone, so that who looks just before the fault finds the same. */
#pragma once

#include "faults/fault.h"

#include "base/sys/folder.h"

#include <limits.h>

struct stored {
    struct folder in; /* the shared directory, or the node's disk */
    enum node_place place;
    const char *pattern;
    char path[PATH_MAX]; /* in there */
};

#define STORED_PATH "{shared}/ckpt/*/*"
/* Rows of .params. */
#define STORED_PARAMS                                                                              \
    {"path", "text", STORED_PATH,                                                                  \
     "a pattern of what is meant, behind {shared}/ or {disk}/; /** at its end: all files below"},  \
    {                                                                                              \
        "which", "string", "newest",                                                               \
            "of those that match, by their last change: newest, oldest or seeded"                  \
    }

/* What lies on this host is no matter: for .check. -EINVAL. */
int stored_check(const struct fault_args *a, struct err *err);
/* "{shared}/x" as place and pattern. -EINVAL with the key in front. */
int stored_read(const char *key, const char *text, enum node_place *ret_place,
                const char **ret_pattern, struct err *err);
/* Opens what is meant, does that to it, and closes it: for .inject. -ENOENT: nothing matches. */
typedef int stored_damage_fn(const struct target *t, const struct fault_args *a,
                             const struct stored *s, struct err *err);
int stored_damage(const struct target *t, const struct fault_args *a, stored_damage_fn *damage,
                  struct err *err);
/* -ENOENT: nothing matches. */
int stored_open(const struct target *t, const struct fault_args *a, struct stored *ret,
                struct err *err);
void stored_close(struct stored *s);
/* As scenarios write it: "{shared}/ckpt/a". */
const char *stored_place_name(enum node_place place);

/* "offset" of a file that has so many bytes: drawn by the seed, or as it is given; and "bit". */
int stored_offset(const struct fault_args *a, int64_t bytes, int64_t *ret_offset, int *ret_bit,
                  struct err *err);
