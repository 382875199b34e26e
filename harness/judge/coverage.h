/* coverage: which checks of a scenario were answered, pass or fail, from evidence (kernel, wire,
 * disk or probe) when it was last recorded, so that a run in which fewer are says so. A check that
 * is skipped or unknown fails nobody: without this, evidence that dries up looks like a good run.
 *
 * The record is a file in the cache. It is replaced by every judged run that answers all that it
 * names, so a loss is told in every run until it is fixed, or accepted: by a change of the
 * scenario, or by `renew`. What a run has lost is kept in its directory too, for its reports. */
#pragma once

#include "base/sys/folder.h"
#include "harness/judge/verdict.h"
#include "harness/scenario/scenario.h"

struct coverage_spec {
    const char *file; /* the record */
    const struct scenario *scenario;
    const struct folder *run; /* its path is absolute */
    bool renew;               /* what is lost is told, and no more from then on */
};

/* Marks in v what is lost, and renews the record and what is in run. Runs that were interrupted or
 * broken are passed over. Returns 0, also where there is no record yet, or a -errno: then nothing
 * is compared with the next time. */
int coverage_take(const struct coverage_spec *s, struct verdict *v, struct err *err);

/* Marks in v, which was judged again, what was lost when this run was made. */
void coverage_recall(const struct folder *run, struct verdict *v);

/* How many checks the newest run that was compared with this record has lost; 0: none, or there is
 * no record. */
size_t coverage_lost(const char *file);

/* Of what is asked of every run of it, whatever is drawn by the seed. */
void coverage_hash(const struct scenario *s, char ret[65]);
