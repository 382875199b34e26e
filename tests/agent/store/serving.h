/* serving: the embedded store over loopback and a client of it, on one loop, for the tests of the
 * server. */
#pragma once

#include "agent/store/access.h"
#include "agent/store/server.h"
#include "tests/agent/store/contract.h"

static struct kv *kv;
static struct server *server;

/* A client of the store at this port; access: as whom, NULL: as anybody. */
static inline struct store *client_of_port(struct loop *l, unsigned port,
                                           const struct store_access *access) {
    char endpoint[64];
    struct err err = {0};
    snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%u", port);
    struct store *s = store_client_new(l, endpoint, access, &err);
    assert_string_equal(err.msg, "");
    assert_non_null(s);
    return s;
}

/* The server, and a client as that: *state becomes its contract. */
static inline struct contract *serving_begin(void **state, const struct store_access *access) {
    static struct contract c;
    struct loop *l = loop_new(NULL);
    kv = kv_new(1, 0);
    server = server_new(l, kv, "127.0.0.1", 0, NULL);
    assert_non_null(server);
    contract_begin(&c, l, client_of_port(l, server_port(server), access));
    contract_fresh(&c);
    return *state = &c;
}

static inline int serving_end(void **state) {
    struct contract *c = *state;
    store_free(c->store);
    server_free(server);
    contract_end(c);
    loop_free(c->loop);
    kv_free(kv);
    return 0;
}

/* The client goes away in the middle of a watch, again and again, and none is kept. */
static inline void watchers_vanish(struct contract *c) {
    for (int i = 0; i < 20; i++) {
        watch_all(c, 0);
        put(c, "a", "1");
        store_cancel(c->watch);
        put(c, "a", "2");
    }
    assert_int_equal(server_watches(server), 0);
}
