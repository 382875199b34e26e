#include "agent/agent_store.h"

#include "agent/core/kv_request.h"
#include "agent/failpoint.h"
#include "agent/options.h"
#include "agent/store/codec.h"
#include "agent/store/marker.h"
#include "agent/store/server.h"
#include "agent/store/store.h"
#include "agent/tls/tls.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/line.h"
#include "base/sys/random.h"
#include "base/sys/tcp.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONNECT_MS = 5000,     /* of a watch that is made anew */
    OWN_HISTORY_MAX = 256, /* of a store for this agent alone: it reads every change at once */
};

struct slot {
    struct agent_store *all;
    enum watch_slot number;
    struct store_call *call; /* NULL: not watched */
    uint64_t generation;
    struct store_key key;
    int64_t next_revision;
};

struct agent_store {
    struct loop *loop;
    const char *run_id;
    agent_event_fn *fn;
    void *arg;
    struct kv *kv; /* of a store in this process */
    struct server *server;
    struct marker marker; /* of the server */
    struct store *store;
    struct slot slots[WATCH_SLOTS];
    struct list requests;
    bool beat_lost; /* the last one had no answer */
    bool value_told;
    char place[3 * TCP_HOST_MAX + 64], trouble[256];
};

/* A request under way, to be answered by exactly one event. */
struct agent_store_request {
    struct list node;
    struct agent_store *all;
    enum action_kind kind;
    uint64_t id;        /* of a beat: its seq */
    int64_t head_round; /* of the head that a transaction writes, for failpoints */
};

/* ---- kv -> the core's structs ---- */

/* Keys that are not ours, and values that cannot be read, are left out: somebody else wrote below
 * our prefix. Said once. */
static bool take_entry(void *arg, struct arena *a, const struct kv_pair *p, bool deleted,
                       struct entry *ret) {
    struct agent_store *s = arg;
    union value *value = NULL;
    struct err err = {0};
    *ret = kv_request_revisions(p, deleted);
    if (!key_parse(p->key.data, p->key.len, s->run_id, &ret->key))
        return false;
    if (!deleted) {
        value = arena_new(a, union value);
        if (codec_take(ret->key.kind, p->value.data, p->value.len, value, &err) < 0) {
            if (!s->value_told)
                line_say(LINE_WARNING, "store", "%s: the value of key %.*s is not read: %s",
                         s->place, (int)p->key.len, p->key.data, err.msg);
            s->value_told = true;
            return false;
        }
    }
    ret->value = value;
    return true;
}

static void tell_changes(struct slot *slot, const struct store_news *news) {
    struct agent_store *s = slot->all;
    ARENA_FINI struct arena a = {0};
    struct entry *entries = arena_array(&a, struct entry, news->n_events);
    size_t n = 0;
    for (size_t i = 0; i < news->n_events; i++)
        n += take_entry(s, &a, &news->events[i].pair, news->events[i].deleted, &entries[n]);
    int64_t revision = news->events[news->n_events - 1].pair.mod_revision;
    slot->next_revision = revision + 1;
    struct event e = {.kind = EVENT_CHANGES,
                      .changes = {.slot = slot->number,
                                  .generation = slot->generation,
                                  .revision = revision,
                                  .entries = entries,
                                  .n = n}};
    s->fn(s->arg, &e);
}

/* ---- watches ---- */

static void on_news(void *arg, const struct store_news *news) {
    struct slot *slot = arg;
    struct agent_store *s = slot->all;
    if (!news->ended) {
        tell_changes(slot, news);
        return;
    }
    slot->call = NULL;
    str_copy(s->trouble, sizeof(s->trouble), news->why ? news->why : "");
    struct event e = {.kind = EVENT_WATCH_LOST,
                      .watch_lost = {.slot = slot->number, .generation = slot->generation}};
    s->fn(s->arg, &e);
}

static void slot_close(struct slot *slot) {
    store_cancel(slot->call);
    slot->call = NULL;
}

static void slot_open(struct slot *slot, int64_t timeout_ms) {
    ARENA_FINI struct arena a = {0};
    struct kv_bytes end;
    slot_close(slot);
    struct kv_bytes key = kv_request_key(&a, slot->all->run_id, &slot->key, &end);
    slot->call =
        store_watch(slot->all->store, key, end, slot->next_revision, timeout_ms, on_news, slot);
}

/* After a time without answers a watch may be alive and yet wait for its connection's next
 * retransmission, seconds away. A fresh connection goes on where the old one was. */
