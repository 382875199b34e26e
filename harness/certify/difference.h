/* difference: where two values of JSON differ, member by member. Pure. */
#pragma once

#include "base/json.h"

struct difference {
    const char *path;            /* "scenarios[2].checks.model" */
    const struct json *was, *is; /* NULL: it is not there */
};

/* Calls told for each place where they differ, in order, down to values that are no containers.
 * Elements of arrays that have a member "name" are matched by it, others by their place. Returns how
 * many. left_out: names of members that are not looked at, NULL-ended. */
size_t difference_each(const struct json *was, const struct json *is, const char *const *left_out,
                       void (*told)(void *arg, const struct difference *d), void *arg);

/* A value in a line; "nothing" where there is none. */
void difference_put_value(const struct json *j, struct buf *out);
