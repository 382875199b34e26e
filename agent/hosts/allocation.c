#include "agent/hosts/allocation.h"

#include "base/hostlist.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Pods have an address each. Slurm's jobs may share a host: each has a port of its own, below those
 * that the system gives away. */
enum { PORT_POD = 29400, PORT_FIRST = 20000, PORTS = 10000, NODES_MAX = 65536 };

static const int64_t ID_MAX = UINT32_MAX;

static int read_number(const char *name, int64_t max, int64_t *ret, struct err *err) {
    const char *value = getenv(name);
    if (value && str_to_i64(value, 0, max, ret))
        return 0;
    return err_say(err, -EINVAL, "%s=%s in the environment: must be a number from 0 to %" PRId64,
                   name, value ? value : "", max);
}

/* "1(x3)" or "1,1(x2)": one task on each host. */
static int check_tasks(struct err *err) {
    const char *tasks = getenv("SLURM_STEP_TASKS_PER_NODE");
    for (const char *at = tasks; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (at[0] != '1' || (at[1] && at[1] != '(' && at[1] != ','))
            return err_say(
                err, -EINVAL,
                "srun started several rankruns on a host (SLURM_STEP_TASKS_PER_NODE=%s): "
                "give srun --ntasks-per-node=1, and rankrun the workers of a host by "
                "--nproc-per-node",
                tasks);
    return 0;
}

static int check_group(struct err *err) {
    const char *parts = getenv("SLURM_HET_SIZE");
    if (!parts || str_eq(parts, "1"))
        return 0;
    return err_say(
        err, -EINVAL,
        "a heterogeneous job of Slurm (SLURM_HET_SIZE=%s) has no one list of hosts: give "
        "every rankrun the same --rdzv-endpoint, --rdzv-id and --nnodes",
        parts);
}

static int read_hosts(const char *text, struct arena *a, struct allocation *ret, struct err *err) {
    struct hostlist hosts;
    int64_t nodes, node;
    if (hostlist_expand(text, a, &hosts, err) < 0)
        return err_wrap(err, "SLURM_STEP_NODELIST=%s in the environment: ", text);
    int code = read_number("SLURM_STEP_NUM_NODES", NODES_MAX, &nodes, err);
    if (!code)
        code = read_number("SLURM_NODEID", NODES_MAX, &node, err);
    if (code)
        return code;
    if ((size_t)nodes != hosts.n || node >= nodes)
        return err_say(err, -EINVAL,
                       "Slurm's variables do not agree: SLURM_STEP_NODELIST=%s has %zu hosts, "
                       "SLURM_STEP_NUM_NODES is %" PRId64 ", SLURM_NODEID is %" PRId64
                       "; were they set by hand? give --rdzv-endpoint, --rdzv-id and --nnodes",
                       text, hosts.n, nodes, node);
    ret->first = hosts.names[0];
    ret->nodes = (int)nodes;
    ret->node = (int)node;
    return 0;
}

int allocation_of_step(struct arena *a, struct allocation *ret, struct err *err) {
    const char *hosts = getenv("SLURM_STEP_NODELIST"), *id = getenv("SLURM_JOB_ID");
    struct allocation found = {0};
    int64_t job, step;
    if (!hosts || !hosts[0] || !id || !id[0])
        return 0;
    int code = read_number("SLURM_JOB_ID", ID_MAX, &job, err);
    if (!code)
        code = read_number("SLURM_STEP_ID", ID_MAX, &step, err);
    if (!code)
        code = check_group(err);
    if (!code)
        code = check_tasks(err);
    if (!code)
        code = read_hosts(hosts, a, &found, err);
    if (code)
        return code;
    found.run_id = step ? arena_printf(a, "%" PRId64 ".%" PRId64, job, step)
                        : arena_printf(a, "%" PRId64, job);
    found.port = PORT_FIRST + (int)((job + step * 7919) % PORTS);
    *ret = found;
    return 1;
}

int allocation_of_pod(const char *full_name, struct arena *a, struct allocation *ret,
                      struct err *err) {
    int64_t index;
    if (!getenv("JOB_COMPLETION_INDEX"))
        return 0;
    int code = read_number("JOB_COMPLETION_INDEX", NODES_MAX - 1, &index, err);
    if (code)
        return code;
    const char *name = full_name ? full_name : "", *domain = strchr(name, '.');
    const char *end = arena_printf(a, "-%" PRId64, index);
    const char *host = arena_strndup(a, name, domain ? (size_t)(domain - name) : strlen(name));
    if (!domain || !str_ends(host, end) || str_eq(host, end))
        return err_say(err, -EINVAL,
                       "JOB_COMPLETION_INDEX is %" PRId64 ", but this pod's full name is '%s', not "
                       "JOB-%" PRId64 ".SERVICE.NAMESPACE.svc...: give the pods of the job the "
                       "subdomain of a headless service, or rankrun --rdzv-endpoint and --rdzv-id",
                       index, name, index);
    const char *job = arena_strndup(a, host, strlen(host) - strlen(end));
    *ret = (struct allocation){.run_id = job,
                               .first = arena_printf(a, "%s-0%s", job, domain),
                               .port = PORT_POD,
                               .node = (int)index};
    return 1;
}
