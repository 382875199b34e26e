/* hostlist: names of hosts as Slurm writes them, "n[1-3,07],m05", written out. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <stddef.h>

enum { HOSTLIST_MAX = 65536, HOSTLIST_NAME_MAX = 255 };

struct hostlist {
    const char **names; /* in the order of the text; n + 1 of them, the last is NULL */
    size_t n;
};

/* Words with commas between, each with any number of brackets, which hold numbers and ranges with
 * commas between; numbers are as wide as the first of a range is written. A name may come twice.
 * Everything in *ret is in the arena. Returns 0, or -EINVAL and what is wrong, with the word it is
 * wrong in. */
int hostlist_expand(const char *text, struct arena *a, struct hostlist *ret, struct err *err);
