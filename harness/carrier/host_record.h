/* host_record: what a helper on another host leaves on it: a lock, so that two runs do not strike
 * the same host at once, and a log of its acts, to which lines are only ever added. Both lie in
 * /var/tmp/rankquake-UID, a directory of the user's own, under the host's name: a /var/tmp that
 * several hosts share does no harm. */
#pragma once

#include "base/json.h"

struct host_record {
    int lock, log; /* -1: none */
    char run[128];
};
#define HOST_RECORD_NONE ((struct host_record){-1, -1, ""})

/* Takes the host for a run, which several helpers of it may have. Returns 0, or -EBUSY with a
 * sentence that names the run which has it; another -errno. */
int host_record_open(struct host_record *ret, const char *run, struct err *err);
/* Its log alone: the host stays free for runs. */
int host_record_open_log(struct host_record *ret, const char *run, struct err *err);
/* Adds a line {t, run, act, ..}: what is about to be done, before it is. about, error: NULL is none. */
void host_record_note(struct host_record *r, const char *act, const char *about, const char *error);
/* The last of the log of this host and user, whole lines; nothing where there is none. */
void host_record_read(struct buf *ret);
void host_record_close(struct host_record *r); /* the lock is free, the log stays */

/* The directory itself, where the helper keeps what lasts no longer than it: a descriptor, the caller's, or a
 * -errno with a sentence; its path, and what names of this host begin with. */
enum { HOST_RECORD_NAME_MAX = 64 + 1 };
int host_record_folder(struct err *err);
const char *host_record_path(char ret[HOST_RECORD_NAME_MAX]);
void host_record_host(char ret[HOST_RECORD_NAME_MAX]);
