#include "harness/run/engine.h"

#include "agent/base/str.h"
#include "agent/sys/clock.h"
#include "agent/sys/file.h"
#include "harness/cluster/mark.h"
#include "harness/launch/launcher.h"
#include "harness/run/programs.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The helpers count within a second of an agent's end. */
static const int64_t LEFTOVERS_WAIT_NS = 3000000000;

/* ---- records ---- */

struct json_writer *engine_record(struct engine *e, enum source s, const char *kind) {
    return recorder_begin(&e->rec, clock_monotonic_ns(), s, kind);
}

void engine_recorded(struct engine *e) {
    recorder_end(&e->rec, NULL);
}

static void record_program(struct engine *e, struct node *n, const char *what, pid_t pid,
                           const int *status) {
    char kind[32];
    snprintf(kind, sizeof(kind), "%s-%s", node_plan(n)->is_store ? "store" : "agent", what);
    struct json_writer *w = engine_record(e, SOURCE_KERNEL, kind);
    json_put_string(w, "node", node_plan(n)->name);
    json_put_i64(w, "pid", pid);
    if (status && WIFSIGNALED(*status))
        json_put_i64(w, "signal", WTERMSIG(*status));
    else if (status)
        json_put_i64(w, "code", WEXITSTATUS(*status));
    engine_recorded(e);
}

/* ---- what follows from what was seen ---- */

static bool all_stepped(const struct round *r) {
    for (size_t i = 0; i < r->n; i++)
        if (!r->workers[i]->first_step_ns)
            return false;
    return true;
}

static bool any_stepped(const struct round *r) {
    for (size_t i = 0; i < r->n; i++)
        if (r->workers[i]->first_step_ns)
            return true;
    return false;
}

/* Of a job whose steps are read from its output nobody knows which workers print them: one will do.
 * Undisturbed, the expression itself is on trial: then its workers need only run. */
static bool is_stepping(struct engine *e, const struct round *r) {
    if (scenario_observes(e->plan->scenario, "step"))
        return !e->spec->control || any_stepped(r);
    return !e->job_speaks || all_stepped(r);
}

static void look_for_steady(struct engine *e) {
    const struct rounds *rs = e->rec.rounds;
    if (e->steady_ns || !rs->n || !rs->v[0]->complete)
        return;
    if (!is_stepping(e, rs->v[0]))
        return;
    e->steady_ns = clock_monotonic_ns();
    engine_record(e, SOURCE_HARNESS, "steady");
    engine_recorded(e);
    timeline_steady(e->timeline);
    e->probes = probes_new(e);
}

static bool round_over(const struct round *r) {
    for (size_t i = 0; i < r->n; i++)
        if (!r->workers[i]->exit_ns)
            return false;
    return r->n;
}

/* Undisturbed, a round that failed says it all: what launchers would do about it is of no interest,
 * and a script with a mistake in it would only fail again and again. Other launchers than ours may
 * still hold what the workers printed: by the next start, or by their own end, they have let go of
 * it. */
static void look_for_failure(struct engine *e, const struct round *r) {
    if (e->spec->control || e->phase != ENGINE_RUNNING || !round_failed(r))
        return;
    e->undisturbed_failed = true;
    if (str_eq(e->plan->scenario->job.launcher, "rankrun"))
        engine_end(e, "worker failed");
}

static void look_for_ended_rounds(struct engine *e) {
    const struct rounds *rs = e->rec.rounds;
    while (e->rounds_read < rs->n && round_over(rs->v[e->rounds_read])) {
        const struct round *r = rs->v[e->rounds_read++];
        looks_take(e, "round-end", r->number);
        directory_read(e, r->number);
        look_for_failure(e, r);
    }
}

static bool an_agent_runs(struct engine *e) {
    struct node **nodes;
    size_t n = cluster_nodes(e->cluster, &nodes);
    for (size_t i = 0; i < n; i++)
        if (!node_plan(nodes[i])->is_store && node_is_on(nodes[i]) && node_is_busy(nodes[i]))
            return true;
    return false;
}

static void look_for_end(struct engine *e) {
    if (e->phase == ENGINE_RUNNING && e->outcome_seen)
        timeline_heal_the_last(e->timeline);
    if (e->phase == ENGINE_RUNNING && !an_agent_runs(e) && !timeline_may_start_node(e->timeline))
        engine_end(e, "ended");
}

