#include "tests/agent/agent_doubles.h"

#include "agent/agent_config.h"
#include "agent/agent_lifeline.h"
#include "agent/agent_store.h"
#include "agent/agent_timer.h"
#include "agent/event_log.h"
#include "agent/host_name.h"
#include "agent/legacy/legacy.h"
#include "agent/neighbours.h"
#include "agent/options.h"
#include "agent/outcome.h"
#include "agent/root_cause.h"
#include "agent/round_line.h"
#include "agent/store/etcd.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/event.h"
#include "base/sys/line.h"
#include "base/sys/random.h"
#include "base/sys/signals.h"
#include "base/sys/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

struct doubles doubles;

void doubles_reset(void) {
    buf_fini(&doubles.said);
    doubles =
        (struct doubles){.trouble = "", .output_dir = "", .address = "10.0.0.1", .port_fd = -1};
}

static void said(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void said(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&doubles.said, fmt, ap);
    va_end(ap);
    buf_putc(&doubles.said, '\n');
}

static const char *of(const char *text) {
    return text ? text : "(none)";
}

/* What is made is told apart by its name alone; NULL where that call is the one that fails. */
static void *made(const char *call, struct err *err) {
    static char things[1];
    if (!str_eq(doubles.failing, call)) {
        doubles.alive++;
        return things;
    }
    err_say(err, doubles.failing_code ? doubles.failing_code : -EIO, "%s failed", call);
    return NULL;
}

static void *given_back(const char *what, const void *thing) {
    if (thing)
        said("%s ends", what);
    doubles.alive -= thing != NULL;
    return NULL;
}

/* ---- loop, clock, chance ---- */

struct loop *loop_new(struct err *err) {
    return made("loop_new", err);
}

struct loop *loop_free(struct loop *l) {
    return given_back("loop", l);
}

int loop_run(struct loop *l, struct err *err) {
    (void)l;
    if (doubles.scene)
        doubles.scene();
    return doubles.loop_rc < 0 ? err_say(err, doubles.loop_rc, "the loop broke") : 0;
}

void loop_stop(struct loop *l) {
    (void)l;
    said("loop stops");
}

struct loop_source *loop_timer(struct loop *l, loop_timer_fn *fn, void *arg) {
    (void)l;
    doubles.timer_fn = fn;
    doubles.arg = arg;
    return made("loop_timer", NULL);
}

void loop_timer_at(struct loop_source *s, int64_t deadline_ns) {
    said("timer at %" PRId64 "%s", deadline_ns, s ? "" : ", of nobody");
}

struct loop_source *loop_signal(struct loop *l, int signo, loop_signal_fn *fn, void *arg) {
    (void)l;
    doubles.signal_fn = fn;
    doubles.arg = arg;
    said("signal %d is watched", signo);
    return made("loop_signal", NULL);
}

struct loop_source *loop_source_free(struct loop_source *s) {
    return given_back("source", s);
}

int64_t clock_monotonic_ns(void) {
    return AT_MONOTONIC;
}

int64_t clock_boottime_ns(void) {
    return AT_BOOTTIME;
}

int64_t clock_realtime_ns(void) {
    return AT_REALTIME;
}

uint64_t random_u64(void) {
    return 42;
}

void signal_ignore_writes(void) {
    said("errors of writes end nobody");
}

/* ---- ports ---- */

static int port(int *ret_fd, struct err *err) {
    if (str_eq(doubles.failing, "port"))
        return err_say(err, -EADDRINUSE, "no port");
    *ret_fd = doubles.port_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return 0;
}

int tcp_reserve_port(int *ret_fd, uint16_t *ret_port, struct err *err) {
    said("any port is reserved");
    int code = port(ret_fd, err);
    if (code == 0)
        *ret_port = 7001;
    return code;
}

int tcp_reserve_this_port(uint16_t number, int *ret_fd, struct err *err) {
    said("port %d is reserved", number);
    return port(ret_fd, err);
}

/* ---- lines and claims ---- */

void line_say(const char *level, const char *what, const char *fmt, ...) {
    BUF_FINI struct buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    said("%s, %s: %s", level, what, buf_str(&text));
}

void event_open(void) {
    said("events open");
}

void event_close(void) {
    said("events close");
}

void event_launcher(const char *what, int64_t round) {
    said("claim %s of round %" PRId64, what, round);
}

