#include "harness/cluster/far_cut.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "harness/cluster/cut.h"
#include "harness/provider/examined_host.h"
#include "harness/provider/provider.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t answer_wait_ns = 30000000000;

enum { NAME_MAX_LEN = 80 };

/* A message that came while answers were waited for. */
struct late_message {
    struct list link;
    struct node *node;
    struct message m;
};

/* Counted of a pair of nodes: of cuts that are over, and of those in force when last asked. */
struct pair_count {
    uint64_t over_dropped, over_passed[PLANES_N], dropped, passed[PLANES_N];
    uint64_t over_unsaid, unsaid; /* by the sender's own host */
};

struct far_cut {
    struct cluster *cluster;
    struct texts told[CLUSTER_NODES_MAX]; /* names of the cuts that its helper has in force */
    unsigned pending[CLUSTER_NODES_MAX];  /* answers to part and mend that have not come */
    bool counting[CLUSTER_NODES_MAX];     /* it has been asked, and has not told */
    unsigned counts;                      /* that have been asked for */
    bool waiting, dispatching;
    struct err refused; /* code 0: nobody has */
    struct list queue;
    struct loop_source *on_queue, *on_flap, *on_counted;
    struct texts bootstrap;   /* ports */
    struct pair_count *pairs; /* [from * CLUSTER_NODES_MAX + to] */
};

static struct pair_count *pair(const struct far_cut *k, size_t from, size_t to) {
    return &k->pairs[from * CLUSTER_NODES_MAX + to];
}

/* ---- what is to be in force ---- */

/* A partition, or a node without power. */
struct wanted_cut {
    char name[NAME_MAX_LEN];
    const struct partition *partition; /* NULL: of a silent node */
    const struct node *silent;
};

static bool is_down(const struct partition *p) {
    return !p->how.flap_period_ns ||
           impairment_is_down(&p->how, clock_monotonic_ns() - p->since_ns);
}

static void name_partition(char out[NAME_MAX_LEN], const struct partition *p) {
    snprintf(out, NAME_MAX_LEN, "partition-%lld", (long long)p->id);
}

static size_t want(const struct far_cut *k, struct wanted_cut **ret) {
    const struct cluster *c = k->cluster;
    struct wanted_cut *v = NULL;
    size_t n = 0;
    list_each(it, &c->partitions) {
        const struct partition *p = list_entry(it, struct partition, link);
        struct wanted_cut w = {.partition = p};
        name_partition(w.name, p);
        if (is_down(p))
            mem_push(v, n) = w;
    }
    for (size_t i = 0; i < c->nodes_n; i++) {
        struct wanted_cut w = {.silent = c->nodes[i]};
        snprintf(w.name, sizeof(w.name), "off-%s", c->nodes[i]->plan->name);
        if (c->nodes[i]->silent)
            mem_push(v, n) = w;
    }
    *ret = v;
    return n;
}

/* Of what is said from one node to another: whether this cut drops it. */
static bool drops(const struct wanted_cut *w, const struct node *from, const struct node *to) {
    if (from == to)
        return false;
    if (w->silent)
        return from == w->silent || to == w->silent;
    return impairment_is_between(&w->partition->how, w->partition->group[from->port],
                                 w->partition->group[to->port]);
}

static bool concerns(const struct far_cut *k, const struct wanted_cut *w, const struct node *n) {
    const struct cluster *c = k->cluster;
    for (size_t i = 0; i < c->nodes_n; i++)
        if (drops(w, n, c->nodes[i]) || drops(w, c->nodes[i], n))
            return true;
    return w->silent == n;
}

/* ---- telling a helper ---- */

static bool is_up(const struct node *n) {
    return n->link && n->control && n->state == NODE_ON;
}

static unsigned planes_of(const struct wanted_cut *w) {
    return w->partition ? (unsigned)w->partition->how.planes & PLANE_ALL : PLANE_ALL;
}

/* A table is all the host's: who shares it with another node, as n0 does with a store, would cut that
 * off as well, and the way to its helper. It leaves the loopback alone. */
bool far_cut_is_by_table(const struct node *n) {
    const struct cluster *c = n->cluster;
    for (size_t i = 0; i < c->nodes_n; i++)
        if (c->nodes[i] != n && c->nodes[i]->plan->host == n->plan->host)
            return false;
    return n->plan->host && c->plan->provider->tells_way && !str_starts(n->plan->addr, "127.") &&
           n->plan->host->hello.can & 1u << HELLO_CAN_OWNED_TABLES;
}

