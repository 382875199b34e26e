/* The store in one's own process: each reply whole, when it comes, who is told of what, and what is given back. The clock and the loop
 * are played by this file. */
#include "agent/store/store.h"

#include "agent/core/kv.h"
#include "base/sys/clock.h"
#include "base/sys/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static int64_t virtual_ns;

/* Its two timers: the turn, and the next lease that ends. -1: off. */
static struct timer {
    loop_timer_fn *fn;
    void *arg;
    int64_t at_ns;
    int freed;
} timers[2];
static int n_timers;
static char of_loop;

static struct loop_source *fake_timer(const struct loop *l, loop_timer_fn *fn, void *arg) {
    assert_ptr_equal(l, &of_loop);
    timers[n_timers] = (struct timer){fn, arg, -1, 0};
    return (struct loop_source *)(void *)&timers[n_timers++];
}

static void set_timer(struct loop_source *s, int64_t at_ns) {
    ((struct timer *)(void *)s)->at_ns = at_ns;
}

#define clock_monotonic_ns()   virtual_ns
#define loop_timer(l, fn, arg) fake_timer(l, fn, arg)
#define loop_timer_at(s, at)   set_timer(s, at)
#define loop_timer_off(s)      set_timer(s, -1)
#define loop_source_free(s)    (((struct timer *)(void *)(s))->freed++)
#include "agent/store/local.c"

static struct kv *kv;
static struct store *store;
static int writes, told;
static struct store_reply last;
static struct kv_txn_result last_txn;
static char last_why[200], order[64], events[200];
static struct store_call *cancels;
static bool asks_again, over;
static int64_t compacted;

static void on_written(void *arg) {
    assert_ptr_equal(arg, &writes);
    writes++;
}

static int begin(void **state) {
    (void)state;
    virtual_ns = 7000000000;
    n_timers = writes = told = 0;
    order[0] = events[0] = '\0';
    cancels = NULL;
    asks_again = over = false;
    kv = kv_new(1, 0);
    store = store_local_new((struct loop *)(void *)&of_loop, kv, on_written, &writes);
    assert_string_equal(store->ops->name, "in process");
    assert_int_equal(n_timers, 2);
    assert_true(timers[0].at_ns == -1 && timers[1].at_ns == -1);
    return 0;
}

static int finish(void **state) {
    (void)state;
    int before = told;
    assert_null(store_free(store));
    assert_true(timers[0].freed == 1 && timers[1].freed == 1 && told == before);
    kv = kv_free(kv);
    return 0;
}

static struct store_call *put(const char *key, const char *value, int64_t lease, char *name);

static void on_reply(void *arg, const struct store_reply *r) {
    told++;
    last = *r;
    if (r->txn)
        last_txn = *r->txn;
    snprintf(last_why, sizeof(last_why), "%s", r->why ? r->why : "(none)");
    strcat(order, arg);
    struct store_call *c = cancels;
    cancels = NULL;
    store_cancel(c);
    if (asks_again) {
        asks_again = false;
        put("again", "x", 0, "n");
    }
}

static void on_news(void *arg, const struct store_news *n) {
    told++;
    assert_true(n->ended ? !n->n_events : n->n_events && !n->why && !n->compact_revision);
    strcat(order, arg);
    for (size_t i = 0; i < n->n_events; i++)
        snprintf(events + strlen(events), sizeof(events) - strlen(events), "%s%.*s=%.*s ",
                 n->events[i].deleted ? "-" : "", (int)n->events[i].pair.key.len,
                 n->events[i].pair.key.data, (int)n->events[i].pair.value.len,
                 n->events[i].pair.value.data);
    over = n->ended;
    compacted = n->compact_revision;
    snprintf(last_why, sizeof(last_why), "%s", n->why ? n->why : "(none)");
    struct store_call *c = cancels;
    cancels = NULL;
    store_cancel(c);
}

static struct store_call *put(const char *key, const char *value, int64_t lease, char *name) {
    struct kv_op op = {
        .kind = KV_PUT, .key = kv_string(key), .value = kv_string(value), .lease = lease};
    return store_txn(store, &(struct kv_txn){.success = &op, .n_success = 1}, 1000, on_reply, name);
}

