/* mount: what a mount namespace of one's own is arranged with. All of it ends with the namespace.
 * Every error names the path. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* From here on nothing mounted in this namespace shows in another one, nor the other way. */
int mount_make_private(struct err *err);
/* The /proc of the pid namespace the caller is in. */
int mount_proc(struct err *err);
/* source (a directory with all below it, or a file) is seen at path as well, which exists. */
int mount_bind(const char *source, const char *path, struct err *err);

/* What /sys tells of network cards becomes that of the caller's network namespace, for which `at`,
 * a directory that it makes, serves in between; the rest of /sys stays as it is. */
int mount_sys_network(const char *at, struct err *err);

/* Puts an empty tmpfs over path, in which only the paths of `keep` are still what they were: those
 * below path, absolute, without links, that exist. Others are passed over. */
int mount_cover(const char *path, mode_t mode, const char *const *keep, size_t keep_n,
                struct err *err);

/* Makes the place that something is bound on: a directory, or an empty file, with all above it. */
int mount_place(const char *path, bool directory, struct err *err);

/* path (a directory with all below and mounted below it, or a file) can only be read from here on;
 * but the paths of `keep` below it, absolute and without links, stay as they are. What does not
 * exist, and a link, is passed over. Device nodes are written to all the same. */
int mount_read_only(const char *path, const char *const *keep, size_t keep_n, struct err *err);
/* Puts an empty device file system of terminals at path: nobody else's terminals are in it. */
int mount_terminals(const char *path, struct err *err);

/* Over the directory comes itself as a layer: what is changed in it from here on is kept in memory,
 * with this namespace, and dir stays as it is. Mounts below dir are not in it. It is two mounts,
 * one upon the other; none after an error. -ENOTSUP where the kernel cannot, with the fix. */
int mount_layer(const char *dir, struct err *err);
/* The layer itself, as one mount: over dir, which lower is an open descriptor of, with the changes
 * in the empty directory that upper is one of (for reading). mode: what dir is seen to have. */
int mount_overlay(const char *dir, int lower, int upper, mode_t mode, struct err *err);
/* dir, a mount, becomes the root; the old one is seen at `old` below it (an absolute path), which
 * is made, until mount_forget takes it away, also from sight. */
int mount_pivot(const char *dir, const char *old, struct err *err);
int mount_forget(const char *path, struct err *err);
