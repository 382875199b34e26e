#include "harness/cluster/cut.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "faults/mechanism/socket_cut.h"
#include "faults/mechanism/wire_rules.h"
#include "harness/cluster/census.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A copy of one silent socket. It is kept for what the kernel counts at it, and so that a dead
 * node's sockets do not answer. */
struct held {
    struct list link;
    int fd, from, to; /* of node `to`, which hears nothing from node `from`; -1: from anybody */
    unsigned plane;
    uint64_t inode;
    uint32_t before;  /* dropped when it was taken */
    int64_t heard_by; /* segments taken in when it was silent, or a -errno */
};

/* Counters as they were when somebody asked for them. */
struct cut_answer {
    struct list link;
    struct wire_counters v[];
};

struct cut {
    struct cluster *cluster;
    struct list held, answers;
    struct loop_source *on_answer, *on_flap;
    unsigned char bootstrap[65536 / 8];
    /* counted at sockets that are let go, by sender and receiver: dropped, and passed by plane */
    uint64_t closed[CLUSTER_NODES_MAX][CLUSTER_NODES_MAX];
    uint64_t passed[PLANES_N][CLUSTER_NODES_MAX][CLUSTER_NODES_MAX];
};

/* ---- who hears whom ---- */

static bool is_silent(const struct cut *k, int i) {
    return i >= 0 && k->cluster->nodes[i]->silent;
}

/* A cut lasts, unless it flaps. */
static bool is_down(const struct partition *p) {
    return !p->how.flap_period_ns ||
           impairment_is_down(&p->how, clock_monotonic_ns() - p->since_ns);
}

static int64_t flap_left_ns(const struct partition *p) {
    int64_t phase = (clock_monotonic_ns() - p->since_ns) % p->how.flap_period_ns;
    return (phase < p->how.flap_down_ns ? p->how.flap_down_ns : p->how.flap_period_ns) - phase;
}

static bool is_closed(const struct cut *k, int from, int to, unsigned plane) {
    if (from == to)
        return false;
    if (is_silent(k, from) || is_silent(k, to))
        return true;
    if (from < 0 || to < 0 || from >= CLUSTER_NODES_MAX || to >= CLUSTER_NODES_MAX)
        return false;
    list_each(it, &k->cluster->partitions) {
        const struct partition *p = list_entry(it, struct partition, link);
        if (p->how.planes & plane && is_down(p) &&
            impairment_is_between(&p->how, p->group[from], p->group[to]))
            return true;
    }
    return false;
}

static bool is_cutting(const struct cut *k) {
    for (size_t i = 0; i < k->cluster->nodes_n; i++)
        if (is_silent(k, (int)i))
            return true;
    return !list_empty(&k->cluster->partitions);
}

static unsigned plane_of_port(const struct cut *k, uint16_t port) {
    enum { SSH = 22 };
    if (port == PLAN_STORE_PORT)
        return PLANE_STORE;
    if (k->bootstrap[port / 8] & 1 << port % 8)
        return PLANE_BOOTSTRAP;
    return port == SSH ? PLANE_SSH : PLANE_DATA;
}

static unsigned plane_of(const struct cut *k, uint16_t a, uint16_t b) {
    unsigned plane = plane_of_port(k, a);
    return plane != PLANE_DATA ? plane : plane_of_port(k, b);
}

void cut_bootstrap(struct cluster *c, uint16_t port) {
    if (c->cut)
        c->cut->bootstrap[port / 8] |= (unsigned char)(1 << port % 8);
}

/* ---- what is held ---- */

static bool is_between_nodes(const struct held *h) {
    return h->from >= 0 && h->from < CLUSTER_NODES_MAX && h->to < CLUSTER_NODES_MAX;
}

/* What has come to a silent socket all the same. Of one that does not tell it is not known that
 * nothing has. */
static uint64_t passed_at(const struct held *h) {
    int64_t now = socket_taken_in(h->fd);
    return now < 0 || h->heard_by < 0 ? 1 : (uint64_t)(now - h->heard_by);
}

static void add_up(struct cut *k, const struct held *h) {
    if (!is_between_nodes(h))
        return;
    k->closed[h->from][h->to] += socket_drops(h->fd) - h->before;
    for (int i = 0; i < PLANES_N; i++)
        if (h->plane >> i & 1)
            k->passed[i][h->from][h->to] += passed_at(h);
}