static void on_record(void *arg, const struct record *r, struct client *from) {
    struct engine *e = arg;
    if (e->spec->seen)
        e->spec->seen(e->spec->seen_arg, r);
    e->job_speaks |= r->source == SOURCE_JOB && !*record_text(r, "from");
    e->steps_seen |= record_is(r, "step");
    directory_seen(e, r, from);
    timeline_seen(e->timeline, r, from);
    limits_seen(e->limits, r);
    master_seen(e, r);
    looks_seen(e, r);
    usage_seen(e, r);
    outputs_seen(e, r);
    if (record_is(r, "step") || record_is(r, "worker-start"))
        look_for_steady(e);
    if (record_is(r, "worker-exit"))
        look_for_ended_rounds(e);
    if (e->undisturbed_failed && e->phase == ENGINE_RUNNING && record_is(r, "worker-start"))
        engine_end(e, "worker failed");
    if (record_is(r, "worker-start")) {
        const struct worker *w = rounds_worker(e->rec.rounds, r->pid);
        if (w && atoi(w->master_port) > 0)
            cluster_bootstrap_port(e->cluster, (uint16_t)atoi(w->master_port));
    }
}

/* ---- starting ---- */

/* Opened by us, whatever the node's own view makes of the path. */
static int open_log(struct engine *e, const struct plan_node *p, const char *logs,
                    struct err *err) {
    int r = folder_make(e->spec->folder, logs, 0777, err);
    const char *program = p->is_store ? "store" : "agent";
    return r ? r
             : folder_append(e->spec->folder, arena_printf(&e->arena, "%s/%s.log", logs, program),
                             err);
}

static int run_program(struct engine *e, struct node *n, struct err *err) {
    const struct plan_node *p = node_plan(n);
    const struct job_spec *job = &e->plan->scenario->job;
    struct places places = {.shared = cluster_shared_dir(e->cluster),
                            .disk = node_disk_dir(n),
                            .out = e->spec->folder->path,
                            .node = p->name,
                            .tmp = node_tmp_dir(n),
                            .events = node_events_path(n),
                            .token = e->token,
                            .wait_ns = e->plan->scenario->limits.total_ns,
                            .seed =
                                arena_printf(&e->arena, "%llu", (unsigned long long)e->plan->seed)};
    char cwd[4096];
    struct program prog = {.cwd = getcwd(cwd, sizeof(cwd)) ? cwd : "/"};
    const char *bin = node_programs(n, e->spec->bin);
    places.output = outputs_dir(e, n);
    const char *logs = arena_printf(&e->arena, "logs/%s", p->name);
    FILE_CLOSE int log = open_log(e, p, logs, err);
    if (log < 0)
        return log;
    prog.log = log;
    struct launch launch = {
        .plan = e->plan,
        .node = p,
        .bin = bin,
        .disk = places.disk,
        .run = placeholders_fill_all(&e->arena, job->run, job->run_n, &places),
        .args = placeholders_fill_all(&e->arena, job->launcher_args, job->launcher_args_n, &places),
    };
    const struct launcher *launcher = launcher_of(e->plan);
    outputs_program(e, n);
    if (p->is_store)
        prog.argv = store_argv(&e->arena, &launch);
    else
        prog.argv = launcher->agent_argv(&e->arena, &launch);
    const char *const *more = p->is_store ? NULL : launcher->agent_env(&e->arena, &launch);
    /* What is the job's own might make a store of a stranger's start something else. */
    const struct job_spec none = {0};
    bool own = !p->is_store || !e->plan->untrusted;
    prog.env = device_env(&e->arena, e->plan, p,
                          arena_printf(&e->arena, "%s/%s", e->spec->folder->path, logs),
                          programs_env(&e->arena, own ? job : &none, bin, &places, more));
    return node_run(n, &prog, err);
}

static void run_or_fail(struct engine *e, struct node *n) {
    struct err err = {0};
    if (run_program(e, n, &err) < 0)
        engine_fail(e, &err);
}

void engine_start_job(struct engine *e) {
    if (e->phase != ENGINE_STARTING || e->nodes_awaited || !stores_ready(e->stores))
        return;
    e->phase = ENGINE_RUNNING;
    looks_take(e, "start", 0);
    directory_read(e, 0);
    timeline_start(e->timeline);
    limits_start(e->limits);
    struct node **nodes;
    size_t n = cluster_nodes(e->cluster, &nodes);
    for (size_t i = 0; i < n; i++)
        if (!node_plan(nodes[i])->is_store && node_is_on(nodes[i]))
            run_or_fail(e, nodes[i]);
}

