#include "harness/sim/chronicle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const int64_t offset_ns = 1000 * SIM_MS;

struct json_writer *chronicle_record(struct sim *c, int64_t at_ns, enum source source,
                                     const char *kind, int node, int64_t pid) {
    struct json_writer *w = history_begin(c->chronicle->history, offset_ns + at_ns, source, kind);
    if (node >= 0)
        json_put_string(w, "node", c->nodes[node].name);
    if (pid)
        json_put_i64(w, "pid", pid);
    return w;
}

static struct json_writer *record(struct sim *c, enum source source, const char *kind, int node,
                                  int64_t pid) {
    return chronicle_record(c, c->now_ns, source, kind, node, pid);
}

static void end(struct sim *c) {
    history_end(c->chronicle->history);
}

/* --- the run --- */

struct chronicle *chronicle_new(struct sim *c, struct history *h) {
    struct chronicle *k = calloc(1, sizeof(*k));
    char name[40];
    if (!h || !k)
        return chronicle_free(k);
    k->history = h;
    k->last_pid = 1000;
    k->faults = calloc((size_t)c->schedule->n_entries + 1, sizeof(*k->faults));
    k->nodes = calloc((size_t)c->schedule->agents, sizeof(*k->nodes));
    if (!k->faults || !k->nodes)
        abort(); /* out of memory */
    c->chronicle = k;
    snprintf(name, sizeof(name), "seed-%llu", (unsigned long long)c->schedule->seed);
    struct json_writer *w = record(c, SOURCE_HARNESS, "run", -1, 0);
    json_put_i64(w, "v", 1);
    json_put_string(w, "scenario", name);
    json_put_i64(w, "seed", (int64_t)c->schedule->seed);
    json_put_string(w, "version", RANKQUAKE_VERSION);
    json_put_string(w, "launcher", "rankrun");
    json_put_bool(w, "control", false);
    json_put_string(w, "kernel", "simulated");
    json_put_string(w, "isolation", "namespaces");
    json_put_string(w, "exits", "pidfd");
    if (c->schedule->seated)
        json_put_bool(w, "fixed_ranks", true);
    end(c);
    return k;
}

struct chronicle *chronicle_free(struct chronicle *k) {
    if (!k)
        return NULL;
    free(k->faults);
    free(k->nodes);
    free(k);
    return NULL;
}

void chronicle_end(struct sim *c, bool over) {
    if (!c->chronicle)
        return;
    chronicle_heal(c, true);
    if (!over) {
        struct json_writer *w = record(c, SOURCE_HARNESS, "limit", -1, 0);
        json_put_string(w, "name", "total");
        json_put_i64(w, "ns", c->now_ns);
        end(c);
    }
    json_put_string(record(c, SOURCE_HARNESS, "job-end", -1, 0), "why", over ? "ended" : "limit");
    end(c);
    for (int i = 0; i < c->n_nodes; i++) {
        if (!c->chronicle->nodes[i].up)
            continue;
        json_put_string(record(c, SOURCE_HARNESS, "node-down", i, 0), "why", "end");
        end(c);
    }
    struct json_writer *w = record(c, SOURCE_HARNESS, "health", -1, 0);
    json_array(w, "left");
    json_end_array(w);
    json_put_bool(w, "complete", true);
    end(c);
}

/* --- agents --- */

/* Counted when the node's guard has done its work: the harness waits for that, too. */
static void count_leftovers(struct sim *c, int node) {
    static const char *const kinds[] = {"processes", "ports", "shm", "cgroups"};
    struct chronicle_node *n = &c->chronicle->nodes[node];
    if (!n->owes_count || !n->up || n->agent || n->workers[0] || n->workers[1])
        return;
    n->owes_count = false;
    struct json_writer *w = record(c, SOURCE_KERNEL, "leftovers", node, 0);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        json_array(w, kinds[i]);
        json_end_array(w);
    }
    end(c);
}

void chronicle_agent_start(struct sim *c, int node) {
    if (!c->chronicle)
        return;
    struct chronicle_node *n = &c->chronicle->nodes[node];
    chronicle_heal(c, false);
    if (!n->up) {
        json_put_string(record(c, SOURCE_HARNESS, "node-up", node, 0), "addr", c->nodes[node].name);
        end(c);
    }
    if (c->nodes[node].shown.life > 1 || c->nodes[node].late)
        chronicle_joined(c, node);
    n->up = true;
    n->owes_count = false;
    n->agent = n->last_agent = ++c->chronicle->last_pid;
    record(c, SOURCE_KERNEL, "agent-start", node, n->agent);
    end(c);
}