void event_first_failure(int64_t round, const char *node, int rank) {
    said("claim first failure of round %" PRId64 ": %s, rank %d", round, node, rank);
}

void outcome_tell(const char *path, int code) {
    said("outcome %d to %s", code, of(path));
}

/* ---- setting up ---- */

int agent_config_await(struct loop *l, const struct options *o, struct arena *a,
                       struct rendezvous_config *ret, struct err *err) {
    (void)l;
    if (!made("agent_config_await", err))
        return err->code;
    doubles.alive--;
    *ret = (struct rendezvous_config){
        .run_id = o->run_id, .node = "node", .addr = arena_strdup(a, doubles.address)};
    return 0;
}

bool agent_config_may_come(int rc) {
    return rc == -EHOSTUNREACH;
}

struct agent_lifeline *agent_lifeline_new(struct loop *l, const struct options *o,
                                          agent_event_fn *fn, void *arg) {
    (void)l, (void)o, (void)fn, (void)arg;
    said("a lifeline is made");
    return made("agent_lifeline_new", NULL);
}

struct agent_lifeline *agent_lifeline_free(struct agent_lifeline *l) {
    return given_back("lifeline", l);
}

void agent_lifeline_do(struct agent_lifeline *l, const struct action *a) {
    said("lifeline does %d%s", a->kind, l ? "" : ", and is none");
}

int agent_lifeline_fd(const struct agent_lifeline *l) {
    return l ? 77 : 0;
}

struct agent_store *agent_store_new(struct loop *l, const struct options *o, agent_event_fn *fn,
                                    void *arg, struct err *err) {
    (void)l, (void)o;
    doubles.store_fn = fn;
    doubles.arg = arg;
    return made("agent_store_new", err);
}

struct agent_store *agent_store_free(struct agent_store *s) {
    return given_back("store", s);
}

void agent_store_do(struct agent_store *s, const struct action *a, int64_t timeout_ms) {
    said("store does %d within %" PRId64 " ms%s", a->kind, timeout_ms, s ? "" : ", and is none");
}

bool agent_store_is_hosted(const struct agent_store *s) {
    return s && doubles.hosted;
}

const char *agent_store_place(const struct agent_store *s) {
    return s ? "the store" : "no store";
}

const char *agent_store_trouble(const struct agent_store *s) {
    return s ? doubles.trouble : "no store";
}

int agent_timer_new(struct loop *l, struct guard *g, struct agent_timer **ret, struct err *err) {
    (void)l;
    *ret = made("agent_timer_new", err);
    said("a timer of workers is made%s", g ? "" : " of no guard");
    return *ret ? 0 : err->code;
}

struct agent_timer *agent_timer_free(struct agent_timer *t) {
    return given_back("timer of workers", t);
}

const char *agent_timer_path(const struct agent_timer *t) {
    return t ? "/fifo" : NULL;
}

void agent_timer_begin(struct agent_timer *t) {
    said("timers of workers begin anew%s", t ? "" : " for none");
}

const char *agent_timer_end(struct agent_timer *t, pid_t pid, const char *error) {
    said("timer of pid %d ends%s", (int)pid, t ? "" : " for none");
    return error[0] ? error : "of a timer";
}

/* ---- the cores ---- */

static void say_event(const char *core, const struct event *e, struct now now) {
    BUF_FINI struct buf b = {0};
    buf_printf(&b, "%s hears %d", core, e->kind);
    if (e->kind == EVENT_PORT)
        buf_printf(&b, ": %s:%d", of(e->port.addr), e->port.port);
    else if (e->kind == EVENT_GROUP_REAPED)
        buf_printf(&b, ": fenced %d", e->reaped.fenced);
    else if (e->kind == EVENT_WORKER_EXITED)
        buf_printf(&b, ": %d, pid %" PRId64 ", status %x, \"%s\", at %" PRId64,
                   e->exited.local_rank, e->exited.pid, (unsigned)e->exited.wait_status,
                   e->exited.error, e->exited.realtime_ns);
    else if (e->kind == EVENT_GUARD_DEAD)
        buf_printf(&b, ": pid %" PRId64 ", status %x, fenced %d", e->guard_dead.pid,
                   (unsigned)e->guard_dead.wait_status, e->guard_dead.fenced);
    else if (e->kind == EVENT_SIGNAL)
        buf_printf(&b, ": %d", e->signal.signo);
    else if (e->kind == EVENT_TREE)
        buf_printf(&b, ": %" PRIu64 ", %d", e->tree.id, e->tree.answer->result);
    else if (e->kind == EVENT_LOOKED_UP)
        buf_printf(&b, ": round %" PRId64 ", found %d", e->looked_up.round, e->looked_up.found);
    if (now.monotonic_ns != AT_MONOTONIC || now.boottime_ns != AT_BOOTTIME)
        buf_puts(&b, ", at another time");
    said("%s", buf_str(&b));
}