static void put_peer(struct json_writer *w, const char *name, const char *address, bool deaf,
                     bool mute) {
    json_object(w, NULL);
    json_put_string(w, "name", name);
    json_put_strings(w, "addresses", (const char *const[]){address, NULL});
    json_put_bool(w, "deaf", deaf);
    json_put_bool(w, "mute", mute);
    json_end_object(w);
}

/* Whoever has lost its power hears nobody, whether a node or not. */
static void put_peers(const struct far_cut *k, const struct wanted_cut *cut, const struct node *n,
                      struct json_writer *w) {
    const struct cluster *c = k->cluster;
    json_array(w, "peers");
    for (size_t i = 0; i < c->nodes_n; i++) {
        const struct node *o = c->nodes[i];
        bool deaf = drops(cut, o, n), mute = drops(cut, n, o);
        if (deaf || mute)
            put_peer(w, o->plan->name, o->plan->addr, deaf, mute);
    }
    if (cut->silent == n)
        put_peer(w, "everybody", "*", true, true);
    json_end_array(w);
}

static void put_planes(const struct far_cut *k, unsigned planes, struct json_writer *w) {
    json_array(w, "planes");
    for (int i = 0; i < PLANES_N; i++)
        if (planes >> i & 1)
            json_put_string(w, NULL, plane_names[i]);
    json_end_array(w);
    json_object(w, "ports");
    json_put_i64(w, "store", PLAN_STORE_PORT);
    json_put_i64(w, "store_peer", PLAN_STORE_PORT + 1);
    json_array(w, "bootstrap");
    for (size_t i = 0; i < k->bootstrap.n; i++)
        json_put_i64(w, NULL, atoi(k->bootstrap.v[i]));
    json_end_array(w);
    json_end_object(w);
}

/* A store beside n0 has n0's address: who is cut off from n0 alone goes on with the store. */
static void put_keep(const struct far_cut *k, const struct wanted_cut *cut, const struct node *n,
                     struct json_writer *w) {
    const struct cluster *c = k->cluster;
    json_array(w, "keep");
    for (size_t i = 0; i < c->nodes_n; i++) {
        const struct node *o = c->nodes[i];
        if (!o->plan->is_store || drops(cut, o, n) || drops(cut, n, o))
            continue;
        for (int port = PLAN_STORE_PORT; port <= PLAN_STORE_PORT + 1; port++) {
            json_object(w, NULL);
            json_put_string(w, "address", o->plan->addr);
            json_put_i64(w, "theirs", port);
            json_end_object(w);
        }
    }
    json_end_array(w);
}

static int tell_part(struct far_cut *k, struct node *n, const struct wanted_cut *cut,
                     struct err *err) {
    struct buf text = {0};
    struct json_writer w = node_say(&text, "part");
    json_put_i64(&w, "token", 0);
    json_put_string(&w, "name", cut->name);
    json_put_string(&w, "way", far_cut_is_by_table(n) ? "table" : "sockets");
    json_put_bool(&w, "listeners", cut->silent == n);
    put_planes(k, planes_of(cut), &w);
    if (cut->silent != n)
        put_keep(k, cut, n, &w);
    put_peers(k, cut, n, &w);
    k->pending[n->port]++;
    if (!texts_has(&k->told[n->port], cut->name))
        texts_add(&k->told[n->port], "%s", cut->name);
    return node_say_send(n, &text, &w, err);
}

static int tell_mend(struct far_cut *k, struct node *n, const char *name, struct err *err) {
    struct buf text = {0};
    struct json_writer w = node_say(&text, "mend");
    json_put_i64(&w, "token", 0);
    json_put_string(&w, "name", name);
    k->pending[n->port]++;
    return node_say_send(n, &text, &w, err);
}

static bool is_wanted(const char *name, const struct wanted_cut *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(v[i].name, name))
            return true;
    return false;
}

