/* One node: its helper, its program, and what can be done to it (node_ops) on every isolation. */
#include "harness/cluster/parts.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/netlink.h"
#include "harness/carrier/hello.h"
#include "harness/carrier/host_process.h"
#include "harness/cluster/far_cut.h"
#include "harness/cluster/far_rules.h"
#include "harness/cluster/host_link.h"
#include "harness/cluster/kept_file.h"
#include "harness/cluster/power.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* From the start of the helper to an address on its card; some tens of milliseconds as a rule. */
static const int64_t start_wait_ns = 20000000000;
/* A host must be reached before, over whatever network. */
static const int64_t far_start_wait_ns = 60000000000;

static int64_t start_wait(const struct node *n) {
    return n->plan->host ? far_start_wait_ns : start_wait_ns;
}

struct node *node_new(struct cluster *c, const struct plan_node *plan, int port) {
    struct node *n = mem_new(struct node);
    *n = (struct node){.cluster = c,
                       .plan = plan,
                       .port = port,
                       .init = PROCESS_NONE,
                       .ends = CARRIER_ENDS_NONE,
                       .listener = -1,
                       .diag = -1,
                       .watch = -1,
                       .clock = -1,
                       .program = PROCESS_NONE};
    n->far_rules = mem_new(struct far_rules);
    n->disk = mem_printf("%s/%s", plan->is_store ? c->scratch : c->disk_root, plan->name);
    return n;
}

static void close_all(struct node *n) {
    calls_watch(n, -1);
    n->control = carrier_free(n->control);
    carrier_ends_close(&n->ends);
    n->on_listener = loop_source_free(n->on_listener);
    n->on_end = loop_source_free(n->on_end);
    n->on_late = loop_source_free(n->on_late);
    n->on_again = loop_source_free(n->on_again);
    n->again = false;
    file_close(&n->listener);
    process_close(&n->program);
    if (n->link)
        host_link_let_go(n->link);
}

struct node *node_free(struct node *n) {
    if (!n)
        return NULL;
    if (n->init.pid) {
        n->cluster->isolation->kill(n);
        process_reap(&n->init, start_wait_ns, NULL);
        process_close(&n->init);
    }
    node_unlimit_all(n);
    n->cluster->isolation->forget(n);
    close_all(n);
    n->link = host_link_free(n->link);
    n->power = power_free(n->power);
    node_clock_close(n);
    node_disk_free(n);
    far_rules_fini(n->far_rules);
    free(n->far_rules);
    for (int i = 0; i < NODE_LIMITS_N; i++)
        free(n->counted[i]);
    free(n->disk);
    free(n->tmp);
    free(n->events);
    free(n);
    return NULL;
}

/* ---- messages to the helper ---- */

static struct json_writer say(struct buf *text, const char *op) {
    struct json_writer w = {.out = text};
    json_object(&w, NULL);
    json_put_string(&w, "op", op);
    return w;
}

static int say_send(struct node *n, struct buf *text, struct json_writer *w, const int *fds,
                    size_t fds_n, struct err *err) {
    json_end_object(w);
    int r = n->control ? carrier_send(n->control, text, fds, fds_n, err)
                       : err_say(err, -ESRCH, "the node is off");
    buf_fini(text);
    if (r)
        err_wrap(err, "%s: ", n->plan->name);
    return r;
}

struct json_writer node_say(struct buf *text, const char *op) {
    return say(text, op);
}

int node_say_send(struct node *n, struct buf *text, struct json_writer *w, struct err *err) {
    return say_send(n, text, w, NULL, 0, err);
}

static int say_hello(struct node *n, struct err *err) {
    struct buf text = {0};
    struct json_writer w = say(&text, "hello");
    json_put_i64(&w, "version", HELLO_VERSION);
    return say_send(n, &text, &w, NULL, 0, err);
}

static void put_disks(const struct node *n, struct json_writer *w) {
    const char *const paths[] = {n->disk, n->cluster->shared, NULL};
    json_put_strings(w, "disks", paths);
}

