/* What etcd's v2 API answers, recorded from etcd 3.4.23. */
#include "agent/store/tree_answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;

static int tear_down(void **state) {
    (void)state;
    arena_fini(&arena);
    return 0;
}

static struct tree_answer take(enum tree_verb verb, long status, const char *body,
                               const char *index) {
    struct buf b = {0};
    buf_puts(&b, body);
    struct tree_answer answer = tree_answer_read(&arena, verb, status, &b, index);
    buf_fini(&b);
    return answer;
}

static void test_a_folder_is_read_with_all_below_it(void **state) {
    (void)state;
    struct tree_answer a = take(
        TREE_GET, 200,
        "{\"action\":\"get\",\"node\":{\"key\":\"/a\",\"dir\":true,\"expiration\":"
        "\"2026-11-21T23:24:27.764022559Z\",\"ttl\":200,\"nodes\":[{\"key\":\"/a/v_1\",\"dir\":"
        "true,\"nodes\":[{\"key\":\"/a/v_1/rank_0\",\"value\":\"\",\"ttl\":9,\"modifiedIndex\":"
        "23,\"createdIndex\":23}],\"modifiedIndex\":18,\"createdIndex\":18},{\"key\":\"/a/k\","
        "\"value\":\"x\",\"modifiedIndex\":7,\"createdIndex\":7}],\"modifiedIndex\":4,"
        "\"createdIndex\":4}}",
        "42");
    assert_int_equal(a.result, TREE_DONE);
    assert_int_equal(a.index, 42);
    assert_int_equal(a.n, 4);
    assert_string_equal(a.nodes[2].key, "/a/v_1/rank_0");
    assert_string_equal(a.nodes[2].value, "");
    assert_false(a.nodes[2].dir);
    assert_int_equal(a.nodes[2].modified, 23);
    assert_string_equal(a.nodes[3].value, "x");
    assert_true(a.nodes[0].dir && a.nodes[1].dir);
}

static void test_a_key_that_expires_is_gone(void **state) {
    (void)state;
    struct tree_answer a = take(
        TREE_WAIT, 200,
        "{\"action\":\"expire\",\"node\":{\"key\":\"/a/k\",\"modifiedIndex\":8,\"createdIndex\":7},"
        "\"prevNode\":{\"key\":\"/a/k\",\"value\":\"x\",\"expiration\":"
        "\"2026-11-21T23:21:08.771022746Z\",\"modifiedIndex\":7,\"createdIndex\":7}}\n",
        "7");
    assert_int_equal(a.n, 1);
    assert_true(a.nodes[0].gone);
    assert_string_equal(a.nodes[0].key, "/a/k");
    assert_int_equal(a.nodes[0].modified, 8);
}

static void test_a_key_that_was_set_is_there(void **state) {
    (void)state;
    const char *text =
        "{\"action\":\"compareAndSwap\",\"node\":{\"key\":\"/s\",\"value\":\"{\\\"a\\\": "
        "1}\",\"modifiedIndex\":9,\"createdIndex\":8},\"prevNode\":{\"key\":\"/s\"}}";
    struct tree_answer a = take(TREE_PUT, 200, text, "9");
    assert_string_equal(a.nodes[0].value, "{\"a\": 1}");
    a = take(TREE_WAIT, 200, text, "9");
    assert_false(a.nodes[0].gone);
}

static void test_a_wait_that_etcd_ends_says_nothing(void **state) {
    (void)state;
    struct tree_answer a = take(TREE_WAIT, 200, "", "9");
    assert_int_equal(a.result, TREE_DONE);
    assert_int_equal(a.n, 0);
}

static void test_errors_are_told_apart(void **state) {
    (void)state;
    static const struct {
        long status;
        const char *body;
        enum tree_result result;
    } rows[] = {
        {404, "{\"errorCode\":100,\"message\":\"Key not found\",\"cause\":\"/k\",\"index\":8}",
         TREE_MISSING},
        {412,
         "{\"errorCode\":101,\"message\":\"Compare failed\",\"cause\":\"[z != x]\",\"index\":7}",
         TREE_CHANGED},
        {400, "{\"errorCode\":104,\"message\":\"Not a directory\",\"cause\":\"/a/e\",\"index\":9}",
         TREE_REFUSED},
        {412, "{\"errorCode\":105,\"message\":\"Key already exists\",\"cause\":\"/a\",\"index\":4}",
         TREE_EXISTS},
        {500, "{\"errorCode\":300,\"message\":\"Raft Internal Error\",\"cause\":\"timed out\"}",
         TREE_LOST},
        {500,
         "{\"errorCode\":300,\"message\":\"Raft Internal Error\",\"cause\":\"nodePath /1/a : Not a "
         "file ()\",\"index\":0}",
         TREE_REFUSED},
        {400,
         "{\"errorCode\":401,\"message\":\"The event in requested index is outdated and "
         "cleared\",\"cause\":\"the requested history has been cleared [2/1]\",\"index\":1001}",
         TREE_CLEARED},
        {404, "404 page not found\n", TREE_NO_V2},
        {503, "", TREE_LOST},
        {200, "<html>", TREE_LOST},
        {403, "{\"message\":\"no\"}", TREE_REFUSED},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tree_answer a = take(TREE_PUT, rows[i].status, rows[i].body, "");
        assert_int_equal(a.result, rows[i].result);
        assert_non_null(a.text);
        assert_int_equal(a.n, 0);
    }
}

static void test_what_is_no_etcd_is_known_by_its_version(void **state) {
    (void)state;
    struct tree_answer a =
        take(TREE_VERSION, 200, "{\"etcdserver\":\"3.4.23\",\"etcdcluster\":\"3.4.0\"}", "");
    assert_int_equal(a.result, TREE_DONE);
    assert_string_equal(a.text, "3.4.23");
    assert_int_equal(take(TREE_VERSION, 200, "{\"version\":\"9\"}", "").result, TREE_STRANGE);
    assert_int_equal(take(TREE_VERSION, 404, "not found", "").result, TREE_STRANGE);
    assert_int_equal(take(TREE_VERSION, 200, "<html>", "").result, TREE_STRANGE);
}

static void test_damaged_answers_do_no_harm(void **state) {
    (void)state;
    const char *text =
        "{\"action\":\"get\",\"node\":{\"key\":\"/a\",\"dir\":true,\"nodes\":[{\"key\":"
        "\"/a/k\",\"value\":\"x\",\"modifiedIndex\":7}],\"modifiedIndex\":4}}";
    for (size_t n = 0; n < strlen(text); n++) {
        struct buf b = {0};
        buf_put(&b, text, n);
        struct tree_answer a = tree_answer_read(&arena, TREE_GET, 200, &b, "x");
        assert_non_null(a.text);
        buf_fini(&b);
    }
    struct tree_answer a = take(TREE_GET, 200, "{\"node\":{\"key\":7,\"nodes\":{\"x\":[]}}}", "");
    assert_string_equal(a.nodes[0].key, "/");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_folder_is_read_with_all_below_it, tear_down),
        cmocka_unit_test_teardown(test_a_key_that_expires_is_gone, tear_down),
        cmocka_unit_test_teardown(test_a_key_that_was_set_is_there, tear_down),
        cmocka_unit_test_teardown(test_a_wait_that_etcd_ends_says_nothing, tear_down),
        cmocka_unit_test_teardown(test_errors_are_told_apart, tear_down),
        cmocka_unit_test_teardown(test_what_is_no_etcd_is_known_by_its_version, tear_down),
        cmocka_unit_test_teardown(test_damaged_answers_do_no_harm, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
