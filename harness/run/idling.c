/* What agents, their helpers and the store take of the processors while a job trains and nothing happens: looked at when all
 * workers of a round have made a step, and when the next thing happens. The check idle tells of one that loops. */
#include "harness/run/engine.h"

#include "base/sys/proc.h"
#include "harness/observe/held.h"

#include <stdio.h>
#include <sys/stat.h>

struct idling {
    int looked;  /* the newest round in which it was */
    bool is_now; /* nothing has happened since */
};

/* Beyond that the reading itself would make the harness late. */
enum { NODES_MAX = 64 };

struct look {
    struct engine *engine;
    const char *node, *moment;
    struct stat
        program; /* of the agent: helpers are the same one, and what a job has left behind is not */
};

static bool stat_program(pid_t pid, struct stat *ret) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    return stat(path, ret) == 0;
}

static void put(const struct look *l, pid_t pid, const char *who) {
    struct proc_times s = proc_thread_times(pid, pid);
    if (!s.ran_ns)
        return;
    struct json_writer *w = engine_record(l->engine, SOURCE_KERNEL, "processor");
    json_put_string(w, "node", l->node);
    json_put_i64(w, "pid", pid);
    json_put_string(w, "who", who);
    json_put_string(w, "moment", l->moment);
    json_put_i64(w, "ran_ns", s.ran_ns);
    json_put_i64(w, "waited_ns", s.waited_ns);
    engine_recorded(l->engine);
}

static void put_helper(void *arg, pid_t pid) {
    const struct look *l = arg;
    struct stat program;
    if (stat_program(pid, &program) && program.st_dev == l->program.st_dev &&
        program.st_ino == l->program.st_ino)
        put(l, pid, "helper");
}

static void look(struct engine *e, const char *moment) {
    const struct rounds *rs = e->rec.rounds;
    pid_t *workers = arena_array(&e->arena, pid_t, rs->workers_n + 1);
    size_t n = 0;
    for (size_t i = 0; i < rs->workers_n; i++)
        if (!rs->workers[i]->exit_ns)
            workers[n++] = (pid_t)rs->workers[i]->pid;
    cluster_each(node, e->cluster) {
        const struct plan_node *p = node_plan(node);
        struct look l = {.engine = e, .node = p->name, .moment = moment};
        pid_t pid = node_is_on(node) && !node_far_number(node) ? node_program_pid(node) : 0;
        if (!pid || !stat_program(pid, &l.program))
            continue;
        put(&l, pid, p->is_store ? "store" : "agent");
        held_each_descendant(pid, workers, n, put_helper, &l);
    }
}

/* Who prints steps need not be every worker: of such a job the first steady state will do. */
static bool is_quiet(const struct engine *e, const struct record *r, const struct round *newest) {
    if (!newest->complete || (!record_is(r, "step") && !record_is(r, "steady")))
        return false;
    return record_is(r, "steady") || round_stepped(newest) == newest->n;
}

static bool happens(const struct record *r) {
    return record_is(r, "worker-exit") || record_is(r, "worker-start") ||
           record_is(r, "agent-exit") || record_is(r, "agent-start") ||
           record_is(r, "store-exit") || record_is(r, "fault-in-force") || record_is(r, "done");
}

static void record(struct engine *e, const struct record *r) {
    struct idling *i = own(e, idling);
    const struct rounds *rs = e->rec.rounds;
    if (!rs->n || e->phase > ENGINE_RUNNING || e->plan->nodes_n > NODES_MAX)
        return;
    const struct round *newest = rs->v[rs->n - 1];
    if (i->is_now && happens(r)) {
        i->is_now = false;
        look(e, "ends");
    } else if (!i->is_now && i->looked < newest->number && is_quiet(e, r, newest)) {
        i->looked = newest->number;
        i->is_now = true;
        look(e, "begins");
    }
}

const struct run_part run_part_idling = {.size = sizeof(struct idling), .record = record};