/* So far ahead of this host's, or of its own: what follows from an uptime is the other host's to reckon. */
static void put_uptime(const struct node *n, struct json_writer *w) {
    bool uptime = n->plan->host && n->uptime.monotonic_ns;
    if (uptime)
        json_put_i64(w, "uptime", clock_monotonic_ns() + n->uptime.monotonic_ns);
    json_put_i64(w, "monotonic", uptime ? 0 : n->uptime.monotonic_ns);
    json_put_i64(w, "boottime", uptime ? 0 : n->uptime.boottime_ns);
}

static int say_setup(struct node *n, const int mounts[2], struct err *err) {
    struct buf text = {0};
    struct json_writer w = say(&text, "setup");
    json_put_string(&w, "name", n->plan->name);
    json_put_bool(&w, "privileged", n->cluster->plan->scenario->cluster.privileged);
    calls_put(n, &w);
    put_uptime(n, &w);
    const struct limits *limits = &n->cluster->plan->scenario->limits;
    json_put_i64(&w, "dead_man", limits->dead_man_ns);
    json_put_i64(&w, "end", limits->dead_man_ns + limits->total_ns);
    json_put_i64(&w, "linger", cluster_linger_ns(n->cluster->plan));
    n->cluster->isolation->put_setup(n, &w);
    if (mounts[0] >= 0)
        put_disks(n, &w);
    int fds[3];
    size_t fds_n = 0;
    for (size_t i = 0; i < 2 && mounts[i] >= 0; i++)
        fds[fds_n++] = mounts[i];
    if (n->clock >= 0)
        fds[fds_n++] = n->clock;
    return say_send(n, &text, &w, fds, fds_n, err);
}

void node_beat(struct node *n) {
    struct buf text = {0};
    struct json_writer w = say(&text, "beat");
    say_send(n, &text, &w, NULL, 0, NULL);
}

int node_say_net(struct node *n, struct err *err) {
    struct buf text = {0};
    struct json_writer w = say(&text, "net");
    json_put_string(&w, "addr", n->plan->addr);
    json_put_i64(&w, "prefix", ADDRESS_PREFIX);
    json_put_bool(&w, "metadata", plan_has_cloud(n->cluster->plan));
    return say_send(n, &text, &w, NULL, 0, err);
}

int node_run(struct node *n, const struct program *p, struct err *err) {
    struct buf text = {0};
    struct json_writer w = say(&text, "run");
    json_put_strings(&w, "argv", p->argv);
    json_put_strings(&w, "env", p->env);
    json_put_string(&w, "cwd", p->cwd);
    if (n->link)
        host_link_log(n->link, p->log);
    n->asked_ns = clock_monotonic_ns();
    int r = say_send(n, &text, &w, &p->log, !n->link, err);
    n->asked = r == 0;
    return r;
}

/* Another host has no descriptor of ours, but the directory of the run. */
static int put_kept(const struct node *n, const struct target *t, struct json_writer *w,
                    struct err *err) {
    char path[PATH_MAX];
    if (!n->link || !t->keep)
        return 0;
    int r = kept_file_name(t->keep, n->plan->host->hello.uid != geteuid(), path, sizeof(path), err);
    if (r == 0)
        json_put_string(w, "keep", path);
    return r;
}

static struct json_writer begin_fault(struct buf *text, struct node *n, const struct fault *f,
                                      const struct target *t, const struct fault_args *a,
                                      uint64_t token, bool recover) {
    struct json_writer w = say(text, "fault");
    json_put_i64(&w, "token", (int64_t)token);
    json_put_string(&w, "fault", f->name);
    json_put_bool(&w, "recover", recover);
    json_put_i64(&w, "kind", t->kind);
    json_put_string(&w, "name", t->name);
    json_put_i64(&w, "seed", a ? (int64_t)a->seed : 0);
    json_object(&w, "store");
    json_put_string(&w, "address", t->store.address);
    json_put_i64(&w, "port", t->store.port);
    json_put_string(&w, "token", t->store.token);
    json_put_i64(&w, "number", t->store.number);
    json_end_object(&w);
    json_object(&w, "args");
    for (size_t i = 0; a && i < a->n; i++)
        json_put_string(&w, a->v[i].key, a->v[i].value);
    json_end_object(&w);
    if (n->link)
        host_link_put_target(n->link, t, &w);
    return w;
}

