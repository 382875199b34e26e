#include "agent/event_log.h"

#include "agent/core/rendezvous.h"
#include "agent/options.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct event_log_worker {
    pid_t pid;
    bool failed; /* by itself */
    char error[ERROR_SIZE];
};

struct event_log {
    const struct options *options;
    int64_t began_ns;
    char hostname[256];
    struct event_log_worker *workers; /* of the last round */
    int n;                            /* 0: there was none */
    int group_rank, group_world, rank_base, role_rank_base, role_world, restart_count;
};

struct event_log *event_log_new(const struct options *o, int64_t now_ns) {
    if (!o->event_log)
        return NULL;
    struct event_log *e = mem_new(struct event_log);
    e->options = o;
    e->began_ns = now_ns;
    if (gethostname(e->hostname, sizeof(e->hostname) - 1) < 0)
        e->hostname[0] = '\0';
    return e;
}

struct event_log *event_log_free(struct event_log *e) {
    if (!e)
        return NULL;
    free(e->workers);
    free(e);
    return NULL;
}

void event_log_round(struct event_log *e, const struct round_spec *r) {
    if (!e)
        return;
    free(e->workers);
    e->workers = mem_array(struct event_log_worker, (size_t)r->local_world);
    e->n = r->local_world;
    e->group_rank = r->group_rank;
    e->group_world = r->group_world;
    e->rank_base = r->rank_base;
    e->role_rank_base = r->role_rank_base;
    e->role_world = r->role_world;
    e->restart_count = r->restart_count;
}

void event_log_started(struct event_log *e, int local_rank, pid_t pid) {
    if (e && local_rank < e->n)
        e->workers[local_rank].pid = pid;
}

void event_log_ended(struct event_log *e, int local_rank, int wait_status, const char *error,
                     bool by_itself) {
    if (!e || local_rank >= e->n || wait_status == 0 || !by_itself)
        return;
    e->workers[local_rank].failed = true;
    str_copy(e->workers[local_rank].error, ERROR_SIZE, error);
}

static const char *backend_of(const struct options *o) {
    if (o->node_rank >= 0)
        return "static";
    return o->backend == BACKEND_ETCD_V3       ? "etcd-v3"
           : o->backend == BACKEND_ETCD_LEGACY ? "etcd"
                                               : "embedded";
}

static void put_one(struct json_writer *w, const char *key, int number) {
    json_array(w, key);
    json_put_i64(w, NULL, number);
    json_end_array(w);
}

/* A text of JSON in the JSON, with tuples of one: so torchelastic has it. */
static void put_metadata(struct json_writer *w, const struct event_log *e, int local_rank) {
    BUF_FINI struct buf text = {0};
    struct json_writer inner = {.out = &text};
    json_object(&inner, NULL);
    json_put_known(&inner, "group_world_size", e->n, e->group_world);
    json_put_string(&inner, "entry_point", str_base(e->options->command[0]));
    if (local_rank >= 0) {
        put_one(&inner, "local_rank", local_rank);
        put_one(&inner, "role_rank", e->role_rank_base + local_rank);
        put_one(&inner, "role_world_size", e->role_world);
    }
    json_end_object(&inner);
    json_put_string(w, "metadata", buf_str(&text));
}

static void put_ranks(struct json_writer *w, const struct event_log *e, int local_rank) {
    char pid[16];
    json_put_string(w, "run_id", e->options->run_id);
    json_put_known(w, "global_rank", local_rank >= 0, e->rank_base + local_rank);
    json_put_known(w, "group_rank", e->n, e->group_rank);
    if (local_rank >= 0)
        snprintf(pid, sizeof(pid), "%d", (int)e->workers[local_rank].pid);
    json_put_string(w, "worker_id", local_rank >= 0 ? pid : NULL);
}

/* local_rank -1: the agent's own. raw_error NULL: none. */
static void print(const struct event_log *e, const char *state, int local_rank,
                  const char *raw_error, int64_t run_s) {
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    char name[64];
    snprintf(name, sizeof(name), "torchelastic.worker.status.%s", state);
    json_object(&w, NULL);
    json_put_string(&w, "name", name);
    json_put_string(&w, "source", local_rank >= 0 ? "WORKER" : "AGENT");
    json_put_i64(&w, "timestamp", 0);
    json_object(&w, "metadata");
    put_ranks(&w, e, local_rank);
    json_put_string(&w, "role", e->options->role);
    json_put_string(&w, "hostname", e->hostname);
    json_put_string(&w, "state", state);
    json_put_i64(&w, "total_run_time", run_s);
    json_put_string(&w, "rdzv_backend", backend_of(e->options));
    json_put_string(&w, "raw_error", raw_error);
    put_metadata(&w, e, local_rank);
    json_put_i64(&w, "agent_restarts", e->restart_count);
    json_end_object(&w);
    json_end_object(&w);
    line_put_object(buf_str(&out));
}

static void print_worker(const struct event_log *e, int local_rank, bool succeeded, int64_t run_s) {
    const struct event_log_worker *k = &e->workers[local_rank];
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    json_put_string(&w, "message", k->error[0] ? k->error : "<NONE>");
    json_end_object(&w);
    print(e,
          succeeded   ? "SUCCEEDED"
          : k->failed ? "FAILED"
                      : "TERMINATED",
          local_rank, k->failed ? buf_str(&text) : NULL, run_s);
}

/* Of its workers torchrun tells only when the job came to an end by them. */
void event_log_print(const struct event_log *e, const struct action *exit, int64_t now_ns) {
    if (!e)
        return;
    int code = exit->exit.code;
    int64_t run_s = (now_ns - e->began_ns) / 1000000000;
    for (int i = 0; i < e->n && (code == 0 || code == 1); i++)
        print_worker(e, i, code == 0, run_s);
    print(e, code == 0 ? "SUCCEEDED" : "FAILED", -1, code ? exit->exit.text : NULL, run_s);
}
