#include "agent/agent.h"

#include "agent/agent_config.h"
#include "agent/agent_lifeline.h"
#include "agent/agent_store.h"
#include "agent/agent_timer.h"
#include "agent/core/rendezvous.h"
#include "agent/event_log.h"
#include "agent/host_name.h"
#include "agent/legacy/legacy.h"
#include "agent/neighbours.h"
#include "agent/outcome.h"
#include "agent/options.h"
#include "agent/root_cause.h"
#include "agent/round_line.h"
#include "agent/store/etcd.h"
#include "agent/store/tree_client.h"
#include "agent/workers/guard.h"
#include "base/sys/clock.h"
#include "base/sys/event.h"
#include "base/sys/line.h"
#include "base/sys/process.h"
#include "base/sys/random.h"
#include "base/sys/signals.h"
#include "base/sys/tcp.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIGNALS_MAX = 64, CANNOT_EXECUTE = 126 };

struct agent {
    const struct options *options;
    struct arena arena;
    struct loop *loop;
    struct guard *guard;
    struct agent_store *store;
    struct agent_lifeline *lifeline;  /* NULL: there is none to be had */
    struct agent_timer *worker_timer; /* NULL: nobody asked for one */
    struct rendezvous *core;
    struct legacy *legacy; /* torchelastic's etcd rendezvous, instead of store and core */
    struct tree_client *tree;
    struct neighbours *neighbours; /* NULL: a round has begun, or nobody else can be there */
    struct etcd *own_etcd;         /* NULL: there is none */
    char tree_place[TCP_HOST_MAX + 32];
    struct host_check *host_check; /* NULL: none is under way */
    int64_t host_check_round;
    struct rendezvous_config config;
    struct loop_source *timer;
    struct loop_source *signals[SIGNALS_MAX]; /* by number */
    int port_fd;                              /* keeps the port of the last ack; -1: none */
    int exit_code;
    bool stepping, over, output_told, leaving; /* leaving: on a signal */
    int64_t round;                             /* of the worker group */
    bool ending;                               /* it is being stopped, or has failed */
    struct round_line told;
    struct root_cause cause;
    struct event_log *events; /* NULL: not asked for */

    /* What an action has answered already, to be told when the step is done. */
    bool port_due, start_failed_due;
    int port;
    struct err start_error;
};

static void agent_step(struct agent *a, const struct event *e);

/* ---- actions ---- */

/* The master's port that was asked for; its first worker fails when somebody else has it. */
static uint16_t reserve_master_port(struct agent *a) {
    struct err err = {0};
    uint16_t port = (uint16_t)a->options->master_port;
    if (tcp_reserve_this_port(port, &a->port_fd, &err) < 0)
        line_say(LINE_ERROR, "port", "--master-port: %s", err.msg);
    return port;
}

static void on_host_checked(void *arg, bool found) {
    struct agent *a = arg;
    struct event e = {.kind = EVENT_LOOKED_UP,
                      .looked_up = {.round = a->host_check_round, .found = found}};
    a->host_check = NULL;
    agent_step(a, &e);
}

static void do_look_up(struct agent *a, const struct action *act) {
    host_check_cancel(a->host_check);
    a->host_check_round = act->look_up.round;
    a->host_check = host_check_begin(a->loop, act->look_up.host, on_host_checked, a);
}

static bool is_master(const struct agent *a) {
    return a->options->master_port && a->options->node_rank <= 0;
}

static void do_port(struct agent *a) {
    struct err err = {0};
    uint16_t port = 0;
    if (a->port_fd >= 0)
        close(a->port_fd);
    a->port_fd = -1;
    if (is_master(a))
        port = reserve_master_port(a);
    else if (tcp_reserve_port(&a->port_fd, &port, &err) < 0)
        line_say(LINE_ERROR, "port", "%s", err.msg);
    a->port = port;
    a->port_due = true;
}