static void note_rule(struct node *n, const struct fault *f, const struct target *t,
                      const struct fault_args *a, bool recover) {
    BUF_FINI struct buf order = {0};
    struct disk_rule rule;
    enum node_place place;
    if (f->rule(a, &rule, &place, NULL) != 0 || node_disk_place(n, place, &rule, NULL) != 0)
        return; /* the helper will say so */
    begin_fault(&order, n, f, t, a, 0, false);
    if (recover)
        far_rules_drop(n->far_rules, &rule);
    else
        far_rules_add(n->far_rules, &order, &rule);
}

static int say_fault(struct node *n, const struct fault *f, const struct target *t,
                     const struct fault_args *a, uint64_t token, bool recover, struct err *err) {
    struct buf text = {0};
    struct json_writer w = begin_fault(&text, n, f, t, a, token, recover);
    if (n->link && f->rule)
        note_rule(n, f, t, a, recover);
    int r = put_kept(n, t, &w, err);
    if (r) {
        buf_fini(&text);
        return r;
    }
    const int fds[] = {t->pidfd, t->keep};
    return say_send(n, &text, &w, fds, t->pidfd < 0 || n->link ? 0 : t->keep ? 2 : 1, err);
}

int node_sockets(struct node *n, uint16_t port, int round, struct err *err) {
    struct buf text = {0};
    struct json_writer w = say(&text, "sockets");
    json_put_i64(&w, "port", port);
    json_put_i64(&w, "round", round);
    return say_send(n, &text, &w, NULL, 0, err);
}

int node_inject(struct node *n, const struct fault *f, const struct target *t,
                const struct fault_args *a, uint64_t token, struct err *err) {
    return say_fault(n, f, t, a, token, false, err);
}

int node_recover(struct node *n, const struct fault *f, const struct target *t,
                 const struct fault_args *a, uint64_t token, struct err *err) {
    return say_fault(n, f, t, a, token, true, err);
}

/* ---- what comes from the node ---- */

static void name_it(const struct node *n, struct err *err) {
    if (n->link)
        err_wrap(err, "%s (%s): ", n->plan->name, n->plan->host->name);
    else
        err_wrap(err, "%s: ", n->plan->name);
}

void node_failed(struct node *n, struct err *err) {
    name_it(n, err);
    cluster_failed(n->cluster, err);
}

/* Whoever is not accepted waits, and the job with it: it would be blamed for standing still. */
static void not_accepted(struct node *n, int error) {
    struct err err;
    bool limit = error == EMFILE || error == ENFILE;
    if (!limit && error != ENOBUFS && error != ENOMEM)
        return;
    err_set(&err, -error, "take a connection of a worker%s",
            error == EMFILE ? "; let the harness open more files (ulimit -n)" : "");
    node_failed(n, &err);
}

static void on_client(void *arg, int fd, int what) {
    struct node *n = arg;
    struct ucred who;
    socklen_t len = sizeof(who);
    int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0) {
        not_accepted(n, errno);
        return;
    }
    if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && n->cluster->cb.client)
        n->cluster->cb.client(n->cluster->arg, n, client, who.pid);
    else
        close(client);
}

static void on_ready(struct node *n, struct message *m) {
    struct err err;
    n->listener = message_take_fd(m, 0);
    if (n->listener >= 0) /* else its helper listens there */
        n->on_listener = loop_fd(n->cluster->loop, n->listener, LOOP_READ, on_client, n);
    if (n->cluster->isolation->ready(n, m, &err) != 0)
        node_failed(n, &err);
}

void node_up(struct node *n) {
    n->state = NODE_ON;
    loop_timer_off(n->on_late);
    if (n->cluster->far_cut)
        far_cut_joined(n->cluster->far_cut, n);
    if (n->cluster->cb.node_up)
        n->cluster->cb.node_up(n->cluster->arg, n);
}

