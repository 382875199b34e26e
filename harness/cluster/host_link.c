#include "harness/cluster/host_link.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/random.h"
#include "harness/carrier/clock_bound.h"
#include "harness/carrier/host_process.h"
#include "harness/cluster/far_calls.h"
#include "harness/host/host_clock.h"
#include "harness/provider/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SAID_MAX = 8192, SHARED_NAME_MAX = 128 };

/* Questions about files that are asked before the node is up. */
enum { FILE_SHARED = 1, FILE_PROBE };

struct far_client {
    struct host_link *link; /* NULL: its node is down */
    int64_t id;             /* the helper's */
    pid_t number;
    bool probe;
    void *told; /* what cluster_callbacks.far_client has returned */
    struct far_client *next;
};

struct host_link {
    struct node *node;
    struct arena arena; /* of the command */
    int said_fd, log;
    struct buf said; /* by the command on standard error */
    struct loop_source *on_said;
    struct far_client *clients;
    struct far_calls calls;
    struct clock_bound clock; /* theirs */
    struct loop_source *on_clock;
    unsigned asked,
        again;   /* asked: so often in this second; again: may be asked so often more at once */
    bool untold; /* what is known of it in this second */
    struct clock_stamp moment; /* of the message that is being told, if `told` */
    bool told;
    bool dumping;  /* it has been asked for a dump, and has not said that this is over */
    char mark[32]; /* in the file by which {shared} is known */
};

/* ---- the command ---- */

static void on_said(void *arg, int fd, int what) {
    struct host_link *l = arg;
    char bytes[1024];
    ssize_t n = read(fd, bytes, sizeof(bytes));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        l->on_said = loop_source_free(l->on_said);
        return;
    }
    if (l->said.len > SAID_MAX)
        buf_consume(&l->said, l->said.len / 2);
    buf_put(&l->said, bytes, (size_t)n);
}

const char *host_link_last_words(struct host_link *l) {
    for (size_t before = l->said.len + 1; l->on_said && before != l->said.len;) {
        before = l->said.len;
        on_said(l, l->said_fd, LOOP_READ);
    }
    while (l->said.len && strchr("\r\n ", l->said.data[l->said.len - 1]))
        l->said.data[--l->said.len] = 0;
    char *newline = l->said.len ? strrchr(l->said.data, '\n') : NULL;
    return newline ? newline + 1 : buf_str(&l->said);
}

static int spawn(struct host_link *l, int end, struct err *err) {
    const struct plan *p = l->node->cluster->plan;
    int said[2];
    if (pipe2(said, O_CLOEXEC) != 0)
        return err_set(err, -errno, "make a pipe");
    fcntl(said[0], F_SETFL, O_NONBLOCK);
    const struct process_spawn s = {
        .argv = p->provider->reach(&p->wish, l->node->plan->host->name, &l->arena),
        .fds = (int[]){end, end, said[1]},
        .session = true, /* Ctrl-C is the harness's to handle; nobody is asked for a password */
    };
    int r = process_spawn(&s, &l->node->init, err);
    close(said[1]);
    if (r) {
        close(said[0]);
        return r;
    }
    l->said_fd = said[0];
    l->on_said = loop_fd(l->node->cluster->loop, l->said_fd, LOOP_READ, on_said, l);
    return 0;
}

int host_link_start(struct node *n, struct err *err) {
    struct host_link *l = n->link;
    int ends[2];
    if (!l) {
        l = n->link = mem_new(struct host_link);
        *l = (struct host_link){.node = n, .said_fd = -1, .log = -1, .clock = n->plan->host->clock};
    }
    buf_clear(&l->said);
    host_process_note(host_process_number(n->port, 0), 0, 0);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return err_set(err, -errno, "make a socket pair");
    int r = spawn(l, ends[1], err);
    close(ends[1]);
    if (r)
        close(ends[0]);
    else
        n->ends = (struct carrier_ends){ends[0], ends[0], -1};
    return r;
}

static void dump_over(struct host_link *l, const char *error) {
    struct cluster *c = l->node->cluster;
    bool was = l->dumping;
    l->dumping = false;
    if (was && c->cb.dump_over)
        c->cb.dump_over(c->arg, l->node, error);
}

/* Whoever was told of a client may hold on to it: it is theirs to forget. */
void host_link_let_go(struct host_link *l) {
    struct cluster *c = l->node->cluster;
    while (l->clients) {
        struct far_client *k = l->clients;
        l->clients = k->next;
        if (k->told && c->cb.far_gone)
            c->cb.far_gone(c->arg, k->told, false);
        free(k);
    }
    far_calls_forget(&l->calls);
    dump_over(l, "its helper has ended");
    l->on_said = loop_source_free(l->on_said);
    l->on_clock = loop_source_free(l->on_clock);
    file_close(&l->said_fd);
    file_close(&l->log);
}

