/* certified_run: one run as a certificate tells it: what was judged, check by check, and what each fault
 * cost, with its bound. All of it follows from scenario and history, so whoever has them can make it
 * again. */
#pragma once

#include "base/json.h"
#include "harness/judge/recording.h"

/* The members of an object that the caller has begun: scenario, seed, launcher, exit_code, result, checks,
 * faults. checks is an object of objects, by name, so that two judgements are compared check by
 * check. Times are microseconds, -1 where there is none. */
void certified_run_put(const struct recorded_run *run, struct json_writer *w);

/* Whether a check of this name is a program of the scenario's own. */
bool certified_is_own(const char *check);
