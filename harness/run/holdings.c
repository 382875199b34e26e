/* What launcher, store and workers hold in each round, and workers within it, too. What piles up is told by the check drift. */
#include "harness/run/engine.h"

#include "harness/observe/held.h"

struct holdings {
    int complete, stepped; /* the newest rounds that were looked at when they were so */
    int64_t first, next; /* steps of the newest round: the first, and when it is looked at again */
};

/* Beyond that the reading itself would make the harness late. */
enum { NODES_MAX = 64, WORKERS_MAX = 64, WORKERS_AGAIN = 16 };
enum { STEPS_LEAST = 8 };

static void put(struct engine *e, const char *node, pid_t pid, const char *who, int64_t rank,
                int64_t step, const struct held_sum *h) {
    const struct rounds *rs = e->rec.rounds;
    if (!h->processes)
        return;
    struct json_writer *w = engine_record(e, SOURCE_KERNEL, "usage");
    json_put_string(w, "node", node);
    json_put_i64(w, "pid", pid);
    json_put_i64(w, "round", rs->v[rs->n - 1]->number);
    json_put_string(w, "who", who);
    if (rank >= 0)
        json_put_i64(w, "rank", rank);
    if (step > 0)
        json_put_i64(w, "step", step);
    if (h->processes > 1)
        json_put_i64(w, "processes", h->processes);
    held_put(w, h);
    engine_recorded(e);
}

/* Those that have not been seen to end. */
static size_t live_workers(const struct rounds *rs, pid_t *ret) {
    size_t n = 0;
    for (size_t i = 0; i < rs->workers_n; i++)
        if (!rs->workers[i]->exit_ns)
            ret[n++] = (pid_t)rs->workers[i]->pid;
    return n;
}

static void look_at_programs(struct engine *e) {
    const struct rounds *rs = e->rec.rounds;
    pid_t *workers = arena_array(&e->arena, pid_t, rs->workers_n + 1);
    size_t n = live_workers(rs, workers);
    cluster_each(node, e->cluster) {
        struct held_sum own = {0}, helpers = {0};
        const struct plan_node *p = node_plan(node);
        pid_t pid = node_is_on(node) ? node_program_pid(node) : 0;
        if (!pid)
            continue;
        held_add(&own, pid);
        put(e, p->name, pid, p->is_store ? "store" : "agent", -1, 0, &own);
        held_add_descendants(&helpers, pid, workers, n);
        put(e, p->name, pid, "helpers", -1, 0, &helpers);
    }
}

/* step 0: the first look in this round. */
static void look_at_workers(struct engine *e, const struct round *r, size_t n, int64_t step) {
    for (size_t i = 0; i < r->n && i < n; i++) {
        const struct worker *w = r->workers[i];
        const struct node *node = cluster_node(e->cluster, w->node);
        struct held_sum h = {0};
        if (!w->exit_ns && node && !node_far_number(node)) /* else that number is another host's */
            held_add(&h, (pid_t)w->pid);
        put(e, w->node, (pid_t)w->pid, "worker", w->rank, step, &h);
    }
}

/* Farther and farther apart, so that a long round is not looked at for ever. */
static int64_t next_look(int64_t first, int64_t step) {
    int64_t quarter = (step - first) / 4;
    return step + (quarter > STEPS_LEAST ? quarter : STEPS_LEAST);
}

static void record(struct engine *e, const struct record *r) {
    struct holdings *h = own(e, holdings);
    const struct rounds *rs = e->rec.rounds;
    bool start = record_is(r, "worker-start"), step = record_is(r, "step");
    if ((!start && !step) || !rs->n || e->phase > ENGINE_RUNNING || e->plan->nodes_n > NODES_MAX)
        return;
    const struct round *newest = rs->v[rs->n - 1];
    if (start && newest->complete && h->complete < newest->number) {
        h->complete = newest->number;
        look_at_programs(e);
    }
    if (step && h->stepped < newest->number && newest->n <= WORKERS_MAX && newest->complete &&
        round_stepped(newest) == newest->n) {
        h->stepped = newest->number;
        h->first = record_i64(r, "step", 0);
        h->next = next_look(h->first, h->first);
        look_at_workers(e, newest, WORKERS_MAX, 0);
    } else if (step && h->stepped == newest->number && newest->n &&
               r->pid == newest->workers[0]->pid && record_i64(r, "step", 0) >= h->next) {
        int64_t at = record_i64(r, "step", 0);
        h->next = next_look(h->first, at);
        look_at_workers(e, newest, WORKERS_AGAIN, at);
    }
}

const struct run_part run_part_holdings = {.size = sizeof(struct holdings), .record = record};