static void refresh_watches(struct agent_store *s, int64_t timeout_ms) {
    for (int i = 0; i < WATCH_SLOTS; i++)
        if (s->slots[i].call)
            slot_open(&s->slots[i], timeout_ms);
}

/* ---- requests ---- */

static void tell(struct agent_store *s, const struct agent_store_request *q,
                 const struct store_reply *r) {
    ARENA_FINI struct arena a = {0};
    bool lease = q->kind == ACTION_LEASE_GRANT || q->kind == ACTION_LEASE_KEEPALIVE;
    bool reached = r->outcome == STORE_ANSWERED;
    bool applied = reached && (lease ? r->ttl_s > 0 : r->txn->succeeded);
    struct event e =
        kv_request_event(q->kind, q->id, reached, applied, r->txn ? r->txn->revision : 0);
    if (q->kind == ACTION_SNAPSHOT && reached)
        e.snapshot.entries = kv_request_entries(&a, r->txn, take_entry, s, &e.snapshot.n);
    s->fn(s->arg, &e);
}

/* Before the agent hears of it, who may ask for other watches then. */
static void note_beat(struct agent_store *s, bool answered) {
    bool was_lost = s->beat_lost;
    s->beat_lost = !answered;
    if (answered && was_lost)
        refresh_watches(s, CONNECT_MS);
}

static void on_reply(void *arg, const struct store_reply *r) {
    struct agent_store_request q = *(struct agent_store_request *)arg;
    struct agent_store *s = q.all;
    list_remove(&((struct agent_store_request *)arg)->node);
    free(arg);
    if (r->outcome != STORE_ANSWERED)
        str_copy(s->trouble, sizeof(s->trouble), r->why ? r->why : "no answer");
    if (q.kind == ACTION_TXN && r->outcome == STORE_ANSWERED && r->txn && r->txn->succeeded)
        failpoint_answered(q.head_round);
    if (q.kind == ACTION_BEAT)
        note_beat(s, r->outcome == STORE_ANSWERED);
    tell(s, &q, r);
}

static struct agent_store_request *request_new(struct agent_store *s, const struct action *action) {
    struct agent_store_request *q = mem_new(struct agent_store_request);
    *q = (struct agent_store_request){.all = s, .kind = action->kind, .id = kv_request_id(action)};
    list_append(&s->requests, &q->node);
    return q;
}

static void do_snapshot(struct agent_store *s, const struct action *action, int64_t timeout_ms) {
    ARENA_FINI struct arena a = {0};
    struct kv_txn txn = kv_request_read(&a, s->run_id, action->snapshot.keys, action->snapshot.n);
    store_txn(s->store, &txn, timeout_ms, on_reply, request_new(s, action));
}

static void do_txn(struct agent_store *s, const struct action *action, int64_t timeout_ms) {
    ARENA_FINI struct arena a = {0};
    const struct txn *t = kv_request_writes(action);
    struct kv_txn txn = kv_request_txn(&a, s->run_id, t, codec_bytes);
    failpoint_sending(t);
    struct agent_store_request *q = request_new(s, action);
    q->head_round = failpoint_head(t);
    store_txn(s->store, &txn, timeout_ms, on_reply, q);
}

static void do_watch(struct agent_store *s, const struct action *action, int64_t timeout_ms) {
    struct slot *slot = &s->slots[action->watch.slot];
    slot->generation = action->watch.generation;
    slot->key = action->watch.key;
    slot->next_revision = action->watch.from_revision;
    slot_open(slot, timeout_ms);
}

void agent_store_do(struct agent_store *s, const struct action *a, int64_t timeout_ms) {
    if (a->kind == ACTION_SNAPSHOT)
        do_snapshot(s, a, timeout_ms);
    else if (a->kind == ACTION_WATCH)
        do_watch(s, a, timeout_ms);
    else if (a->kind == ACTION_UNWATCH)
        slot_close(&s->slots[a->watch.slot]);
    else if (a->kind == ACTION_TXN || a->kind == ACTION_BEAT)
        do_txn(s, a, timeout_ms);
    else if (a->kind == ACTION_LEASE_GRANT)
        store_grant(s->store, a->lease.lease, a->lease.ttl_s, timeout_ms, on_reply,
                    request_new(s, a));
    else if (a->kind == ACTION_LEASE_KEEPALIVE)
        store_keepalive(s->store, a->lease.lease, timeout_ms, on_reply, request_new(s, a));
    else
        assert(!"no request of the store");
}

/* ---- where it is ---- */

static void on_local_write(void *arg) {
    struct agent_store *s = arg;
    if (s->server)
        server_changed(s->server);
}