/* Once: a folder in /tmp that nobody named is found by being told. */
static void print_output_dir(struct agent *a) {
    const char *dir = guard_output_dir(a->guard);
    if (dir[0] && !a->output_told)
        line_say(LINE_INFO, "output", "the workers' output is in %s", dir);
    a->output_told = true;
}

/* The port is let go at the last moment: from here until rank 0 binds it, somebody who asks for
 * exactly this one could take it. */
static void do_start(struct agent *a, const struct round_spec *r) {
    struct err err = {0};
    struct worker_spec spec = {
        .run_id = r->run_id,
        .round = (uint64_t)r->round,
        .world_size = r->world,
        .group_world_size = r->group_world,
        .restart_count = r->restart_count,
        .max_restarts = r->max_restarts,
        .master_addr = r->master_addr,
        .master_port = r->master_port,
        .group_rank = r->group_rank,
        .rank_base = r->rank_base,
        .local_world_size = r->local_world,
        .role = r->role,
        .role_rank_base = r->role_rank_base,
        .role_world_size = r->role_world,
        .token = r->token,
        .virtual_local_rank = a->options->virtual_local_rank,
        .deadline_required = r->deadline_required,
        .lifeline = r->lifeline ? agent_lifeline_fd(a->lifeline) : 0,
        .timer_file = agent_timer_path(a->worker_timer),
    };
    a->neighbours = neighbours_free(a->neighbours);
    agent_timer_begin(a->worker_timer);
    event_log_round(a->events, r);
    a->round = r->round;
    a->ending = false;
    round_line_start(&a->told, r, clock_monotonic_ns());
    if (a->port_fd >= 0)
        close(a->port_fd);
    a->port_fd = -1;
    int code = guard_renew(a->guard, &err);
    if (r->deadline_required && code == 0)
        guard_deadline(a->guard, r->fence_ns, r->hard_ns);
    if (code == 0)
        code = guard_start(a->guard, &spec, &err);
    if (code == 0)
        print_output_dir(a);
    /* That the guard is dead is told when all below it is. */
    a->start_failed_due = code < 0 && code != -EPIPE;
    a->start_error = err;
}

static const char *place(const struct agent *a) {
    return a->tree ? a->tree_place : agent_store_place(a->store);
}

static const char *trouble(const struct agent *a) {
    return a->tree ? tree_client_trouble(a->tree) : agent_store_trouble(a->store);
}

static void do_exit(struct agent *a, const struct action *act) {
    a->over = true;
    a->exit_code = act->exit.code;
    if (act->exit.text && act->exit.text[0])
        line_say(act->exit.code ? LINE_ERROR : LINE_INFO, "exit", "%s", act->exit.text);
    if (act->exit.code == 69)
        line_say(LINE_ERROR, "store", "%s: %s", place(a),
                 trouble(a)[0] ? trouble(a) : "no request has failed");
    if (act->exit.failure) {
        if (act->exit.failure->rank >= 0 && !act->exit.earlier)
            event_first_failure(act->exit.round, act->exit.failure->node, act->exit.failure->rank);
        root_cause_print(act->exit.failure, act->exit.round, act->exit.earlier);
        root_cause_hand_on(&a->cause, act->exit.failure, a->config.node, a->guard);
    }
    if (act->exit.outcome)
        outcome_tell(a->options->outcome_file, act->exit.code);
    event_log_print(a->events, act, clock_monotonic_ns());
    loop_stop(a->loop);
}

static void print_store(const struct agent *a, const char *text, bool lost) {
    const char *why = lost ? trouble(a) : "";
    line_say(lost ? LINE_WARNING : LINE_INFO, "store", "%s %s%s%s", place(a), text,
             why[0] ? ": " : "", why);
}

static int64_t request_timeout_ms(const struct agent *a) {
    struct timing t = rendezvous_timing(a->core);
    return (t.hb_ns + 999999) / 1000000;
}