/* again: also what it has been told before. */
static int tell(struct far_cut *k, struct node *n, const struct wanted_cut *v, size_t v_n,
                bool again, struct err *err) {
    struct texts before = k->told[n->port];
    int r = 0;
    k->told[n->port] = (struct texts){0};
    for (size_t i = 0; i < v_n && r == 0; i++) {
        if (!concerns(k, &v[i], n))
            continue;
        if (!again && texts_has(&before, v[i].name))
            texts_add(&k->told[n->port], "%s", v[i].name);
        else
            r = tell_part(k, n, &v[i], err);
    }
    for (size_t i = 0; i < before.n && r == 0; i++)
        if (!is_wanted(before.v[i], v, v_n))
            r = tell_mend(k, n, before.v[i], err);
    texts_fini(&before);
    return r ? err_wrap(err, "%s (%s): ", n->plan->name, n->plan->host->name) : 0;
}

static int tell_all(struct far_cut *k, bool again, struct err *err) {
    const struct cluster *c = k->cluster;
    struct wanted_cut *v;
    size_t n = want(k, &v);
    int r = 0;
    for (size_t i = 0; i < c->nodes_n && r == 0; i++)
        if (is_up(c->nodes[i]))
            r = tell(k, c->nodes[i], v, n, again, err);
    free(v);
    return r;
}

/* ---- what they answer ---- */

static int index_of(const struct cluster *c, const char *name) {
    for (size_t i = 0; i < c->nodes_n && i < CLUSTER_NODES_MAX; i++)
        if (str_eq(c->nodes[i]->plan->name, name))
            return (int)i;
    return -1;
}

/* A cut of several planes counts them together: under the first of them. */
static int plane_of(const struct far_cut *k, const char *name) {
    list_each(it, &k->cluster->partitions) {
        const struct partition *p = list_entry(it, struct partition, link);
        char own[NAME_MAX_LEN];
        name_partition(own, p);
        for (int i = 0; i < PLANES_N && str_eq(own, name); i++)
            if (p->how.planes >> i & 1)
                return i;
    }
    return PLANES_N - 1;
}

static void take_peers(struct far_cut *k, const struct node *n, const char *name,
                       const struct json *peers, bool over) {
    int plane = plane_of(k, name);
    json_each(it, peers) {
        int from = index_of(k->cluster, json_get_string(it, "name", ""));
        if (from < 0)
            continue;
        struct pair_count *p = pair(k, (size_t)from, (size_t)n->port);
        struct pair_count *back = pair(k, (size_t)n->port, (size_t)from);
        uint64_t unsaid = (uint64_t)json_get_i64(it, "unsaid", 0);
        uint64_t dropped = (uint64_t)json_get_i64(it, "dropped", 0) - unsaid;
        uint64_t passed = (uint64_t)json_get_i64(it, "passed", 0);
        *(over ? &p->over_dropped : &p->dropped) += dropped;
        *(over ? &back->over_unsaid : &back->unsaid) += unsaid;
        (over ? p->over_passed : p->passed)[plane] += passed;
    }
}

static void on_parted(struct far_cut *k, struct node *n, const struct json *m) {
    const char *error = json_get_string(m, "error", NULL);
    k->pending[n->port] -= k->pending[n->port] > 0;
    if (error && !k->refused.code)
        err_say(&k->refused, -EIO, "%s (%s): %s", n->plan->name, n->plan->host->name, error);
}

static void on_mended(struct far_cut *k, struct node *n, const struct json *m) {
    k->pending[n->port] -= k->pending[n->port] > 0;
    take_peers(k, n, json_get_string(m, "name", ""), json_get(m, "peers"), true);
}

static bool is_counting(const struct far_cut *k) {
    for (size_t i = 0; i < CLUSTER_NODES_MAX; i++)
        if (k->counting[i])
            return true;
    return false;
}

static void told_count(struct far_cut *k, struct node *n) {
    if (!k->counting[n->port])
        return;
    k->counting[n->port] = false;
    if (!is_counting(k))
        loop_timer_at(k->on_counted, 0);
}

static void on_count(struct far_cut *k, struct node *n, const struct json *m) {
    for (size_t from = 0; from < k->cluster->nodes_n; from++) {
        struct pair_count *p = pair(k, from, (size_t)n->port);
        p->dropped = 0;
        pair(k, (size_t)n->port, from)->unsaid = 0;
        memset(p->passed, 0, sizeof(p->passed));
    }
    json_each(it, json_get(m, "cuts"))
        take_peers(k, n, json_get_string(it, "name", ""), json_get(it, "peers"), false);
    told_count(k, n);
}

/* ---- waiting for answers ---- */