struct host_link *host_link_free(struct host_link *l) {
    if (!l)
        return NULL;
    host_link_let_go(l);
    arena_fini(&l->arena);
    buf_fini(&l->said);
    free(l);
    return NULL;
}

/* ---- moments ---- */

void host_link_note(struct host_link *l, const struct json *m) {
    int64_t theirs = m ? json_get_i64(m, "t", 0) : 0;
    int64_t late = m ? json_get_i64(m, "late", 0) : 0;
    l->told =
        theirs && clock_bound_stamp(&l->clock, theirs, late, clock_monotonic_ns(), &l->moment);
}

bool host_link_moment(const struct host_link *l, struct clock_stamp *ret) {
    if (l->told)
        *ret = l->moment;
    return l->told;
}

/* By our clock where nothing is known of theirs: it has come from there by now. */
static struct clock_stamp moment(const struct host_link *l) {
    struct clock_stamp s = {.t_ns = clock_monotonic_ns()};
    host_link_moment(l, &s);
    return s;
}

/* ---- their clock ---- */

/* In a second of silence a bound widens by 100 us to either side. So it is asked more often than it is told, and
 * again at once while the answers have been slow ones. */
enum { CLOCK_ASKED_A_SECOND = 5, CLOCK_AGAIN = 4 };

static const int64_t clock_good_ns = 50000; /* half of what is promised of a bound */

static void ask_clock(struct host_link *l) {
    struct buf text = {0};
    struct json_writer w = node_say(&text, "clock");
    json_put_i64(&w, "t1", clock_monotonic_ns());
    node_say_send(l->node, &text, &w, NULL);
}

static void on_clock_due(void *arg, int64_t now_ns) {
    struct host_link *l = arg;
    l->untold |= l->asked == 0;
    l->asked = (l->asked + 1) % CLOCK_ASKED_A_SECOND;
    l->again = CLOCK_AGAIN;
    ask_clock(l);
    loop_timer_at(l->on_clock, now_ns + 1000000000 / CLOCK_ASKED_A_SECOND);
}

static void on_clock(struct host_link *l, const struct json *m) {
    struct cluster *c = l->node->cluster;
    const struct clock_sample s = {.t1 = json_get_i64(m, "t1", 0),
                                   .t2 = json_get_i64(m, "t2", 0),
                                   .t3 = json_get_i64(m, "t3", 0),
                                   .t4 = carrier_heard_ns(l->node->control)};
    const struct clock_bound before = l->clock;
    int r = clock_bound_add(&l->clock, &s);
    bool good = (l->clock.high_ns - l->clock.low_ns) / 2 <= clock_good_ns;
    if (!good && l->again > 0) {
        l->again--;
        ask_clock(l);
    } else {
        l->again = 0;
    }
    bool due = r == -ESTALE || (r == 0 && l->untold && l->again == 0);
    if (!due)
        return;
    l->untold = false;
    if (c->cb.clock)
        c->cb.clock(c->arg, l->node, &l->clock, r == -ESTALE ? &before : NULL);
}

void host_link_begun_anew(struct host_link *l) {
    l->clock = (struct clock_bound){0};
}

/* ---- whether it can be used ---- */

static int ask_file(struct host_link *l, int64_t token, const char *path, struct err *err) {
    struct buf text = {0};
    struct json_writer w = node_say(&text, "file");
    json_put_i64(&w, "token", token);
    json_put_string(&w, "do", "read");
    json_put_string(&w, "path", path);
    json_put_i64(&w, "max", sizeof(l->mark) - 1);
    return node_say_send(l->node, &text, &w, err);
}

static void name_shared(const struct host_link *l, char ret[SHARED_NAME_MAX]) {
    snprintf(ret, SHARED_NAME_MAX, ".seen-by-%s", l->node->plan->name);
}

/* In the directory that all nodes are to share lies a file that nobody can guess. */
int host_link_ready(struct host_link *l, struct err *err) {
    const struct cluster *c = l->node->cluster;
    char name[SHARED_NAME_MAX];
    loop_source_free(l->on_clock); /* of a life before */
    l->asked = 0;
    l->on_clock = loop_timer(c->loop, on_clock_due, l);
    loop_timer_at(l->on_clock, 0);
    name_shared(l, name);
    snprintf(l->mark, sizeof(l->mark), "%016llx", (unsigned long long)random_u64());
    char *path = mem_printf("%s/%s", c->shared, name);
    int r = folder_write(c->run, path + strlen(c->dir) + 1, l->mark, strlen(l->mark), err);
    r = r ? r : ask_file(l, FILE_SHARED, path, err);
    free(path);
    return r;
}