static const struct action *step(const char *core, const struct event *e, struct now now,
                                 size_t *ret_n) {
    static struct action given[8];
    say_event(core, e, now);
    doubles.event++;
    memcpy(given, doubles.actions, sizeof(given));
    *ret_n = doubles.n;
    doubles.n = 0;
    return given;
}

struct rendezvous *rendezvous_new(const struct rendezvous_config *c, uint64_t seed,
                                  struct err *err) {
    said("core of %s at %s: store in process %d, hosted %d, lifeline %d, seed %" PRIu64, c->node,
         c->addr, c->store_in_process, c->hosts_store, c->lifeline, seed);
    return made("rendezvous_new", err);
}

struct rendezvous *rendezvous_free(struct rendezvous *r) {
    return given_back("core", r);
}

const struct action *rendezvous_step(struct rendezvous *r, const struct event *e, struct now now,
                                     size_t *ret_n) {
    return step(r ? "core" : "nobody", e, now, ret_n);
}

struct timing rendezvous_timing(const struct rendezvous *r) {
    return (struct timing){.hb_ns = r ? 500000001 : 0, .suspect_ns = r ? 6000 : 0};
}

struct legacy *legacy_new(const struct rendezvous_config *c, const char *prefix, uint64_t seed,
                          struct err *err) {
    said("legacy core of %s below %s, seed %" PRIu64, c->node, of(prefix), seed);
    return made("legacy_new", err);
}

struct legacy *legacy_free(struct legacy *l) {
    return given_back("legacy core", l);
}

const struct action *legacy_step(struct legacy *l, const struct event *e, struct now now,
                                 size_t *ret_n) {
    return step(l ? "legacy core" : "nobody", e, now, ret_n);
}

struct tree_client *tree_client_new(struct loop *l, const char *endpoint,
                                    const struct store_access *access, tree_answer_fn *fn,
                                    void *arg, struct err *err) {
    (void)l;
    doubles.tree_fn = fn;
    doubles.arg = arg;
    said("tree at %s%s", endpoint, access ? "" : " of nobody");
    return made("tree_client_new", err);
}

struct tree_client *tree_client_free(struct tree_client *c) {
    return given_back("tree", c);
}

void tree_client_send(struct tree_client *c, uint64_t id, const struct tree_request *q) {
    said("tree is sent %" PRIu64 ": %s%s", id, q->key, c ? "" : ", and is none");
}

void tree_client_cancel(struct tree_client *c, uint64_t id) {
    said("tree forgets %" PRIu64 "%s", id, c ? "" : ", and is none");
}

const char *tree_client_trouble(const struct tree_client *c) {
    return c ? doubles.trouble : "no tree";
}

/* ---- what is told of rounds ---- */

struct event_log *event_log_new(const struct options *o, int64_t now_ns) {
    said("event log from %" PRId64, now_ns);
    return o ? made("event_log_new", NULL) : NULL;
}

struct event_log *event_log_free(struct event_log *e) {
    return given_back("event log", e);
}

void event_log_round(struct event_log *e, const struct round_spec *r) {
    said("event log: round %" PRId64 "%s", r->round, e ? "" : " of none");
}

void event_log_started(struct event_log *e, int local_rank, pid_t pid) {
    said("event log: %d is pid %d%s", local_rank, (int)pid, e ? "" : " of none");
}

void event_log_ended(struct event_log *e, int local_rank, int wait_status, const char *error,
                     bool by_itself) {
    said("event log: %d ended with %x, \"%s\", by itself %d%s", local_rank, (unsigned)wait_status,
         error, by_itself, e ? "" : " of none");
}

void event_log_print(const struct event_log *e, const struct action *exit, int64_t now_ns) {
    said("event log: the end, %d at %" PRId64 "%s", exit->exit.code, now_ns, e ? "" : " of none");
}

