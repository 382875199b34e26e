/* Hosts of a Slurm allocation that we are inside of: the helper is a job step on each. No right is
 * needed that the allocation has not given. */
#include "harness/provider/provider.h"

#include "base/hostlist.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

static int check_allocation(struct err *err) {
    const char *job = getenv("SLURM_JOB_ID");
    if (job && *job)
        return 0;
    return err_say(err, -EINVAL,
                   "provider slurm needs an allocation, and this is none: start it by salloc "
                   "--no-kill -N 2, or in a script of sbatch");
}

static int check(const char *host, struct err *err) {
    size_t n = 0;
    while (isalnum((unsigned char)host[n]) || host[n] == '-' || host[n] == '.' || host[n] == '_')
        n++;
    if (!*host || host[n] || *host == '-')
        return err_say(err, -EINVAL, "\"%s\" is no name of a host of Slurm", host);
    return check_allocation(err);
}

/* All hosts of the job, in Slurm's order. A list for each part of a heterogeneous job is none for all. */
static int find(struct arena *a, const char *const **ret, size_t *ret_n, struct err *err) {
    const char *text = getenv("SLURM_JOB_NODELIST"), *parts = getenv("SLURM_HET_SIZE");
    struct hostlist hosts;
    int r = check_allocation(err);
    if (r)
        return r;
    if (parts && !str_eq(parts, "1"))
        return err_say(err, -EINVAL,
                       "a heterogeneous job of Slurm (SLURM_HET_SIZE=%s) has no one list of hosts: "
                       "name them by --hosts or cluster.hosts",
                       parts);
    if (!text || !*text)
        return err_say(err, -EINVAL,
                       "Slurm has not said which hosts this allocation has (SLURM_JOB_NODELIST): "
                       "name them by --hosts or cluster.hosts");
    r = hostlist_expand(text, a, &hosts, err);
    if (r)
        return err_wrap(err, "SLURM_JOB_NODELIST=%s in the environment: ", text);
    *ret = hosts.names;
    *ret_n = hosts.n;
    return 0;
}

/* -u: frames are not lines, and do not wait for one. --overlap: beside whatever else runs in the
 * allocation. --no-kill: another host's failure is not ours. */
static const char **step(const char *host, const char *program, struct arena *a) {
    const char *const words[] = {"srun", "-Q",  "-u", "--overlap", "--no-kill",
                                 "-N1",  "-n1", "-w", host,        program};
    const size_t n = sizeof(words) / sizeof(*words);
    const char **v = arena_array(a, const char *, n + 3);
    for (size_t i = 0; i < n; i++)
        v[i] = words[i];
    return v;
}

static const char *const *reach(const struct provider_wish *w, const char *host, struct arena *a) {
    return (const char *const *)step(host, w->program, a);
}

static const char *const *outpost(const struct provider_wish *w, const char *host,
                                  struct arena *a) {
    const char **v = step(host, provider_rankquake(w, a), a);
    size_t n = 0;
    while (v[n])
        n++;
    v[n++] = "preflight";
    v[n] = "--outpost";
    return (const char *const *)v;
}

const struct provider provider_slurm = {
    .name = "slurm",
    .summary = "as a step of this allocation on each",
    .hosts = "a name that Slurm knows, of this allocation",
    .check = check,
    .find = find,
    .reach = reach,
    .outpost = outpost,
};