static void agent_do(struct agent *a, const struct action *act) {
    switch (act->kind) {
    case ACTION_SNAPSHOT:
    case ACTION_WATCH:
    case ACTION_UNWATCH:
    case ACTION_TXN:
    case ACTION_LEASE_GRANT:
    case ACTION_LEASE_KEEPALIVE:
    case ACTION_BEAT:
        agent_store_do(a->store, act, request_timeout_ms(a));
        break;
    case ACTION_LIFELINE_OPEN:
    case ACTION_LIFELINE_DROP:
        agent_lifeline_do(a->lifeline, act);
        break;
    case ACTION_DEADLINE:
        guard_deadline(a->guard, act->deadline.fence_ns, act->deadline.hard_ns);
        break;
    case ACTION_START:
        do_start(a, act->start);
        break;
    case ACTION_STOP:
        a->ending = true;
        guard_stop(a->guard, act->stop.signo, act->stop.grace_ms);
        break;
    case ACTION_KILL:
        a->ending = true;
        guard_kill(a->guard);
        break;
    case ACTION_NEED_PORT:
        do_port(a);
        break;
    case ACTION_TIMER:
        loop_timer_at(a->timer, act->timer.at_ns);
        break;
    case ACTION_CLAIM:
        event_launcher(act->claim.what, act->claim.round);
        round_line_claim(&a->told, act->claim.what, clock_monotonic_ns());
        break;
    case ACTION_LOG:
        line_say(LINE_INFO, "log", "%s", act->log);
        break;
    case ACTION_STORE:
        print_store(a, act->store.text, act->store.lost);
        break;
    case ACTION_EXIT:
        do_exit(a, act);
        break;
    case ACTION_TREE:
        tree_client_send(a->tree, act->tree.id, &act->tree.request);
        break;
    case ACTION_TREE_CANCEL:
        tree_client_cancel(a->tree, act->tree.id);
        break;
    case ACTION_LOOK_UP:
        do_look_up(a, act);
        break;
    }
}

/* ---- events ---- */

static void tell_port(struct agent *a) {
    const char *addr = is_master(a) ? a->options->master_addr : a->config.addr;
    struct event e = {.kind = EVENT_PORT, .port = {.addr = addr, .port = a->port}};
    a->port_due = false;
    agent_step(a, &e);
}

static void tell_reaped(struct agent *a, bool fenced) {
    struct event e = {.kind = EVENT_GROUP_REAPED, .reaped = {.fenced = fenced}};
    agent_step(a, &e);
}

/* Workers that could not even be forked (a log directory that cannot be written) are a failure of
 * the round as one that could not be executed is: it costs, and its text reaches the summary. */
static void tell_start_failed(struct agent *a) {
    struct err err = a->start_error;
    struct event e = {.kind = EVENT_WORKER_EXITED,
                      .exited = {.wait_status = CANNOT_EXECUTE << 8,
                                 .error = err.msg,
                                 .realtime_ns = clock_realtime_ns()}};
    a->start_failed_due = false;
    agent_step(a, &e);
    tell_reaped(a, false);
}

/* Every event goes through here. What an action answers on the spot is told after the step, as
 * events of their own. */
static void agent_step(struct agent *a, const struct event *e) {
    size_t n = 0;
    if (a->over)
        return;
    assert(!a->stepping);
    a->stepping = true;
    struct now now = {clock_monotonic_ns(), clock_boottime_ns()};
    const struct action *actions =
        a->legacy ? legacy_step(a->legacy, e, now, &n) : rendezvous_step(a->core, e, now, &n);
    for (size_t i = 0; i < n && !a->over; i++)
        agent_do(a, &actions[i]);
    a->stepping = false;
    if (a->port_due)
        tell_port(a);
    if (a->start_failed_due)
        tell_start_failed(a);
}

static void on_store_event(void *arg, const struct event *e) {
    agent_step(arg, e);
}

static void on_tree_answer(void *arg, uint64_t id, const struct tree_answer *answer) {
    struct event e = {.kind = EVENT_TREE, .tree = {.id = id, .answer = answer}};
    agent_step(arg, &e);
}