static void put_off(struct far_cut *k, struct node *n, struct message *m) {
    struct late_message *l = mem_new(struct late_message);
    l->node = n;
    l->m = *m;
    *m = (struct message){.fds = {-1, -1, -1, -1}};
    list_append(&k->queue, &l->link);
    loop_timer_at(k->on_queue, 0);
}

bool far_cut_takes(struct far_cut *k, struct node *n, struct message *m) {
    static const struct {
        const char *op;
        void (*fn)(struct far_cut *k, struct node *n, const struct json *m);
    } ops[] = {{"parted", on_parted}, {"mended", on_mended}, {"counted", on_count}};
    const char *op = json_get_string(m->json, "op", "");
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
        if (str_eq(op, ops[i].op)) {
            ops[i].fn(k, n, m->json);
            return true;
        }
    if (k->dispatching || (!k->waiting && list_empty(&k->queue)))
        return false;
    put_off(k, n, m);
    return true;
}

static void on_queue(void *arg, int64_t now_ns) {
    struct far_cut *k = arg;
    while (!list_empty(&k->queue) && !k->waiting) {
        struct late_message *l = list_entry(k->queue.next, struct late_message, link);
        list_remove(&l->link);
        k->dispatching = true;
        node_handle(l->node, &l->m);
        k->dispatching = false;
        message_fini(&l->m);
        free(l);
    }
}

static const struct node *unanswered(const struct far_cut *k) {
    const struct cluster *c = k->cluster;
    for (size_t i = 0; i < c->nodes_n; i++)
        if (k->pending[c->nodes[i]->port] && is_up(c->nodes[i]))
            return c->nodes[i];
    return NULL;
}

static void read_some(struct far_cut *k, int timeout_ms) {
    const struct cluster *c = k->cluster;
    struct pollfd p[CLUSTER_NODES_MAX];
    struct node *from[CLUSTER_NODES_MAX];
    nfds_t n = 0;
    for (size_t i = 0; i < c->nodes_n && n < CLUSTER_NODES_MAX; i++)
        if (is_up(c->nodes[i]) && k->pending[c->nodes[i]->port]) {
            from[n] = c->nodes[i];
            p[n++] = (struct pollfd){.fd = carrier_in(c->nodes[i]->control), .events = POLLIN};
        }
    if (poll(p, n, timeout_ms) <= 0)
        return;
    for (nfds_t i = 0; i < n; i++)
        if (p[i].revents && from[i]->control)
            carrier_read(from[i]->control);
}

static int wait_for_answers(struct far_cut *k, struct err *err) {
    int64_t until_ns = clock_monotonic_ns() + answer_wait_ns, left_ns;
    const struct node *n;
    bool outer = k->waiting;
    k->waiting = true;
    while ((n = unanswered(k)) && (left_ns = until_ns - clock_monotonic_ns()) > 0)
        read_some(k, (int)(left_ns / 1000000) + 1);
    k->waiting = outer;
    if (n)
        return err_say(err, -ETIME,
                       "%s (%s) does not say that it is cut off; it was waited for %d s",
                       n->plan->name, n->plan->host->name, (int)(answer_wait_ns / 1000000000));
    return 0;
}

/* ---- bringing it in force ---- */

static void expect_flap(struct far_cut *k) {
    int64_t now = clock_monotonic_ns(), next = INT64_MAX;
    list_each(it, &k->cluster->partitions) {
        const struct partition *p = list_entry(it, struct partition, link);
        if (!p->how.flap_period_ns)
            continue;
        int64_t phase = (now - p->since_ns) % p->how.flap_period_ns;
        int64_t left =
            (phase < p->how.flap_down_ns ? p->how.flap_down_ns : p->how.flap_period_ns) - phase;
        next = now + left < next ? now + left : next;
    }
    if (next == INT64_MAX)
        loop_timer_off(k->on_flap);
    else
        loop_timer_at(k->on_flap, next);
}

/* What was told in vain is taken back as soon as the caller has forgotten it. */
int far_cut_apply(struct far_cut *k, struct err *err) {
    k->refused.code = 0;
    expect_flap(k);
    int r = tell_all(k, false, err);
    r = r ? r : wait_for_answers(k, err);
    if (r == 0 && k->refused.code) {
        *err = k->refused;
        r = err->code;
    }
    if (r)
        loop_timer_at(k->on_flap, 0);
    return r;
}

