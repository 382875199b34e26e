/* hand: a run that takes faults by hand (`run --interactive`), and one that stands still until it is told to
 * go on (`--paused`). What is asked for comes a line at a time over a socket in the run directory, from `watch`, or from
 * standard input:
 *
 *     FAULT [TARGET] [KEY=VALUE...]    now: "worker-kill n1/0 signal=SIGTERM"
 *     {fault: .., on: .., when: ..}    as an entry of the timeline; without `when` it is now
 *     heal ID                          ends what lasts
 *     break STEP                       stands still when a worker comes to that step
 *     go                               goes on
 *
 * A fault becomes an entry of the timeline: it is loaded and refused as one, stands in the run's
 * scenario.yaml before it is brought in force, and so is judged as one. Each line is answered by one:
 * "ok TEXT", or "no SENTENCE". */
#pragma once

#include "harness/run/engine.h"

enum { HAND_FAULTS_MAX = 100 };

/* Its name in the run directory. */
extern const char hand_socket[];

/* The job is not started before somebody says go. */
bool hand_holds_start(struct engine *e);
/* An entry of `break` has come true. */
struct run_entry;
void hand_stopped(struct run_entry *a);
