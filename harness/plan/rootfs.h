/* rootfs: what the nodes will find where, when they have a root file system of their own. Without
 * one all of this is the host's. Private to this room. */
#pragma once

#include "harness/plan/plan.h"

enum found { FOUND, NOT_EXECUTABLE, NOT_THERE };

/* A descriptor (O_PATH unless flags say more) of path as a node sees it, or -errno. Relative paths
 * begin in the caller's directory. */
int rootfs_open(const struct plan *p, const char *path, int flags);
/* Whether path can be executed there; directories are not. */
enum found rootfs_look(const struct plan *p, const char *path);

/* For a process that asks something of the tree: goes there, in namespaces of its own, before exec
 * (process_spawn.in_child; arg: the directory). Nothing it does changes the tree. */
int rootfs_enter(void *dir);

/* Whether it can be the root of a node: goes there in a child, once. 0, or -ENOTSUP with the
 * sentence and the fix. */
int rootfs_try(const struct plan *p, struct err *err);

/* The directory itself, and what the job's command line names: 0, or -ENOENT with the sentence for
 * a path that only the host has. */
int rootfs_check(const struct plan *p, struct err *err);
