/* Each bound of what a store keeps, from both sides and to the byte. */
#include "agent/store/quota.h"

#include "agent/core/kv.h"
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define CUR     "/rankrun/job/cur"
#define SESSION "/rankrun/job/0123456789abcdef/s/00112233445566778899aabbccddeeff"
#define OTHER   "/rankrun/other/cur"

enum { OVERHEAD = 256, LEAST = 1 << 10, SPARE = 16 << 20 };
static const int64_t SECOND_NS = 1000000000;

static struct kv *kv;
static struct quota q;
static char large[QUOTA_VALUE_MAX + 1];

static int begin(void **state) {
    (void)state;
    kv = kv_new(1, 0);
    q = (struct quota){.limits = {1 << 20, 1 << 20, 1 << 20}};
    memset(large, 'v', sizeof(large));
    return 0;
}

static int finish(void **state) {
    (void)state;
    kv = kv_free(kv);
    return 0;
}

static void keep(const char *key, size_t n) {
    struct arena a = {0};
    struct kv_txn_result r;
    struct kv_op op = {.kind = KV_PUT, .key = kv_string(key), .value = {large, n}};
    assert_int_equal(kv_txn(kv, &(struct kv_txn){.success = &op, .n_success = 1}, &a, &r, NULL), 0);
    arena_fini(&a);
}

/* So much is kept, and it is looked at. */
static void look_at(size_t runs_max, size_t others_max) {
    q.limits = (struct quota_limits){runs_max, others_max, 1 << 20};
    quota_wrote(&q, kv, 1 << 20);
    assert_int_equal(q.written, 0);
}

/* failure: it stands in the other branch. */
static const char *refuses(const char *key, size_t n, int64_t now_ns, bool failure) {
    struct kv_op ops[] = {{.kind = KV_RANGE, .key = kv_string("a")},
                          {.kind = KV_DELETE, .key = kv_string(key)},
                          {.kind = KV_PUT, .key = kv_string(key), .value = {large, n}},
                          {.kind = KV_RANGE, .key = kv_string("a")}};
    struct kv_txn t = {
        .success = ops, .n_success = failure ? 2 : 4, .failure = ops, .n_failure = failure ? 4 : 2};
    return quota_refuses(&q, kv, &t, now_ns);
}

static void test_what_is_kept_is_counted_to_the_byte(void **state) {
    (void)state;
    static const struct {
        const char *key;
        size_t n, runs, others;
    } all[] = {
        {"other", 0, 0, 5 + OVERHEAD},
        {"other", 1000, 0, 5 + 1000 + OVERHEAD},
        {CUR, 0, LEAST, 0},
        {CUR, LEAST - OVERHEAD - sizeof(CUR) + 1, LEAST, 0},
        {CUR, LEAST - OVERHEAD - sizeof(CUR) + 2, LEAST + 1, 0},
        {CUR, QUOTA_VALUE_MAX, sizeof(CUR) - 1 + QUOTA_VALUE_MAX + OVERHEAD, 0},
        {CUR, QUOTA_VALUE_MAX + 1, 0, sizeof(CUR) - 1 + QUOTA_VALUE_MAX + 1 + OVERHEAD},
        {"/rankrun/job/note", 0, 0, sizeof("/rankrun/job/note") - 1 + OVERHEAD},
    };
    assert_int_equal(QUOTA_VALUE_MAX, 16384);
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        kv_free(kv);
        kv = kv_new(1, 0);
        keep(all[i].key, all[i].n);
        look_at(1 << 20, 1 << 20);
        assert_int_equal(q.runs, all[i].runs);
        assert_int_equal(q.others, all[i].others);
    }
    keep(CUR, 0);
    keep(SESSION, 0);
    look_at(1 << 20, 1 << 20);
    assert_int_equal(q.runs, 2 * LEAST);
}