static void let_go(struct cut *k, struct held *h, bool heal) {
    add_up(k, h);
    if (heal)
        socket_silence(h->fd, false);
    close(h->fd);
    list_remove(&h->link);
    free(h);
}

static bool is_held(const struct cut *k, uint64_t inode) {
    list_each(it, &k->held) if (list_entry(it, struct held, link)->inode == inode) return true;
    return false;
}

static int hold(struct cut *k, pid_t pid, int number, const struct held *like) {
    struct process p;
    int r = process_open(pid, &p, NULL);
    int fd = r ? r : socket_take(p.pidfd, number);
    if (r == 0)
        process_close(&p);
    if (fd < 0)
        return fd;
    struct held *h = mem_new(struct held);
    struct stat st;
    *h = *like;
    h->fd = fd;
    h->inode = fstat(fd, &st) == 0 ? st.st_ino : like->inode;
    h->before = socket_drops(fd);
    list_append(&k->held, &h->link);
    r = socket_silence(fd, true);
    h->heard_by = socket_taken_in(fd);
    return r;
}

/* It was closed meanwhile, or is nothing that frames come to: connect itself fails. */
static bool needs_no_cut(int code) {
    return code == -ESRCH || code == -EBADF || code == -ENOTSOCK || code == -EOPNOTSUPP ||
           code == -ENOPROTOOPT;
}

static int hold_socket(struct cut *k, const struct census_socket *s, int from, unsigned plane,
                       struct err *err) {
    struct held like = {.from = from, .to = s->node, .plane = plane, .inode = s->line.inode};
    if (is_held(k, like.inode))
        return 0;
    int r = hold(k, s->pid, s->fd, &like);
    return r == 0 || needs_no_cut(r) ? 0
                                     : err_set(err, r, "silence a connection of %s (process %d)",
                                               k->cluster->nodes[s->node]->plan->name, (int)s->pid);
}

static int look_at(struct cut *k, const struct census *all, const struct census_socket *s,
                   struct err *err) {
    if (s->node < 0 || !s->pid)
        return 0;
    if (s->line.state == SOCKET_LISTENS)
        return is_silent(k, s->node) ? hold_socket(k, s, -1, PLANE_ALL, err) : 0;
    int from = census_peer(all, s);
    unsigned plane = plane_of(k, s->line.local_port, s->line.remote_port);
    return from >= 0 && is_closed(k, from, s->node, plane) ? hold_socket(k, s, from, plane, err)
                                                           : 0;
}

static void expect_flap(struct cut *k) {
    int64_t left = INT64_MAX;
    list_each(it, &k->cluster->partitions) {
        const struct partition *p = list_entry(it, struct partition, link);
        if (p->how.flap_period_ns && flap_left_ns(p) < left)
            left = flap_left_ns(p);
    }
    if (left == INT64_MAX)
        loop_timer_off(k->on_flap);
    else
        loop_timer_at(k->on_flap, clock_monotonic_ns() + left);
}

int cut_apply(struct cluster *c, struct err *err) {
    struct cut *k = c->cut;
    int r = 0;
    expect_flap(k);
    list_each_safe(it, next, &k->held) {
        struct held *h = list_entry(it, struct held, link);
        if (!is_closed(k, h->from, h->to, h->plane))
            let_go(k, h, true);
    }
    if (!is_cutting(k))
        return 0;
    struct census all;
    census_take(&all, c);
    for (size_t i = 0; i < all.n && r == 0; i++)
        r = look_at(k, &all, &all.v[i], err);
    census_fini(&all);
    return r;
}

void cut_let_die(struct cut *k, struct node *n) {
    list_each(it, &k->held) {
        struct held *h = list_entry(it, struct held, link);
        if (h->to == n->port && h->from >= 0)
            shutdown(h->fd, SHUT_WR);
    }
}

void cut_forget(struct cut *k, struct node *n) {
    list_each_safe(it, next, &k->held) {
        struct held *h = list_entry(it, struct held, link);
        if (h->to == n->port || h->from == n->port)
            let_go(k, h, h->to != n->port);
    }
}

/* ---- connections to come ---- */

