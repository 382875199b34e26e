/* Settles the job: its nodes, workers, restarts and program, and where its agents meet. */
#include "agent/options_given.h"
#include "agent/workers/spec.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/random.h"
#include "base/sys/tcp.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NODES_MAX = 100000, PORT_EMBEDDED = 29400, PORT_ETCD = 2379, PORT_MASTER = 29500 };
enum { PORT_MASTER_LAST = 65534 }; /* the agents' store lies at the next one */

/* "3" or "2:4". */
static int settle_nodes(struct options *o, struct options_given *g, struct err *err) {
    int64_t min = 1, max = 1;
    size_t n = 1;
    char **parts = str_split(g->arena, g->nnodes ? g->nnodes : "1", ':', &n);
    bool good = n <= 2 && str_to_i64(parts[0], 1, NODES_MAX, &min) &&
                str_to_i64(parts[n - 1], 1, NODES_MAX, &max) && min <= max;
    if (!good)
        return err_say(err, -EINVAL, "--nnodes %s: must be N or MIN:MAX with 1 <= MIN <= MAX <= %d",
                       g->nnodes, NODES_MAX);
    if (o->verb == OPTIONS_HOSTS && (size_t)min > o->hosts.n)
        return err_say(err, -EINVAL, "--nnodes %s: but there are only %zu hosts", g->nnodes,
                       o->hosts.n);
    o->nodes_min = (int)min;
    o->nodes_max = (int)max;
    return 0;
}

static int count_list(const char *s) {
    int n = *s != '\0';
    for (; *s; s++)
        n += *s == ',';
    return n;
}

/* The GPUs a worker could use: what CUDA_VISIBLE_DEVICES leaves of what the driver lists. No CUDA
 * library is loaded for it. */
static int count_gpus(void) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    FILE_CLOSE_DIR DIR *d = opendir("/proc/driver/nvidia/gpus");
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    return visible && count_list(visible) < n ? count_list(visible) : n;
}

static int settle_workers(struct options *o, struct options_given *g, struct err *err) {
    const char *s = g->nproc_per_node ? g->nproc_per_node : "1";
    int64_t n = 0;
    if (str_eq(s, "cpu"))
        n = sysconf(_SC_NPROCESSORS_ONLN);
    else if (str_eq(s, "gpu") || str_eq(s, "auto"))
        n = count_gpus();
    else if (!str_to_i64(s, 1, WORKERS_MAX, &n))
        return err_say(err, -EINVAL, "--nproc-per-node %s: must be 1 to %d, cpu, gpu or auto", s,
                       WORKERS_MAX);
    if (n == 0 && str_eq(s, "gpu"))
        return err_say(
            err, -EINVAL,
            "--nproc-per-node gpu: no NVIDIA GPU is seen here; give a number, cpu or auto");
    if (n == 0)
        n = sysconf(_SC_NPROCESSORS_ONLN);
    o->workers_per_node = (int)n;
    if (n > 1 && !getenv("OMP_NUM_THREADS"))
        options_notice(g,
                       "OMP_NUM_THREADS is not set: it is 1 for each of the %" PRId64
                       " workers, so that they do not overload the machine",
                       n);
    return 0;
}

static int settle_restarts(struct options *o, struct options_given *g, struct err *err) {
    int64_t n = 0;
    if (g->max_restarts && !str_to_i64(g->max_restarts, 0, 1000000000, &n))
        return err_say(err, -EINVAL, "--max-restarts %s: must be a whole number, 0 or more",
                       g->max_restarts);
    o->max_restarts = (int)n;
    return 0;
}

/* Torchrun's seconds, or a duration with its unit. */
static int settle_shutdown(struct options *o, struct options_given *g, struct err *err) {
    const char *env = getenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
    const char *s = g->shutdown_timeout ? g->shutdown_timeout : env ? env : "30";
    int64_t ns, seconds;
    if (str_to_i64(s, 0, 1000000, &seconds)) {
        o->shutdown_timeout_ms = seconds * 1000;
        return 0;
    }
    if (str_to_duration_ns(s, &ns, NULL) < 0)
        return err_say(
            err, -EINVAL, "%s %s: must be seconds, or a duration as 500ms",
            g->shutdown_timeout ? "--shutdown-timeout" : "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", s);
    o->shutdown_timeout_ms = ns / 1000000;
    return 0;
}