static void test_three_quarters_are_full(void **state) {
    (void)state;
    keep(CUR, 0);
    keep(SESSION, 0);
    keep(OTHER, 0);
    keep("x", 767 - OVERHEAD);
    for (size_t max = 4090; max < 4100; max++) {
        look_at(max, 1 << 20);
        assert_int_equal(q.runs_full, 3 * LEAST > max / 4 * 3);
        assert_false(q.others_full);
    }
    for (size_t max = 1018; max < 1032; max++) {
        look_at(1 << 20, max);
        assert_int_equal(q.others_full, 768 > max / 4 * 3);
        assert_false(q.runs_full);
    }
}

/* What answers hold of what was deleted is others' too, beyond what there is to spare. */
static void test_memory_that_nobody_counts_is_others(void **state) {
    (void)state;
    static char value[1 << 20];
    struct arena a = {0};
    struct kv_txn_result r;
    struct kv_hold hold = {0};
    struct kv_op all = {.kind = KV_RANGE, .key = {"\0", 1}, .range_end = {"", 1}};
    struct kv_op away = {.kind = KV_DELETE, .key = {"\0", 1}, .range_end = {"", 1}};
    for (int i = 0; i < 20; i++) {
        char key[8];
        snprintf(key, sizeof(key), "k%d", i);
        struct kv_op op = {.kind = KV_PUT, .key = kv_string(key), .value = {value, sizeof(value)}};
        kv_txn(kv, &(struct kv_txn){.success = &op, .n_success = 1}, &a, &r, NULL);
    }
    assert_int_equal(
        kv_txn_hold(kv, &(struct kv_txn){.success = &all, .n_success = 1}, &a, &hold, &r, NULL), 0);
    kv_txn(kv, &(struct kv_txn){.success = &away, .n_success = 1}, &a, &r, NULL);
    kv_compact(kv, kv_revision(kv), NULL);
    keep(CUR, 0);
    q.limits = (struct quota_limits){1 << 20, 8, 8};
    quota_wrote(&q, kv, 8);
    size_t spare = kv_memory(kv) - SPARE - LEAST;
    assert_true(spare > 1000 && spare < 8 << 20);
    for (size_t part = spare - 2; part < spare + 3; part++)
        for (int i = 0; i < 2; i++) { /* however it is shared between others and history */
            q.limits =
                (struct quota_limits){1 << 20, i ? 1000 : part - 1000, i ? part - 1000 : 1000};
            quota_wrote(&q, kv, 8 << 20);
            assert_int_equal(q.others_full, part < spare);
        }
    kv_release(kv, &hold);
    arena_fini(&a);
}

static void test_it_is_looked_at_once_enough_was_written(void **state) {
    (void)state;
    static const struct quota_limits all[] = {
        {80000, 90000, 100000}, {90000, 80000, 100000}, {100000, 90000, 80000}};
    for (size_t i = 0; i < 3; i++) {
        q = (struct quota){.limits = all[i], .runs = 77};
        quota_wrote(&q, kv, 5000);
        assert_int_equal(q.written, 5000 + OVERHEAD);
        quota_wrote(&q, kv, 10000 - 5000 - 2 * OVERHEAD - 1);
        assert_true(q.written == 9999 && q.runs == 77);
        q.written -= OVERHEAD;
        quota_wrote(&q, kv, 0);
        assert_true(q.written == 9999 && q.runs == 77);
        q.written -= OVERHEAD - 1;
        quota_wrote(&q, kv, 0);
        assert_true(q.written == 0 && q.runs == 0);
    }
}

/* Half of it stays, where there is more than it may be. */
static void test_history_goes_down_to_half(void **state) {
    (void)state;
    for (int i = 0; i < 100; i++)
        keep("x", 1000);
    size_t most = 0; /* that holds all of it */
    while (kv_history_from(kv, most) > kv_compact_revision(kv))
        most += 64;
    for (int less = 0; less < 2; less++) {
        int64_t half = kv_history_from(kv, (most - (size_t)less * 64) / 2),
                before = kv_compact_revision(kv);
        q.limits = (struct quota_limits){1 << 20, 1 << 20, most - (size_t)less * 64};
        quota_wrote(&q, kv, 1 << 20);
        assert_true(half > before);
        assert_int_equal(kv_compact_revision(kv), less ? half : before);
    }
}