static void on_net(struct node *n, struct message *m) {
    node_up(n);
}

static void on_started(struct node *n, struct message *m) {
    process_close(&n->program);
    n->asked = false;
    n->program.pidfd = n->link ? host_link_started(n->link, m->json) : message_take_fd(m, 0);
    n->uptime_there = (struct node_uptime){.monotonic_ns = json_get_i64(m->json, "monotonic", 0),
                                           .boottime_ns = json_get_i64(m->json, "boottime", 0)};
    if (n->program.pidfd >= 0)
        n->program.pid = n->link ? host_process_number(n->port, json_get_i64(m->json, "pid", 0))
                                 : process_pid_of(n->program.pidfd);
    calls_watch(n, message_take_fd(m, 1));
    if (n->cluster->cb.program_started)
        n->cluster->cb.program_started(n->cluster->arg, n, n->program.pid, n->program.pidfd);
}

static void program_ended(struct node *n, int status) {
    struct process p = n->program;
    n->program = PROCESS_NONE;
    if (n->cluster->cb.program_exited)
        n->cluster->cb.program_exited(n->cluster->arg, n, p.pid, status);
    process_close(&p);
}

static void on_again(void *arg, int64_t now_ns) {
    struct node *n = arg;
    n->on_again = loop_source_free(n->on_again);
    if (n->cluster->cb.program_due && !n->cluster->going_down)
        n->cluster->cb.program_due(n->cluster->arg, n, n->empty);
}

static void on_exited(struct node *n, struct message *m) {
    bool again = n->again;
    int status = (int)json_get_i64(m->json, "status", 0);
    n->again = false;
    if (n->link)
        host_link_exited(n->link, n->program.pid, status);
    program_ended(n, status);
    if (!again || n->on_again)
        return;
    n->on_again = loop_timer(n->cluster->loop, on_again, n);
    loop_timer_at(n->on_again, clock_monotonic_ns() + n->again_ns);
}

static void on_failed(struct node *n, struct message *m) {
    if (n->cluster->cb.program_failed)
        n->cluster->cb.program_failed(n->cluster->arg, n, json_get_string(m->json, "why", ""));
}

static void on_leftovers(struct node *n, struct message *m) {
    json_each(it, json_get(json_get(m->json, "found"), "cgroups"))
        cluster_saw_cgroup(n->cluster, json_string(it, ""));
    if (n->cluster->cb.leftovers)
        n->cluster->cb.leftovers(n->cluster->arg, n, json_get(m->json, "found"));
}

static void on_sockets(struct node *n, struct message *m) {
    if (n->cluster->cb.sockets)
        n->cluster->cb.sockets(n->cluster->arg, n, (uint16_t)json_get_i64(m->json, "port", 0),
                               (int)json_get_i64(m->json, "round", 0), json_get(m->json, "found"));
}

static void on_injected(struct node *n, struct message *m) {
    if (n->link)
        host_link_injected(n->link, m->json);
    if (n->cluster->cb.injected)
        n->cluster->cb.injected(n->cluster->arg, n, (uint64_t)json_get_i64(m->json, "token", 0),
                                json_get_string(m->json, "error", NULL));
}

static void on_healed(struct node *n, struct message *m) {
    cluster_healed(n->cluster, n->plan->name, m->json);
}

static void on_broken(struct node *n, struct message *m) {
    struct err err;
    err_say(&err, -EIO, "%s", json_get_string(m->json, "error", "it broke"));
    node_failed(n, &err);
}

static void on_hello(struct node *n, struct message *m) {
    struct hello h;
    struct err err;
    hello_take(m->json, &h);
    n->greeted = true;
    if (hello_check(&h, n->plan->name, &err) != 0)
        cluster_failed(n->cluster, &err);
}

/* What it still had to undo when it was told to end, and what it could not take along. */
static void on_bye(struct node *n, struct message *m) {
    n->bade = json_get_i64(m->json, "signal", 0) == 0;
    far_rules_bye(n->far_rules, m->json);
    cluster_left(n->cluster, n->plan->name, json_get(m->json, "left"));
}