/* ---- the cluster's callbacks ---- */

static void on_node_up(void *arg, struct node *n) {
    struct engine *e = arg;
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "node-up");
    json_put_string(w, "node", node_plan(n)->name);
    json_put_string(w, "addr", node_plan(n)->addr);
    engine_recorded(e);
    presence_note(e);
    if (node_plan(n)->is_store || e->phase == ENGINE_RUNNING)
        run_or_fail(e, n);
    if (!node_plan(n)->is_store && e->nodes_awaited)
        e->nodes_awaited--;
    engine_start_job(e);
}

static void on_node_down(void *arg, struct node *n) {
    struct engine *e = arg;
    observer_drain(e->observer);
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "node-down");
    json_put_string(w, "node", node_plan(n)->name);
    json_put_string(w, "why", e->phase == ENGINE_DOWN ? "end" : "killed");
    engine_recorded(e);
    look_for_end(e);
    counting_done(e, n);
}

static void on_program_started(void *arg, struct node *n, pid_t pid, int pidfd) {
    (void)pidfd;
    struct engine *e = arg;
    record_program(e, n, "start", pid, NULL);
    if (node_plan(n)->is_store)
        stores_started(e->stores, n);
    engine_start_job(e);
}

static void on_program_exited(void *arg, struct node *n, pid_t pid, int status) {
    struct engine *e = arg;
    observer_drain(e->observer);
    record_program(e, n, "exit", pid, &status);
    if (node_plan(n)->is_store)
        stores_ended(e->stores, n);
    if (!node_plan(n)->is_store && e->phase == ENGINE_RUNNING)
        e->counting[e->counting_n++] = n;
    e->outcome_seen |= !node_plan(n)->is_store && WIFEXITED(status) && WEXITSTATUS(status) <= 1;
    look_for_end(e);
}

static void on_program_failed(void *arg, struct node *n, const char *why) {
    struct err err;
    err_say(&err, -ENOEXEC, "%s: %s", node_plan(n)->name, why);
    engine_fail(arg, &err);
}

static void on_client(void *arg, struct node *n, int fd, pid_t pid) {
    struct engine *e = arg;
    observer_connect(e->observer, node_plan(n)->name, fd, pid);
}

static void on_leftovers(void *arg, struct node *n, const struct json *found) {
    struct engine *e = arg;
    struct json_writer *w = engine_record(e, SOURCE_KERNEL, "leftovers");
    json_put_string(w, "node", node_plan(n)->name);
    json_each(it, found) json_put_tree(w, it->key, it);
    engine_recorded(e);
    counting_done(e, n);
}

static void on_sockets(void *arg, struct node *n, uint16_t port, int round,
                       const struct json *found) {
    master_found(arg, n, port, round, found);
}

static void on_injected(void *arg, struct node *n, uint64_t token, const char *error) {
    (void)n;
    struct engine *e = arg;
    timeline_answer(e->timeline, token, error);
}

void engine_take_down(struct engine *e) {
    e->phase = ENGINE_DOWN;
    outputs_end(e);
    cluster_down(e->cluster);
}

static void on_down(void *arg, const char *const *left) {
    struct engine *e = arg;
    lag_end(e);
    timeline_close(e->timeline);
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "health");
    json_array(w, "left");
    for (const char *const *l = left; *l; l++)
        json_put_string(w, NULL, *l);
    json_end_array(w);
    json_put_bool(w, "complete", !*left);
    json_put_i64(w, "cpu_ns", clock_cpu_ns());
    engine_recorded(e);
    loop_stop(e->loop);
}

static void on_failed(void *arg, const struct err *err) {
    engine_fail(arg, err);
}

/* ---- ending ---- */

static void on_end_timer(void *arg, int64_t now) {
    (void)now;
    counting_end(arg); /* whoever has not answered by now will not */
}

void engine_wait_anew(struct engine *e) {
    if (e->phase == ENGINE_ENDING)
        loop_timer_at(e->end_timer, clock_monotonic_ns() + LEFTOVERS_WAIT_NS);
}

void engine_end(struct engine *e, const char *why) {
    if (e->phase >= ENGINE_ENDING)
        return;
    e->phase = ENGINE_ENDING;
    e->end_why = why;
    e->probes = probes_free(e->probes);
    timeline_finish(e->timeline);
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "job-end");
    json_put_string(w, "why", why);
    engine_recorded(e);
    loop_timer_at(e->end_timer, clock_monotonic_ns() + LEFTOVERS_WAIT_NS);
    counting_go_on(e);
}

