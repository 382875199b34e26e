/* Which run is named as the one that waits beside ours, by the keys of the store alone. */
#include "agent/neighbours.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "agent/options.h"
#include "agent/store/store.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/line.h"

enum { KEYS_MAX = 16 };

/* ---- what keys say ---- */

static bool find(const char *const *keys, const char *run_id, struct neighbour *ret) {
    struct kv_pair pairs[KEYS_MAX] = {0};
    size_t n = 0;
    for (; keys[n]; n++)
        pairs[n].key = kv_string(keys[n]);
    return neighbours_find(pairs, n, run_id, ret);
}

static void assert_named(const struct neighbour *found, const char *run_id, size_t nodes,
                         size_t others) {
    assert_int_equal(found->run_id_len, strlen(run_id));
    assert_memory_equal(found->run_id, run_id, strlen(run_id));
    assert_int_equal(found->nodes, nodes);
    assert_int_equal(found->others, others);
}

static void test_a_run_that_waits_beside_ours_is_named_with_its_nodes(void **state) {
    (void)state;
    static const char *const keys[] = {"/rankrun/quarantine",    "/rankrun/theirs/1f/m/a",
                                       "/rankrun/theirs/1f/s/a", "/rankrun/theirs/1f/s/b",
                                       "/rankrun/theirs/cur",    "/rankrun/us/2e/s/c",
                                       "/rankrun/us/cur",        NULL};
    struct neighbour found;
    assert_true(find(keys, "us", &found));
    assert_named(&found, "theirs", 2, 0);
    assert_true(find(keys, "theirs", &found));
    assert_named(&found, "us", 1, 0);
}

static void test_of_several_the_largest_is_named(void **state) {
    (void)state;
    static const char *const keys[] = {"/rankrun/a/1/s/1", "/rankrun/b/1/s/1",  "/rankrun/b/1/s/2",
                                       "/rankrun/c/1/s/1", "/rankrun/us/2/s/1", NULL};
    struct neighbour found;
    assert_true(find(keys, "us", &found));
    assert_named(&found, "b", 2, 2);
}

static void test_a_run_that_trains_or_is_over_is_none_that_waits(void **state) {
    (void)state;
    static const char *const trains[] = {"/rankrun/a/1/head", "/rankrun/a/1/s/1",
                                         "/rankrun/us/2/s/1", NULL};
    static const char *const over[] = {"/rankrun/a/cur", "/rankrun/us/2/s/1", NULL};
    struct neighbour found;
    assert_false(find(trains, "us", &found));
    assert_false(find(over, "us", &found));
}

/* A spare waits, but not for nodes. */
static void test_whoever_has_had_a_round_misses_nobody(void **state) {
    (void)state;
    static const char *const keys[] = {"/rankrun/a/1/s/1", "/rankrun/us/2/head",
                                       "/rankrun/us/2/s/1", NULL};
    struct neighbour found;
    assert_false(find(keys, "us", &found));
}

static void test_ids_are_compared_as_keys_have_them(void **state) {
    (void)state;
    static const char *const keys[] = {"/rankrun/a%2fb/1/s/1", NULL};
    static const char *const strange[] = {"",           "/rankrun/",     "/rankrun/x",
                                          "/rankrun//", "/else/a/1/s/1", NULL};
    struct neighbour found;
    assert_false(find(keys, "a/b", &found));
    assert_true(find(keys, "a", &found));
    assert_named(&found, "a%2fb", 1, 0);
    assert_false(find(strange, "us", &found));
}

/* ---- asking ---- */

/* Loop, clock and store are doubles that write down how they are called. */
static struct buf said;
static int alive;
static bool no_client;
static loop_timer_fn *timer_fn;
static store_reply_fn *reply_fn;
static void *timer_arg, *reply_arg;
static char something[1];

void line_say(const char *level, const char *what, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    buf_printf(&said, "%s, %s: ", level, what);
    buf_vprintf(&said, fmt, ap);
    va_end(ap);
}

int64_t clock_monotonic_ns(void) {
    return 1000;
}

struct loop_source *loop_timer(struct loop *l, loop_timer_fn *fn, void *arg) {
    (void)l;
    timer_fn = fn;
    timer_arg = arg;
    alive++;
    return (struct loop_source *)something;
}

void loop_timer_at(struct loop_source *s, int64_t deadline_ns) {
    (void)s;
    buf_printf(&said, "looks at %" PRId64, deadline_ns);
}

struct loop_source *loop_source_free(struct loop_source *s) {
    alive -= s != NULL;
    return NULL;
}

