#include "tests/agent/core/cluster.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the order of things --- */

int64_t chance_ns(struct cluster *c, int64_t from_ns, int64_t to_ns) {
    return from_ns + (int64_t)rand_below(&c->rand, (uint64_t)(to_ns - from_ns) + 1);
}

bool chance(struct cluster *c, int per_thousand) {
    return rand_below(&c->rand, 1000) < (uint64_t)per_thousand;
}

void cluster_say(struct cluster *c, int node, const char *fmt, ...) {
    va_list ap;
    if (!c->config.trace)
        return;
    printf("%10.3f n%d ", (double)c->now_ns / 1e6, node);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

static bool is_before(const struct occurrence *a, const struct occurrence *b) {
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->seq < b->seq;
}

static void heap_push(struct cluster *c, struct occurrence *o) {
    if (c->n_heap == c->cap_heap) {
        c->cap_heap = c->cap_heap ? c->cap_heap * 2 : 256;
        c->heap = realloc(c->heap, c->cap_heap * sizeof(*c->heap));
    }
    size_t i = c->n_heap++;
    for (; i && is_before(o, c->heap[(i - 1) / 2]); i = (i - 1) / 2)
        c->heap[i] = c->heap[(i - 1) / 2];
    c->heap[i] = o;
}

static struct occurrence *heap_pop(struct cluster *c) {
    struct occurrence *top = c->heap[0], *last = c->heap[--c->n_heap];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < c->n_heap; i = k) {
        if (k + 1 < c->n_heap && is_before(c->heap[k + 1], c->heap[k]))
            k++;
        if (!is_before(c->heap[k], last))
            break;
        c->heap[i] = c->heap[k];
    }
    c->heap[i] = last;
    return top;
}

struct occurrence *plan(struct cluster *c, int64_t at_ns, int node,
                        void (*run)(struct cluster *, struct occurrence *)) {
    struct occurrence *o = calloc(1, sizeof(*o));
    *o = (struct occurrence){
        .at_ns = at_ns < c->now_ns ? c->now_ns : at_ns, .seq = ++c->seq, .run = run, .node = node};
    heap_push(c, o);
    return o;
}

struct occurrence *plan_agent(struct cluster *c, int64_t at_ns, int node,
                              void (*run)(struct cluster *, struct occurrence *)) {
    struct occurrence *o = plan(c, at_ns, node, run);
    o->process = true;
    o->life = c->nodes[node].life;
    return o;
}

void postpone(struct cluster *c, struct occurrence *o, int64_t at_ns) {
    struct occurrence *again = calloc(1, sizeof(*again));
    *again = *o;
    again->at_ns = at_ns;
    o->drop = NULL;
    heap_push(c, again);
}

static void occurrence_free(struct occurrence *o) {
    if (o->drop)
        o->drop(o->payload);
    free(o);
}

/* What is for a stopped process waits for it; what is for an earlier one is nothing. */
static void occurrence_run(struct cluster *c, struct occurrence *o) {
    struct node *n = &c->nodes[o->node];
    if (o->life && (o->life != n->life || !n->core)) {
        occurrence_free(o);
    } else if (o->process && n->stopped_until_ns > c->now_ns) {
        o->at_ns = n->stopped_until_ns;
        heap_push(c, o); /* with its old number: what waits keeps its order */
    } else {
        o->run(c, o);
        occurrence_free(o);
    }
}

struct now node_now(const struct cluster *c, const struct node *n) {
    int64_t local_ns = n->clock_offset_ns + (int64_t)((double)c->now_ns * n->rate);
    return (struct now){local_ns, local_ns + 7777 * MS};
}

int64_t node_to_real(const struct node *n, int64_t boottime_ns) {
    double local_ns = (double)(boottime_ns - 7777 * MS - n->clock_offset_ns);
    return (int64_t)(local_ns / n->rate) + 1000;
}

/* --- agents --- */

static void on_timer(struct cluster *c, struct occurrence *o) {
    if ((uint64_t)o->a == c->nodes[o->node].timer)
        agent_event(c, o->node, &(struct event){.kind = EVENT_TIMER});
}