static void on_flap(void *arg, int64_t now_ns) {
    struct far_cut *k = arg;
    struct err err;
    k->refused.code = 0;
    expect_flap(k);
    if (tell_all(k, false, &err) != 0)
        cluster_failed(k->cluster, &err);
}

void far_cut_bootstrap(struct far_cut *k, uint16_t port) {
    struct err err;
    char text[8];
    snprintf(text, sizeof(text), "%u", port);
    if (texts_has(&k->bootstrap, text))
        return;
    texts_add(&k->bootstrap, "%s", text);
    if (tell_all(k, true, &err) != 0)
        cluster_failed(k->cluster, &err);
}

void far_cut_lost(struct far_cut *k, struct node *n) {
    k->pending[n->port] = 0;
    texts_fini(&k->told[n->port]);
    k->told[n->port] = (struct texts){0};
    told_count(k, n);
}

void far_cut_joined(struct far_cut *k, struct node *n) {
    struct wanted_cut *v;
    struct err err;
    size_t v_n = want(k, &v);
    if (is_up(n) && tell(k, n, v, v_n, false, &err) != 0)
        cluster_failed(k->cluster, &err);
    free(v);
}

/* ---- counting ---- */

static void count_pair(const struct far_cut *k, struct wire_counters *v, size_t from, size_t to) {
    const struct pair_count *p = pair(k, from, to);
    uint64_t dropped = p->over_dropped + p->dropped + p->over_unsaid + p->unsaid;
    v[from].cut_to[to] += dropped;
    v[from].dropped_out += dropped;
    v[to].dropped_in += dropped;
    for (int i = 0; i < PLANES_N; i++)
        v[from].passed_to[i][to] += p->over_passed[i] + p->passed[i];
}

static void on_counted(void *arg, int64_t now_ns) {
    struct far_cut *k = arg;
    struct cluster *c = k->cluster;
    size_t n = c->nodes_n;
    struct wire_counters *v = mem_array(struct wire_counters, n);
    for (size_t from = 0; from < n; from++) {
        v[from].at_sockets = true;
        v[from].by_table = far_cut_is_by_table(c->nodes[from]);
        v[from].in_unknown = !is_up(c->nodes[from]);
        for (size_t to = 0; to < n; to++)
            count_pair(k, v, from, to);
    }
    unsigned counts = k->counts;
    k->counts = 0;
    for (; counts; counts--) {
        for (size_t i = 0; i < n && c->cb.counters && cut_is_planned(c); i++)
            c->cb.counters(c->arg, c->nodes[i], &v[i]);
        if (c->cb.counted)
            c->cb.counted(c->arg);
    }
    free(v);
}

void far_cut_count(struct far_cut *k) {
    const struct cluster *c = k->cluster;
    k->counts++;
    for (size_t i = 0; i < c->nodes_n && cut_is_planned(c); i++) {
        struct buf text = {0};
        struct json_writer w = node_say(&text, "count");
        json_put_i64(&w, "token", 0);
        k->counting[i] = is_up(c->nodes[i]) && node_say_send(c->nodes[i], &text, &w, NULL) == 0;
        buf_fini(&text);
    }
    if (!is_counting(k))
        loop_timer_at(k->on_counted, 0);
}

/* ---- its life ---- */

struct far_cut *far_cut_new(struct cluster *c) {
    struct far_cut *k = mem_new(struct far_cut);
    k->cluster = c;
    k->pairs = mem_array(struct pair_count, CLUSTER_NODES_MAX * CLUSTER_NODES_MAX);
    list_init(&k->queue);
    k->on_queue = loop_timer(c->loop, on_queue, k);
    k->on_flap = loop_timer(c->loop, on_flap, k);
    k->on_counted = loop_timer(c->loop, on_counted, k);
    return k;
}

struct far_cut *far_cut_free(struct far_cut *k) {
    if (!k)
        return NULL;
    list_each_safe(it, next, &k->queue) {
        struct late_message *l = list_entry(it, struct late_message, link);
        message_fini(&l->m);
        free(l);
    }
    for (size_t i = 0; i < CLUSTER_NODES_MAX; i++)
        texts_fini(&k->told[i]);
    texts_fini(&k->bootstrap);
    loop_source_free(k->on_queue);
    loop_source_free(k->on_flap);
    loop_source_free(k->on_counted);
    free(k->pairs);
    free(k);
    return NULL;
}