void chronicle_agent_end(struct sim *c, int node, int code, int by_signal) {
    if (!c->chronicle || !c->chronicle->nodes[node].agent)
        return;
    struct chronicle_node *n = &c->chronicle->nodes[node];
    chronicle_heal(c, false);
    struct json_writer *w = record(c, SOURCE_KERNEL, "agent-exit", node, n->agent);
    json_put_i64(w, by_signal ? "signal" : "code", by_signal ? by_signal : code);
    end(c);
    if (by_signal)
        n->killed_ns = c->now_ns;
    else if (c->nodes[node].shown.group.reaped_ns > c->now_ns)
        chronicle_gave_up(c, node);
    n->agent = 0;
    n->owes_count = true;
    chronicle_agent_felt(c, node);
    count_leftovers(c, node);
}

void chronicle_switched_off(struct sim *c, int node) {
    if (!c->chronicle)
        return;
    json_put_string(record(c, SOURCE_HARNESS, "node-down", node, 0), "why", "off");
    end(c);
    c->chronicle->nodes[node].up = false;
}

void chronicle_claim(struct sim *c, int node, const char *what, int64_t round) {
    if (!c->chronicle)
        return;
    struct json_writer *w =
        record(c, SOURCE_LAUNCHER, "launcher", node, c->chronicle->nodes[node].agent);
    json_put_string(w, "what", what);
    json_put_i64(w, "round", round);
    end(c);
}

/* --- workers --- */

static void put_number(struct json_writer *w, const char *name, int64_t v) {
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)v);
    json_put_string(w, name, text);
}

/* As agent/workers/env.c makes it of the same values. */
static void put_environment(struct json_writer *w, const struct round_spec *s, int local_rank) {
    json_object(w, "env");
    put_number(w, "LOCAL_RANK", local_rank);
    put_number(w, "RANK", s->rank_base + local_rank);
    put_number(w, "GROUP_RANK", s->group_rank);
    put_number(w, "ROLE_RANK", s->role_rank_base + local_rank);
    json_put_string(w, "ROLE_NAME", s->role);
    put_number(w, "LOCAL_WORLD_SIZE", s->local_world);
    put_number(w, "WORLD_SIZE", s->world);
    put_number(w, "GROUP_WORLD_SIZE", s->group_world);
    put_number(w, "ROLE_WORLD_SIZE", s->role_world);
    json_put_string(w, "MASTER_ADDR", s->master_addr);
    put_number(w, "MASTER_PORT", s->master_port);
    put_number(w, "TORCHELASTIC_RESTART_COUNT", s->restart_count);
    put_number(w, "TORCHELASTIC_MAX_RESTARTS", s->max_restarts);
    json_put_string(w, "TORCHELASTIC_RUN_ID", s->run_id);
    put_number(w, "RANKRUN_ROUND", s->round);
    json_end_object(w);
}

void chronicle_workers_start(struct sim *c, int node, const struct round_spec *s) {
    if (!c->chronicle)
        return;
    struct chronicle_node *n = &c->chronicle->nodes[node];
    for (int i = 0; i < SIM_WORKERS; i++) {
        n->workers[i] = ++c->chronicle->last_pid;
        struct json_writer *w = record(c, SOURCE_PROBE, "worker-start", node, n->workers[i]);
        json_put_string(w, "argv0", "simulated");
        put_environment(w, s, i);
        end(c);
        record(c, SOURCE_PROBE, "worker-exec", node, n->workers[i]);
        end(c);
    }
    n->last_worker = n->workers[0];
}

void chronicle_worker_end(struct sim *c, int node, int local_rank, int wait_status) {
    if (!c->chronicle || !c->chronicle->nodes[node].workers[local_rank])
        return;
    struct chronicle_node *n = &c->chronicle->nodes[node];
    struct json_writer *w = record(c, SOURCE_KERNEL, "worker-exit", node, n->workers[local_rank]);
    if (WIFSIGNALED(wait_status))
        json_put_i64(w, "signal", WTERMSIG(wait_status));
    else
        json_put_i64(w, "code", WEXITSTATUS(wait_status));
    end(c);
    n->workers[local_rank] = 0;
}

void chronicle_workers_end(struct sim *c, int node, int wait_status) {
    if (!c->chronicle)
        return;
    for (int i = 0; i < SIM_WORKERS; i++)
        chronicle_worker_end(c, node, i, wait_status);
    count_leftovers(c, node);
}
