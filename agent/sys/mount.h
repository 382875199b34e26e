/* mount: what a mount namespace of one's own is arranged with. All of it ends with the namespace.
 * Every error names the path. */
#pragma once

#include "agent/base/err.h"

#include <stddef.h>
#include <sys/types.h>

/* From here on nothing mounted in this namespace shows in another one, nor the other way. */
int mount_make_private(struct err *err);
/* The /proc of the pid namespace the caller is in. */
int mount_proc(struct err *err);
/* source (a directory with all below it, or a file) is seen at path as well, which exists. */
int mount_bind(const char *source, const char *path, struct err *err);

/* Puts an empty tmpfs over path, in which only the paths of `keep` are still what they were: those
 * below path, absolute, without links, that exist. Others are passed over. */
int mount_cover(const char *path, mode_t mode, const char *const *keep, size_t keep_n,
                struct err *err);