/* What was asked is told on the next turn, and not before. */
static void turn(void) {
    assert_int_equal(timers[0].at_ns, virtual_ns);
    timers[0].at_ns = -1;
    timers[0].fn(timers[0].arg, virtual_ns);
}

static void reply_is(enum store_outcome outcome, int64_t lease, int64_t ttl_s, bool txn,
                     const char *why) {
    int before = told;
    turn();
    assert_int_equal(told, before + 1);
    assert_int_equal(last.outcome, outcome);
    assert_int_equal(last.lease, lease);
    assert_int_equal(last.ttl_s, ttl_s);
    assert_int_equal(last.txn != NULL, txn);
    assert_string_equal(last_why, why);
}

/* ---- replies ---- */

static void test_each_reply_is_whole_and_comes_on_the_next_turn(void **state) {
    (void)state;
    put("a", "1", 0, "t");
    assert_int_equal(writes, 1);
    reply_is(STORE_ANSWERED, 0, 0, true, "(none)");
    assert_true(last_txn.succeeded && last_txn.revision == 2 && last_txn.n_results == 1);
    put("a", "1", 99, "t");
    reply_is(STORE_REFUSED, 0, 0, false, kv_text(KV_LEASE_NOT_FOUND));
    assert_int_equal(kv_revision(kv), 2);
    store_grant(store, 7, 60, 1000, on_reply, "g");
    assert_int_equal(writes, 3);
    assert_int_equal(timers[1].at_ns, virtual_ns + 60000000000);
    reply_is(STORE_ANSWERED, 7, 60, false, "(none)");
    store_grant(store, 7, 50, 1000, on_reply, "g"); /* as good as a new one */
    reply_is(STORE_ANSWERED, 7, 50, false, "(none)");
    store_grant(store, 8, 9000000001, 1000, on_reply, "g");
    reply_is(STORE_REFUSED, 8, 0, false, kv_text(KV_LEASE_TTL_TOO_LARGE));
    virtual_ns += 1000000000;
    store_keepalive(store, 7, 1000, on_reply, "k");
    assert_int_equal(writes, 6);
    assert_int_equal(timers[1].at_ns, virtual_ns + 60000000000);
    reply_is(STORE_ANSWERED, 7, 60, false, "(none)");
    store_keepalive(store, 9, 1000, on_reply, "k");
    reply_is(STORE_ANSWERED, 9, 0, false, "(none)");
    store_grant(store, 0, 60, 1000, on_reply, "g");
    turn();
    assert_true(last.lease != 0 && last.lease != 7 && last.ttl_s == 60);
    assert_string_equal(order, "ttgggkkg");
}

/* Of many, in their order; those that a reply asks for too, but for what it cancels. */
static void test_calls_may_be_made_and_cancelled_by_a_reply(void **state) {
    (void)state;
    put("a", "1", 0, "1");
    struct store_call *second = put("a", "2", 0, "2");
    put("a", "3", 0, "3");
    struct store_call *away = put("a", "4", 0, "4");
    store_cancel(away);
    cancels = second;
    asks_again = true;
    turn();
    assert_string_equal(order, "13n");
    assert_int_equal(kv_count(kv), 2);
    put("b", "5", 0, "5"); /* goes with the store */
}

/* ---- leases ---- */

static void test_a_lease_that_ends_takes_its_keys_and_tells(void **state) {
    (void)state;
    int64_t id;
    assert_int_equal(kv_lease_grant(kv, 7, 60, virtual_ns, &id, NULL), 0);
    store_watch(store, kv_string("a"), kv_string("z"), 0, 1000, on_news, "w");
    put("l", "1", 7, "t");
    turn();
    assert_string_equal(events, "l=1 ");
    virtual_ns = timers[1].at_ns;
    int before = writes;
    timers[1].fn(timers[1].arg, virtual_ns);
    assert_int_equal(writes, before + 1);
    assert_int_equal(timers[1].at_ns, -1); /* there is none */
    assert_int_equal(kv_count(kv), 0);
    turn();
    assert_string_equal(events, "l=1 -l= ");
}

