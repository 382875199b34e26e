/* call_record: the record of a directory (disk_record.h) made out of the system calls that its
 * writers begin, where no disk of our own can be mounted.
 *
 * What changes the directory is not let go on: it is done here, with the writer's own open file
 * and the bytes as they were read of it, and answered with what came of it. So result, order and
 * bytes are those that took effect, whatever other threads do to the buffer meanwhile; nothing is
 * done for a writer that has died before. Not done here, but refused as a kernel without it would,
 * is what every program has a second way for: copy_file_range, sendfile and splice into the
 * directory, and io_uring.
 *
 * Not seen: what a mapping has written and no msync said; writers that run as another user, in a
 * root of their own, or are 32-bit programs. Whether anything was missed is found by comparing the
 * directory with the record (crash_states.h) once the writers have ended. */
#pragma once

#include "faults/mechanism/call_watch.h"
#include "faults/mechanism/disk_record.h"

struct call_record;

/* What is to be installed in the writers (call_watch_install). */
const struct call_watch *call_record_watch(void);

/* dir: the directory as the writers see it, opened with O_PATH. watch and dir stay the caller's.
 * NULL with err. */
struct call_record *call_record_new(int watch, int dir, struct disk_recorder *to, struct err *err);
struct call_record *call_record_free(struct call_record *r); /* NULL is allowed; returns NULL */

/* Tells what is there already, as DISK_HAD: before anything is served. */
void call_record_begin(struct call_record *r);

/* Answers one call that waits, of which poll has told by these revents. Nobody waits for anything but
 * for this to be called again. 1; 0: none waited; a -errno: there are no writers any more. */
int call_record_serve(struct call_record *r, short revents);

/* What is recorded is held in memory while calls come one after another. Readable when none may have
 * come for a while: call_record_idle puts it on the disk then. It stays the record's. */
int call_record_idle_fd(const struct call_record *r);
void call_record_idle(struct call_record *r);

struct call_record_seen {
    uint64_t operations; /* that change something */
    uint64_t across;     /* renames and links between the directory and elsewhere */
    uint64_t ring;       /* attempts to use io_uring */
    uint64_t no_room;    /* calls that were answered that the file system or a quota is full */
};
struct call_record_seen call_record_seen(const struct call_record *r);
