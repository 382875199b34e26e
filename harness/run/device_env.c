/* What a node's job is told about its accelerators.
 *
 * NCCL takes two ranks for two hosts when NCCL_HOSTID differs, and only then lets them share a
 * device; between hosts it speaks over sockets, so that the wire decides about every byte. What the
 * scenario sets is left alone. What stands in the environment around us is, too, unless it says
 * which device, host or network to use: that is about this host, and the job runs on a node. */
#include "harness/run/programs.h"

#include "base/str.h"

#include <string.h>

struct setting {
    const char *name, *value;
};

/* Between nodes: sockets on the node's own card, nothing that sees through to the host. */
static const struct setting between_nodes[] = {
    {"NCCL_NET", "Socket"},
    {"NCCL_NET_PLUGIN", "none"},
    {"NCCL_SOCKET_FAMILY", "AF_INET"},
    {"NCCL_IB_DISABLE", "1"},
    {"NCCL_NVLS_ENABLE", "0"},
    {"NCCL_MNNVL_ENABLE", "0"}, /* devices of several "hosts" may sit in one NVLink domain */
    {"NCCL_IGNORE_CPU_AFFINITY", "1"},
    {"NCCL_SET_THREAD_NAME", "1"},
    {"NCCL_DEBUG", "WARN"},
    {0},
};

/* One rank per node: nothing to be fast at inside it. */
static const struct setting one_device[] = {
    {"NCCL_P2P_DISABLE", "1"},
    {"NCCL_SHM_DISABLE", "1"},
    {0},
};

/* Ranks that share a device take turns on it, some two milliseconds each, and a collective costs
 * turns, not bytes: the algorithm with the fewest, and few blocks that spin. Without cuMem the
 * rings connect in init, where a fault finds them, not in the first collective. */
static const struct setting shared_device[] = {
    {"NCCL_ALGO", "Ring"},
    {"NCCL_PROTO", "Simple"},
    {"NCCL_MAX_CTAS", "4"},
    {"NCCL_BUFFSIZE", "8388608"},
    {"NCCL_CUMEM_ENABLE", "0"},
    {"NCCL_CUMEM_HOST_ENABLE", "0"},
    {0},
};

/* Taken from nobody but the scenario. */
static const char *const of_the_node[] = {
    "CUDA_VISIBLE_DEVICES", "NCCL_HOSTID",        "NCCL_NET",        "NCCL_NET_PLUGIN",
    "NCCL_SOCKET_IFNAME",   "NCCL_SOCKET_FAMILY", "NCCL_IB_DISABLE", NULL,
};

enum { SETTINGS_MAX = 32 };

static bool is_entry_of(const char *entry, const char *name) {
    size_t n = strlen(name);
    return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

static bool is_set(const char *const *env, const char *name) {
    for (; *env; env++)
        if (is_entry_of(*env, name))
            return true;
    return false;
}

struct environment {
    struct arena *arena;
    const char **v;
    size_t n;
};

static void add(struct environment *e, const char *name, const char *value) {
    if (!is_set(e->v, name))
        e->v[e->n++] = arena_printf(e->arena, "%s=%s", name, value);
}

static void add_all(struct environment *e, const struct setting *s) {
    for (; s->name; s++)
        add(e, s->name, s->value);
}

/* By UUID: a number means something else once some are hidden. */
static const char *visible(struct arena *a, const struct plan_node *n) {
    const char *list = "";
    for (size_t i = 0; i < n->devices_n; i++)
        list = arena_printf(a, "%s%s%s", list, i ? "," : "", n->devices[i]->uuid);
    return list;
}

static bool is_shared(const struct plan_node *n) {
    for (size_t i = 0; i < n->devices_n; i++)
        if (n->devices[i]->nodes > 1)
            return true;
    return false;
}

static bool job_sets(const struct job_spec *job, const char *name) {
    for (size_t i = 0; i < job->env_n; i++)
        if (str_eq(job->env[i].key, name))
            return true;
    return false;
}

/* The caller chose among the host's devices and networks; each node gets its part. */
static bool is_of_the_host(const struct job_spec *job, const char *entry) {
    for (const char *const *name = of_the_node; *name; name++)
        if (is_entry_of(entry, *name))
            return !job_sets(job, *name);
    return false;
}

const char *const *device_env(struct arena *a, const struct plan *p, const struct plan_node *node,
                              const char *logs, const char *const *env) {
    bool none = p->scenario->cluster.has_gpus && !p->scenario->cluster.gpus_per_node;
    size_t n = 0;
    if (node->is_store || (!node->devices_n && !none))
        return env;
    while (env[n])
        n++;
    struct environment e = {a, arena_array(a, const char *, n + SETTINGS_MAX), 0};
    for (size_t i = 0; i < n; i++)
        if (!is_of_the_host(&p->scenario->job, env[i]))
            e.v[e.n++] = env[i];
    add(&e, "CUDA_VISIBLE_DEVICES", visible(a, node));
    if (none)
        return e.v;
    add(&e, "NCCL_HOSTID", node->name);
    add(&e, "NCCL_DEBUG_FILE", arena_printf(a, "%s/nccl.%%p.log", logs));
    /* '=': this name, not those that begin so. Nodes that are processes have no card of their own.
     */
    bool processes = p->isolation == ISOLATION_PROCESSES;
    add(&e, "NCCL_SOCKET_IFNAME", processes ? "=lo" : "=" CLUSTER_CARD);
    add_all(&e, between_nodes);
    if (node->devices_n == 1)
        add_all(&e, one_device);
    if (is_shared(node))
        add_all(&e, shared_device);
    return e.v;
}