static void refuse_file(struct host_link *l, const char *why, const char *path, const char *fix) {
    struct err err;
    err_say(&err, -ENOTSUP, "%s is not there what it is here (%s): %s", path, why, fix);
    node_failed(l->node, &err);
}

static void on_shared(struct host_link *l, const struct json *m) {
    const struct cluster *c = l->node->cluster;
    const char *error = json_get_string(m, "error", NULL);
    const char *text = json_get_string(m, "bytes", "");
    BUF_FINI struct buf bytes = {0};
    char name[SHARED_NAME_MAX];
    struct err err;
    name_shared(l, name);
    char *path = mem_printf("%s/%s", c->shared, name);
    folder_unlink(c->run, path + strlen(c->dir) + 1);
    bool same =
        !error && base64_take(&bytes, text, strlen(text)) && str_eq(buf_str(&bytes), l->mark);
    free(path);
    if (!same)
        refuse_file(l, error ? error : "another file is there", c->run->path,
                    "give --out a directory that all hosts share");
    else if (ask_file(l, FILE_PROBE, hosts_probe(l->node), &err) != 0)
        node_failed(l->node, &err);
}

static void on_probe(struct host_link *l, const struct json *m) {
    const char *error = json_get_string(m, "error", NULL);
    if (error)
        refuse_file(
            l, error, json_get_string(m, "path", "rankprobe"),
            "install this version of RankQuake at the same place on every host, or share it");
    else
        node_up(l->node);
}

static void on_file(struct host_link *l, const struct json *m) {
    int64_t token = json_get_i64(m, "token", 0);
    if (token == FILE_SHARED)
        on_shared(l, m);
    else if (token == FILE_PROBE)
        on_probe(l, m);
}

/* ---- who speaks there ---- */

static struct far_client *find(const struct host_link *l, const struct json *m) {
    struct far_client *k = l->clients;
    while (k && k->id != json_get_i64(m, "id", 0))
        k = k->next;
    return k;
}

/* Its ancestors are known by what it speaks for. */
static void note_ancestors(const struct host_link *l, const struct json *m) {
    int64_t pid = json_get_i64(m, "pid", 0), start = json_get_i64(m, "start", 0);
    int node = l->node->port;
    json_each(it, json_get(m, "above")) {
        int64_t above = json_get_i64(it, "pid", 0);
        host_process_note(host_process_number(node, pid), (uint64_t)start,
                          host_process_number(node, above));
        pid = above;
        start = json_get_i64(it, "start", 0);
    }
}

static void on_client(struct host_link *l, const struct json *m) {
    struct cluster *c = l->node->cluster;
    struct far_client *k = mem_new(struct far_client);
    *k =
        (struct far_client){.link = l,
                            .id = json_get_i64(m, "id", 0),
                            .number = host_process_number(l->node->port, json_get_i64(m, "pid", 0)),
                            .probe = json_get_bool(m, "probe", false),
                            .next = l->clients};
    note_ancestors(l, m);
    int end = host_process_watch(k->number, (uint64_t)json_get_i64(m, "start", 0));
    file_close(&end);
    l->clients = k;
    if (c->cb.far_client)
        k->told = c->cb.far_client(c->arg, l->node, k);
}

static void on_record(struct host_link *l, const struct json *m) {
    struct cluster *c = l->node->cluster;
    const struct far_client *k = find(l, m);
    const char *text = json_get_string(m, "text", "");
    struct clock_stamp at = moment(l);
    if (k && k->told && c->cb.far_said)
        c->cb.far_said(c->arg, k->told, text, strlen(text), &at);
}

static void on_gone(struct host_link *l, const struct json *m) {
    struct cluster *c = l->node->cluster;
    struct far_client *k = find(l, m), **at = &l->clients;
    bool other = str_eq(json_get_string(m, "image", ""), "other");
    if (!k)
        return;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    if (k->told && c->cb.far_gone)
        c->cb.far_gone(c->arg, k->told, other);
    free(k);
}

static void on_ended(struct host_link *l, const struct json *m) {
    const struct json *status = json_get(m, "status");
    bool known = status && status->type == JSON_INT;
    struct clock_stamp at = moment(l);
    host_process_ended(host_process_number(l->node->port, json_get_i64(m, "pid", 0)), known,
                       (int)json_get_i64(m, "status", 0), &at);
}