static void on_timer(void *arg, int64_t now_ns) {
    struct event e = {.kind = EVENT_TIMER};
    agent_step(arg, &e);
}

/* A signal that is not to be left on is the workers': SIGUSR1, SIGUSR2. */
static void on_signal(void *arg, int signo) {
    struct agent *a = arg;
    struct event e = {.kind = EVENT_SIGNAL, .signal = {.signo = signo}};
    if (!(a->options->signals & UINT64_C(1) << signo)) {
        guard_signal(a->guard, signo);
        return;
    }
    a->leaving = true;
    agent_step(a, &e);
}

/* It does not come back, so nothing is waited for; but who was told to leave (a batch system tells
 * every process, etcd too) does so as ever. */
static void on_etcd_ended(void *arg, const char *words) {
    struct agent *a = arg;
    line_say(LINE_ERROR, "store", "%s, this job's own, has ended: %s", place(a), words);
    if (a->leaving || a->over)
        return;
    a->over = true;
    a->exit_code = 69;
    loop_stop(a->loop);
}

/* ---- the guard's ---- */

static void on_started(void *arg, int local_rank, pid_t pid, int pidfd) {
    struct agent *a = arg;
    event_log_started(a->events, local_rank, pid);
}

static void on_running(void *arg) {
    struct event e = {.kind = EVENT_WORKERS_STARTED};
    agent_step(arg, &e);
}

/* `exited` follows, with the reason as its error. */
static void on_exec_failed(void *arg, int local_rank, const char *why) {
}

static void on_exited(void *arg, int local_rank, pid_t pid, int wait_status, const char *error,
                      int64_t ended_realtime_ns) {
    struct agent *a = arg;
    error = agent_timer_end(a->worker_timer, pid, error);
    struct event e = {.kind = EVENT_WORKER_EXITED,
                      .exited = {.local_rank = local_rank,
                                 .pid = pid,
                                 .wait_status = wait_status,
                                 .error = error,
                                 .realtime_ns = ended_realtime_ns}};
    event_log_ended(a->events, local_rank, wait_status, error, !a->ending);
    if (wait_status && !a->ending) {
        root_cause_note(&a->cause, a->round, local_rank, pid, wait_status, error);
        a->ending = true;
    }
    agent_step(a, &e);
}

static void on_reaped(void *arg, enum guard_reason reason) {
    tell_reaped(arg, reason == GUARD_FENCED || reason == GUARD_REFUSED);
}

/* The next start makes a new one: a guard that ends at once would be made for ever here. */
static void on_guard_dead(void *arg, pid_t pid, int wait_status, bool fenced) {
    struct event e = {.kind = EVENT_GUARD_DEAD,
                      .guard_dead = {.pid = pid, .wait_status = wait_status, .fenced = fenced}};
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status))
        line_say(LINE_ERROR, "guard", "the workers' guard (pid %d) cannot go on: %s", (int)pid,
                 strerror(WEXITSTATUS(wait_status)));
    agent_step(arg, &e);
}

static const struct guard_events GUARD_EVENTS = {
    .started = on_started,
    .running = on_running,
    .exec_failed = on_exec_failed,
    .exited = on_exited,
    .reaped = on_reaped,
    .dead = on_guard_dead,
};

/* ---- setting up ---- */

/* A signal that we were started with as ignored (nohup) stays so. */
static void catch_signals(struct agent *a) {
    uint64_t wanted = a->options->signals | UINT64_C(1) << SIGUSR1 | UINT64_C(1) << SIGUSR2;
    for (int signo = 1; signo < SIGNALS_MAX; signo++) {
        struct sigaction old;
        if (!(wanted & UINT64_C(1) << signo) || sigaction(signo, NULL, &old) < 0)
            continue;
        if (old.sa_handler != SIG_IGN)
            a->signals[signo] = loop_signal(a->loop, signo, on_signal, a);
    }
    signal_ignore_writes();
}

static void tell_hosted(const struct agent *a) {
    if (a->config.hosts_store)
        line_say(LINE_INFO, "store",
                 "serving %s for this job: the address is this host's and nothing listened there",
                 agent_store_place(a->store));
}

