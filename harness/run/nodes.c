#include "harness/run/nodes.h"

#include "harness/run/hand.h"

#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "harness/launch/launcher.h"
#include "harness/run/counting.h"
#include "harness/run/device_snapshots.h"
#include "harness/run/hang.h"
#include "harness/run/outputs.h"
#include "harness/run/programs.h"
#include "harness/run/stores.h"
#include "harness/run/timeline.h"
#include "harness/run/token.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct nodes {
    int awaited; /* on at start and not up yet */
};

/* ---- programs ---- */

/* Opened by us, whatever the node's own view makes of the path. */
static int open_log(struct engine *e, const struct plan_node *p, const char *logs,
                    struct err *err) {
    int r = folder_make(e->spec->folder, logs, 0777, err);
    const char *program = p->is_store ? "store" : "agent";
    return r ? r
             : folder_append(e->spec->folder, arena_printf(&e->arena, "%s/%s.log", logs, program),
                             err);
}

/* The first process of the node starts it. */
static void record_planned(struct engine *e, struct node *n, const struct program *prog) {
    struct target first;
    node_target(n, &first);
    observer_record_planned(e->observer, node_plan(n)->name, first.pid, prog->env, prog->cwd);
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
                            .token = token_entry(e),
                            .told_node = e->plan->disks,
                            .far = p->host,
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
        .shared = places.shared,
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
    prog.env = clock_env(&e->arena, n, bin, prog.env);
    if (!p->is_store && !p->host) /* another host has more to say of it */
        record_planned(e, n, &prog);
    return node_run(n, &prog, err);
}

static void run_or_fail(struct engine *e, struct node *n) {
    struct err err = {0};
    if (run_program(e, n, &err) < 0)
        engine_fail(e, &err);
}

/* What the node's host has stamped, where it has a clock of its own. */
static struct json_writer *record_there(struct engine *e, const struct node *n, enum source source,
                                        const char *kind) {
    struct clock_stamp at;
    return node_moment(n, &at) ? recorder_begin_at(&e->rec, &at, source, kind)
                               : engine_record(e, source, kind);
}

static void record_program(struct engine *e, struct node *n, const char *what, pid_t pid,
                           const int *status) {
    char kind[32];
    /* Its node may tell of a start when its workers have been heard: it has begun by then. */
    struct clock_stamp at = {.t_ns = status ? clock_monotonic_ns() : node_asked_ns(n)};
    node_moment(n, &at);
    snprintf(kind, sizeof(kind), "%s-%s", node_plan(n)->is_store ? "store" : "agent", what);
    struct json_writer *w = recorder_begin_at(&e->rec, &at, SOURCE_KERNEL, kind);
    json_put_string(w, "node", node_plan(n)->name);
    json_put_i64(w, "pid", pid);
    if (status && WIFSIGNALED(*status))
        json_put_i64(w, "signal", WTERMSIG(*status));
    else if (status)
        json_put_i64(w, "code", WEXITSTATUS(*status));
    engine_recorded(e);
}

/* ---- the cluster's callbacks ---- */

static void on_node_up(void *arg, struct node *n) {
    struct engine *e = arg;
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "node-up");
    json_put_string(w, "node", node_plan(n)->name);
    json_put_string(w, "addr", node_plan(n)->addr);
    if (node_plan(n)->host)
        json_put_string(w, "host", node_plan(n)->host->hello.host);
    engine_recorded(e);
    if (node_plan(n)->is_store || e->phase == ENGINE_RUNNING)
        run_or_fail(e, n);
    if (!node_plan(n)->is_store && own(e, nodes)->awaited)
        own(e, nodes)->awaited--;
    nodes_look_ready(e);
}

static void on_node_down(void *arg, struct node *n) {
    struct engine *e = arg;
    observer_drain(e->observer);
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "node-down");
    json_put_string(w, "node", node_plan(n)->name);
    json_put_string(w, "why", e->phase == ENGINE_DOWN ? "end" : "killed");
    engine_recorded(e);
}

static void on_program_started(void *arg, struct node *n, pid_t pid, int pidfd) {
    record_program(arg, n, "start", pid, NULL);
}

static void on_program_exited(void *arg, struct node *n, pid_t pid, int status) {
    struct engine *e = arg;
    observer_drain(e->observer);
    record_program(e, n, "exit", pid, &status);
}

static int empty_store(struct engine *e, struct node *n, struct err *err) {
    const char *disk = node_disk_dir(n), *data = store_data(e->plan);
    size_t dir = strlen(e->spec->folder->path);
    return data ? folder_remove(e->spec->folder,
                                arena_printf(&e->arena, "%s/%s", disk + dir + 1, data), err)
                : 0;
}

