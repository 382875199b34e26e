/* barriers: where ranks have waited for each other. A rank that tells a step has applied an update to
 * which all have added: whoever dies before it holds the others back there. One that waits elsewhere
 * may tell a "barrier". Of a job that tells no steps it is not known how far the others would go on.
 * Pure. */
#pragma once

#include "faults/mechanism/disk_record.h"

struct barriers {
    bool steps; /* told when the others have been waited for; else about to wait for them */
    struct barrier {
        int64_t step, t_ns;
        int pid, rank;
    } * v;
    size_t n;
};

/* A step that a process has told; below 0: something else, by which its rank is known. */
void barriers_note(struct barriers *b, const struct barrier *x);
/* Adds a DISK_MARK "barrier" for each that has changes of the record next to it, before or behind it,
 * in the order of their moments among marks, which are in order; of one process alone none. */
void barriers_mark(const struct barriers *b, const struct disk_record *record,
                   struct disk_operation **marks, size_t *marks_n);
void barriers_fini(struct barriers *b);
/* Whether the record tells of one; whether there are several ranks in it, and none. */
bool barriers_known(const struct disk_record *record);
bool barriers_missing(const struct disk_record *record);
bool barriers_is(const struct disk_operation *o);
/* Of one: whoever has told it waits until all have. A step is told when that is over. */
bool barriers_waits(const struct disk_operation *o);
