/* attempts: the chain of attempts of a job that its scheduler starts again and again. */
#pragma once

#include "harness/judge/checks/check.h"

/* Which attempt a round belongs to, counted from 0, as Slurm tells its workers (SLURM_RESTART_COUNT). */
int attempts_number(const struct round *r);

/* How many attempts had a round. */
int attempts_count(const struct rounds *rs);

/* The launcher's own count of restarts ends with its attempt: a requeue is no failure of the job. Judges
 * that each attempt keeps to max_restarts, that none begins the count anew, and that what has failed
 * with all of them used is not started again. As judge of struct check. */
bool attempts_judge(const struct trial *t, struct finding *f, const char *broken);