static void refuse(struct node *n, const char *op) {
    struct err err;
    err_say(&err, -EPROTO,
            "its helper said \"%s\"%s, which nobody understands: give both ends the "
            "same version of RankQuake",
            op, n->greeted ? "" : " before it said hello");
    node_failed(n, &err);
}

void node_handle(struct node *n, struct message *m) {
    static const struct {
        const char *op;
        void (*fn)(struct node *n, struct message *m);
    } ops[] = {{"hello", on_hello},         {"ready", on_ready},       {"net", on_net},
               {"started", on_started},     {"exited", on_exited},     {"failed", on_failed},
               {"leftovers", on_leftovers}, {"injected", on_injected}, {"sockets", on_sockets},
               {"healed", on_healed},       {"broken", on_broken},     {"bye", on_bye}};
    const char *op = json_get_string(m->json, "op", "");
    size_t i = 0;
    if (n->link)
        host_link_note(n->link, m->json);
    while (i < sizeof(ops) / sizeof(*ops) && !str_eq(op, ops[i].op))
        i++;
    if (i < sizeof(ops) / sizeof(*ops) && (n->greeted || ops[i].fn == on_hello))
        ops[i].fn(n, m);
    else if (!n->greeted || !n->link || !host_link_hear(n->link, op, m->json))
        refuse(n, op);
    if (n->link)
        host_link_note(n->link, NULL);
}

bool node_moment(const struct node *n, struct clock_stamp *ret) {
    return n->link && host_link_moment(n->link, ret);
}

int64_t node_asked_ns(const struct node *n) {
    return n->asked_ns;
}

static void handle(void *arg, struct message *m) {
    struct node *n = arg;
    power_heard(n);
    if (!n->cluster->far_cut || !far_cut_takes(n->cluster->far_cut, n, m))
        node_handle(n, m);
}

/* Its end is told by its pidfd; only what is no message says more than that. */
static void on_silent(void *arg, const struct err *why) {
    struct node *n = arg;
    struct err err = *why;
    if (n->cluster->far_cut)
        far_cut_lost(n->cluster->far_cut, n);
    if (why->code == -EPROTO)
        node_failed(n, &err);
}

/* ---- its end ---- */

/* A node that ends takes its program along: the kernel kills what lives in its pid namespace before
 * the first process is reported dead. The helper, which would tell how it ended, is gone: before
 * Linux 6.15 it is taken for killed. */
static void program_taken_along(struct node *n) {
    int status;
    if (n->link)
        host_process_node_ended(n->port, clock_monotonic_ns());
    if (!n->program.pid)
        return;
    if (process_exit_info(n->program.pidfd, &status) != 0)
        status = SIGKILL;
    program_ended(n, status);
}

/* A host may be taken away in the moment in which a run ends by that: its programs are told first. */
static void tell_end(struct node *n, int status, const char *said) {
    struct cluster *c = n->cluster;
    bool late = c->going_down && n->link && n->greeted && !n->bade;
    char text[64];
    struct err err;
    if (c->going_down ? !late : n->killed)
        return;
    err_say(&err, -ECHILD, "%s%s: %s%s%s%s",
            n->link ? "it was lost" : "its first process ended by itself",
            late ? " as the run ended" : "", process_status_text(status, text, sizeof(text)),
            *said ? ", \"" : "", said, *said ? "\"" : "");
    name_it(n, &err);
    cluster_lost(c, &err);
}

static void on_end(void *arg, int fd, int what) {
    struct node *n = arg;
    struct cluster *c = n->cluster;
    int status = 0;
    struct err err;
    carrier_read(n->control); /* what it still had to say */
    const char *said = n->link ? host_link_last_words(n->link) : "";
    process_reap(&n->init, 0, &status);
    /* Before its pidfd is closed: who has a copy of it would keep it in the loop, under a number that
     * may be the next one's. */
    n->on_end = loop_source_free(n->on_end);
    process_close(&n->init);
    n->state = NODE_OFF;
    n->uptime = (struct node_uptime){0};
    n->asked = false;
    program_taken_along(n);
    close_all(n);
    node_unlimit_all(n);
    c->isolation->ended(n);
    if (!c->going_down && disk_link_off(n, &err) != 0)
        node_failed(n, &err);
    tell_end(n, status, said);
    if (c->cb.node_down)
        c->cb.node_down(c->arg, n);
    power_node_ended(n);
    cluster_settle(c);
}

