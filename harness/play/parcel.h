/* parcel: what the cache holds, in one file that another machine takes in: results of control runs with
 * their weights, how long scenarios took, which checks were answered. It is JSON, a line for each file
 * with its content and its digest, between a first line that says of which version it is and a last
 * one that says how many there are and digests all lines before it. */
#pragma once

#include "base/err.h"
#include "base/texts.h"

#include <stddef.h>
#include <stdint.h>

struct parcel_sum {
    size_t files, kept; /* kept: were here already */
    int64_t bytes;
};

/* The kinds of what may be in one: "control", "durations", ...; NULL-ended. */
extern const char *const parcel_kinds[];

/* Every file of these kinds in the cache, as "control/KEY/control.json"; sorted. A cache that is not
 * there is empty. */
int parcel_list(struct texts *ret, struct err *err);
/* Writes all of them to path, whole or not at all. */
int parcel_export(const char *path, struct parcel_sum *ret, struct err *err);
/* Reads all of it before anything is changed. -EINVAL: of another version, cut off, or changed, said with
 * its line. What is here already stays, but for times: the newer ones are those that were fetched. */
int parcel_import(const char *path, struct parcel_sum *ret, struct err *err);