static bool names_static(const struct options_given *g) {
    return g->node_rank || g->master_addr || g->master_port;
}

static int no_backend(const struct options_given *g, struct err *err) {
    return err_say(err, -EINVAL,
                   "--nnodes %s needs a store: give every node the same --rdzv-endpoint=HOST:%d, "
                   "which HOST's agent or `rankrun store` serves, or --node-rank and --master-addr",
                   g->nnodes, PORT_EMBEDDED);
}

static int named_backend(const char *name, enum options_backend *ret, struct options_given *g,
                         struct err *err) {
    static const char *const names[] = {"embedded", "etcd-v3", "c10d",       "etcd", "etcd-v2",
                                        "static",   "slurm",   "kubernetes", NULL};
    static const struct {
        const char *name;
        enum options_backend is;
    } backends[] = {{"embedded", BACKEND_EMBEDDED},
                    {"etcd-v3", BACKEND_ETCD_V3},
                    {"c10d", BACKEND_EMBEDDED},
                    {"etcd", BACKEND_ETCD_LEGACY}};
    for (size_t i = 0; i < sizeof(backends) / sizeof(*backends); i++) {
        if (!str_eq(name, backends[i].name))
            continue;
        *ret = backends[i].is;
        g->legacy = *ret == BACKEND_ETCD_LEGACY;
        if (str_eq(name, "c10d"))
            options_notice(g, "c10d: rankrun agents only; a torchrun agent cannot join");
        return 0;
    }
    if (str_eq(name, "etcd-v2"))
        return err_say(err, -EINVAL,
                       "--rdzv-backend etcd-v2: not there; use embedded (rankrun store), etcd-v3, "
                       "or etcd, torchelastic's older protocol over the same API");
    if (str_eq(name, "slurm") || str_eq(name, "kubernetes"))
        return err_say(err, -EINVAL,
                       "--rdzv-backend %s: tells agents where to meet; ask by --rdzv-endpoint and "
                       "--rdzv-id, which the first one says when it starts",
                       name);
    const char *near = str_nearest(name, names);
    return err_say(err, -EINVAL,
                   "--rdzv-backend %s: must be embedded, etcd-v3, etcd, c10d, static, slurm or "
                   "kubernetes%s%s%s",
                   name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

static const char *endpoint_text(struct arena *a, const char *host, int port) {
    return arena_printf(a, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
}

static int no_members(const struct options_given *g, struct err *err) {
    return err_say(err, -EINVAL,
                   "--rdzv-endpoint %s: only --rdzv-backend etcd-v3 has several members",
                   g->rdzv_endpoint);
}

/* The first is the one that is talked of; the others are its etcd's other members. */
static int settle_members(struct options *o, struct options_given *g, uint16_t absent,
                          struct err *err) {
    size_t n;
    char **parts = str_split(g->arena, g->rdzv_endpoint, ',', &n);
    o->endpoints = "";
    if (n > 1 && o->backend != BACKEND_ETCD_V3)
        return no_members(g, err);
    for (size_t i = 0; i < n; i++) {
        struct tcp_endpoint e;
        int code = tcp_endpoint_parse(parts[i], absent, &e, err);
        if (code)
            return err_wrap(err, "--rdzv-endpoint: "), code;
        o->endpoints = arena_printf(g->arena, "%s%s%s", o->endpoints, i ? "," : "",
                                    endpoint_text(g->arena, e.host, e.port));
        if (i == 0) {
            o->endpoint_host = arena_strdup(g->arena, e.host);
            o->endpoint_port = e.port;
        }
    }
    return 0;
}

static int settle_endpoint(struct options *o, struct options_given *g, struct err *err) {
    uint16_t absent = o->backend == BACKEND_EMBEDDED ? PORT_EMBEDDED : PORT_ETCD;
    if (!g->rdzv_endpoint || !g->rdzv_endpoint[0])
        return err_say(err, -EINVAL, "--rdzv-backend %s needs --rdzv-endpoint=HOST:%d",
                       g->rdzv_backend, absent);
    return settle_members(o, g, absent, err);
}

/* Ranks and the master come of the rendezvous, whatever was asked for. */
static void tell_static(struct options_given *g) {
    if (names_static(g))
        options_notice(g,
                       "--node-rank, --master-addr and --master-port are not used: the rendezvous "
                       "gives the ranks, and rank 0's node the address and a free port");
}

/* Torchrun's static rendezvous: ranks and master are as the command lines say. An endpoint is
 * another word for the master there. */
static bool is_static(const struct options_given *g) {
    return g->rdzv_backend ? str_eq(g->rdzv_backend, "static") : names_static(g);
}

static int settle_master(struct options *o, struct options_given *g, struct err *err) {
    struct tcp_endpoint e;
    const char *addr = g->master_addr && g->master_addr[0] ? g->master_addr : "127.0.0.1";
    int64_t port = PORT_MASTER;
    if (g->master_port && !str_to_i64(g->master_port, 1, PORT_MASTER_LAST, &port))
        return err_say(err, -EINVAL, "--master-port %s: must be a number from 1 to %d",
                       g->master_port, PORT_MASTER_LAST);
    o->master_addr = addr;
    o->master_port = (int)port;
    if (!g->rdzv_endpoint || !g->rdzv_endpoint[0])
        return 0;
    if (strchr(g->rdzv_endpoint, ','))
        return no_members(g, err);
    if (tcp_endpoint_parse(g->rdzv_endpoint, (uint16_t)port, &e, err) < 0)
        return err_wrap(err, "--rdzv-endpoint: ");
    if (e.port > PORT_MASTER_LAST)
        return err_say(err, -EINVAL,
                       "--rdzv-endpoint %s: the port must be at most %d, as the agents meet at the "
                       "next one",
                       g->rdzv_endpoint, PORT_MASTER_LAST);
    o->master_addr = arena_strdup(g->arena, e.host);
    o->master_port = e.port;
    return 0;
}

/* The agents' store lies beside the master's port, which is the workers'. One node needs none; who
 * gave its port wants it to be that one. */
static int settle_static(struct options *o, struct options_given *g, struct err *err) {
    int64_t rank = 0;
    if (o->nodes_min != o->nodes_max)
        return err_say(err, -EINVAL,
                       "--nnodes %s: with --rdzv-backend static (--node-rank, --master-addr) the "
                       "number of nodes is fixed; give one number, or a store by --rdzv-endpoint",
                       g->nnodes);
    if (g->node_rank && !str_to_i64(g->node_rank, 0, o->nodes_max - 1, &rank))
        return err_say(err, -EINVAL, "--node-rank %s: must be 0 to %d with --nnodes %d",
                       g->node_rank, o->nodes_max - 1, o->nodes_max);
    int code = settle_master(o, g, err);
    if (code)
        return code;
    o->node_rank = (int)rank;
    if (o->nodes_max == 1) {
        bool fixed = g->master_port || g->master_addr || (g->rdzv_endpoint && g->rdzv_endpoint[0]);
        o->master_port = fixed ? o->master_port : 0;
        o->master_addr = fixed ? o->master_addr : NULL;
        return 0;
    }
    o->backend = BACKEND_EMBEDDED;
    o->endpoint_host = o->master_addr;
    o->endpoint_port = o->master_port + 1;
    o->endpoints = endpoint_text(g->arena, o->endpoint_host, o->endpoint_port);
    return 0;
}

/* Who types --standalone and an etcd without an endpoint wants one beside the job. What the
 * environment says is of the cluster, and --standalone wins over it. */
static bool wants_own_etcd(const struct options_given *g) {
    bool etcd =
        g->rdzv_backend && (str_eq(g->rdzv_backend, "etcd") || str_eq(g->rdzv_backend, "etcd-v3"));
    for (int i = 0; i < g->from_environment_n; i++)
        if (str_eq(g->from_environment[i].option, "--rdzv-backend"))
            return false;
    return etcd && !(g->rdzv_endpoint && g->rdzv_endpoint[0]);
}

static int settle_standalone(struct options *o, struct options_given *g, struct err *err) {
    if (o->nodes_min > 1)
        return err_say(err, -EINVAL, "--standalone is one node, but --nnodes is %s", g->nnodes);
    o->nodes_max = 1;
    o->own_etcd = wants_own_etcd(g);
    o->endpoint_host = o->own_etcd ? "127.0.0.1" : NULL;
    return o->own_etcd ? named_backend(g->rdzv_backend, &o->backend, g, err) : 0;
}

/* localhost:0 is torchrun's word for a port that is free, so that several jobs on one host do not
 * meet. Nobody else can know of it, and one node needs none. */
static bool names_any_port(const struct options_given *g) {
    const char *name = g->rdzv_backend ? g->rdzv_backend : "embedded";
    const char *port = g->rdzv_endpoint ? strrchr(g->rdzv_endpoint, ':') : NULL;
    return port && str_eq(port, ":0") && (str_eq(name, "c10d") || str_eq(name, "embedded"));
}

static int settle_alone(struct options *o, const struct options_given *g, struct err *err) {
    if (o->nodes_min > 1)
        return err_say(err, -EINVAL,
                       "--rdzv-endpoint %s: port 0 is any that is free, which no other node can "
                       "know; give a port, or --nnodes=1",
                       g->rdzv_endpoint);
    o->nodes_max = 1;
    return 0;
}

/* --standalone wins over every --rdzv option, as in torchrun. An endpoint alone means embedded; one
 * node without any needs no store of its own process. */
static int settle_store(struct options *o, struct options_given *g, struct err *err) {
    bool endpoint = g->rdzv_endpoint && g->rdzv_endpoint[0];
    o->standalone = g->standalone != NULL;
    o->backend = BACKEND_IN_PROCESS;
    o->node_rank = -1;
    if (o->standalone)
        return settle_standalone(o, g, err);
    if (is_static(g))
        return settle_static(o, g, err);
    if (!g->rdzv_backend && !endpoint && o->nodes_max > 1)
        return no_backend(g, err);
    tell_static(g);
    if (!g->rdzv_backend && !endpoint)
        return 0;
    /* torchrun's `--nnodes=1 --rdzv-backend=c10d`, without an endpoint: one node. */
    if (!endpoint && o->nodes_max == 1 && str_eq(g->rdzv_backend, "c10d"))
        return 0;
    if (names_any_port(g))
        return settle_alone(o, g, err);
    int code = named_backend(g->rdzv_backend ? g->rdzv_backend : "embedded", &o->backend, g, err);
    return code ? code : settle_endpoint(o, g, err);
}

static int settle_loss(struct options *o, struct options_given *g, struct err *err) {
    const char *word = g->on_node_loss ? g->on_node_loss : "replace";
    o->standby = g->standby != NULL;
    o->gang = str_eq(word, "gang");
    if (g->legacy && o->standby)
        return err_say(
            err, -EINVAL,
            "--standby: torchelastic's rendezvous (--rdzv-backend etcd) has no place for "
            "it; agents over the maximum of --nnodes wait as spares there");
    if (o->gang || str_eq(word, "replace"))
        return 0;
    return err_say(err, -EINVAL, "--on-node-loss %s: must be replace or gang", word);
}

/* What `python -m torchelastic.distributed.launch` does where nothing is said. */
int options_settle_compat(struct options_given *g, struct err *err) {
    if (!g->compat)
        return 0;
    if (!str_eq(g->compat, "torchelastic"))
        return err_say(err, -EINVAL, "--compat %s: must be torchelastic", g->compat);
    if (!g->max_restarts)
        g->max_restarts = "3";
    if (!g->nproc_per_node && !g->accelerators)
        g->nproc_per_node = "auto";
    if (!g->rdzv_backend && g->rdzv_endpoint && g->rdzv_endpoint[0] && !g->standalone)
        g->rdzv_backend = "etcd";
    return 0;
}

static int settle_count(struct options *o, struct options_given *g, struct err *err) {
    const char *word = g->restart_count ? g->restart_count : g->legacy ? "node" : "job";
    o->restarts_by_node = str_eq(word, "node");
    if (g->legacy && str_eq(word, "job"))
        return err_say(
            err, -EINVAL,
            "--restart-count job: torchelastic's rendezvous (--rdzv-backend etcd) has no "
            "place for it; each agent counts for itself there");
    if (o->restarts_by_node || str_eq(word, "job"))
        return 0;
    return err_say(err, -EINVAL, "--restart-count %s: must be job or node", word);
}

int options_settle_format(struct options *o, struct options_given *g, struct err *err) {
    const char *format = g->log_format ? g->log_format : "text";
    o->log_json = str_eq(format, "json");
    if (o->log_json || str_eq(format, "text"))
        return 0;
    return err_say(err, -EINVAL, "--log-format %s: must be text or json", format);
}

/* One of a few words, NULL-ended. */
static int check_word(const char *name, const char *word, const char *const *words,
                      const char *choices, struct err *err) {
    for (; *words; words++)
        if (str_eq(word, *words))
            return 0;
    return err_say(err, -EINVAL, "--%s %s: must be %s", name, word, choices);
}

/* Torchrun's options that have nothing to do here. A value that torchrun would refuse is refused:
 * the same line is to work under both. */
static int settle_unused(struct options_given *g, struct err *err) {
    static const char *const methods[] = {"spawn", "fork", "forkserver", NULL};
    static const char *const bindings[] = {"node", "socket", "exclusive", "core-complex", NULL};
    char *end = NULL;
    if (g->monitor_interval && (!(strtod(g->monitor_interval, &end) > 0) || *end))
        return err_say(err, -EINVAL, "--monitor-interval %s: must be seconds, above 0",
                       g->monitor_interval);
    int code = g->start_method ? check_word("start-method", g->start_method, methods,
                                            "spawn, fork or forkserver", err)
                               : 0;
    if (!code && g->numa_binding)
        code = check_word("numa-binding", g->numa_binding, bindings,
                          "node, socket, exclusive or core-complex", err);
    if (code)
        return code;
    if (g->logs_specs && !str_eq(g->logs_specs, "default"))
        return err_say(err, -EINVAL,
                       "--logs-specs %s: only default is there; others are Python's entry points",
                       g->logs_specs);
    if (g->monitor_interval)
        options_notice(g, "--monitor-interval has no effect: ends of workers are seen at once");
    if (g->start_method)
        options_notice(g, "--start-method has no effect: workers are programs of their own");
    if (g->numa_binding)
        options_notice(g, "--numa-binding %s has no effect: workers are not bound to cores",
                       g->numa_binding);
    if (g->use_env)
        options_notice(g, "--use-env has no effect: LOCAL_RANK is in the environment anyway");
    if (g->event_log_handler && !str_eq(g->event_log_handler, "null") &&
        !str_eq(g->event_log_handler, "console"))
        options_notice(g,
                       "--event-log-handler %s has no effect: there are console and null, others "
                       "are Python's",
                       g->event_log_handler);
    return 0;
}

static int settle_program(struct options *o, struct options_given *g, struct err *err) {
    int code = settle_unused(g, err);
    if (code)
        return code;
    o->module = g->module != NULL;
    o->no_python = g->no_python != NULL;
    o->run_path = g->run_path != NULL;
    o->virtual_local_rank = g->virtual_local_rank != NULL;
    o->sandbox = g->sandbox != NULL;
    o->event_log = str_eq(g->event_log_handler, "console");
    if (o->run_path && (o->module || o->no_python))
        return err_say(err, -EINVAL, "--run-path goes with neither --module nor --no-python");
    if (o->module && o->no_python)
        return err_say(err, -EINVAL,
                       "Don't use both the '--no-python' flag and the '--module' flag at the same "
                       "time.");
    return 0;
}

/* A run id is part of keys and of file names. Who says nothing of a rendezvous has one alone. */
static int settle_names(struct options *o, struct options_given *g, struct err *err) {
    bool endpoint = g->rdzv_endpoint && g->rdzv_endpoint[0];
    bool alone = o->standalone || (!g->rdzv_backend && !endpoint && !names_static(g));
    o->role = g->role && g->role[0] ? g->role : "default";
    o->local_addr = g->local_addr && g->local_addr[0] ? g->local_addr : NULL;
    o->run_id = g->rdzv_id;
    if (!o->run_id && alone)
        o->run_id = arena_printf(g->arena, "%016" PRIx64, random_u64());
    if (!o->run_id)
        o->run_id = "none";
    if (!o->run_id[0] || strlen(o->run_id) > 200)
        return err_say(err, -EINVAL, "--rdzv-id: must have 1 to 200 characters");
    for (const char *p = o->run_id; *p; p++)
        if (iscntrl((unsigned char)*p) || *p == '/')
            return err_say(err, -EINVAL, "--rdzv-id %s: must not hold '/' or control characters",
                           o->run_id);
    return 0;
}

/* Only where a store is that others can ask. It is reached as the job reaches it; what --rdzv-conf
 * says of the job's own times is taken and changes nothing. */
int options_settle_status(struct options *o, struct options_given *g, struct err *err) {
    const char *format = g->format ? g->format : "text";
    const char *backend = g->rdzv_backend ? g->rdzv_backend : "embedded";
    o->status_json = str_eq(format, "json");
    if (!o->status_json && !str_eq(format, "text"))
        return err_say(err, -EINVAL, "--format %s: must be text or json", format);
    if (!g->rdzv_endpoint || !g->rdzv_endpoint[0])
        return err_say(
            err, -EINVAL,
            "rankrun status needs --rdzv-endpoint=HOST[:PORT], where the job's store is");
    if (str_eq(backend, "static"))
        return err_say(err, -EINVAL,
                       "--rdzv-backend static: its store is an embedded one, at the port after "
                       "--master-port; give that as --rdzv-endpoint, and no backend");
    int code = named_backend(backend, &o->backend, g, err);
    if (!code)
        code = settle_endpoint(o, g, err);
    g->has_store = true;
    if (!code)
        code = options_settle_rdzv(&o->rdzv, g, err);
    if (!code && o->backend == BACKEND_EMBEDDED)
        options_ask_sealed(&o->rdzv.access, g);
    if (!code)
        code = options_settle_format(o, g, err);
    return code ? code : settle_names(o, g, err);
}

/* The etcd of one's own is nobody else's, at an address that only this host has. */
static int settle_rdzv(struct options *o, struct options_given *g, struct err *err) {
    const struct store_access *a = &o->rdzv.access;
    g->has_store = o->backend != BACKEND_IN_PROCESS;
    int code = options_settle_rdzv(&o->rdzv, g, err);
    if (code || !o->own_etcd)
        return code;
    if (a->https || a->user)
        options_notice(g, "--rdzv-conf: the etcd that --standalone starts has neither TLS nor "
                          "users; protocol and user have no effect");
    o->rdzv.access = (struct store_access){0};
    return 0;
}

/* In this order: the later ones go by what the earlier ones have found. */
int options_settle_job(struct options *o, struct options_given *g, struct err *err) {
    static int (*const steps[])(struct options *, struct options_given *, struct err *) = {
        settle_nodes,          settle_workers,
        settle_restarts,       settle_shutdown,
        settle_store,          settle_loss,
        settle_count,          settle_program,
        options_settle_format, settle_names,
        options_settle_output, options_settle_signals,
        settle_rdzv,           options_settle_betrayal,
    };
    int code = 0;
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps) && !code; i++)
        code = steps[i](o, g, err);
    return code;
}
