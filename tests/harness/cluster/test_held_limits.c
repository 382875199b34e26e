/* Faults that hold a node to a limit, where a helper on another host does them by itself. */
#include "harness/cluster/held_limits.h"

#include "faults/fault.h"
#include "harness/cluster/node_faults.h"
#include "tests/harness/cluster/fault_order.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A node that notes what is asked of it. */
struct noted {
    int64_t limits[NODE_LIMITS_N];
    int undone[NODE_LIMITS_N];
};

static int note_limit(void *node, enum node_limit what, int64_t value, struct err *err) {
    struct noted *n = node;
    n->limits[what] = value;
    return 0;
}

static int note_unlimit(void *node, enum node_limit what, struct err *err) {
    struct noted *n = node;
    n->undone[what]++;
    return 0;
}

static const struct node_ops noting = {.limit = note_limit, .unlimit = note_unlimit};

static int do_it(struct node_faults *f, const char *fault, const char *args, bool recover) {
    struct message m = fault_order(fault, args, recover);
    struct err err;
    int r = node_faults_do(f, &m, -1, &err);
    message_fini(&m);
    return r;
}

static void test_a_helper_beside_the_harness_leaves_limits_to_it(void **state) {
    struct node_faults f = {0};
    assert_int_equal(do_it(&f, "node-cpu", "\"percent\":\"10\"", false), -ENOSYS);
    node_faults_fini(&f);
}

static void test_a_limit_is_undone_by_an_order(void **state) {
    struct noted n = {0};
    struct node_faults f = {.ops = &noting, .node = &n};
    assert_int_equal(do_it(&f, "node-cpu", "\"percent\":\"10\"", false), 0);
    assert_int_equal(do_it(&f, "node-memory", "\"more\":\"8\"", false), 0);
    assert_int_equal(do_it(&f, "node-pids", "\"more\":\"3\"", false), 0);
    assert_int_equal(n.limits[NODE_LIMIT_CPU], 10);
    assert_int_equal(n.limits[NODE_LIMIT_MEMORY], 8 << 20);
    assert_int_equal(n.limits[NODE_LIMIT_PIDS], 3);
    assert_int_equal(do_it(&f, "node-memory", "\"more\":\"8\"", true), 0);
    assert_int_equal(n.undone[NODE_LIMIT_MEMORY], 1);
    assert_int_equal(n.undone[NODE_LIMIT_CPU], 0);
    node_faults_fini(&f);
}

/* At the dead-man and at the link's end nobody orders it, and the program may have ended. */
static void test_all_limits_are_undone_without_an_order(void **state) {
    struct noted n = {0};
    struct node_faults f = {.ops = &noting, .node = &n};
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    do_it(&f, "node-cpu", "\"percent\":\"10\"", false);
    do_it(&f, "node-pids", "\"more\":\"3\"", false);
    json_array(&w, NULL);
    node_faults_undo(&f, -1, &w);
    json_end_array(&w);
    assert_int_equal(n.undone[NODE_LIMIT_CPU], 1);
    assert_int_equal(n.undone[NODE_LIMIT_PIDS], 1);
    assert_int_equal(n.undone[NODE_LIMIT_MEMORY], 0);
    assert_non_null(strstr(buf_str(&text), "\"fault\":\"node-cpu\""));
    node_faults_fini(&f);
}

static void test_nothing_is_told_where_there_is_no_limit(void **state) {
    struct held_limits h = {0};
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    held_limits_put(&h, &w);
    json_end_object(&w);
    assert_string_equal(buf_str(&text), "{}");
    assert_int_equal(held_limits_lift(&h, NODE_LIMIT_CPU, NULL), 0);
    held_limits_end(&h, NULL);
}

/* Whoever has this number later, or in another namespace, is another owner. */
static void test_an_owner_is_known_by_more_than_its_number(void **state) {
    char own[LIMIT_OWNER_MAX], again[LIMIT_OWNER_MAX], other[LIMIT_OWNER_MAX];
    unsigned long long space, start;
    int pid;
    limit_group_owner(getpid(), own);
    limit_group_owner(getpid(), again);
    limit_group_owner(1, other);
    assert_string_equal(own, again);
    assert_string_not_equal(own, other);
    assert_int_equal(sscanf(own, "%llu.%d.%llu", &space, &pid, &start), 3);
    assert_int_equal(pid, getpid());
    assert_true(space > 0 && start > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_helper_beside_the_harness_leaves_limits_to_it),
        cmocka_unit_test(test_a_limit_is_undone_by_an_order),
        cmocka_unit_test(test_all_limits_are_undone_without_an_order),
        cmocka_unit_test(test_nothing_is_told_where_there_is_no_limit),
        cmocka_unit_test(test_an_owner_is_known_by_more_than_its_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
