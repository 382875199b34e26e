/* marks: what a job has told while its directory was recorded, put into the record (DISK_MARK) where
 * it was sent: `checkpoint-*` as it is, steps and events "barrier" as barriers (barriers.h). */
#pragma once

#include "faults/mechanism/disk_record.h"

struct crash_word {
    const char *kind;
    int64_t step; /* -1 */
    int pid, rank;
    const char *node;
    int64_t t_ns; /* when it was sent */
};

struct crash_marks {
    struct disk_operation *v; /* path: the kind and, where it has one, the step */
    size_t n;
    struct arena arena;
};

void crash_marks_fini(struct crash_marks *m);
void crash_marks_hear(struct crash_marks *m, const struct crash_word *w);

/* As a file that only has marks, in the form of a record. 0 or a -errno. */
int crash_marks_save(const struct crash_marks *m, const char *path, struct err *err);
int crash_marks_load(struct crash_marks *m, const char *path, struct err *err);

/* Writes the record anew, with the marks in it; those of a process that has done something in the
 * record have its rank. */
int crash_marks_put(struct crash_marks *m, const struct disk_record *record, const char *path,
                    struct err *err);