static void open_in_process(struct agent_store *s) {
    s->kv = s->kv ? s->kv : kv_new(random_u64(), OWN_HISTORY_MAX);
    s->store = store_local_new(s->loop, s->kv, on_local_write, s);
}

static void open_hosted(struct agent_store *s, const struct options *o) {
    struct err err;
    server_demand(s->server, o->rdzv.access.token);
    if (o->rdzv.access.sealed)
        server_draw_token(s->server);
    server_allow(s->server, o->endpoint_host);
    server_warn(s->server);
    marker_open(&s->marker, o->endpoint_host, (uint16_t)o->endpoint_port, o->rdzv.quarantine, s->kv,
                &err);
    server_changed(s->server);
    if (err.code)
        line_say(LINE_WARNING, "store", "%s", err.msg);
    open_in_process(s);
}

/* A job of several nodes comes to us by this name, and on them it is another address than here. */
static void listen_everywhere(struct agent_store *s, const struct options *o) {
    uint16_t port = (uint16_t)o->endpoint_port;
    s->server = server_new(s->loop, s->kv, TCP_ANYWHERE, port, NULL);
    if (!s->server)
        s->server = server_new(s->loop, s->kv, "0.0.0.0", port, NULL);
    if (s->server)
        line_say(LINE_INFO, "store",
                 "%s is a loopback address on this host, which no other can reach: the store "
                 "listens on all addresses",
                 o->endpoint_host);
}

/* Where the endpoint is asked by TLS and we have no certificate, something that speaks it stands
 * before a store, which is not we. */
static bool may_host(const struct options *o) {
    return o->backend == BACKEND_EMBEDDED && (!o->rdzv.access.https || o->rdzv.tls.cert) &&
           tcp_host_is_ours(o->endpoint_host);
}

/* Several agents of one host may try; the port decides. Not being able to is no error: then
 * somebody serves there already. */
static void listen_here(struct agent_store *s, const struct options *o) {
    s->kv = kv_new(random_u64(), 0);
    if (o->nodes_max > 1 && tcp_name_is_hidden(o->endpoint_host))
        listen_everywhere(s, o);
    else
        s->server = server_new(s->loop, s->kv, o->endpoint_host, (uint16_t)o->endpoint_port, NULL);
    if (!s->server)
        s->kv = kv_free(s->kv);
}

static int try_to_host(struct agent_store *s, const struct options *o, struct err *err) {
    if (may_host(o))
        listen_here(s, o);
    if (!s->server)
        return 0;
    if (o->rdzv.tls.cert) {
        struct tls *t = tls_new(&o->rdzv.tls, err);
        if (!t)
            return err->code;
        server_encrypt(s->server, t, o->rdzv.tls.client_ca);
    }
    open_hosted(s, o);
    return 0;
}

static int open_store(struct agent_store *s, const struct options *o, struct err *err) {
    if (o->backend == BACKEND_IN_PROCESS) {
        str_copy(s->place, sizeof(s->place), "the store in this process");
        open_in_process(s);
        return 0;
    }
    snprintf(s->place, sizeof(s->place), "the store at %s", o->endpoints);
    if (try_to_host(s, o, err) < 0)
        return err->code;
    if (!s->server)
        s->store = store_client_new(s->loop, o->endpoints, &o->rdzv.access, err);
    return s->store ? 0 : -EINVAL;
}

struct agent_store *agent_store_new(struct loop *l, const struct options *o, agent_event_fn *fn,
                                    void *arg, struct err *err) {
    struct agent_store *s = mem_new(struct agent_store);
    *s = (struct agent_store){.loop = l, .run_id = o->run_id, .fn = fn, .arg = arg};
    list_init(&s->requests);
    for (int i = 0; i < WATCH_SLOTS; i++) {
        s->slots[i].all = s;
        s->slots[i].number = (enum watch_slot)i;
    }
    return open_store(s, o, err) == 0 ? s : agent_store_free(s);
}

struct agent_store *agent_store_free(struct agent_store *s) {
    if (!s)
        return NULL;
    store_free(s->store);
    server_free(s->server);
    marker_close(&s->marker, s->kv);
    kv_free(s->kv);
    list_each_safe(it, next, &s->requests) free(list_entry(it, struct agent_store_request, node));
    free(s);
    return NULL;
}

bool agent_store_is_hosted(const struct agent_store *s) {
    return s->server;
}

const char *agent_store_place(const struct agent_store *s) {
    return s->place;
}

const char *agent_store_trouble(const struct agent_store *s) {
    return s->trouble;
}