/* ---- watches ---- */

/* By somebody else who shares the keys. */
static void put_behind(const char *key, const char *value) {
    struct arena a = {0};
    struct kv_txn_result r;
    struct kv_op op = {.kind = KV_PUT, .key = kv_string(key), .value = kv_string(value)};
    assert_int_equal(kv_txn(kv, &(struct kv_txn){.success = &op, .n_success = 1}, &a, &r, NULL), 0);
    arena_fini(&a);
}

static void test_watches_are_told_what_is_theirs(void **state) {
    (void)state;
    put("a", "1", 0, "t");
    turn();
    store_watch(store, kv_string("a"), kv_string(""), 2, 1000, on_news, "p"); /* the past */
    assert_int_equal(told, 1);
    turn();
    assert_string_equal(events, "a=1 ");
    struct store_call *range =
        store_watch(store, kv_string("a"), kv_string("b"), 0, 1000, on_news, "q");
    put("a", "2", 0, "t");
    put("b", "3", 0, "t");
    put("c", "4", 0, "t");
    turn();
    assert_string_equal(events, "a=1 a=2 a=2 ");
    put("a", "5", 0, "t");
    store_cancel(range);
    turn();
    assert_string_equal(events, "a=1 a=2 a=2 a=5 ");
    int before = told;
    store_watch(store, kv_string("x"), kv_string(""), 0, 1000, on_news, "r");
    store_watch(store, kv_string("x"), kv_string(""), 2, 1000, on_news, "s"); /* nor before */
    turn();
    assert_int_equal(told, before); /* nothing has happened */
}

static void test_a_watch_may_end_itself_by_what_it_is_told(void **state) {
    (void)state;
    struct store_call *itself =
        store_watch(store, kv_string("a"), kv_string(""), 0, 1000, on_news, "w");
    put("a", "1", 0, "t");
    turn();
    assert_string_equal(order, "tw");
    put_behind("a", "2");
    cancels = itself;
    store_watch(store, kv_string("q"), kv_string(""), 0, 1000, on_news, "v"); /* wakes it */
    turn();
    assert_string_equal(order, "tww");
    put("a", "3", 0, "t");
    turn();
    assert_string_equal(order, "twwt");
    assert_string_equal(events, "a=1 a=2 ");
}

static void test_what_is_compacted_away_is_told_once(void **state) {
    (void)state;
    put("a", "1", 0, "t");
    put("a", "2", 0, "t");
    turn();
    assert_int_equal(kv_compact(kv, 3, NULL), 0);
    struct store_call *c = store_watch(store, kv_string("a"), kv_string(""), 2, 1000, on_news, "w");
    turn();
    assert_true(over && compacted == 3);
    assert_string_equal(last_why, kv_text(KV_COMPACTED));
    assert_string_equal(order, "ttw");
    put("a", "3", 0, "t");
    turn();
    assert_string_equal(order, "ttwt"); /* it is over */
    store_cancel(c);
}

static void test_nobody_need_be_told_of_writes(void **state) {
    (void)state;
    struct store *with = store;
    n_timers = 0;
    store = store_local_new((struct loop *)(void *)&of_loop, kv, NULL, NULL);
    put("a", "1", 0, "t");
    reply_is(STORE_ANSWERED, 0, 0, true, "(none)");
    assert_int_equal(writes, 0);
    store_free(store);
    timers[0].freed = timers[1].freed = 0;
    store = with;
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(test_each_reply_is_whole_and_comes_on_the_next_turn),
        TEST(test_calls_may_be_made_and_cancelled_by_a_reply),
        TEST(test_a_lease_that_ends_takes_its_keys_and_tells),
        TEST(test_watches_are_told_what_is_theirs),
        TEST(test_a_watch_may_end_itself_by_what_it_is_told),
        TEST(test_what_is_compacted_away_is_told_once),
        TEST(test_nobody_need_be_told_of_writes),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