void engine_fail(struct engine *e, const struct err *err) {
    if (!e->failure.code)
        e->failure = *err;
    engine_end(e, "error");
}

static void on_signal(void *arg, int signo) {
    struct engine *e = arg;
    if (e->phase < ENGINE_ENDING) {
        struct json_writer *w = engine_record(e, SOURCE_HARNESS, "interrupted");
        json_put_i64(w, "signal", signo);
        engine_recorded(e);
        engine_end(e, "interrupted");
    }
    pause_end(e);
}

/* ---- the whole ---- */

static const struct cluster_callbacks callbacks = {
    .node_up = on_node_up,
    .node_down = on_node_down,
    .program_started = on_program_started,
    .program_exited = on_program_exited,
    .program_failed = on_program_failed,
    .client = on_client,
    .leftovers = on_leftovers,
    .sockets = on_sockets,
    .injected = on_injected,
    .counters = counting_counters,
    .counted = counting_counted,
    .failed = on_failed,
    .down = on_down,
};

static int count_awaited(const struct plan *p) {
    int n = 0;
    for (size_t i = 0; i < p->nodes_n; i++)
        n += p->nodes[i].on_at_start && !p->nodes[i].is_store;
    return n;
}

static int engine_open(struct engine *e, struct err *err) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    int room = usage_check(e->plan, err);
    if (room < 0)
        return room;
    /* Whatever is made from here on is taken down again. */
    for (size_t i = 0; i < 3; i++)
        e->signals[i] = loop_signal(e->loop, signals[i], on_signal, e);
    mark_begin();
    presence_note(e);
    token_draw(e);
    e->cluster = cluster_new(e->plan, e->spec->folder, e->loop, &callbacks, e, err);
    if (!e->cluster)
        return err->code;
    const char *probe =
        arena_printf(&e->arena, "%s/rankprobe", cluster_programs(e->cluster, e->spec->bin));
    e->observer = observer_new(e->loop, &e->rec, probe, err);
    if (!e->observer)
        return err->code;
    e->end_timer = loop_timer(e->loop, on_end_timer, e);
    if (e->spec->keep)
        cluster_keep(e->cluster);
    /* A node may be switched on again: at most once per line of the timeline. */
    e->counting =
        arena_array(&e->arena, const struct node *, e->plan->nodes_n *(e->plan->actions_n + 1));
    if (outputs_open(e, err) < 0)
        return err->code;
    e->timeline = timeline_new(e);
    e->limits = limits_new(e);
    e->stores = stores_new(e, err);
    if (!e->stores)
        return err->code;
    e->directory = directory_new(e);
    e->rec.fn = on_record;
    e->rec.arg = e;
    return 0;
}

static void engine_close(struct engine *e) {
    e->rec.fn = NULL;
    probes_free(e->probes);
    cluster_free(e->cluster);
    presence_end(e);
    mark_end();
    output_free(e->output);
    mentions_free(e->mentions);
    observer_free(e->observer);
    devices_free(e->devices);
    directory_free(e->directory);
    timeline_free(e->timeline);
    limits_free(e->limits);
    stores_free(e->stores);
    loop_source_free(e->end_timer);
    loop_source_free(e->lag_timer);
    loop_source_free(e->pause);
    for (size_t i = 0; i < 3; i++)
        loop_source_free(e->signals[i]);
    loop_free(e->loop);
    arena_fini(&e->arena);
}

static int engine_play(struct engine *e, struct err *err) {
    opening_record(e);
    usage_open(e);
    looks_open(e);
    e->nodes_awaited = count_awaited(e->plan);
    if (cluster_up(e->cluster, err) < 0) {
        engine_fail(e, err);
    } else {
        lag_start(e);
    }
    int r = loop_run(e->loop, err);
    if (r < 0 || !e->failure.code)
        return r;
    *err = e->failure;
    return e->failure.code;
}

int run_execute(const struct run_spec *spec, struct history *h, struct rounds *rs,
                struct err *err) {
    struct engine e = {.spec = spec, .plan = spec->plan, .rec = {.history = h, .rounds = rs}};
    e.loop = loop_new(err);
    if (!e.loop)
        return err->code;
    rand_init(&e.rand, spec->plan->seed);
    int r = engine_open(&e, err);
    if (r == 0)
        r = engine_play(&e, err);
    engine_close(&e);
    return r;
}