void node_kill(struct node *n) {
    n->killed = true;
    if (n->init.pid) {
        disk_link_let_go(n);
        n->cluster->isolation->kill(n);
    }
}

/* ---- its beginning ---- */

static void on_late(void *arg, int64_t now_ns) {
    struct node *n = arg;
    struct err err;
    const char *said = n->link ? host_link_last_words(n->link) : "";
    err_say(&err, -ETIME, "not up after %d s: %s%s", (int)(start_wait(n) / 1000000000),
            n->link ? "the host does not answer; " : "this host is out of breath", said);
    node_failed(n, &err);
}

static int prepare_disk(struct node *n, bool fresh, struct err *err) {
    const struct folder *run = n->cluster->run;
    const char *name = n->disk + strlen(n->cluster->dir) + 1;
    int r = fresh ? folder_remove(run, name, err) : 0;
    return r ? r : folder_make(run, name, 0777, err);
}

int node_start(struct node *n, bool fresh_disk, struct err *err) {
    struct cluster *c = n->cluster;
    if (n->state != NODE_OFF || n->init.pid)
        return err_say(err, -EBUSY, "%s is on already", n->plan->name);
    if (c->going_down)
        return err_say(err, -ECANCELED, "%s: the run is ending", n->plan->name);
    c->isolation->forget(n); /* of its last life */
    FILE_CLOSE int own = -1;
    FILE_CLOSE int shared = -1;
    int mounts[2] = {-1, -1}, r = prepare_disk(n, fresh_disk, err);
    r = r ? r : disk_link_mount(n, mounts, err);
    r = r ? r : node_disk_again(n, err);
    own = mounts[0];
    shared = mounts[1];
    if (r == 0)
        r = node_clock_make(n, err);
    if (r == 0)
        r = c->isolation->spawn(n, err);
    if (r) {
        disk_link_off(n, NULL);
        return err_wrap(err, "%s: ", n->plan->name);
    }
    n->killed = n->silent = false;
    n->state = NODE_SETUP;
    n->greeted = n->bade = false;
    n->control = carrier_new(c->loop, &n->ends, &(struct carrier_listener){handle, on_silent, n});
    n->ends = CARRIER_ENDS_NONE;
    n->on_end = loop_fd(c->loop, n->init.pidfd, LOOP_READ, on_end, n);
    n->on_late = loop_timer(c->loop, on_late, n);
    loop_timer_at(n->on_late, clock_monotonic_ns() + start_wait(n));
    r = say_hello(n, err);
    return r ? r : say_setup(n, mounts, err);
}

/* ---- as a target ---- */

static int op_kill(void *node, struct err *err) {
    struct node *n = node;
    if (!n->init.pid)
        return err_say(err, -ESRCH, "%s is off", n->plan->name);
    node_kill(n);
    return 0;
}

static int op_cut_power(void *node, struct err *err) {
    return power_cut(node, err);
}

static int op_silence(void *node, bool on, struct err *err) {
    struct node *n = node;
    return n->cluster->isolation->silence(n, on, err);
}

static int op_part(void *node, const char *groups, const struct impairment *how, bool on,
                   struct err *err) {
    const struct node *n = node;
    return partition_set(n->cluster, groups, how, 1, true, on, err);
}

static int op_impair(void *node, const char *groups, const struct impairment *how, size_t count,
                     bool on, struct err *err) {
    const struct node *n = node;
    for (size_t i = 0; i < count && !n->cluster->isolation->impairs; i++)
        if (impairment_does(&how[i]) != IMPAIRMENT_CUTS)
            return err_say(err, -ENOTSUP,
                           "nodes that are processes have no wire on which frames could be "
                           "impaired; what they send each other can only be cut off");
    return partition_set(n->cluster, groups, how, count, false, on, err);
}