static int set_up_legacy(struct agent *a, const struct options *o, struct err *err) {
    a->tree = tree_client_new(a->loop, o->endpoints, &o->rdzv.access, on_tree_answer, a, err);
    if (!a->tree)
        return err->code;
    snprintf(a->tree_place, sizeof(a->tree_place), "the etcd at %s", o->endpoints);
    a->legacy = legacy_new(&a->config, o->rdzv.etcd_prefix, random_u64(), err);
    return a->legacy ? 0 : err->code;
}

static int set_up_native(struct agent *a, const struct options *o, struct err *err) {
    a->store = agent_store_new(a->loop, o, on_store_event, a, err);
    if (!a->store)
        return err->code;
    a->config.store_in_process = o->backend == BACKEND_IN_PROCESS;
    a->config.hosts_store = agent_store_is_hosted(a->store);
    tell_hosted(a);
    /* The end of who hosts the store is the end of the store. */
    if (o->backend == BACKEND_EMBEDDED && !a->config.hosts_store && !o->rdzv.no_lifeline &&
        !o->rdzv.access.https)
        a->lifeline = agent_lifeline_new(a->loop, o, on_store_event, a);
    a->config.lifeline = a->lifeline != NULL;
    a->core = rendezvous_new(&a->config, random_u64(), err);
    if (a->core)
        a->neighbours = neighbours_new(a->loop, o, rendezvous_timing(a->core).suspect_ns);
    return a->core ? 0 : err->code;
}

static int set_up(struct agent *a, const struct options *o, struct err *err) {
    a->loop = loop_new(err);
    if (!a->loop)
        return err->code;
    int rc = agent_config_await(a->loop, o, &a->arena, &a->config, err);
    if (rc < 0)
        return rc;
    rc = o->backend == BACKEND_ETCD_LEGACY ? set_up_legacy(a, o, err) : set_up_native(a, o, err);
    if (rc < 0)
        return rc;
    a->events = event_log_new(o, clock_monotonic_ns());
    a->told.own_count = a->legacy || o->restarts_by_node;
    rc = agent_timer_new(a->loop, a->guard, &a->worker_timer, err);
    if (rc < 0)
        return rc;
    a->timer = loop_timer(a->loop, on_timer, a);
    guard_attach(a->guard, a->loop, &GUARD_EVENTS, a);
    catch_signals(a);
    if (a->own_etcd)
        etcd_watch(a->own_etcd, a->loop, on_etcd_ended, a);
    event_open();
    return 0;
}

static void tear_down(struct agent *a) {
    event_close();
    agent_lifeline_free(a->lifeline);
    agent_timer_free(a->worker_timer);
    event_log_free(a->events);
    neighbours_free(a->neighbours);
    agent_store_free(a->store);
    rendezvous_free(a->core);
    legacy_free(a->legacy);
    host_check_cancel(a->host_check);
    tree_client_free(a->tree);
    loop_source_free(a->timer);
    for (int i = 0; i < SIGNALS_MAX; i++)
        loop_source_free(a->signals[i]);
    if (a->port_fd >= 0)
        close(a->port_fd);
}

static int exit_code_of(int rc) {
    return rc == -EINVAL ? 64 : agent_config_may_come(rc) ? 69 : 1;
}

int agent_run(const struct options *o, struct guard *g, struct etcd *own, struct err *err) {
    struct agent a = {.options = o, .guard = g, .own_etcd = own, .port_fd = -1};
    struct event start = {.kind = EVENT_START};
    int rc = set_up(&a, o, err);
    if (rc == 0) {
        agent_step(&a, &start);
        rc = a.over ? 0 : loop_run(a.loop, err);
    }
    if (rc < 0)
        a.exit_code = exit_code_of(rc);
    tear_down(&a);
    guard_free(g);
    loop_free(a.loop);
    arena_fini(&a.arena);
    return a.exit_code;
}
