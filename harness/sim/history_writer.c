#include "harness/sim/history_writer.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const int64_t offset_ns = 1000 * SIM_MS;

struct json_writer *history_writer_record(struct sim *c, int64_t at_ns, enum source source,
                                          const char *kind, int node, int64_t pid) {
    struct json_writer *w =
        history_begin(c->history_writer->history, offset_ns + at_ns, source, kind);
    if (node >= 0)
        json_put_string(w, "node", c->nodes[node].name);
    if (pid)
        json_put_i64(w, "pid", pid);
    return w;
}

static struct json_writer *record(struct sim *c, enum source source, const char *kind, int node,
                                  int64_t pid) {
    return history_writer_record(c, c->now_ns, source, kind, node, pid);
}

static void end(struct sim *c) {
    history_end(c->history_writer->history);
}

/* --- the run --- */

struct history_writer *history_writer_new(struct sim *c, struct history *h) {
    if (!h)
        return NULL;
    struct history_writer *k = mem_new(struct history_writer);
    char name[40];
    k->history = h;
    k->last_pid = 1000;
    k->faults = mem_array(struct history_writer_fault, (size_t)c->schedule->n_entries + 1);
    k->nodes = mem_array(struct history_writer_node, (size_t)c->schedule->agents);
    c->history_writer = k;
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

struct history_writer *history_writer_free(struct history_writer *k) {
    if (!k)
        return NULL;
    free(k->faults);
    free(k->nodes);
    free(k);
    return NULL;
}

void history_writer_end(struct sim *c, bool over) {
    if (!c->history_writer)
        return;
    history_writer_heal(c, true);
    if (!over) {
        struct json_writer *w = record(c, SOURCE_HARNESS, "limit", -1, 0);
        json_put_string(w, "name", "total");
        json_put_i64(w, "ns", c->now_ns);
        end(c);
    }
    json_put_string(record(c, SOURCE_HARNESS, "job-end", -1, 0), "why", over ? "ended" : "limit");
    end(c);
    for (int i = 0; i < c->n_nodes; i++) {
        if (!c->history_writer->nodes[i].up)
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
    struct history_writer_node *n = &c->history_writer->nodes[node];
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

void history_writer_agent_start(struct sim *c, int node) {
    if (!c->history_writer)
        return;
    struct history_writer_node *n = &c->history_writer->nodes[node];
    history_writer_heal(c, false);
    if (!n->up) {
        json_put_string(record(c, SOURCE_HARNESS, "node-up", node, 0), "addr", c->nodes[node].name);
        end(c);
    }
    if (c->nodes[node].shown.life > 1 || c->nodes[node].late)
        history_writer_joined(c, node);
    n->up = true;
    n->owes_count = false;
    n->agent = n->last_agent = ++c->history_writer->last_pid;
    record(c, SOURCE_KERNEL, "agent-start", node, n->agent);
    end(c);
}

void history_writer_agent_end(struct sim *c, int node, int code, int by_signal) {
    if (!c->history_writer || !c->history_writer->nodes[node].agent)
        return;
    struct history_writer_node *n = &c->history_writer->nodes[node];
    history_writer_heal(c, false);
    struct json_writer *w = record(c, SOURCE_KERNEL, "agent-exit", node, n->agent);
    json_put_i64(w, by_signal ? "signal" : "code", by_signal ? by_signal : code);
    end(c);
    if (by_signal)
        n->killed_ns = c->now_ns;
    else if (c->nodes[node].shown.group.reaped_ns > c->now_ns)
        history_writer_gave_up(c, node);
    n->agent = 0;
    n->owes_count = true;
    history_writer_agent_felt(c, node);
    count_leftovers(c, node);
}

void history_writer_switched_off(struct sim *c, int node) {
    if (!c->history_writer)
        return;
    json_put_string(record(c, SOURCE_HARNESS, "node-down", node, 0), "why", "off");
    end(c);
    c->history_writer->nodes[node].up = false;
}

void history_writer_claim(struct sim *c, int node, const char *what, int64_t round) {
    if (!c->history_writer)
        return;
    struct json_writer *w =
        record(c, SOURCE_LAUNCHER, "launcher", node, c->history_writer->nodes[node].agent);
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

void history_writer_workers_start(struct sim *c, int node, const struct round_spec *s) {
    if (!c->history_writer)
        return;
    struct history_writer_node *n = &c->history_writer->nodes[node];
    for (int i = 0; i < SIM_WORKERS; i++) {
        n->workers[i] = ++c->history_writer->last_pid;
        struct json_writer *w = record(c, SOURCE_PROBE, "worker-start", node, n->workers[i]);
        json_put_string(w, "argv0", "simulated");
        put_environment(w, s, i);
        end(c);
        record(c, SOURCE_PROBE, "worker-exec", node, n->workers[i]);
        end(c);
    }
    n->last_worker = n->workers[0];
}

void history_writer_worker_end(struct sim *c, int node, int local_rank, int wait_status) {
    if (!c->history_writer || !c->history_writer->nodes[node].workers[local_rank])
        return;
    struct history_writer_node *n = &c->history_writer->nodes[node];
    struct json_writer *w = record(c, SOURCE_KERNEL, "worker-exit", node, n->workers[local_rank]);
    if (WIFSIGNALED(wait_status))
        json_put_i64(w, "signal", WTERMSIG(wait_status));
    else
        json_put_i64(w, "code", WEXITSTATUS(wait_status));
    end(c);
    n->workers[local_rank] = 0;
}

void history_writer_workers_end(struct sim *c, int node, int wait_status) {
    if (!c->history_writer)
        return;
    for (int i = 0; i < SIM_WORKERS; i++)
        history_writer_worker_end(c, node, i, wait_status);
    count_leftovers(c, node);
}