static struct store_call *ask(struct store *s, const struct kv_txn *t, int64_t timeout_ms,
                              store_reply_fn *fn, void *arg) {
    const struct kv_op *op = t->success;
    (void)s;
    buf_printf(&said,
               "asks %zu of kind %d: %.*s to %.*s, %" PRId64 " of them, keys %d, within %" PRId64,
               t->n_success, op->kind, (int)op->key.len, op->key.data, (int)op->range_end.len,
               op->range_end.data, op->limit, op->keys_only, timeout_ms);
    reply_fn = fn;
    reply_arg = arg;
    return NULL;
}

static void end(struct store *s) {
    alive -= s != NULL;
}

static const struct store_ops ops = {.txn = ask, .free = end};
static struct store store = {.ops = &ops};
static struct options o;

struct store *store_client_new(struct loop *l, const char *endpoints,
                               const struct store_access *access, struct err *err) {
    (void)l;
    buf_printf(&said, "of %s%s ", endpoints, access == &o.rdzv.access ? "" : " as nobody");
    alive += !no_client;
    return no_client ? err_say(err, -EIO, "none"), NULL : &store;
}

static void assert_said(const char *text) {
    assert_string_equal(buf_str(&said), text);
    buf_clear(&said);
}

static void answer(const char *const *keys) {
    struct kv_pair pairs[KEYS_MAX] = {0};
    struct kv_op_result r = {.kind = KV_RANGE, .pairs = pairs};
    struct kv_txn_result t = {.results = &r, .n_results = 1};
    for (; keys[r.n_pairs]; r.n_pairs++)
        pairs[r.n_pairs].key = kv_string(keys[r.n_pairs]);
    reply_fn(reply_arg, &(struct store_reply){.outcome = STORE_ANSWERED, .txn = &t});
}

static void test_a_store_is_asked_once_and_what_waits_there_is_told(void **state) {
    static const char *const one[] = {"/rankrun/a%2fb/1/s/1", "/rankrun/us/2/s/1", NULL};
    static const char *const more[] = {"/rankrun/a/1/s/1", "/rankrun/b/1/s/1",  "/rankrun/b/1/s/2",
                                       "/rankrun/c/1/s/1", "/rankrun/us/2/s/1", NULL};
    static const char *const none[] = {"/rankrun/us/2/s/1", NULL};
    (void)state;
    o = (struct options){.backend = BACKEND_EMBEDDED, .run_id = "us", .endpoints = "h:1"};
    struct neighbours *n = neighbours_new((struct loop *)something, &o, 70);
    assert_said("looks at 1350");
    timer_fn(timer_arg, 0);
    assert_said(
        "of h:1 asks 1 of kind 0: /rankrun/ to /rankrun0, 200 of them, keys 1, within 5000");
    answer(one);
    assert_said("warning, run: while run \"us\" waits for more nodes, another run waits in this "
                "store: \"a%2fb\", with 1 node; did you mean its id (--rdzv-id)?");
    answer(more);
    assert_said("warning, run: while run \"us\" waits for more nodes, another run waits in this "
                "store: \"b\", with 2 nodes, and 2 more; did you mean its id (--rdzv-id)?");
    answer(none);
    reply_fn(reply_arg, &(struct store_reply){.outcome = STORE_UNKNOWN, .why = "cut"});
    reply_fn(reply_arg,
             &(struct store_reply){.outcome = STORE_ANSWERED, .txn = &(struct kv_txn_result){0}});
    assert_said("");
    assert_null(neighbours_free(n));
    assert_int_equal(alive, 0);
}

static void test_a_hint_that_cannot_be_had_is_none(void **state) {
    (void)state;
    o = (struct options){.backend = BACKEND_ETCD_V3, .run_id = "us", .endpoints = "h:1"};
    no_client = true;
    struct neighbours *n = neighbours_new((struct loop *)something, &o, 0);
    assert_said("looks at 1000");
    timer_fn(timer_arg, 0);
    assert_said("of h:1 ");
    assert_null(neighbours_free(n));
    assert_null(neighbours_free(NULL));
    assert_int_equal(alive, 0);
    o.backend = BACKEND_IN_PROCESS;
    assert_null(neighbours_new((struct loop *)something, &o, 0));
    assert_said("");
    buf_fini(&said);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_that_waits_beside_ours_is_named_with_its_nodes),
        cmocka_unit_test(test_of_several_the_largest_is_named),
        cmocka_unit_test(test_a_run_that_trains_or_is_over_is_none_that_waits),
        cmocka_unit_test(test_whoever_has_had_a_round_misses_nobody),
        cmocka_unit_test(test_ids_are_compared_as_keys_have_them),
        cmocka_unit_test(test_a_store_is_asked_once_and_what_waits_there_is_told),
        cmocka_unit_test(test_a_hint_that_cannot_be_had_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
