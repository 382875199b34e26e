/* srun: the srun that started this step, where it runs on this host, as it does in a batch job's
 * first host. */
#pragma once

enum srun_keeps {
    SRUN_UNKNOWN, /* it runs elsewhere, or is another's */
    SRUN_ENDS,    /* Slurm ends the step when one of its hosts fails */
    SRUN_GOES_ON, /* --no-kill, or SLURM_NO_KILL */
};

/* Looks through /proc for the srun of the job (SLURM_JOB_ID), once. */
enum srun_keeps srun_find(const char *job);