static void on_program_due(void *arg, struct node *n, bool empty) {
    struct engine *e = arg;
    struct err err = {0};
    if (empty && empty_store(e, n, &err) < 0)
        engine_fail(e, &err);
    else
        run_or_fail(e, n);
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

static void release_far(void *arg) {
    far_client_release(arg);
}

static void forget_far(void *arg) {
    far_client_forget(arg);
}

static void *on_far_client(void *arg, struct node *n, struct far_client *c) {
    struct engine *e = arg;
    return observer_join(e->observer, &(struct far_speaker){.node = node_plan(n)->name,
                                                            .pid = far_client_pid(c),
                                                            .probe = far_client_is_probe(c),
                                                            .end = far_client_end(c),
                                                            .release = release_far,
                                                            .forgotten = forget_far,
                                                            .arg = c});
}

static void on_far_said(void *arg, void *client, const char *text, size_t len,
                        const struct clock_stamp *at) {
    observer_hear(client, text, len, at);
}

static void on_far_gone(void *arg, void *client, bool became_other) {
    observer_leave(client, became_other);
}

static void on_far_seen(void *arg) {
    timeline_seen_far(arg);
}

static void on_given(void *arg, struct node *n, pid_t pid, const struct json *given) {
    struct engine *e = arg;
    struct clock_stamp at = {.t_ns = clock_monotonic_ns()};
    node_moment(n, &at);
    if (!node_plan(n)->is_store)
        observer_record_given(e->observer, node_plan(n)->name, pid, given, &at);
}

static void on_dumped(void *arg, struct node *n, pid_t pid, const char *name,
                      const struct buf *text) {
    hang_take(arg, n, pid, name, text);
}

static void on_dump_over(void *arg, struct node *n, const char *error) {
    hang_over(arg);
}

static void on_arm(void *arg, uint32_t kinds, uint64_t next_step) {
    struct engine *e = arg;
    cluster_arm(e->cluster, kinds, next_step);
}

static void put_clock(struct json_writer *w, const struct node *n, const struct clock_bound *b,
                      int64_t now_ns) {
    int64_t low = b->low_ns, high = b->high_ns;
    clock_bound_at(b, now_ns, &low, &high);
    json_put_i64(w, "ahead_ns", low + (high - low) / 2);
    json_put_i64(w, "bound_ns", (high - low + 1) / 2);
}

static void put_whose(struct json_writer *w, const struct node *n) {
    json_put_string(w, "node", node_plan(n)->name);
    json_put_string(w, "host", node_plan(n)->host->name);
}

static void record_step(struct engine *e, const struct node *n, const struct clock_bound *b,
                        const struct clock_bound *was) {
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "clock-step");
    put_whose(w, n);
    json_put_i64(w, "was_ns", was->low_ns + (was->high_ns - was->low_ns) / 2);
    put_clock(w, n, b, b->at_ns);
    engine_recorded(e);
}

static void on_clock(void *arg, struct node *n, const struct clock_bound *b,
                     const struct clock_bound *was) {
    struct engine *e = arg;
    if (was)
        record_step(e, n, b, was);
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "clock");
    put_whose(w, n);
    put_clock(w, n, b, b->at_ns);
    json_put_i64(w, "round_ns", b->round_ns);
    json_put_i64(w, "samples", b->samples);
    json_put_i64(w, "steps", b->steps);
    engine_recorded(e);
}

static void on_leftovers(void *arg, struct node *n, const struct json *found) {
    struct engine *e = arg;
    struct json_writer *w = record_there(e, n, SOURCE_KERNEL, "leftovers");
    json_put_string(w, "node", node_plan(n)->name);
    json_each(it, found) json_put_tree(w, it->key, it);
    engine_recorded(e);
}

static void on_sockets(void *arg, struct node *n, uint16_t port, int round,
                       const struct json *found) {
    struct engine *e = arg;
    struct json_writer *w = record_there(e, n, SOURCE_KERNEL, "listening");
    json_put_string(w, "node", node_plan(n)->name);
    json_put_i64(w, "port", port);
    json_put_i64(w, "round", round);
    if (found)
        json_put_tree(w, "found", found);
    engine_recorded(e);
}

static void on_injected(void *arg, struct node *n, uint64_t token, const char *error) {
    timeline_answer(arg, n, token, error);
}

/* We were stopped, or stuck, for longer than limits.dead_man. What part of the cluster has undone is
 * not in force any more, and nothing else shall be. */
static void on_healed(void *arg, const char *who, int64_t silent_ns, const struct json *undone) {
    struct engine *e = arg;
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "dead-man");
    json_put_string(w, "who", who);
    json_put_i64(w, "silent_ns", silent_ns);
    if (undone)
        json_put_tree(w, "undone", undone);
    engine_recorded(e);
    timeline_heal_all(e);
}

static bool on_asked(void *arg, const struct store_request *r) {
    return timeline_asked(arg, r);
}

