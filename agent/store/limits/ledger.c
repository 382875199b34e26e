#include "agent/store/limits/ledger.h"

#include "agent/store/limits/crowd.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/sys/clock.h"
#include "base/sys/loop.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/util.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { LARGE = 64 << 10 }; /* more than an agent's request, but for the largest of jobs */

/* By the address of its bufferevent; the next connection that gets this address takes the account
 * over. So there are as many as there were connections at once. */
struct ledger_account {
    const struct bufferevent *key;
    struct bufferevent *connection; /* unless told: only to be used while a callback of it runs */
    struct ledger *all;
    struct list holding; /* of those that hold something */
    struct list begun;   /* of those with a request that has begun, the oldest first */
    size_t in, out;
    int64_t begun_ns;
    int fd;
    uint64_t cookie; /* 0: not asked for yet */
    bool told;       /* of its end we will be */
    bool trusted;
};

struct ledger {
    struct loop *loop;
    struct ledger_limits limits;
    void *accounts; /* of tsearch */
    struct list holding, begun;
    size_t held, held_by_others; /* others: who is not trusted */
    struct bounds *bounds;
    struct crowd *crowd;
    struct loop_source *due;
    bool armed; /* due is */
};

static uint64_t cookie_of(int fd) {
    uint64_t cookie = 0;
    socklen_t n = sizeof(cookie);
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &n) == 0 ? cookie : 0;
}

static int compare(const void *a, const void *b) {
    uintptr_t p = (uintptr_t)((const struct ledger_account *)a)->key;
    uintptr_t q = (uintptr_t)((const struct ledger_account *)b)->key;
    return (p > q) - (p < q);
}

static struct ledger_account *find(struct ledger *l, const struct bufferevent *b) {
    struct ledger_account key = {.key = b};
    void *found = tfind(&key, &l->accounts, compare);
    return found ? *(struct ledger_account **)found : NULL;
}

/* ---- what it holds ---- */

/* The timer is set once in a while, not for each request: those that are whole leave it alone. */
static void arm(struct ledger *l, int64_t begun_ns) {
    if (l->armed)
        return;
    loop_timer_at(l->due, begun_ns + l->limits.request_ns);
    l->armed = true;
}

static void begin(struct ledger_account *e) {
    e->begun_ns = clock_monotonic_ns();
    arm(e->all, e->begun_ns);
    list_append(&e->all->begun, &e->begun);
}

static void set_held(struct ledger_account *e, size_t in, size_t out) {
    struct ledger *l = e->all;
    l->held += in + out - e->in - e->out;
    if (!e->trusted)
        l->held_by_others += in + out - e->in - e->out;
    if (e->in == 0 && in > 0)
        begin(e);
    else if (in == 0 && e->in > 0)
        list_remove(&e->begun);
    if (e->in + e->out == 0 && in + out > 0)
        list_append(&l->holding, &e->holding);
    else if (e->in + e->out > 0 && in + out == 0)
        list_remove(&e->holding);
    e->in = in;
    e->out = out;
}

static void know_socket(struct ledger_account *e) {
    e->fd = bufferevent_getfd(e->connection);
    e->cookie = cookie_of(e->fd);
}

/* evhttp sees the end of the connection, and frees it, on the next turn. */
static void end(struct ledger_account *e) {
    set_held(e, 0, 0);
    if (!e->cookie && e->told)
        know_socket(e);
    if (e->cookie && cookie_of(e->fd) == e->cookie)
        shutdown(e->fd, SHUT_RDWR);
}

static void forget_ended(struct ledger *l) {
    list_each_safe(it, next, &l->holding) {
        struct ledger_account *e = list_entry(it, struct ledger_account, holding);
        if (e->cookie && cookie_of(e->fd) != e->cookie)
            set_held(e, 0, 0);
    }
}

static bool is_larger(const struct ledger_account *e, const struct ledger_account *than) {
    if (!than || e->trusted != than->trusted)
        return !than || than->trusted;
    return e->in + e->out > than->in + than->out;
}

static void end_largest(struct ledger *l) {
    struct ledger_account *largest = NULL;
    list_each(it, &l->holding) {
        struct ledger_account *e = list_entry(it, struct ledger_account, holding);
        if (is_larger(e, largest))
            largest = e;
    }
    bounds_hit(l->bounds, BOUND_HELD, NULL, clock_monotonic_ns());
    end(largest);
}

