/* recording: a run directory read back: scenario.yaml, history.jsonl, and the verdict judged from
 * them again. */
#pragma once

#include "base/buf.h"
#include "base/sys/folder.h"
#include "harness/judge/verdict.h"

struct recorded_run {
    const char *dir;
    const struct folder *folder; /* the same, held; NULL: it has no directory of its own */
    const struct scenario *scenario;
    const struct history *history;
    const struct rounds *rounds;
    const struct verdict *verdict;
};

struct recording {
    const char *dir;
    struct folder folder; /* the same, held; FOLDER_NONE: of a history from elsewhere */
    struct scenario *scenario;
    struct history history;
    struct rounds rounds;
    struct verdict verdict;
    struct recorded_run run; /* the same for a report */
};

/* What is to be judged. */
struct recording_source {
    const char *dir;      /* of a run; NULL: the two below */
    const char *scenario; /* NULL: dir/scenario.yaml */
    const char *history;  /* NULL: dir/history.jsonl */
    bool programs;        /* the scenario's own checks are started */
    void (*judged)(void *arg, size_t done,
                   size_t of); /* as in struct trial; NULL: nobody is told */
    void *judged_arg;
};

/* Reads and judges. What is missing or wrong goes to *complaint, ready to be printed, and -1 is
 * returned; the recording is then empty. What the source names must outlive it. */
int recording_read(struct recording *r, const struct recording_source *from, struct buf *complaint);
/* Of a run that has just been made here: with its programs. */
int recording_load(struct recording *r, const char *dir, struct buf *complaint);
void recording_fini(struct recording *r);