void root_cause_note(struct root_cause *c, int64_t round, int local_rank, pid_t pid, int status,
                     const char *error) {
    said("failed: round %" PRId64 ", %d, pid %d, %x, \"%s\"", round, local_rank, (int)pid,
         (unsigned)status, error);
    *c = (struct root_cause){local_rank, status, pid};
}

void root_cause_print(const struct failure *f, int64_t round, bool earlier) {
    said("first failure: %s of round %" PRId64 ", earlier %d", f->node, round, earlier);
}

void root_cause_hand_on(const struct root_cause *c, const struct failure *f, const char *node,
                        const struct guard *g) {
    said("pid %d is handed on for %s to %s%s", (int)c->pid, f->node, node,
         g ? "" : ", of no guard");
}

void round_line_claim(struct round_line *l, const char *what, int64_t now_ns) {
    said("round line: %s at %" PRId64 ", own count %d", what, now_ns, l->own_count);
}

void round_line_start(struct round_line *l, const struct round_spec *r, int64_t now_ns) {
    said("round line: round %" PRId64 " at %" PRId64 ", own count %d", r->round, now_ns,
         l->own_count);
}

struct neighbours *neighbours_new(struct loop *l, const struct options *o, int64_t suspect_ns) {
    (void)l, (void)o;
    said("neighbours are looked for after %" PRId64, suspect_ns);
    return made("neighbours_new", NULL);
}

struct neighbours *neighbours_free(struct neighbours *n) {
    return given_back("neighbours", n);
}

struct host_check *host_check_begin(struct loop *l, const char *host, host_check_fn *fn,
                                    void *arg) {
    (void)l;
    doubles.host_fn = fn;
    doubles.arg = arg;
    said("%s is looked up", host);
    return made("host_check_begin", NULL);
}

struct host_check *host_check_cancel(struct host_check *c) {
    return given_back("look-up", c);
}

void etcd_watch(struct etcd *e, struct loop *l, etcd_ended_fn *fn, void *arg) {
    (void)l;
    doubles.etcd_fn = fn;
    doubles.arg = arg;
    said("etcd is watched%s", e ? "" : ", and is none");
}

/* ---- the guard ---- */

void guard_attach(struct guard *g, struct loop *l, const struct guard_events *ev, void *arg) {
    (void)g, (void)l;
    doubles.guard_events = ev;
    doubles.guard_arg = arg;
    said("guard is attached");
}

struct guard *guard_free(struct guard *g) {
    (void)g;
    said("guard ends");
    return NULL;
}

int guard_renew(struct guard *g, struct err *err) {
    (void)g;
    said("guard is renewed");
    return doubles.renew_rc < 0 ? err_say(err, doubles.renew_rc, "no guard") : 0;
}

int guard_start(struct guard *g, const struct worker_spec *s, struct err *err) {
    (void)g;
    said("guard starts %s, round %" PRIu64
         ": world %d on %d, restart %d of %d, master %s:%d, group "
         "%d, ranks from %d, %d here, role %s from %d of %d, token %s, virtual %d, deadline %d, "
         "lifeline %d, timer %s",
         s->run_id, s->round, s->world_size, s->group_world_size, s->restart_count, s->max_restarts,
         s->master_addr, s->master_port, s->group_rank, s->rank_base, s->local_world_size, s->role,
         s->role_rank_base, s->role_world_size, s->token, s->virtual_local_rank,
         s->deadline_required, s->lifeline, of(s->timer_file));
    if (doubles.port_fd >= 0)
        said("the port is %s", fcntl(doubles.port_fd, F_GETFD) < 0 ? "let go" : "still held");
    return doubles.start_rc < 0 ? err_say(err, doubles.start_rc, "no workers") : 0;
}

void guard_deadline(struct guard *g, int64_t fence_ns, int64_t hard_ns) {
    (void)g;
    said("guard's deadline %" PRId64 ", %" PRId64, fence_ns, hard_ns);
}

void guard_stop(struct guard *g, int signo, int64_t grace_ms) {
    (void)g;
    said("guard stops with %d, grace %" PRId64, signo, grace_ms);
}

void guard_kill(struct guard *g) {
    (void)g;
    said("guard kills");
}

void guard_signal(struct guard *g, int signo) {
    (void)g;
    said("guard passes signal %d on", signo);
}

const char *guard_output_dir(const struct guard *g) {
    (void)g;
    return doubles.output_dir;
}
