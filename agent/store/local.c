/* The store in this process: kv, called directly. Answers wait for the next turn of the loop, so
 * that a caller sees the same order of things as with a store elsewhere. */
#include "agent/store/store.h"
#include "agent/store/watch.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/sys/clock.h"

#include <stdlib.h>

struct local {
    struct store store;
    struct loop *loop;
    struct kv *kv;
    void (*written)(void *arg);
    void *written_arg;
    struct loop_source *turn;   /* something is to be told */
    struct loop_source *leases; /* the next one ends */
    struct list answered;       /* calls with an answer */
    struct list watches;
};

struct local_call {
    struct store_call call;
    struct list node;
    struct arena arena; /* what the answer points to */
    struct store_reply reply;
    struct kv_txn_result txn;
    struct watch watch;
    bool watch_over;
    store_reply_fn *on_reply;
    store_news_fn *on_news;
    void *arg;
};

static struct local *local_of(struct store *s) {
    return (struct local *)(void *)s; /* the first member */
}

static struct local_call *call_of(struct store_call *c) {
    return (struct local_call *)(void *)c; /* the first member */
}

static struct local_call *call_new(struct local *l, struct list *where, void *arg) {
    struct local_call *c = mem_new(struct local_call);
    c->call.store = &l->store;
    c->arg = arg;
    list_append(where, &c->node);
    return c;
}

static void call_free(struct local_call *c) {
    list_remove(&c->node);
    watch_close(&c->watch);
    arena_fini(&c->arena);
    free(c);
}

static void wake(struct local *l) {
    loop_timer_at(l->turn, clock_monotonic_ns());
}

/* After anything that may have changed the keys or the leases. */
static void changed(struct local *l) {
    int64_t at_ns = kv_lease_expire(l->kv, clock_monotonic_ns());
    if (at_ns < INT64_MAX)
        loop_timer_at(l->leases, at_ns);
    else
        loop_timer_off(l->leases);
    wake(l);
    if (l->written)
        l->written(l->written_arg);
}

static void on_leases(void *arg, int64_t now_ns) {
    changed(arg);
}

/* The callback may cancel this watch: c is not touched after it. */
static void tell_news(struct watch *w) {
    struct local_call *c = list_entry(w, struct local_call, watch);
    struct local *l = local_of(c->call.store);
    ARENA_FINI struct arena arena = {0};
    struct kv_event *events = NULL;
    struct store_news news = {0};
    if (c->watch_over)
        return;
    if (kv_watch_take(c->watch.kv, 0, &arena, &events, &news.n_events) != 0) {
        news.ended = c->watch_over = true;
        news.compact_revision = kv_compact_revision(l->kv);
        news.why = kv_text(KV_COMPACTED);
    }
    news.events = events;
    if (news.ended || news.n_events)
        c->on_news(c->arg, &news);
}

static void on_turn(void *arg, int64_t now_ns) {
    struct local *l = arg;
    while (!list_empty(&l->answered)) {
        struct local_call *c = list_entry(l->answered.next, struct local_call, node);
        struct local_call told = *c;
        c->arena = (struct arena){0};
        told.reply.txn = c->reply.txn ? &told.txn : NULL;
        call_free(c);
        told.on_reply(told.arg, &told.reply);
        arena_fini(&told.arena);
    }
    watch_tell(l->kv);
}

static struct store_call *local_txn(struct store *s, const struct kv_txn *txn, int64_t timeout_ms,
                                    store_reply_fn *fn, void *arg) {
    struct local *l = local_of(s);
    struct local_call *c = call_new(l, &l->answered, arg);
    c->on_reply = fn;
    int rc = kv_txn(l->kv, txn, &c->arena, &c->txn, NULL);
    c->reply.outcome = rc == KV_OK ? STORE_ANSWERED : STORE_REFUSED;
    c->reply.why = rc == KV_OK ? NULL : kv_text(rc);
    c->reply.txn = rc == KV_OK ? &c->txn : NULL;
    changed(l);
    return &c->call;
}

static struct store_call *local_grant(struct store *s, int64_t lease, int64_t ttl_s,
                                      int64_t timeout_ms, store_reply_fn *fn, void *arg) {
    struct local *l = local_of(s);
    struct local_call *c = call_new(l, &l->answered, arg);
    c->on_reply = fn;
    c->reply.lease = lease;
    int rc = kv_lease_grant(l->kv, lease, ttl_s, clock_monotonic_ns(), &c->reply.lease, NULL);
    rc = rc == KV_LEASE_EXISTS ? KV_OK : rc;
    c->reply.outcome = rc == KV_OK ? STORE_ANSWERED : STORE_REFUSED;
    c->reply.why = rc == KV_OK ? NULL : kv_text(rc);
    c->reply.ttl_s = rc == KV_OK ? ttl_s : 0;
    changed(l);
    return &c->call;
}

static struct store_call *local_keepalive(struct store *s, int64_t lease, int64_t timeout_ms,
                                          store_reply_fn *fn, void *arg) {
    struct local *l = local_of(s);
    struct local_call *c = call_new(l, &l->answered, arg);
    c->on_reply = fn;
    c->reply.lease = lease;
    kv_lease_keepalive(l->kv, lease, clock_monotonic_ns(), &c->reply.ttl_s, NULL);
    changed(l);
    return &c->call;
}

static struct store_call *local_watch(struct store *s, struct kv_bytes key,
                                      struct kv_bytes range_end, int64_t start_revision,
                                      int64_t timeout_ms, store_news_fn *fn, void *arg) {
    struct local *l = local_of(s);
    struct local_call *c = call_new(l, &l->watches, arg);
    c->on_news = fn;
    watch_open(&c->watch, l->kv, key, range_end, start_revision, tell_news);
    wake(l);
    return &c->call;
}

static void local_cancel(struct store_call *call) {
    call_free(call_of(call));
}

static void local_free(struct store *s) {
    struct local *l = local_of(s);
    list_each_safe(it, next, &l->answered) call_free(list_entry(it, struct local_call, node));
    list_each_safe(it, next, &l->watches) call_free(list_entry(it, struct local_call, node));
    loop_source_free(l->turn);
    loop_source_free(l->leases);
    free(l);
}

static const struct store_ops LOCAL = {
    .name = "in process",
    .txn = local_txn,
    .grant = local_grant,
    .keepalive = local_keepalive,
    .watch = local_watch,
    .cancel = local_cancel,
    .free = local_free,
};

struct store *store_local_new(struct loop *loop, struct kv *kv, void (*written)(void *arg),
                              void *written_arg) {
    struct local *l = mem_new(struct local);
    *l = (struct local){
        .store = {&LOCAL}, .loop = loop, .kv = kv, .written = written, .written_arg = written_arg};
    list_init(&l->answered);
    list_init(&l->watches);
    l->turn = loop_timer(loop, on_turn, l);
    l->leases = loop_timer(loop, on_leases, l);
    return &l->store;
}