static void on_struck(void *arg, struct node *n, const struct disk_strike *s) {
    struct json_writer *w =
        record_there(arg, n, s->by_disk ? SOURCE_DISK : SOURCE_KERNEL, "disk-call");
    json_put_string(w, "node", node_plan(n)->name);
    json_put_i64(w, "pid", s->pid);
    json_put_string(w, "verdict", s->verdict);
    json_put_string(w, "path", s->path);
    json_put_string(w, "op", s->does);
    if (s->error)
        json_put_string(w, "error", disk_error_name(s->error));
    json_put_string(w, "by", s->by_disk ? "disk" : "calls");
    engine_recorded(arg);
}

static bool on_called(void *arg, struct node *n, const struct watched_call *c) {
    return timeline_called(arg, n, c);
}

/* Of a host that cannot be switched on again there is nothing more to learn. One that has kept its
 * power is the fault's failure, or, where none waits for it, the run's. */
static void on_powered(void *arg, struct node *n, bool off, int64_t took_ns, const char *error) {
    struct engine *e = arg;
    struct err err;
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "power");
    put_whose(w, n);
    json_put_string(w, "do", off ? "off" : "on");
    json_put_i64(w, "took_ns", took_ns);
    if (error)
        json_put_string(w, "error", error);
    engine_recorded(e);
    if (!off && !error)
        return;
    bool waited = timeline_powered(e, n, error);
    if (error && !(waited && off)) {
        err_say(&err, -EIO, "%s", error);
        engine_fail(e, &err);
    }
}

static void on_failed(void *arg, const struct err *err) {
    engine_fail(arg, err);
}

static void on_down(void *arg, const char *const *left) {
    engine_down(arg, left);
}

static const struct cluster_callbacks callbacks = {
    .node_up = on_node_up,
    .node_down = on_node_down,
    .program_started = on_program_started,
    .program_exited = on_program_exited,
    .program_due = on_program_due,
    .program_failed = on_program_failed,
    .client = on_client,
    .far_client = on_far_client,
    .far_said = on_far_said,
    .far_gone = on_far_gone,
    .far_seen = on_far_seen,
    .given = on_given,
    .dumped = on_dumped,
    .dump_over = on_dump_over,
    .clock = on_clock,
    .leftovers = on_leftovers,
    .sockets = on_sockets,
    .injected = on_injected,
    .healed = on_healed,
    .called = on_called,
    .struck = on_struck,
    .asked = on_asked,
    .counters = counting_counters,
    .counted = counting_counted,
    .powered = on_powered,
    .failed = on_failed,
    .down = on_down,
};

/* ---- the part ---- */

static int open_nodes(struct engine *e, struct err *err) {
    e->cluster = cluster_new(e->plan, e->spec->folder, e->loop, &callbacks, e, err);
    if (!e->cluster)
        return err->code;
    const char *probe =
        arena_printf(&e->arena, "%s/rankprobe", cluster_programs(e->cluster, e->spec->bin));
    e->observer = observer_new(e->loop, &e->rec, probe, err);
    if (!e->observer)
        return err->code;
    observer_on_arm(e->observer, on_arm, e);
    cluster_ask_given(e->cluster, observer_given_key(e->observer));
    const struct expect *x = &e->plan->scenario->expect;
    observer_ask(e->observer, x->weights != WEIGHTS_ANY, x->epochs != EPOCHS_ANY);
    if (e->plan->disks)
        observer_note_sent(e->observer);
    if (e->spec->keep)
        cluster_keep(e->cluster);
    if (e->spec->pcap)
        cluster_capture(e->cluster);
    return 0;
}

static void begin(struct engine *e) {
    struct err err = {0};
    for (size_t i = 0; i < e->plan->nodes_n; i++)
        own(e, nodes)->awaited += e->plan->nodes[i].on_at_start && !e->plan->nodes[i].is_store;
    if (cluster_up(e->cluster, &err) < 0)
        engine_fail(e, &err);
}

void nodes_look_ready(struct engine *e) {
    if (e->phase != ENGINE_STARTING || own(e, nodes)->awaited || !stores_ready(e))
        return;
    if (hand_holds_start(e))
        return;
    device_snapshots_take(e, "start", 0); /* nothing of the job is there yet */
    engine_start(e);
}

static void start(struct engine *e) {
    cluster_each(n, e->cluster) {
        if (!node_plan(n)->is_store && node_is_on(n))
            run_or_fail(e, n);
    }
}

static void record(struct engine *e, const struct record *r) {
    const struct worker *w =
        record_is(r, "worker-start") ? rounds_worker(e->rec.rounds, r->pid) : NULL;
    if (w && atoi(w->master_port) > 0)
        cluster_bootstrap_port(e->cluster, (uint16_t)atoi(w->master_port));
}

static void take_down(struct engine *e) {
    cluster_down(e->cluster);
}

static void close_nodes(struct engine *e) {
    e->cluster = cluster_free(e->cluster);
    e->observer = observer_free(e->observer);
}

const struct run_part run_part_nodes = {
    .size = sizeof(struct nodes),
    .open = open_nodes,
    .begin = begin,
    .start = start,
    .record = record,
    .take_down = take_down,
    .close = close_nodes,
};
