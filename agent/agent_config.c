#include "agent/agent_config.h"

#include "agent/host_name.h"

#include "agent/options.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/line.h"
#include "base/sys/tcp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MS 1000000LL
#define S  1000000000LL

static int64_t ns_or(int64_t ms, int64_t absent_ns) {
    return ms < 0 ? absent_ns : ms * MS;
}

static int64_t join_timeout_ns(const struct options *o) {
    return ns_or(o->rdzv.join_timeout_ms, 600 * S);
}

/* Alone with its store an agent has nobody who would miss it: its beats only keep the lease of its
 * own session, and a thousand such agents are to sleep. */
static void beat_seldom(struct timing *t) {
    enum { TIMES = 10 };
    t->hb_ns *= TIMES;
    t->fence_ns *= TIMES;
    t->hard_ns *= TIMES;
    t->suspect_ns *= TIMES;
}

static bool any_given(const struct options_rdzv *z) {
    return z->hb_ms >= 0 || z->fence_ms >= 0 || z->hard_ms >= 0 || z->suspect_ms >= 0;
}

static int read_timing(const struct options *o, struct timing *ret, struct err *err) {
    const struct options_rdzv *z = &o->rdzv;
    enum timing_store store = o->backend == BACKEND_ETCD_V3 ? TIMING_ETCD : TIMING_EMBEDDED;
    struct timing t;
    if (!timing_profile(z->profile, &t))
        return err_say(err, -EINVAL, "--rdzv-conf: profile=%s is neither fast nor default",
                       z->profile);
    if (o->backend == BACKEND_IN_PROCESS && !any_given(z))
        beat_seldom(&t);
    t.hb_ns = ns_or(z->hb_ms, t.hb_ns);
    t.fence_ns = ns_or(z->fence_ms, t.fence_ns);
    t.hard_ns = ns_or(z->hard_ms, t.hard_ns);
    t.suspect_ns = ns_or(z->suspect_ms, t.suspect_ns);
    timing_stretch(&t, o->nodes_max, store);
    if (timing_check(&t, err) < 0)
        return err_wrap(err, "--rdzv-conf: ");
    *ret = t;
    return 0;
}

/* Where the other nodes reach this one. Alone on its machine a job needs no network at all. Where
 * the store's name is this host's and hides behind loopback here, it is the name that others know.
 */
static int find_address(const struct options *o, struct arena *a, const char **ret,
                        struct err *err) {
    char addr[TCP_HOST_MAX] = "127.0.0.1";
    struct tcp_endpoint e = {.port = (uint16_t)o->endpoint_port};
    *ret = o->local_addr;
    if (o->local_addr)
        return 0;
    if (o->backend != BACKEND_IN_PROCESS) {
        str_copy(e.host, sizeof(e.host), o->endpoint_host);
        if (tcp_address_towards(&e, addr, err) < 0)
            return err_wrap(err, "own address (give it by --local-addr): ");
        if (tcp_number_is_loopback(addr) && o->nodes_max > 1 && tcp_name_is_hidden(e.host))
            str_copy(addr, sizeof(addr), e.host);
    }
    *ret = arena_strdup(a, addr);
    return 0;
}

/* A node is its disk: its host, unless several agents of one host were given addresses. */
static const char *find_node(const struct options *o, struct arena *a) {
    char host[NAME_SIZE] = "";
    if (o->local_addr)
        return o->local_addr;
    if (gethostname(host, sizeof(host) - 1) < 0 || !host[0])
        return "localhost";
    return arena_strdup(a, host);
}

int agent_config_make(const struct options *o, struct arena *a, struct rendezvous_config *ret,
                      struct err *err) {
    bool fast = strcmp(o->rdzv.profile, "fast") == 0;
    struct rendezvous_config c = {
        .run_id = o->run_id,
        .node = find_node(o, a),
        .role = o->role,
        .slots = o->workers_per_node,
        .seat = o->node_rank + 1,
        .min = o->nodes_min,
        .max = o->nodes_max,
        .max_restarts = o->max_restarts,
        .max_free_rounds = o->rdzv.max_free_rounds,
        .restart_mode = o->restarts_by_node ? RESTART_COUNT_NODE : RESTART_COUNT_JOB,
        .attempt = o->rdzv.attempt ? o->rdzv.attempt : "",
        .last_call_ns = ns_or(o->rdzv.last_call_timeout_ms, fast ? 2 * S : 30 * S),
        .admit_ns = ns_or(o->rdzv.admit_ms, fast ? 50 * MS : S),
        .join_timeout_ns = join_timeout_ns(o),
        .stop_timeout_ns = ns_or(o->rdzv.stop_timeout_ms, 2 * S),
        .give_up_ns = ns_or(o->rdzv.give_up_ms, 300 * S),
        .shutdown_grace_ns = o->shutdown_timeout_ms * MS,
        .want = o->standby ? WANT_STANDBY : WANT_MEMBER,
        .on_node_loss = o->gang ? NODE_LOSS_GANG : NODE_LOSS_REPLACE,
    };
    int rc = read_timing(o, &c.timing, err);
    if (rc == 0)
        rc = find_address(o, a, &c.addr, err);
    if (rc == 0 && o->backend == BACKEND_ETCD_LEGACY && !o->local_addr)
        c.host = host_name_find(c.addr, a);
    if (rc == 0)
        *ret = c;
    return rc;
}

/* ---- an endpoint that is not there yet ---- */

struct await {
    struct loop *loop;
    struct loop_source *timer;
    const struct options *options;
    struct arena *arena;
    struct rendezvous_config config;
    int64_t until_ns;
    bool told;
    int rc;
    struct err err;
};

bool agent_config_may_come(int rc) {
    return rc == -EHOSTUNREACH || rc == -ENETUNREACH;
}

/* Nobody tells when a name comes to be known: it is asked for again at every turn of the timer. */
static void await_try(void *arg, int64_t now_ns) {
    struct await *w = arg;
    const struct options *o = w->options;
    w->rc = agent_config_make(o, w->arena, &w->config, &w->err);
    if (!agent_config_may_come(w->rc) || now_ns >= w->until_ns) {
        loop_stop(w->loop);
        return;
    }
    if (!w->told)
        line_say(LINE_WARNING, "wait", "%s; trying for up to %lld s (--rdzv-conf join_timeout=...)",
                 w->err.msg, (long long)(join_timeout_ns(o) / S));
    w->told = true;
    loop_timer_at(w->timer, now_ns + 500 * MS);
}

int agent_config_await(struct loop *l, const struct options *o, struct arena *a,
                       struct rendezvous_config *ret, struct err *err) {
    int rc = agent_config_make(o, a, ret, err);
    if (!agent_config_may_come(rc))
        return rc;
    struct await w = {.loop = l, .options = o, .arena = a};
    int64_t now_ns = clock_monotonic_ns();
    w.until_ns = now_ns + join_timeout_ns(o);
    w.timer = loop_timer(l, await_try, &w);
    loop_timer_at(w.timer, now_ns);
    rc = loop_run(l, err);
    loop_source_free(w.timer);
    if (rc < 0)
        return rc;
    if (w.rc < 0)
        *err = w.err;
    else
        *ret = w.config, *err = (struct err){0};
    return w.rc;
}