static void on_port(struct cluster *c, struct occurrence *o) {
    struct event ev = {.kind = EVENT_PORT};
    ev.port.addr = c->nodes[o->node].name;
    ev.port.port = (int)chance_ns(c, 20000, 30000);
    agent_event(c, o->node, &ev);
}

void agent_gone(struct cluster *c, int node) {
    struct node *n = &c->nodes[node];
    if (!n->core)
        return;
    n->core = rendezvous_free(n->core);
    wire_close(c, node);
    machine_agent_gone(c, node);
}

static void on_boot(struct cluster *c, struct occurrence *o);

static void on_exit_done(struct cluster *c, struct occurrence *o) {
    agent_gone(c, o->node);
    if (c->calm_now && c->result->outcome == OUTCOME_NONE)
        plan(c, c->now_ns + 100 * MS, o->node, on_boot); /* a leaver, while the job goes on */
}

static void set_timer(struct cluster *c, int node, int64_t at_ns) {
    struct node *n = &c->nodes[node];
    int64_t real_ns = node_to_real(n, at_ns + 7777 * MS);
    plan_agent(c, real_ns, node, on_timer)->a = (int64_t)++n->timer;
}

static void act(struct cluster *c, int node, const struct action *a) {
    switch (a->kind) {
    case ACTION_SNAPSHOT:
    case ACTION_WATCH:
    case ACTION_UNWATCH:
    case ACTION_TXN:
    case ACTION_LEASE_GRANT:
    case ACTION_LEASE_KEEPALIVE:
    case ACTION_BEAT:
        wire_act(c, node, a);
        break;
    case ACTION_DEADLINE:
        machine_deadline(c, node, a->deadline.fence_ns, a->deadline.hard_ns);
        break;
    case ACTION_START:
        machine_start(c, node, a->start);
        break;
    case ACTION_STOP:
        machine_stop(c, node, a->stop.grace_ms * MS);
        break;
    case ACTION_KILL:
        machine_kill(c, node);
        break;
    case ACTION_NEED_PORT:
        plan_agent(c, c->now_ns + MS / 10, node, on_port);
        break;
    case ACTION_TIMER:
        set_timer(c, node, a->timer.at_ns);
        break;
    case ACTION_CLAIM:
        cluster_say(c, node, "%s %lld", a->claim.what, (long long)a->claim.round);
        break;
    case ACTION_LOG:
        cluster_say(c, node, "%s", a->log);
        break;
    case ACTION_STORE:
        cluster_say(c, node, "the store %s", a->store.text);
        break;
    case ACTION_EXIT:
        cluster_say(c, node, "exit %d %s", a->exit.code, a->exit.text);
        judge_exit(c, node, a->exit.code);
        plan_agent(c, c->now_ns, node, on_exit_done);
        break;
    }
}

void agent_event(struct cluster *c, int node, const struct event *ev) {
    struct node *n = &c->nodes[node];
    size_t count = 0;
    c->result->steps++;
    const struct action *a = rendezvous_step(n->core, ev, node_now(c, n), &count);
    for (size_t i = 0; i < count; i++)
        act(c, node, &a[i]);
}

static void on_boot(struct cluster *c, struct occurrence *o) {
    struct node *n = &c->nodes[o->node];
    struct err err = {0};
    if (n->core || (!n->wanted && !c->calm_now))
        return;
    struct rendezvous_config config = {
        .run_id = "job",
        .node = n->name,
        .addr = n->name,
        .role = "default",
        .slots = 2,
        .min = c->min,
        .max = c->max,
        .max_restarts = c->max_restarts,
        .attempt = "",
        .timing = c->timing,
        .last_call_ns = 300 * MS,
        .admit_ns = 50 * MS,
        .join_timeout_ns = 20000 * MS,
        .stop_timeout_ns = 200 * MS,
        .shutdown_grace_ns = 500 * MS,
        .give_up_ns = 300000 * MS,
    };
    n->life++;
    n->signaled = false;
    n->beat_pending = 0;
    memset(n->pending, 0, sizeof(n->pending));
    n->stopped_until_ns = 0;
    n->core = rendezvous_new(&config, rand_u64(&c->rand), &err);
    if (!n->core) {
        violation(c, "config: %s", err.msg);
        return;
    }
    cluster_say(c, o->node, "the agent starts");
    agent_event(c, o->node, &(struct event){.kind = EVENT_START});
}

