/* Which signals reach the workers and the process groups that they lead: as the kernel tells it,
 * where it does. */
#include "harness/run/engine.h"

#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/process.h"
#include "base/sys/signal_events.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS_MAX = 4096, GENERATIONS_MAX = 8 };

struct watched_worker {
    const char *node;
    pid_t pid;
    bool told; /* to end, by its launcher: its group has been looked at */
};

struct group_member {
    pid_t pid, leader;
};

struct signals {
    struct signal_events *events; /* NULL: the kernel does not tell */
    struct err why;
    struct loop_source *source;
    struct watched_worker *workers;
    size_t workers_n;
    struct group_member *members; /* all that record_group has told */
    size_t members_n;
};

static struct watched_worker *find(const struct signals *s, pid_t pid) {
    for (size_t i = s->workers_n; pid > 0 && i-- > 0;)
        if (s->workers[i].pid == pid)
            return &s->workers[i];
    return NULL;
}

/* Who led the group in which we have seen a process that is gone; 0: nobody did. */
static pid_t leader_then(const struct signals *s, pid_t pid) {
    for (size_t i = s->members_n; i-- > 0;)
        if (s->members[i].pid == pid)
            return s->members[i].leader;
    return 0;
}

/* A worker as launchers start it leads a process group; who has ended is in none any more, though its signal is
 * read only now. */
static struct watched_worker *worker_of(const struct signals *s, pid_t pid) {
    struct watched_worker *w = find(s, pid);
    if (w)
        return w;
    pid_t leader = getpgid(pid);
    return find(s, leader < 0 ? leader_then(s, pid) : leader);
}

static bool is_agent(const struct engine *e, pid_t pid) {
    cluster_each(n, e->cluster) {
        if (node_program_pid(n) == pid)
            return true;
    }
    return false;
}

/* launcher: an agent, or what it has below it, up to the workers; job: a worker, or what is below
 * one; other: somebody else, the harness for one, or a sender that has gone. */
static const char *who_is(const struct engine *e, pid_t pid) {
    const struct signals *s = own(e, signals);
    struct process_look p;
    for (int i = 0; i < GENERATIONS_MAX && pid > 1; i++, pid = p.parent) {
        if (worker_of(s, pid))
            return "job";
        if (is_agent(e, pid))
            return "launcher";
        if (process_look(pid, &p) != 0)
            break;
    }
    return "other";
}

/* Those that were there before the signal, by a tick of the kernel's clock at least. */
static bool was_there(pid_t pid, uint64_t since_ticks, struct process_look *ret) {
    return process_look(pid, ret) == 0 && ret->state != 'Z' && ret->state != 'X' &&
           ret->start_ticks < since_ticks;
}

static void put_member(struct json_writer *w, pid_t pid) {
    char name[64];
    json_object(w, NULL);
    json_put_i64(w, "pid", pid);
    json_put_string(w, "name", process_name(pid, name, sizeof(name)));
    json_end_object(w);
}

/* Whoever starts a process after it was told has heard for both. */
static uint64_t ticks_before(int64_t t_ns) {
    const int64_t margin_ns = 50000000;
    int64_t ago_ns = clock_monotonic_ns() - t_ns + margin_ns;
    int64_t at_ns = clock_boottime_ns() - ago_ns;
    return (uint64_t)(at_ns / (1000000000 / sysconf(_SC_CLK_TCK)));
}

static void record_group(struct engine *e, const struct watched_worker *leader, int64_t t_ns) {
    pid_t *pids = NULL;
    struct process_look look;
    struct signals *s = own(e, signals);
    uint64_t since = ticks_before(t_ns);
    size_t n = process_list(&pids);
    struct json_writer *w = engine_record(e, SOURCE_KERNEL, "signal-group");
    json_put_string(w, "node", leader->node);
    json_put_i64(w, "pid", leader->pid);
    json_array(w, "members");
    for (size_t i = 0; i < n; i++)
        if (pids[i] != leader->pid && getpgid(pids[i]) == leader->pid &&
            was_there(pids[i], since, &look)) {
            mem_push(s->members, s->members_n) = (struct group_member){pids[i], leader->pid};
            put_member(w, pids[i]);
        }
    json_end_array(w);
    free(pids);
    engine_recorded(e);
}

static bool asks_to_end(int signo) {
    return signo == SIGTERM || signo == SIGINT || signo == SIGHUP || signo == SIGQUIT;
}

static void record_signal(struct engine *e, const struct signal_event *s) {
    struct watched_worker *worker = worker_of(own(e, signals), s->to);
    if (!worker)
        return;
    const char *who = who_is(e, s->by);
    struct json_writer *w = recorder_begin(&e->rec, s->t_ns, SOURCE_KERNEL, "signal");
    json_put_string(w, "node", worker->node);
    json_put_i64(w, "pid", s->to);
    json_put_i64(w, "worker", worker->pid);
    json_put_i64(w, "signal", s->signo);
    json_put_i64(w, "by", s->by);
    json_put_string(w, "who", who);
    engine_recorded(e);
    if (worker->told || !asks_to_end(s->signo) || strcmp(who, "launcher") != 0)
        return;
    worker->told = true;
    record_group(e, worker, s->t_ns);
}

static void drain(struct engine *e) {
    struct signals *s = own(e, signals);
    struct signal_event event;
    int r;
    while (s->events && (r = signal_events_read(s->events, &event)) != 0) {
        if (r == 1) {
            record_signal(e, &event);
            continue;
        }
        struct json_writer *w = engine_record(e, SOURCE_HARNESS, "signals");
        json_put_bool(w, "seen", false);
        json_put_string(w, "why", "the kernel told of more signals than could be read");
        engine_recorded(e);
    }
}

static void on_signals(void *arg, int fd, int what) {
    drain(arg);
}

static int open_signals(struct engine *e, struct err *err) {
    own(e, signals)->events = signal_events_open(&own(e, signals)->why);
    return 0;
}

static void begin(struct engine *e) {
    struct signals *s = own(e, signals);
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "signals");
    json_put_bool(w, "seen", s->events);
    if (!s->events)
        json_put_string(w, "why", s->why.msg);
    engine_recorded(e);
    if (!s->events)
        return;
    s->workers = mem_array(struct watched_worker, WORKERS_MAX);
    s->source = loop_fd(e->loop, signal_events_fd(s->events), LOOP_READ, on_signals, e);
}

static void record(struct engine *e, const struct record *r) {
    struct signals *s = own(e, signals);
    if (!s->events || s->workers_n == WORKERS_MAX || r->source != SOURCE_PROBE ||
        !record_is(r, "worker-start"))
        return;
    s->workers[s->workers_n++] = (struct watched_worker){r->node, (pid_t)r->pid, false};
}

static void end(struct engine *e, const char *why) {
    drain(e);
}

static void close_signals(struct engine *e) {
    struct signals *s = own(e, signals);
    if (!s)
        return;
    s->source = loop_source_free(s->source);
    s->events = signal_events_close(s->events);
    free(s->workers);
    free(s->members);
    s->workers = NULL;
    s->members = NULL;
}

const struct run_part run_part_signals = {
    .size = sizeof(struct signals),
    .open = open_signals,
    .begin = begin,
    .record = record,
    .end = end,
    .close = close_signals,
};