static int op_forget_connections(void *node, unsigned planes, struct err *err) {
    struct node *n = node;
    if (!n->cluster->isolation->forget_connections)
        return err_say(err, -ENOTSUP,
                       "the connections of a node that is processes cannot be taken from it");
    return n->cluster->isolation->forget_connections(n, planes, err);
}

static int op_destroy_sockets(void *node, struct err *err) {
    struct node *n = node;
    return n->cluster->isolation->destroy_sockets(n, err);
}

static int op_start(void *node, bool fresh_disk, struct err *err) {
    struct node *n = node;
    return power_is_out(n) ? power_give(n, fresh_disk, err) : node_start(n, fresh_disk, err);
}

static int op_start_at(void *node, const struct node_uptime *uptime, struct err *err) {
    struct node *n = node;
    if (!n->cluster->isolation->uptimes)
        return err_say(err, -ENOTSUP, "nodes that are processes have the uptime of the host");
    if (power_is_out(n))
        return err_say(err, -ENOTSUP,
                       "%s is without power: its host has an uptime of its own when it is back",
                       n->plan->name);
    if (n->state != NODE_OFF || n->init.pid)
        return err_say(err, -EBUSY, "%s is on already", n->plan->name);
    n->uptime = *uptime;
    return node_start(n, false, err);
}

static int op_shift_clock(void *node, const struct clock_shift *shift, struct err *err) {
    return node_clock_shift(node, shift, err);
}

static int op_limit(void *node, enum node_limit what, int64_t value, struct err *err) {
    return node_limit(node, what, value, err);
}

static int op_unlimit(void *node, enum node_limit what, struct err *err) {
    return node_unlimit(node, what, err);
}

/* What is a node's own goes with it; what lies elsewhere would stay on the host. */
static bool is_own(const struct node *n, const char *path) {
    return n->cluster->isolation == &isolation_namespaces &&
           (str_starts(path, "/tmp/") || str_starts(path, "/run/"));
}

static int op_tell_cloud(void *node, const char *cloud, const char *said, struct err *err) {
    struct node *n = node;
    if (n->cluster->isolation != &isolation_namespaces)
        return 0; /* who asks there would ask the host's own cloud */
    struct buf text = {0};
    struct json_writer w = say(&text, "notice");
    json_put_string(&w, "cloud", cloud);
    json_put_string(&w, "text", said);
    return say_send(n, &text, &w, NULL, 0, err);
}

static int op_leave_file(void *node, const char *path, const char *text, struct err *err) {
    const struct node *n = node;
    struct folder root;
    char dir[64];
    if (*path == '/' && !is_own(n, path))
        return err_say(
            err, -EINVAL,
            "%s: %s is not the node's own: name a file of its disk, without a / in front%s",
            n->plan->name, path,
            n->cluster->isolation == &isolation_namespaces ? ", or one below /tmp or /run" : "");
    snprintf(dir, sizeof(dir), "/proc/%d/root", (int)n->init.pid);
    int r = folder_open(&root, *path == '/' ? dir : n->disk, err);
    if (r)
        return r;
    path += *path == '/';
    const char *slash = strrchr(path, '/');
    char *parent = mem_printf("%.*s", slash ? (int)(slash - path) : 0, path);
    r = *parent ? folder_make(&root, parent, 0755, err) : 0;
    r = r ? r : folder_write(&root, path, text, strlen(text), err);
    free(parent);
    folder_close(&root);
    return r ? err_wrap(err, "%s: ", n->plan->name) : 0;
}

static int op_open_place(void *node, enum node_place place, bool inside, struct folder *ret,
                         struct err *err) {
    const struct node *n = node;
    const char *path = place == NODE_DISK ? n->disk : n->cluster->shared;
    char *seen = inside && n->init.pid ? mem_printf("/proc/%d/root%s", (int)n->init.pid, path)
                                       : mem_strdup(path);
    int r = folder_open(ret, seen, err);
    free(seen);
    return r ? err_wrap(err, "%s: ", n->plan->name) : 0;
}