void host_link_arm(struct host_link *l) {
    const struct cluster *c = l->node->cluster;
    struct buf text = {0};
    struct json_writer w = node_say(&text, "arm");
    json_put_i64(&w, "kinds", c->armed_kinds);
    json_put_i64(&w, "next_step", (int64_t)c->armed_step);
    far_calls_put_wanted(c, &w);
    node_say_send(l->node, &text, &w, NULL);
}

void cluster_arm(struct cluster *c, uint32_t kinds, uint64_t next_step) {
    c->armed_kinds = kinds;
    c->armed_step = next_step;
    for (size_t i = 0; i < c->nodes_n; i++)
        if (c->nodes[i]->link && c->nodes[i]->state == NODE_ON)
            host_link_arm(c->nodes[i]->link);
}

pid_t far_client_pid(const struct far_client *c) {
    return c->number;
}

bool far_client_is_probe(const struct far_client *c) {
    return c->probe;
}

int far_client_end(const struct far_client *c) {
    return c->probe ? host_process_watch(c->number, host_process_start(c->number)) : -1;
}

void far_client_release(struct far_client *c) {
    struct buf text = {0};
    struct json_writer w = node_say(&text, "release");
    json_put_i64(&w, "id", c->id);
    node_say_send(c->link->node, &text, &w, NULL);
}

void far_client_forget(struct far_client *c) {
    c->told = NULL;
}

/* ---- what processes were given, and are doing ---- */

void cluster_ask_given(struct cluster *c, const struct given_key *key) {
    given_key_put(key, c->given);
}

static void on_given(struct host_link *l, const struct json *m) {
    struct cluster *c = l->node->cluster;
    int64_t pid = json_get_i64(m, "pid", 0);
    if (c->cb.given)
        c->cb.given(c->arg, l->node, pid ? host_process_number(l->node->port, pid) : 0,
                    json_get(m, "given"));
}

size_t cluster_dump(struct cluster *c, int64_t budget_ns) {
    size_t asked = 0;
    for (size_t i = 0; i < c->nodes_n; i++) {
        struct node *n = c->nodes[i];
        struct buf text = {0};
        if (!n->link || n->state != NODE_ON)
            continue;
        struct json_writer w = node_say(&text, "dump");
        json_put_i64(&w, "budget", budget_ns);
        n->link->dumping = node_say_send(n, &text, &w, NULL) == 0;
        asked += n->link->dumping;
    }
    return asked;
}

static void on_dumped(struct host_link *l, const struct json *m) {
    struct cluster *c = l->node->cluster;
    const char *bytes = json_get_string(m, "bytes", "");
    BUF_FINI struct buf text = {0};
    if (json_get_bool(m, "done", false))
        dump_over(l, json_get_string(m, "error", NULL));
    else if (base64_take(&text, bytes, strlen(bytes)) && c->cb.dumped)
        c->cb.dumped(c->arg, l->node, host_process_number(l->node->port, json_get_i64(m, "pid", 0)),
                     json_get_string(m, "name", ""), &text);
}

/* ---- who calls there ---- */

static void on_called(struct host_link *l, const struct json *m) {
    struct cluster *c = l->node->cluster;
    struct watched_call call;
    far_calls_take(&l->calls, l->node, m, &call);
    note_ancestors(l, m);
    if (!c->cb.called || !c->cb.called(c->arg, l->node, &call))
        host_link_pass(l, call.id);
}

void host_link_pass(struct host_link *l, uint64_t call) {
    far_calls_pass(&l->calls, l->node, call);
}

const struct far_call *host_link_call(const struct host_link *l, uint64_t call) {
    return far_calls_find(&l->calls, call);
}

static void on_struck(struct host_link *l, const struct json *m) {
    note_ancestors(l, m);
    node_disk_struck_there(l->node, m);
}

/* ---- its program ---- */

void host_link_log(struct host_link *l, int log) {
    file_close(&l->log);
    l->log = fcntl(log, F_DUPFD_CLOEXEC, 3);
}

static void on_output(struct host_link *l, const struct json *m) {
    const char *text = json_get_string(m, "bytes", "");
    BUF_FINI struct buf bytes = {0};
    if (l->log >= 0 && base64_take(&bytes, text, strlen(text)))
        file_write_all(l->log, bytes.data, bytes.len, NULL);
}

int host_link_started(struct host_link *l, const struct json *m) {
    return host_process_watch(host_process_number(l->node->port, json_get_i64(m, "pid", 0)),
                              (uint64_t)json_get_i64(m, "start", 0));
}