/* --- trouble --- */

static void come_back(struct cluster *c, int node) {
    if (chance(c, 600))
        plan(c, c->now_ns + chance_ns(c, MS, 2500 * MS), node, on_boot);
}

static void trouble_crash(struct cluster *c, int node) {
    cluster_say(c, node, "TROUBLE: the agent is killed");
    agent_gone(c, node);
    come_back(c, node);
}

static void trouble_power(struct cluster *c, int node) {
    cluster_say(c, node, "TROUBLE: the node is powered off");
    agent_gone(c, node);
    machine_power_off(c, node);
    come_back(c, node);
}

static void trouble_stop(struct cluster *c, int node) {
    struct node *n = &c->nodes[node];
    int64_t until_ns = c->now_ns + chance_ns(c, MS, 2500 * MS);
    bool guard = c->frozen || chance(c, 500);
    cluster_say(c, node, "TROUBLE: the agent%s stopped for %lld ms",
                guard ? " and its guard are" : " is", (long long)((until_ns - c->now_ns) / MS));
    if (until_ns > n->stopped_until_ns)
        n->stopped_until_ns = until_ns;
    if (guard && until_ns > n->guard_stopped_until_ns)
        n->guard_stopped_until_ns = until_ns;
}

static void trouble_cut(struct cluster *c, int node) {
    struct node *n = &c->nodes[node];
    n->cut_until_ns = c->now_ns + chance_ns(c, MS, 2000 * MS);
    cluster_say(c, node, "TROUBLE: the node is cut off for %lld ms",
                (long long)((n->cut_until_ns - c->now_ns) / MS));
}

static void trouble_signal(struct cluster *c, int node) {
    struct event ev = {.kind = EVENT_SIGNAL};
    struct node *n = &c->nodes[node];
    if (!n->core || n->stopped_until_ns > c->now_ns)
        return;
    cluster_say(c, node, "TROUBLE: SIGTERM to the agent");
    n->signaled = true;
    ev.signal.signo = 15;
    agent_event(c, node, &ev);
    come_back(c, node);
}

static void trouble_stream(struct cluster *c, int node) {
    stream_break(c, node, (enum watch_slot)rand_below(&c->rand, WATCH_SLOTS));
}

/* All at once: the store's own outage, a switch that reboots. */
static void trouble_outage(struct cluster *c, int node) {
    int64_t until_ns = c->now_ns + chance_ns(c, MS, 1500 * MS);
    cluster_say(c, node, "TROUBLE: nobody reaches the store for %lld ms",
                (long long)((until_ns - c->now_ns) / MS));
    for (int i = 0; i < c->n_nodes; i++)
        c->nodes[i].cut_until_ns = until_ns;
}

static void on_trouble(struct cluster *c, struct occurrence *o) {
    static void (*const kinds[])(struct cluster *, int) = {
        trouble_crash,  trouble_power,  trouble_stop,       trouble_stop,
        trouble_cut,    trouble_cut,    trouble_signal,     machine_fail_worker,
        trouble_stream, trouble_outage, machine_fail_worker};
    if (!c->calm_now && c->frozen)
        trouble_stop(c, o->node);
    else if (!c->calm_now)
        kinds[rand_below(&c->rand, sizeof(kinds) / sizeof(*kinds))](c, o->node);
}

/* Everything heals (who is stopped wakes within 2.5 s); agents that are not there come back, so
 * that min can be reached. */
