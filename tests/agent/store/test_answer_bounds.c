/* How much one request may look at, how many leases there are, and how long a piece of an answer is: each bound from both sides. */
#include "agent/store/answer.h"

#include "agent/core/kv.h"
#include "agent/store/quota.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct kv *kv;

static int begin(void **state) {
    (void)state;
    kv = kv_new(1, 0);
    return 0;
}

static int finish(void **state) {
    (void)state;
    kv = kv_free(kv);
    return 0;
}

static void put_key(const char *key, struct kv_bytes value, int64_t lease) {
    struct arena a = {0};
    struct kv_txn_result r;
    struct kv_op op = {.kind = KV_PUT, .key = kv_string(key), .value = value, .lease = lease};
    assert_int_equal(kv_txn(kv, &(struct kv_txn){.success = &op, .n_success = 1}, &a, &r, NULL), 0);
    arena_fini(&a);
}

static void ask(struct answer *a, const char *path, const char *body, struct quota *quota) {
    *a = (struct answer){0};
    answer_request(a, kv, path, body, strlen(body), 5, quota);
}

static void says(const char *path, const char *body, int status, const char *expected) {
    struct answer a;
    ask(&a, path, body, NULL);
    assert_int_equal(a.status, status);
    assert_string_equal(buf_str(&a.body), expected);
    assert_true(!a.more && !a.refused_full);
    answer_fini(&a, kv);
}

/* ---- how much one request looks at ---- */

#define ALL "\"key\":\"AA==\",\"range_end\":\"AA==\""
#define TOO_MUCH                                                                                   \
    "this request looks at %d keys, and at most 131072 may be asked for at once: ask for them in " \
    "parts, with limit"

/* All keys are counted once, and so many others looked at behind that. */
static void ask_for(int others, int cost) {
    BUF_FINI struct buf body = {0};
    char why[200], error[600];
    struct kv_op ops[8] = {{.kind = KV_RANGE, .key = {"\0", 1}, .range_end = {"", 1}}};
    struct kv_txn t = {.success = ops, .n_success = 1};
    buf_puts(&body, "{\"success\":[{\"request_range\":{" ALL "}}");
    for (int i = 0; i < others; i++) {
        buf_puts(&body, ",{\"request_range\":{\"key\":\"eA==\",\"count_only\":true}}");
        ops[t.n_success++] =
            (struct kv_op){.kind = KV_RANGE, .key = kv_string("x"), .count_only = true};
    }
    buf_puts(&body, "]}");
    assert_int_equal(kv_txn_cost(kv, &t), cost);
    struct answer a;
    ask(&a, "/v3/kv/txn", buf_str(&body), NULL);
    assert_int_equal(a.status, cost > 131072 ? 400 : 200);
    snprintf(why, sizeof(why), TOO_MUCH, cost);
    snprintf(error, sizeof(error), "{\"error\":\"%s\",\"code\":3,\"message\":\"%s\"}", why, why);
    if (cost > 131072)
        assert_string_equal(buf_str(&a.body), error);
    assert_false(a.refused_full);
    answer_fini(&a, kv);
}

static void test_a_request_looks_at_so_many_keys(void **state) {
    (void)state;
    struct kv_op all = {.kind = KV_RANGE, .key = {"\0", 1}, .range_end = {"", 1}};
    struct kv_txn t = {.success = &all, .n_success = 1};
    int n = 0;
    for (; n < 131000 || kv_txn_cost(kv, &t) < 131070; n++) {
        char key[16];
        snprintf(key, sizeof(key), "k%06d", n);
        put_key(key, kv_string(""), 0);
    }
    for (int others = 0; others < 6; others++)
        ask_for(others, 131070 + others);
    struct quota full = {.limits = {1, 1, 1}, .others_full = true, .looked_at_ns = INT64_MAX};
    struct answer a; /* what is full is said of what could be looked at */
    ask(&a, "/v3/kv/put", "{\"key\":\"eA==\"}", &full);
    assert_true(a.status == 429 && a.refused_full);
    answer_fini(&a, kv);
    put_key("y1", kv_string(""), 0);
    put_key("y2", kv_string(""), 0);
    put_key("y3", kv_string(""), 0);
    ask(&a, "/v3/kv/range", "{" ALL "}", &full);
    assert_true(a.status == 400 && !a.refused_full);
    answer_fini(&a, kv);
}

