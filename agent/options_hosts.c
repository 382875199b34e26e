/* Settles -H: which hosts are meant, what cannot stand beside it, and what each agent is told. */
#include "agent/options_given.h"
#include "agent/store/token.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/random.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTFILE_MAX = 1 << 20, ADDED_MAX = 8, PORT_FIRST = 10000, PORT_LAST = 32000 };

static int read_hosts(struct options *o, struct options_given *g, struct err *err) {
    BUF_FINI struct buf text = {0};
    int code;
    if (g->hosts && g->hostfile)
        return err_say(err, -EINVAL, "--hosts and --hostfile: give one of them");
    if (g->hosts) {
        code = hosts_parse_list(g->hosts, g->arena, &o->hosts, err);
        return code ? err_wrap(err, "--hosts: "), code : 0;
    }
    code = file_read(g->hostfile, HOSTFILE_MAX, &text, err);
    if (!code)
        code = hosts_parse_file(text.data, text.len, g->hostfile, g->arena, &o->hosts, err);
    return code ? err_wrap(err, "--hostfile: "), code : 0;
}

/* What one command for all hosts says already. */
static int check_rest(const struct options_given *g, struct err *err) {
    if (g->standalone)
        return err_say(err, -EINVAL, "--standalone is one node; leave it out with --hosts");
    if (g->node_rank)
        return err_say(err, -EINVAL, "--node-rank: with --hosts it is the place in the list");
    return 0;
}

static const char *name_of(const struct host *h) {
    const char *at = strchr(h->name, '@');
    return at ? at + 1 : h->name;
}

/* The store is this job's alone, so nobody else needs its token. One that was said goes first: the
 * agents find it in their environment or on their command line. */
static void draw_token(struct options *o, struct options_given *g) {
    char token[TOKEN_DRAWN];
    const char *said = getenv(OPTIONS_TOKEN_VARIABLE);
    if (said && said[0])
        return;
    token_draw(token);
    o->host_token = arena_printf(g->arena, "%s=%s", OPTIONS_TOKEN_VARIABLE, token);
}

/* The agents meet where the list begins: the port is drawn, so that two jobs do not meet. */
static void choose_store(struct options *o, struct options_given *g) {
    const char *first = name_of(&o->hosts.list[0]);
    uint64_t port = PORT_FIRST + random_u64() % (PORT_LAST - PORT_FIRST);
    if (!g->rdzv_id)
        g->rdzv_id = arena_printf(g->arena, "%016" PRIx64, random_u64());
    if (str_eq(g->rdzv_backend, "static")) {
        if (!g->master_addr)
            g->master_addr = first;
        draw_token(o, g);
        return;
    }
    if (g->rdzv_endpoint && g->rdzv_endpoint[0])
        return;
    g->rdzv_endpoint =
        arena_printf(g->arena, strchr(first, ':') ? "[%s]:%" PRIu64 : "%s:%" PRIu64, first, port);
    if (!g->rdzv_backend)
        g->rdzv_backend = "embedded";
    if (str_eq(g->rdzv_backend, "embedded") || str_eq(g->rdzv_backend, "c10d"))
        draw_token(o, g);
}

static const char *pair(struct options_given *g, const char *name, const char *value) {
    return arena_printf(g->arena, "--%s=%s", name, value);
}

static const char *const *agent_argv(struct options *o, struct options_given *g, size_t i) {
    size_t words = 0, n = 0;
    const struct host *h = &o->hosts.list[i];
    while (g->rest[words])
        words++;
    const char **argv =
        arena_array(g->arena, const char *, (size_t)g->passed_n + words + ADDED_MAX + 3);
    argv[n++] = "rankrun";
    for (int k = 0; k < g->passed_n; k++)
        argv[n++] = g->passed[k];
    argv[n++] = pair(g, "nnodes", g->nnodes);
    argv[n++] = pair(g, "rdzv-id", g->rdzv_id);
    if (g->rdzv_backend) /* else it follows from the endpoint there as it would here */
        argv[n++] = pair(g, "rdzv-backend", g->rdzv_backend);
    if (str_eq(g->rdzv_backend, "static")) {
        argv[n++] = pair(g, "master-addr", g->master_addr);
        argv[n++] = arena_printf(g->arena, "--node-rank=%zu", i);
    } else {
        argv[n++] = pair(g, "rdzv-endpoint", g->rdzv_endpoint);
    }
    if (h->slots)
        argv[n++] = arena_printf(g->arena, "--nproc-per-node=%d", h->slots);
    else if (g->accelerators)
        argv[n++] = pair(g, "nproc-per-node", g->accelerators);
    argv[n++] = "--";
    memcpy(argv + n, g->rest, words * sizeof(*argv));
    argv[n + words] = NULL;
    return argv;
}

static int check_accelerators(const struct options_given *g, struct err *err) {
    int64_t n;
    if (g->accelerators && !str_to_i64(g->accelerators, 1, WORKERS_MAX, &n))
        return err_say(err, -EINVAL, "--accelerators %s: must be 1 to %d", g->accelerators,
                       WORKERS_MAX);
    return 0;
}

int options_settle_here(struct options_given *g, struct err *err) {
    int code = check_accelerators(g, err);
    if (code || !g->accelerators)
        return code;
    if (g->nproc_per_node)
        return err_say(err, -EINVAL, "--accelerators and --nproc-per-node: give one of them");
    g->nproc_per_node = g->accelerators;
    return 0;
}

/* The words of PROGRAM, as they stand, for each host. */
static int settle_everywhere(struct options *o, struct options_given *g, struct err *err) {
    const char *const **argv = arena_array(g->arena, const char *const *, o->hosts.n);
    if (g->passed_n)
        return err_say(err, -EINVAL, "%s: with --everywhere no job is started that it could be for",
                       g->passed[0]);
    for (size_t i = 0; i < o->hosts.n; i++)
        argv[i] = (const char *const *)(void *)g->rest;
    o->host_argv = argv;
    o->everywhere = true;
    return 0;
}

/* What this machine has says nothing of the others. */
static void forget_local(struct options_given *g) {
    int64_t n;
    if (g->accelerators)
        g->nproc_per_node = g->accelerators;
    else if (g->nproc_per_node && !str_to_i64(g->nproc_per_node, INT64_MIN, INT64_MAX, &n))
        g->nproc_per_node = NULL;
}

int options_settle_hosts(struct options *o, struct options_given *g, struct err *err) {
    int code = check_rest(g, err);
    if (!code)
        code = check_accelerators(g, err);
    if (!code)
        code = read_hosts(o, g, err);
    if (code)
        return code;
    o->verb = OPTIONS_HOSTS;
    o->ssh = g->ssh && g->ssh[0] ? g->ssh : NULL;
    if (g->everywhere)
        return settle_everywhere(o, g, err);
    if (!g->nnodes)
        g->nnodes = arena_printf(g->arena, "%zu", o->hosts.n);
    choose_store(o, g);
    const char *const **argv = arena_array(g->arena, const char *const *, o->hosts.n);
    for (size_t i = 0; i < o->hosts.n; i++)
        argv[i] = agent_argv(o, g, i);
    o->host_argv = argv;
    forget_local(g);
    return 0;
}