void cut_call(struct cut *k, struct node *n, const struct watched_call *call) {
    struct held like = {.to = n->port};
    struct err err;
    uint16_t port;
    if (!is_cutting(k) || !census_destination(k->cluster, &call->to, &like.from, &port))
        return;
    like.plane = plane_of_port(k, port);
    if (!is_closed(k, like.from, like.to, like.plane) &&
        !is_closed(k, like.to, like.from, like.plane))
        return;
    int r = hold(k, call->pid, (int)call->args[0], &like);
    if (r == 0 || needs_no_cut(r))
        return;
    err_set(&err, r, "silence a new connection of %s (process %d)", n->plan->name, (int)call->pid);
    cluster_failed(k->cluster, &err);
}

/* ---- counting ---- */

static void count_pair(struct wire_counters *v, size_t from, size_t to, uint64_t packets) {
    v[from].cut_to[to] += packets;
    v[from].dropped_out += packets;
    v[to].dropped_in += packets;
}

static void count_held(struct wire_counters *v, const struct held *h) {
    count_pair(v, (size_t)h->from, (size_t)h->to, socket_drops(h->fd) - h->before);
    for (int i = 0; i < PLANES_N; i++)
        if (h->plane >> i & 1)
            v[h->from].passed_to[i][h->to] += passed_at(h);
}

static void count_closed(const struct cut *k, struct wire_counters *v, size_t from, size_t to) {
    count_pair(v, from, to, k->closed[from][to]);
    for (int i = 0; i < PLANES_N; i++)
        v[from].passed_to[i][to] += k->passed[i][from][to];
}

void cut_count(struct cut *k) {
    size_t n = k->cluster->nodes_n;
    struct cut_answer *a = mem_alloc(1, sizeof(*a) + n * sizeof(a->v[0]));
    for (size_t i = 0; i < n; i++)
        a->v[i].at_sockets = true;
    for (size_t from = 0; from < n && from < CLUSTER_NODES_MAX; from++)
        for (size_t to = 0; to < n && to < CLUSTER_NODES_MAX; to++)
            count_closed(k, a->v, from, to);
    list_each(it, &k->held) {
        const struct held *h = list_entry(it, struct held, link);
        if (is_between_nodes(h))
            count_held(a->v, h);
    }
    list_append(&k->answers, &a->link);
    loop_timer_at(k->on_answer, 0);
}

bool cut_is_planned(const struct cluster *c) {
    for (size_t i = 0; i < c->plan->entries_n; i++) {
        const struct planned_entry *pa = &c->plan->entries[i];
        if (pa->fault && plan_entry_needs(c->plan, pa) & FAULT_NEEDS_SILENCE)
            return true;
    }
    return false;
}

static void on_answer(void *arg, int64_t now_ns) {
    struct cut *k = arg;
    struct cluster *c = k->cluster;
    while (!list_empty(&k->answers)) {
        struct cut_answer *a = list_entry(k->answers.next, struct cut_answer, link);
        list_remove(&a->link);
        for (size_t i = 0; i < c->nodes_n && c->cb.counters && cut_is_planned(c); i++)
            c->cb.counters(c->arg, c->nodes[i], &a->v[i]);
        free(a);
        if (c->cb.counted)
            c->cb.counted(c->arg);
    }
}

static void on_flap(void *arg, int64_t now_ns) {
    struct cut *k = arg;
    struct err err;
    if (cut_apply(k->cluster, &err) != 0)
        cluster_failed(k->cluster, &err);
}

/* ---- its life ---- */

struct cut *cut_new(struct cluster *c) {
    struct cut *k = mem_new(struct cut);
    k->cluster = c;
    list_init(&k->held);
    list_init(&k->answers);
    k->on_answer = loop_timer(c->loop, on_answer, k);
    k->on_flap = loop_timer(c->loop, on_flap, k);
    return k;
}

struct cut *cut_free(struct cut *k) {
    if (!k)
        return NULL;
    list_each_safe(it, next, &k->held) let_go(k, list_entry(it, struct held, link), true);
    list_each_safe(at, after, &k->answers) {
        list_remove(at);
        free(list_entry(at, struct cut_answer, link));
    }
    loop_source_free(k->on_answer);
    loop_source_free(k->on_flap);
    free(k);
    return NULL;
}