/* ---- what is refused ---- */

static void test_of_others_all_puts_are_refused_where_they_are_full(void **state) {
    (void)state;
    static const char why[] = "this store is full of keys that are no run's: see them and delete "
                              "what is not needed, or start it anew; runs are served";
    assert_null(refuses("x", 0, 5, false));
    keep("x", 1000);
    look_at(1 << 20, 1000);
    q.looked_at_ns = 5;
    assert_string_equal(refuses("x", 0, 5, false), why);
    assert_string_equal(refuses("x", 0, 5, true), why);
    assert_string_equal(refuses(CUR, QUOTA_VALUE_MAX + 1, 5, false), why);
    assert_null(refuses(CUR, QUOTA_VALUE_MAX, 5, false));
    assert_null(refuses(CUR, 0, 5, true));
}

/* It is looked again after a second, and at once where something was deleted. */
static void test_it_is_looked_again_once_a_second(void **state) {
    (void)state;
    keep("x", 1000);
    look_at(1 << 20, 1000);
    q.looked_at_ns = 5;
    q.limits.others_max = 1 << 20; /* there is room by now */
    assert_non_null(refuses("x", 0, 5 + SECOND_NS - 1, false));
    assert_int_equal(q.looked_at_ns, 5);
    assert_null(refuses("x", 0, 5 + SECOND_NS, false));
    assert_int_equal(q.looked_at_ns, 5 + SECOND_NS);
    q.others_full = true;
    assert_non_null(refuses("x", 0, 6 + SECOND_NS, false));
    quota_deleted(&q);
    assert_null(refuses("x", 0, 6 + SECOND_NS, false));
    q.others_full = true;
    q.looked_at_ns = 0;
    quota_deleted(&q);
    assert_null(refuses("x", 0, -5, false)); /* also of a host that has just begun */
}

#define FULL                                                                                       \
    "this store is full of runs: somebody writes more of them than jobs do; see its keys and "     \
    "delete what is not theirs, or start it anew"

static void test_where_runs_are_full_only_small_ones_that_are_there_grow(void **state) {
    (void)state;
    keep(CUR, 0);
    keep(SESSION, 2000);
    size_t cur = LEAST, session = sizeof(SESSION) - 1 + 2000 + OVERHEAD, own = cur + session;
    for (size_t max = (own - 1) * 16; max <= (own + 2) * 16; max += 4) {
        look_at(max, 1 << 20);
        q.runs_full = true;
        q.looked_at_ns = 5;
        bool grows = own < max / 16;
        assert_int_equal(refuses("/rankrun/job/0123456789abcdef/lead", 0, 5, false) == NULL, grows);
        assert_null(refuses(SESSION, 2000, 5, false)); /* as large as it is there */
        assert_int_equal(refuses(SESSION, 2001, 5, false) == NULL, grows);
        if (!grows)
            assert_string_equal(refuses(SESSION, 2001, 5, true), FULL);
        assert_non_null(refuses(OTHER, 0, 5, false)); /* it is not there */
        assert_null(refuses("x", 0, 5, false));
        q.runs = max;
        assert_int_equal(refuses(SESSION, 2001, 5, false) == NULL, grows);
        q.runs = max + 1; /* there is nothing at all left */
        assert_non_null(refuses(SESSION, 2001, 5, false));
        assert_null(refuses(SESSION, 2000, 5, false));
    }
    q.runs_full = false;
    assert_null(refuses(SESSION, 2001, 5, false));
    q.others_full = true;
    assert_null(refuses(SESSION, 2001, 5, false));
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_kept_is_counted_to_the_byte),
        TEST(test_three_quarters_are_full),
        TEST(test_memory_that_nobody_counts_is_others),
        TEST(test_it_is_looked_at_once_enough_was_written),
        TEST(test_history_goes_down_to_half),
        TEST(test_of_others_all_puts_are_refused_where_they_are_full),
        TEST(test_it_is_looked_again_once_a_second),
        TEST(test_where_runs_are_full_only_small_ones_that_are_there_grow),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
