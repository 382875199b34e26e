/* contract: what every store must do alike. Run over the one in process, the embedded server and a
 * real etcd (tests/live/store-etcd.sh). Keys lie under a prefix of their own per test, so that a
 * store can be used for all of them. */
#pragma once

#include "agent/store/store.h"
#include "base/sys/clock.h"
#include "base/sys/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTRACT_PATIENCE_MS = 5000, CONTRACT_EVENTS_MAX = 64 };

struct contract {
    struct loop *loop;
    struct store *store;
    struct loop_source *patience;
    struct arena arena;
    char prefix[32];
    int keys;

    /* what came last */
    int replies;
    struct store_reply reply;
    bool succeeded;
    int64_t revision, count;
    char value[64];
    char why[256];

    /* what a watch told */
    struct store_call *watch;
    int awaited;
    bool ended;
    int64_t compact_revision;
    size_t n_events;
    struct {
        bool deleted;
        char key[64], value[64];
        int64_t mod_revision;
    } events[CONTRACT_EVENTS_MAX];
};

static inline void contract_gave_up(void *arg, int64_t now_ns) {
    (void)arg;
    (void)now_ns;
    fail_msg("no answer within %d ms", CONTRACT_PATIENCE_MS);
}

static inline void contract_begin(struct contract *c, struct loop *l, struct store *s) {
    *c = (struct contract){.loop = l, .store = s};
    c->patience = loop_timer(l, contract_gave_up, c);
}

static inline void contract_end(struct contract *c) {
    loop_source_free(c->patience);
    arena_fini(&c->arena);
}

static inline void contract_run(struct contract *c) {
    loop_timer_at(c->patience, clock_monotonic_ns() + CONTRACT_PATIENCE_MS * 1000000LL);
    assert_int_equal(loop_run(c->loop, NULL), 0);
    loop_timer_off(c->patience);
}

static inline void contract_fresh(struct contract *c) {
    snprintf(c->prefix, sizeof(c->prefix), "t/%016llx/", (unsigned long long)random_u64());
    c->n_events = 0;
    c->ended = false;
    c->compact_revision = 0;
}

static inline struct kv_bytes key(struct contract *c, const char *name) {
    return kv_string(arena_printf(&c->arena, "%s%s", c->prefix, name));
}

static inline struct kv_bytes key_end(struct contract *c) {
    struct kv_bytes prefix = kv_string(c->prefix);
    return kv_prefix_end(prefix, arena_alloc(&c->arena, prefix.len + 1));
}

static inline void copy_bytes(char *dst, size_t size, struct kv_bytes b) {
    size_t n = b.len < size - 1 ? b.len : size - 1;
    memcpy(dst, b.data, n);
    dst[n] = '\0';
}

static inline void on_contract_reply(void *arg, const struct store_reply *r) {
    struct contract *c = arg;
    c->reply = *r;
    c->replies++;
    snprintf(c->why, sizeof(c->why), "%s", r->why ? r->why : "");
    c->value[0] = '\0';
    c->count = 0;
    if (r->txn) {
        c->succeeded = r->txn->succeeded;
        c->revision = r->txn->revision;
        for (size_t i = 0; i < r->txn->n_results; i++) {
            c->count = r->txn->results[i].count;
            if (r->txn->results[i].n_pairs)
                copy_bytes(c->value, sizeof(c->value), r->txn->results[i].pairs[0].value);
        }
    }
    loop_stop(c->loop);
}

/* News of a watch may come before the reply. */
static inline void await_reply(struct contract *c) {
    for (int before = c->replies; c->replies == before;)
        contract_run(c);
}

static inline void ask(struct contract *c, const struct kv_txn *txn) {
    store_txn(c->store, txn, CONTRACT_PATIENCE_MS, on_contract_reply, c);
    await_reply(c);
}

static inline void ask_op(struct contract *c, struct kv_op op) {
    struct kv_txn txn = {.success = &op, .n_success = 1};
    ask(c, &txn);
    assert_string_equal(c->why, "");
    assert_int_equal(c->reply.outcome, STORE_ANSWERED);
}

static inline void put(struct contract *c, const char *name, const char *value) {
    ask_op(c, (struct kv_op){.kind = KV_PUT, .key = key(c, name), .value = kv_string(value)});
}

static inline void get(struct contract *c, const char *name) {
    ask_op(c, (struct kv_op){.kind = KV_RANGE, .key = key(c, name)});
}

static inline void on_contract_news(void *arg, const struct store_news *n) {
    struct contract *c = arg;
    for (size_t i = 0; i < n->n_events && c->n_events < CONTRACT_EVENTS_MAX; i++) {
        copy_bytes(c->events[c->n_events].key, 64, n->events[i].pair.key);
        copy_bytes(c->events[c->n_events].value, 64, n->events[i].pair.value);
        c->events[c->n_events].deleted = n->events[i].deleted;
        c->events[c->n_events++].mod_revision = n->events[i].pair.mod_revision;
    }
    if (n->ended) {
        c->ended = true;
        c->compact_revision = n->compact_revision;
        c->watch = NULL;
        snprintf(c->why, sizeof(c->why), "%s", n->why ? n->why : "");
    }
    if (n->ended || (int)c->n_events >= c->awaited)
        loop_stop(c->loop);
}

static inline void watch_all(struct contract *c, int64_t from) {
    c->watch = store_watch(c->store, kv_string(c->prefix), key_end(c), from, CONTRACT_PATIENCE_MS,
                           on_contract_news, c);
}

static inline void await_events(struct contract *c, int n) {
    c->awaited = n;
    while (!c->ended && (int)c->n_events < n)
        contract_run(c);
}
