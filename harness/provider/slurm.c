/* Hosts of a Slurm allocation that we are inside of: the helper is a job step on each. No right is
 * needed that the allocation has not given. */
#include "harness/provider/provider.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

static int check(const char *host, struct err *err) {
    size_t n = 0;
    while (isalnum((unsigned char)host[n]) || host[n] == '-' || host[n] == '.' || host[n] == '_')
        n++;
    if (!*host || host[n] || *host == '-')
        return err_say(err, -EINVAL, "\"%s\" is no name of a host of Slurm", host);
    if (!getenv("SLURM_JOB_ID"))
        return err_say(err, -EINVAL,
                       "provider slurm needs an allocation, and this is none: start it by salloc "
                       "--no-kill -N 2, or in a script of sbatch");
    return 0;
}

/* -u: frames are not lines, and do not wait for one. --overlap: beside whatever else runs in the
 * allocation. --no-kill: another host's failure is not ours. */
static const char *const *reach(const struct provider_wish *w, const char *host, struct arena *a) {
    const char *const words[] = {"srun", "-Q",  "-u", "--overlap", "--no-kill",
                                 "-N1",  "-n1", "-w", host,        w->program};
    const size_t n = sizeof(words) / sizeof(*words);
    const char **v = arena_array(a, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        v[i] = words[i];
    v[n] = NULL;
    return v;
}

const struct provider provider_slurm = {
    .name = "slurm",
    .summary = "as a step of this allocation on each",
    .hosts = "a name that Slurm knows, of this allocation",
    .check = check,
    .reach = reach,
};