static void on_calm(struct cluster *c, struct occurrence *o) {
    cluster_say(c, o->node, "CALM");
    c->calm_now = true;
    for (int i = 0; i < c->n_nodes; i++) {
        struct node *n = &c->nodes[i];
        n->cut_until_ns = 0;
        if (!n->core)
            plan(c, c->now_ns + chance_ns(c, MS, 500 * MS), i, on_boot);
    }
}

/* --- a run --- */

static void cluster_init(struct cluster *c) {
    c->now_ns = 1000 * MS;
    rand_init(&c->rand, c->config.seed);
    c->kv = kv_new(c->config.seed, 0);
    int given = c->config.nodes;
    c->n_nodes = given ? given : (int)chance_ns(c, 1, NODES_USUAL);
    c->max = given ? given : (int)chance_ns(c, 1, c->n_nodes);
    c->min = given ? (c->config.calm ? given : given / 2) : (int)chance_ns(c, 1, c->max);
    c->max_restarts = (int)chance_ns(c, 0, 3);
    c->loss = chance(c, 500) ? (int)chance_ns(c, 0, 50) : 0;
    c->late = chance(c, 500) ? (int)chance_ns(c, 0, 30) : 0;
    c->slow_ns = chance(c, 200) ? 120 * MS : 3 * MS;
    c->frozen = c->config.frozen || chance(c, 50);
    c->slow_reply_ns = c->frozen || chance(c, 50) ? 140 * MS : 1;
    timing_profile("fast", &c->timing);
    c->trouble_ends_ns = c->now_ns + chance_ns(c, 500 * MS, 4000 * MS);
    for (int i = 0; i < c->n_nodes; i++) {
        struct node *n = &c->nodes[i];
        snprintf(n->name, sizeof(n->name), "n%d", i);
        n->wanted = true;
        n->rate = 0.991 + (double)chance_ns(c, 0, 1800) / 100000.0;
        n->clock_offset_ns = chance_ns(c, 0, 100000 * MS);
        int64_t late_ns = chance(c, 250) ? 3000 * MS : 100 * MS;
        plan(c, c->now_ns + chance_ns(c, 0, late_ns), i, on_boot);
    }
}

static void trouble_init(struct cluster *c) {
    int n = c->config.calm ? 0 : (int)chance_ns(c, 0, 10);
    if (c->config.calm) {
        c->calm_now = true;
        return;
    }
    for (int i = 0; i < n; i++)
        plan(c, chance_ns(c, c->now_ns + 100 * MS, c->trouble_ends_ns),
             (int)rand_below(&c->rand, (uint64_t)c->n_nodes), on_trouble);
    plan(c, c->trouble_ends_ns, 0, on_calm);
}

static bool is_over(const struct cluster *c) {
    if (c->result->outcome == OUTCOME_NONE || !c->calm_now)
        return false;
    for (int i = 0; i < c->n_nodes; i++)
        if (c->nodes[i].core || c->nodes[i].group.alive)
            return false;
    return true;
}

static void cluster_fini(struct cluster *c) {
    while (c->n_heap)
        occurrence_free(heap_pop(c));
    free(c->heap);
    for (int i = 0; i < c->n_nodes; i++) {
        rendezvous_free(c->nodes[i].core);
        wire_close(c, i);
    }
    kv_free(c->kv);
}

/* I5: after the trouble, an end within a minute. */
void cluster_run(const struct cluster_config *config, struct cluster_result *ret) {
    struct cluster *c = calloc(1, sizeof(*c));
    *ret = (struct cluster_result){0};
    c->config = *config;
    c->result = ret;
    cluster_init(c);
    trouble_init(c);
    while (c->n_heap && !ret->violated && !is_over(c)) {
        struct occurrence *o = heap_pop(c);
        c->now_ns = o->at_ns;
        occurrence_run(c, o);
        if (c->now_ns > c->trouble_ends_ns + 60000 * MS)
            violation(c, "I5: no end %d s after the last trouble", 60);
    }
    if (!ret->violated && !is_over(c))
        violation(c, "I5: nothing is left to happen, and the job has not ended");
    ret->ended_ns = c->now_ns;
    cluster_fini(c);
    free(c);
}
