/* file_pick: one of the files of a directory that match a pattern, chosen so that who asks again
 * before anything has changed gets the same. Nothing on the way is followed where it is a link
 * (folder.h): a link itself may be what matches. */
#pragma once

#include "base/sys/folder.h"

#include <limits.h>
#include <stdint.h>

enum file_age { FILE_NEWEST, FILE_OLDEST, FILE_SEEDED, FILE_AGES_N };
extern const char *const file_age_names[FILE_AGES_N + 1]; /* NULL-ended */

/* Whether it is a pattern: names with * ? [] in them, parted by slashes, none of them empty, "." or
 * ".."; a last one of two stars means all files below. 0, or -EINVAL with what is wrong. */
int file_pattern_check(const char *pattern, struct err *err);

/* The path of the one that was changed last, or first; of the same age the one whose name is the
 * highest, or the lowest, as a version. Seeded: any of them. What has a dot in front is matched by a
 * dot alone. -ENOENT: none matches. */
int file_pick(const struct folder *in, const char *pattern, enum file_age age, uint64_t seed,
              char ret[PATH_MAX], struct err *err);
/* Of those that match another than `path`: the next of its own directory by name, behind the last
 * the first; where it is alone there, likewise of all. */
int file_pick_other(const struct folder *in, const char *pattern, const char *path,
                    char ret[PATH_MAX], struct err *err);
