/* follow: waits until something has come into a directory, as the kernel tells it (inotify). One that
 * is not there yet is waited for by the next above that is. A file system of which the kernel does
 * not hear what other hosts do (NFS and the like) is looked at at an interval instead. */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct follow;

/* interval_ns 0: none. beat_ns: follow_wait also returns after so long, for what has to be done
 * again and again. wake_fd: readable: stop waiting. */
int follow_new(struct follow **ret, const char *dir, int64_t interval_ns, int64_t beat_ns,
               int wake_fd, struct err *err);
struct follow *follow_free(struct follow *f); /* NULL is allowed; returns NULL */

/* Waits until the directory is there and opens it: a descriptor, -ECANCELED: woken, or an error:
 * -EOPNOTSUPP where it lies on a file system that tells nothing and there is no interval. */
int follow_open(struct follow *f, struct err *err);

/* What came since the last call returned is never missed. Returns 0; -ECANCELED; or -ENOENT when
 * the directory has been taken away. */
int follow_wait(struct follow *f, struct err *err);
