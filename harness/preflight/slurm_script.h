/* slurm_script: what of a script for sbatch ends a job that could go on, or has several agents of it on one host. Pure: of the
 * script's text. Words that the shell makes only when it runs are not known, and nothing is said of them. */
#pragma once

#include "harness/preflight/slurm_settings.h"

/* Tells each of them, with its line. Returns how many there were, or -1: no line of it starts rankrun by srun. */
int slurm_script_judge(const char *text, slurm_betrayal_fn *fn, void *arg);