/* ---- leases ---- */

static void grant_many(int n, bool of_runs) {
    for (int i = 1; i <= n; i++) {
        char key[64];
        int64_t id;
        assert_int_equal(kv_lease_grant(kv, i, 600, i, &id, NULL), 0);
        snprintf(key, sizeof(key), "/rankrun/job%d/cur", i);
        if (of_runs)
            put_key(key, kv_string("{}"), i);
    }
}

#define GRANT "{\"ID\":\"1000000\",\"TTL\":\"60\"}"
#define MANY                                                                                       \
    "{\"error\":\"this store has as many leases as it takes\",\"code\":8,\"message\":\"this "      \
    "store has as many leases as it takes\"}"

static void test_there_are_so_many_leases(void **state) {
    (void)state;
    struct answer a;
    assert_int_equal(ANSWER_LEASES_MAX, 8192);
    grant_many(8191, false);
    says("/v3/lease/grant", GRANT, 200,
         "{\"header\":{\"revision\":\"1\"},\"ID\":\"1000000\",\"TTL\":\"60\"}");
    assert_int_equal(kv_lease_count(kv), 8192);
    ask(&a, "/v3/lease/grant", "{\"ID\":\"5\",\"TTL\":\"60\"}", NULL); /* that is no more */
    assert_int_equal(a.status, 412);
    assert_true(a.adds);
    answer_fini(&a, kv);
    assert_int_equal(kv_lease_count(kv), 8192);
    ask(&a, "/v3/lease/grant", "{\"ID\":\"1000001\",\"TTL\":\"60\"}", NULL);
    assert_int_equal(a.status, 200);
    answer_fini(&a, kv);
    assert_int_equal(kv_lease_count(kv), 8192 - 1024 + 1); /* an eighth has gone */
}

static void test_those_of_runs_stay(void **state) {
    (void)state;
    struct answer a;
    grant_many(8192, true);
    ask(&a, "/v3/lease/grant", GRANT, NULL);
    assert_true(a.status == 429 && a.refused_full && a.adds);
    assert_string_equal(buf_str(&a.body), MANY);
    answer_fini(&a, kv);
    assert_int_equal(kv_lease_revoke(kv, 7, NULL), 0);
    ask(&a, "/v3/lease/grant", GRANT, NULL);
    assert_true(a.status == 200 && !a.refused_full);
    answer_fini(&a, kv);
}

/* ---- whose a request is ---- */

#define JOB    "L3JhbmtydW4vam9iL2N1cg=="     /* /rankrun/job/cur */
#define OTHER  "L3JhbmtydW4vb3RoZXIvY3Vy"     /* /rankrun/other/cur */
#define HELD   "L3JhbmtydW4vcXVhcmFudGluZQ==" /* /rankrun/quarantine */
#define R(key) "{\"request_range\":{\"key\":\"" key "\"}}"
#define C(key) "{\"key\":\"" key "\",\"target\":\"VERSION\",\"result\":\"GREATER\"}"

