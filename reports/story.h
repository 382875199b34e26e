/* story: what the reports tell alike: how a round ended, where it resumed, when a thing was. */
#pragma once

#include "harness/history/clocks.h"
#include "reports/report.h"

/* Seconds since the run began. */
double story_seconds(const struct recorded_run *run, int64_t t_ns);
/* From its first record to its last. */
double story_duration_s(const struct recorded_run *run);
int64_t story_seed(const struct recorded_run *run);
/* How many checks ended like that. */
size_t story_count(const struct verdict *v, enum finding_status status);
/* -1: no worker said it. */
int64_t story_resume_step(const struct round *r);
/* The highest step that a worker of the round made; -1: none. */
int64_t story_last_step(const struct round *r);
/* Steps of the one that the other made again; -1: not known, or there is no such round (NULL). */
int64_t story_steps_again(const struct round *before, const struct round *after);
/* Below 0 it is null. */
void story_put_ms(struct json_writer *w, const char *key, int64_t ns);
/* A time as it is with what it may be off: " ± 0.4 ms" where its moments are of different hosts. In ASCII
 * "+-", where there is no Unicode. */
void story_bound(int64_t bound_ns, bool unicode, struct buf *out);
/* "node7: 7.000012 s ahead, asked 34 times, its stamps within ± 0.12 ms, set once". */
void story_clock(const struct node_clock *c, bool unicode, struct buf *out);
/* Why the round ended, in words: "dark (node-poweroff on n2)", "all workers ended well" ... */
void story_round_end(const struct incidents *is, const struct round *r, struct buf *out);
/* ", in force at 0.537 s, 0.4 ms after its moment". */
void story_in_force(const struct recorded_run *run, const struct incident *i, struct buf *out);
/* The targets of an incident: "n2", "n0/1 (rank 1), n1/0 (rank 2)"; "" when none is known. */
void story_targets(const struct incident *i, struct buf *out);
/* "2 checks that were answered in runs/x are not now: ranks (unknown), model (skip)"; nothing when
 * no check was lost. */
void story_lost(const struct verdict *v, struct buf *out);
/* "model: ...; lost_work: ...": what passed or was not asked, and is to be told first all the same.
 */
void story_loud(const struct verdict *v, struct buf *out);
/* "64 %: 80 steps that count in 3.1 s, 2.0 s in the control run (events of the job, stamped on
 * receipt)"; nothing where it cannot be said. */
void story_goodput(const struct goodput *g, struct buf *out);
/* The command that does the same again. */
void story_command(const struct recorded_run *run, struct buf *out);
/* A field of the history's first record, "" when it is not there. */
const char *story_run_text(const struct recorded_run *run, const char *key);
/* The scenario's file; one below the working directory is named from there, as a CI server names what
 * lies in its checkout. */
const char *story_file(const struct recorded_run *run);
/* Whether its nodes were processes of the host, not namespaces. */
bool story_of_processes(const struct recorded_run *run);
