/* fake_client: who waits for an answer or a watch: a request that is its connection and its buffers too, and what libevent, the crowd and
 * whose turn it is are to it. To be included before the source whose calls are played, behind CLIENTS_ALL, how many there are, and
 * CLIENT_MORE, what else a test has of each. */
#pragma once

#include "agent/store/limits/crowd.h"
#include "agent/store/limits/flow.h"
#include "base/buf.h"
#include "base/rand.h"

#include <event2/http.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static struct client {
    int agent, gone; /* gone: the request is off its connection */
    int wants, ended, freed, told_end;
    struct buf text;
    crowd_close_fn *closed;
    void *closed_arg;
    struct flow_item *item;
    const struct flow_ops *ops;
    CLIENT_MORE
} clients[CLIENTS_ALL];

static struct client *client_of(const void *p) {
    return (struct client *)(uintptr_t)p;
}

static void fake_close(struct evhttp_connection *c, crowd_close_fn *fn, void *arg) {
    client_of(c)->closed = fn;
    client_of(c)->closed_arg = arg;
}

static void fake_add(struct flow_item *i, const struct flow_ops *ops, struct evhttp_request *req,
                     bool agent) {
    struct client *c = client_of(req);
    *i = (struct flow_item){.ops = ops, .req = req, .agent = agent};
    assert_int_equal(agent, c->agent);
    c->item = i;
    c->ops = ops;
}

static char of_crowd, of_flow;

/* Everything is asked of whom it belongs to. */
static void is(const void *p, const void *expected) {
    assert_ptr_equal(p, expected);
}

#define evhttp_request_get_connection(r)                                                           \
    (client_of(r)->gone ? NULL : (struct evhttp_connection *)(void *)(r))
#define evhttp_request_free(r)               (client_of(r)->freed++)
#define evhttp_request_get_output_headers(r) ((void *)(r))
#define evhttp_send_reply_end(r)             (client_of(r)->ended++)
#define crowd_rank_of(crowd, c)                                                                    \
    (is(crowd, &of_crowd), client_of(c)->agent ? CROWD_AGENT : CROWD_GUEST)
#define crowd_on_close(crowd, c, fn, arg) (is(crowd, &of_crowd), fake_close(c, fn, arg))
#define crowd_end(crowd, c)               (is(crowd, &of_crowd), client_of(c)->told_end++)
#define crowd_address(crowd, c)           (is(crowd, &of_crowd), is(c, c), "198.51.100.7")
#define flow_add(f, i, ops, req, agent)   (is(f, &of_flow), fake_add(i, ops, req, agent))
#define flow_want(i)                      (client_of((i)->req)->wants = 1)

static struct rand chance;
static int slow; /* how often somebody was told that one is */

static int draw(int n) {
    return (int)rand_below(&chance, (uint64_t)n);
}

static void on_slow(void *arg, const char *who) {
    assert_ptr_equal(arg, &slow);
    assert_string_equal(who, "198.51.100.7");
    slow++;
}