void host_link_exited(struct host_link *l, pid_t number, int status) {
    struct clock_stamp at = moment(l);
    host_process_ended(number, true, status, &at);
}

/* ---- faults ---- */

void host_link_put_target(struct host_link *l, const struct target *t, struct json_writer *w) {
    if (!host_process_is(t->pid))
        return;
    json_put_i64(w, "pid", host_process_pid(t->pid));
    json_put_i64(w, "start", (int64_t)host_process_start(t->pid));
}

int host_link_signal(struct host_link *l, pid_t number, int signo, struct err *err) {
    struct buf text = {0};
    struct json_writer w = node_say(&text, "signal");
    json_put_i64(&w, "token", 0);
    json_put_i64(&w, "pid", host_process_pid(number));
    json_put_i64(&w, "start", (int64_t)host_process_start(number));
    json_put_i64(&w, "signo", signo);
    return node_say_send(l->node, &text, &w, err);
}

static void on_signalled(struct host_link *l, const struct json *m) {
}

static void take_look(const struct host_link *l, const struct json *j, bool before) {
    const char *state = json_get_string(j, "state", "");
    host_process_seen(
        host_process_number(l->node->port, json_get_i64(j, "pid", 0)), before,
        &(struct host_process_look){
            .still = json_get_bool(j, "still", false),
            .waits = json_get_bool(j, "waits", false),
            .thread = host_process_number(l->node->port, json_get_i64(j, "thread", 0)),
            .state = *state,
            .call = (long)json_get_i64(j, "call", -1),
            .pending = (uint64_t)json_get_i64(j, "pending", 0),
            .blocked = (uint64_t)json_get_i64(j, "blocked", 0),
            .ignored = (uint64_t)json_get_i64(j, "ignored", 0),
            .caught = (uint64_t)json_get_i64(j, "caught", 0),
        });
}

/* What was told of a clock that is right again stays known. */
static void take_clock(const struct host_link *l, const struct json *m) {
    struct far_clock *c = &l->node->far_clock;
    host_clock_take(m, &c->setting, &c->told);
}

/* A new limit begins from nothing: its group is another one. */
static void take_counts(const struct host_link *l, const struct json *m) {
    json_each(it, json_get(m, "limits")) {
        int64_t what = json_get_i64(it, "limit", -1);
        if (what < 0 || what >= NODE_LIMITS_N)
            continue;
        free(l->node->counted[what]);
        l->node->counted[what] = mem_strdup(json_get_string(it, "text", ""));
    }
}

/* What the kernel there said of whom the fault has met, and of those who wait for it. */
void host_link_injected(struct host_link *l, const struct json *m) {
    json_each(it, json_get(m, "before")) take_look(l, it, true);
    json_each(it, json_get(m, "seen")) take_look(l, it, false);
    take_counts(l, m);
    take_clock(l, m);
}

void host_link_look(struct host_link *l, pid_t number) {
    struct buf text = {0};
    struct json_writer w = node_say(&text, "look");
    json_put_i64(&w, "pid", host_process_pid(number));
    json_put_i64(&w, "start", (int64_t)host_process_start(number));
    node_say_send(l->node, &text, &w, NULL);
}

static void on_look(struct host_link *l, const struct json *m) {
    struct cluster *c = l->node->cluster;
    json_each(it, json_get(m, "seen")) take_look(l, it, false);
    take_counts(l, m);
    take_clock(l, m);
    if (c->cb.far_seen)
        c->cb.far_seen(c->arg);
}

void cluster_look_far(struct cluster *c, const pid_t *pids, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < c->nodes_n; k++)
            if (c->nodes[k]->link && c->nodes[k]->state == NODE_ON &&
                host_process_number(c->nodes[k]->port, host_process_pid(pids[i])) == pids[i])
                host_link_look(c->nodes[k]->link, pids[i]);
}

/* ---- what it says ---- */

bool host_link_hear(struct host_link *l, const char *op, const struct json *m) {
    static const struct {
        const char *op;
        void (*fn)(struct host_link *l, const struct json *m);
    } ops[] = {{"client", on_client}, {"record", on_record},       {"gone", on_gone},
               {"ended", on_ended},   {"output", on_output},       {"file", on_file},
               {"look", on_look},     {"signalled", on_signalled}, {"clock", on_clock},
               {"called", on_called}, {"struck", on_struck},       {"given", on_given},
               {"dumped", on_dumped}};
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
        if (str_eq(op, ops[i].op)) {
            ops[i].fn(l, m);
            return true;
        }
    return false;
}