static int op_disk_rule(void *node, const struct disk_rule *rule, enum node_place place, bool on,
                        struct err *err) {
    return node_disk_rule(node, rule, place, on, err);
}

static int op_signal_program(void *node, int signo, struct err *err) {
    const struct node *n = node;
    if (!n->program.pid)
        return err_say(err, -ESRCH, "nothing runs on %s", n->plan->name);
    if (n->link)
        return host_link_signal(n->link, n->program.pid, signo, err);
    int r = process_signal(&n->program, signo);
    return r ? err_set(err, r, "send a signal to the program of %s", n->plan->name) : 0;
}

static int op_run_again(void *node, bool empty, int64_t after_ns, struct err *err) {
    struct node *n = node;
    if (!n->program.pid)
        return err_say(err, -ESRCH, "nothing runs on %s", n->plan->name);
    if (n->again)
        return err_say(err, -EBUSY, "what runs on %s is being started again already",
                       n->plan->name);
    n->again = true;
    n->empty = empty;
    n->again_ns = after_ns;
    return 0;
}

static const struct node_ops ops = {
    .limit = op_limit,
    .unlimit = op_unlimit,
    .leave_file = op_leave_file,
    .open_place = op_open_place,
    .tell_cloud = op_tell_cloud,
    .disk_rule = op_disk_rule,
    .signal_program = op_signal_program,
    .kill = op_kill,
    .cut_power = op_cut_power,
    .silence = op_silence,
    .part = op_part,
    .impair = op_impair,
    .forget_connections = op_forget_connections,
    .destroy_sockets = op_destroy_sockets,
    .start = op_start,
    .start_at = op_start_at,
    .shift_clock = op_shift_clock,
    .run_again = op_run_again,
};

void node_target(struct node *n, struct target *ret) {
    *ret = (struct target){
        .kind = TARGET_NODE, .pid = n->init.pid, .pidfd = n->init.pidfd, .ops = &ops, .node = n};
    str_copy(ret->name, sizeof(ret->name), n->plan->name);
}

int node_agent_target(struct node *n, struct target *ret) {
    if (!n->program.pid)
        return -ESRCH;
    *ret = (struct target){.kind = n->plan->is_store ? TARGET_STORE : TARGET_AGENT,
                           .pid = n->program.pid,
                           .pidfd = n->program.pidfd,
                           .far = n->link,
                           .ops = &ops,
                           .node = n};
    snprintf(ret->name, sizeof(ret->name), "%s of %s", n->plan->is_store ? "store" : "agent",
             n->plan->name);
    return 0;
}

bool node_is_cut_by_table(const struct node *n) {
    return n->link && far_cut_is_by_table(n);
}

pid_t node_far_number(const struct node *n) {
    return n->link ? host_process_number(n->port, 0) : 0;
}

bool node_uptime_there(const struct node *n, struct node_uptime *ret) {
    *ret = n->uptime_there;
    return n->link;
}

const struct plan_node *node_plan(const struct node *n) {
    return n->plan;
}

const char *node_tmp_dir(const struct node *n) {
    return n->tmp;
}

const char *node_events_path(const struct node *n) {
    return n->events;
}

const char *node_disk_dir(const struct node *n) {
    return n->disk;
}

const char *node_programs(const struct node *n, const char *bin) {
    return n->plan->rootfs ? BUNDLE_PROGRAMS : bin;
}

const char *node_cgroup(const struct node *n, enum node_limit what) {
    return n->limits[what].path;
}

const char *node_far_counts(const struct node *n, enum node_limit what) {
    return n->link ? n->counted[what] ? n->counted[what] : "" : NULL;
}

bool node_is_on(const struct node *n) {
    return n->state == NODE_ON;
}

pid_t node_program_pid(const struct node *n) {
    return n->program.pid;
}

bool node_is_busy(const struct node *n) {
    return n->asked || n->program.pid;
}