static bool is_over(const struct ledger *l) {
    return l->held > l->limits.held_max || l->held_by_others > l->limits.held_max / 2;
}

static void check(struct ledger *l) {
    if (is_over(l))
        forget_ended(l);
    while (is_over(l) && !list_empty(&l->holding))
        end_largest(l);
}

/* ---- what comes and goes ---- */

/* The first bytes are the first time that the socket is known, without TLS. */
static void on_input(struct evbuffer *in, const struct evbuffer_cb_info *info, void *arg) {
    struct ledger_account *e = arg;
    if (!info->n_added)
        return;
    if (!e->cookie)
        know_socket(e);
    set_held(e, e->in + info->n_added, e->out);
    if (e->in > LARGE && !e->trusted)
        crowd_lower(e->all->crowd, e->connection);
    check(e->all);
}

/* An answer to a request that was not counted, as it was refused before its end, is not either. */
static void on_output(struct evbuffer *out, const struct evbuffer_cb_info *info, void *arg) {
    struct ledger_account *e = arg;
    if (!e->cookie)
        return;
    set_held(e, e->in, evbuffer_get_length(out));
    check(e->all);
}

static void on_due(void *arg, int64_t now_ns) {
    struct ledger *l = arg;
    l->armed = false;
    list_each_safe(it, next, &l->begun) {
        struct ledger_account *e = list_entry(it, struct ledger_account, begun);
        if (e->begun_ns + l->limits.request_ns > now_ns) {
            arm(l, e->begun_ns);
            return;
        }
        bounds_hit(l->bounds, BOUND_TIME, NULL, now_ns);
        end(e);
    }
}

void ledger_open(struct ledger *l, struct bufferevent *b) {
    struct ledger_account *e = find(l, b);
    if (!e) {
        e = mem_new(struct ledger_account);
        *e = (struct ledger_account){.key = b, .all = l};
        if (!tsearch(e, &l->accounts, compare))
            abort();
    }
    set_held(e, 0, 0);
    e->connection = b;
    e->cookie = 0;
    e->told = e->trusted = false;
    evbuffer_add_cb(bufferevent_get_input(b), on_input, e);
    evbuffer_add_cb(bufferevent_get_output(b), on_output, e);
}

void ledger_begin(struct ledger *l, struct bufferevent *b, size_t n) {
    struct ledger_account *e = find(l, b);
    if (!e)
        return;
    e->told = true;
    set_held(e, n, e->out);
    check(l);
}

void ledger_close(struct ledger *l, struct bufferevent *b) {
    struct ledger_account *e = find(l, b);
    if (!e)
        return;
    set_held(e, 0, 0);
    e->told = false;
    e->cookie = 0;
}

void ledger_trust(struct ledger *l, struct bufferevent *b) {
    struct ledger_account *e = find(l, b);
    if (!e || e->trusted)
        return;
    l->held_by_others -= e->in + e->out;
    e->trusted = true;
}

/* What is there already is of the next one. */
void ledger_whole(struct ledger *l, struct bufferevent *b) {
    struct ledger_account *e = find(l, b);
    size_t next = evbuffer_get_length(bufferevent_get_input(b));
    if (!e)
        return;
    set_held(e, 0, e->out);
    set_held(e, next, e->out);
}

/* ---- the whole ---- */

struct ledger *ledger_new(struct loop *loop, struct bounds *bounds, struct crowd *crowd) {
    struct ledger *l = mem_new(struct ledger);
    *l = (struct ledger){
        .loop = loop, .limits = {SIZE_MAX, INT64_MAX / 2}, .bounds = bounds, .crowd = crowd};
    list_init(&l->holding);
    list_init(&l->begun);
    l->due = loop_timer(loop, on_due, l);
    return l;
}

struct ledger *ledger_free(struct ledger *l) {
    if (!l)
        return NULL;
    loop_source_free(l->due);
    tdestroy(l->accounts, free);
    free(l);
    return NULL;
}

void ledger_set_limits(struct ledger *l, const struct ledger_limits *limits) {
    l->limits = *limits;
    l->armed = false;
    list_each(it, &l->begun) arm(l, list_entry(it, struct ledger_account, begun)->begun_ns);
}

size_t ledger_held(const struct ledger *l) {
    return l->held;
}