/* Of one run that is there, the quarantine beside it, and nothing else. */
static void test_only_who_asks_of_one_run_alone_is_its(void **state) {
    (void)state;
    static const struct {
        const char *body;
        bool own;
    } all[] = {
        {"{\"success\":[" R(JOB) "]}", true},
        {"{\"success\":[" R(JOB) "," R(HELD) "]}", true},
        {"{\"success\":[" R(HELD) "," R(JOB) "]}", true},
        {"{\"success\":[" R(HELD) "," R(JOB) "," R(HELD) "]}", true},
        {"{\"success\":[" R(HELD) "]}", false},
        {"{\"success\":[]}", false},
        {"{\"success\":[" R(JOB) "," R(OTHER) "]}", false},
        {"{\"success\":[" R(OTHER) "," R(JOB) "]}", false},
        {"{\"success\":[" R(JOB) "," R("eA==") "]}", false},
        {"{\"success\":[" R("eA==") "," R(JOB) "]}", false},
        {"{\"success\":[" R(OTHER) "]}", false}, /* it is not there */
        {"{\"success\":[" R(JOB) "],\"failure\":[" R(JOB) "]}", false},
        {"{\"compare\":[" C(JOB) "],\"success\":[" R(JOB) "]}", true},
        {"{\"compare\":[" C(JOB) "," C(HELD) "],\"success\":[" R(JOB) "]}", true},
        {"{\"compare\":[" C(HELD) "," C(OTHER) "],\"success\":[" R(JOB) "]}", false},
        {"{\"compare\":[" C("eA==") "," C(JOB) "],\"success\":[" R(JOB) "]}", false},
        {"{\"compare\":[" C(JOB) "]}", false},
    };
    put_key("/rankrun/job/cur", kv_string("{}"), 0);
    for (size_t i = 0; i < 2 * sizeof(all) / sizeof(*all); i++) {
        struct answer a = {.asks_run = i % 2};
        answer_request(&a, kv, "/v3/kv/txn", all[i / 2].body, strlen(all[i / 2].body), 5, NULL);
        assert_int_equal(a.status, 200);
        if (a.of_run != (i % 2 && all[i / 2].own))
            fail_msg("%s", all[i / 2].body);
        answer_fini(&a, kv);
    }
}

/* A run whose name is longer than a key may be is nobody's, though somebody has written it. */
static void test_a_run_has_a_name_of_so_many_bytes(void **state) {
    (void)state;
    static char key[6000];
    for (size_t n = 1000; n < 5000; n += n < 1030 ? 1 : 997) { /* up to and with the last slash */
        memset(key, 'r', n + 3);
        memcpy(key, "/rankrun/", 9);
        memcpy(key + n - 1, "/cur", 5);
        assert_false(answer_is_of_run(kv, kv_string(key), kv_string("")));
        put_key(key, kv_string("{}"), 0);
        assert_int_equal(answer_is_of_run(kv, kv_string(key), kv_string("")), n <= 1020);
    }
}

/* ---- pieces ---- */

/* A piece ends behind the pair with which it has 64 KB: with every length of the pairs. */
static void test_a_piece_is_not_longer_than_it_must_be(void **state) {
    (void)state;
    static char value[3000];
    memset(value, 'v', sizeof(value));
    for (size_t n = 2000; n < sizeof(value); n += 97) {
        kv_free(kv);
        kv = kv_new(1, 0);
        for (int i = 0; i < 200; i++) {
            char key[16];
            snprintf(key, sizeof(key), "k%06d", i);
            put_key(key, (struct kv_bytes){value, n}, 0);
        }
        struct answer a;
        ask(&a, "/v3/kv/range", "{" ALL "}", NULL);
        assert_true(a.more && a.status == 200);
        size_t whole = 0;
        for (bool last = false; !last;) {
            BUF_FINI struct buf piece = {0};
            last = answer_more(&a, &piece);
            assert_true(last || (piece.len >= 65536 && piece.len < 65536 + 2 * n));
            whole += piece.len;
        }
        assert_true(a.body.len >= 65536 && a.body.len < 65536 + 2 * n);
        assert_true(whole + a.body.len > 200 * n);
        answer_fini(&a, kv);
        assert_null(a.hold);
    }
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(test_a_request_looks_at_so_many_keys),
        TEST(test_there_are_so_many_leases),
        TEST(test_those_of_runs_stay),
        TEST(test_only_who_asks_of_one_run_alone_is_its),
        TEST(test_a_run_has_a_name_of_so_many_bytes),
        TEST(test_a_piece_is_not_longer_than_it_must_be),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
