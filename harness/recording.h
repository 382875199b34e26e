/* recording: a run directory read back: scenario.yaml, history.jsonl, and the verdict judged from
 * them again. */
#pragma once

#include "agent/base/buf.h"
#include "reports/report.h"

struct recording {
    const char *dir;
    struct scenario *scenario;
    struct history history;
    struct rounds rounds;
    struct verdict verdict;
    struct recorded_run run; /* the same for a report */
};

/* Reads and judges. What is missing or wrong goes to *complaint, ready to be printed, and -1 is
 * returned; the recording is then empty. dir must outlive it. */
int recording_load(struct recording *r, const char *dir, struct buf *complaint);
void recording_fini(struct recording *r);
