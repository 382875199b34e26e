/* Who leads, out of what a store answers; and every answer that does not say it. */
#include "base/base64.h"
#include "harness/observe/leader.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

struct pair {
    const char *key, *value;
};

static void put(struct buf *out, const struct pair *v, size_t n, const char *without) {
    buf_puts(out, "{\"header\":{\"revision\":\"40\"},\"kvs\":[");
    for (size_t i = 0; i < n; i++) {
        if (without && strcmp(v[i].key, without) == 0)
            continue;
        buf_printf(out, "%s{\"mod_revision\":\"%zu\",\"key\":\"",
                   out->data[out->len - 1] == '[' ? "" : ",", i + 10);
        base64_put(out, v[i].key, strlen(v[i].key));
        buf_puts(out, "\",\"value\":\"");
        base64_put(out, v[i].value, strlen(v[i].value));
        buf_puts(out, "\"}");
    }
    buf_puts(out, "]}");
}

static const struct pair job[] = {
    {"/rankrun/a/cur", "{\"inc\":\"00ff\",\"min\":2}"},
    {"/rankrun/a/00ff/lead", "{\"uid\":\"u2\"}"},
    {"/rankrun/a/00ff/m/u1", "{\"node\":\"x\",\"addr\":\"n0\"}"},
    {"/rankrun/a/00ff/m/u2", "{\"node\":\"y\",\"addr\":\"n1\"}"},
    {"/rankrun/a/00ff/s/u1", "{\"seq\":3}"},
    {"/rankrun/a/00ff/s/u2", "{\"seq\":4}"},
    {"/rankrun/a/00ff/gone/u2", "{\"why\":\"silent\"}"},
    {"/rankrun/a/00fe/lead", "{\"uid\":\"u1\"}"}, /* of a life before */
};
enum { JOB_N = sizeof(job) / sizeof(*job) };

static int read_job(const char *run_id, const char *without, struct leader *ret, struct err *err) {
    struct arena a = {0};
    struct buf text = {0};
    struct pair living[JOB_N];
    size_t n = 0;
    for (size_t i = 0; i < JOB_N; i++)
        if (!strstr(job[i].key, "/gone/") || (without && strstr(without, "alive")))
            living[n++] = job[i];
    put(&text, living, n, without);
    int r = leader_of_job(json_parse(&a, text.data, text.len, NULL), run_id, ret, err);
    buf_fini(&text);
    arena_fini(&a);
    return r;
}

static void test_who_holds_the_lead_of_the_job_that_is_now_coordinates(void **state) {
    (void)state;
    struct leader l;
    struct err err = {0};
    assert_int_equal(read_job("a", NULL, &l, &err), 0);
    assert_string_equal(l.name, "n1");
    assert_int_equal(l.term, 11);
}

static void test_all_keys_of_a_job_are_counted(void **state) {
    (void)state;
    struct arena a = {0};
    struct buf text = {0};
    struct err err = {0};
    int64_t n = -1;
    put(&text, job, JOB_N, NULL);
    assert_int_equal(leader_keys_of(json_parse(&a, text.data, text.len, NULL), &n, &err), 0);
    assert_int_equal(n, JOB_N);
    assert_int_equal(leader_keys_of(json_parse(&a, "{}", 2, NULL), &n, &err), -EPROTO);
    buf_fini(&text);
    arena_fini(&a);
}

static void test_a_store_that_names_nobody_says_why(void **state) {
    (void)state;
    static const struct {
        const char *run_id, *without, *why;
        int code;
    } rows[] = {
        {"b", NULL, "the store knows no job b", -ENOENT},
        {"a", "/rankrun/a/cur", "the store knows no job a", -ENOENT},
        {"a", "/rankrun/a/00ff/lead", "nobody coordinates the job a", -ENOENT},
        {"a", "/rankrun/a/00ff/s/u2",
         "who coordinated the job a is gone, and nobody has taken over", -ENOENT},
        {"a", "alive and gone", "who coordinated the job a is gone, and nobody has taken over",
         -ENOENT},
        {"a", "/rankrun/a/00ff/m/u2", "the store does not say where the coordinator is", -EPROTO},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct leader l = {.term = -7};
        struct err err = {0};
        assert_int_equal(read_job(rows[i].run_id, rows[i].without, &l, &err), rows[i].code);
        assert_string_equal(err.msg, rows[i].why);
        assert_int_equal(l.term, -7);
    }
}

static const char members[] =
    "{\"members\":[{\"ID\":\"10276657743932975437\",\"name\":\"store-0\"},"
    "{\"ID\":\"8\",\"name\":\"store-1\"}]}";

static int read_members(const char *status, const char *list, struct leader *ret, struct err *err) {
    struct arena a = {0};
    int r = leader_of_members(json_parse(&a, status, strlen(status), NULL),
                              json_parse(&a, list, strlen(list), NULL), ret, err);
    arena_fini(&a);
    return r;
}

static void test_ids_of_members_are_compared_as_they_stand(void **state) {
    (void)state;
    struct leader l;
    struct err err = {0};
    assert_int_equal(read_members("{\"header\":{},\"leader\":\"10276657743932975437\","
                                  "\"raftTerm\":\"3\"}",
                                  members, &l, &err),
                     0);
    assert_string_equal(l.name, "store-0");
    assert_int_equal(l.term, 3);
}

static void test_a_member_without_a_leader_says_so(void **state) {
    (void)state;
    static const struct {
        const char *status, *list, *why;
        int code;
    } rows[] = {
        {"{\"header\":{},\"raftTerm\":\"3\"}", members, "it knows of no leader", -ENOENT},
        {"{\"header\":{},\"leader\":\"9\"}", members, "its leader 9 is none of its members",
         -EPROTO},
        {"{\"header\":{},\"leader\":\"8\"}", "{}", "its leader 8 is none of its members", -EPROTO},
        {"[]", members, "that is not the answer of an etcd", -EPROTO},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct leader l;
        struct err err = {0};
        assert_int_equal(read_members(rows[i].status, rows[i].list, &l, &err), rows[i].code);
        assert_string_equal(err.msg, rows[i].why);
    }
}

static void test_what_is_no_answer_of_a_store_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"{}", "[]", "{\"kvs\":[{}]}", "7"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct arena a = {0};
        struct leader l;
        struct err err = {0};
        const struct json *j = json_parse(&a, texts[i], strlen(texts[i]), NULL);
        assert_int_equal(leader_of_job(j, "a", &l, &err), -EPROTO);
        arena_fini(&a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_holds_the_lead_of_the_job_that_is_now_coordinates),
        cmocka_unit_test(test_all_keys_of_a_job_are_counted),
        cmocka_unit_test(test_a_store_that_names_nobody_says_why),
        cmocka_unit_test(test_ids_of_members_are_compared_as_they_stand),
        cmocka_unit_test(test_a_member_without_a_leader_says_so),
        cmocka_unit_test(test_what_is_no_answer_of_a_store_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
