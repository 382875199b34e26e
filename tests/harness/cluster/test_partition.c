/* Faults on the wire that are in force together: each is undone by itself, in whatever order, and none does
 * what another does to the same frames already. Nothing is linked here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "harness/cluster/parts.h"

#include <errno.h>
#include <string.h>

enum { ALL = PLANE_ALL, DATA = PLANE_DATA, STORE = PLANE_STORE };

static int linked;

static int link_nothing(struct cluster *c, struct err *err) {
    (void)c, (void)err;
    linked++;
    return 0;
}

static const struct isolation_ops ops = {.link = link_nothing, .impairs = true};
static struct plan_node plans[3] = {{.name = "n0"}, {.name = "n1"}, {.name = "store"}};
static struct node nodes[3] = {{.plan = &plans[0]}, {.plan = &plans[1]}, {.plan = &plans[2]}};
static struct node *all[] = {&nodes[0], &nodes[1], &nodes[2], NULL};
static struct cluster c;
static struct err err;

static int begin(void **state) {
    (void)state;
    c = (struct cluster){.isolation = &ops, .nodes = all, .nodes_n = 3};
    list_init(&c.partitions);
    linked = 0;
    return 0;
}

static int end(void **state) {
    (void)state;
    partitions_free(&c);
    return 0;
}

static int set(const char *groups, struct impairment how, bool on) {
    if (!how.planes)
        how.planes = ALL;
    return partition_set(&c, groups, &how, 1, false, on, &err);
}

static int cut(const char *groups, unsigned planes, bool on) {
    const struct impairment how = {.planes = planes};
    return partition_set(&c, groups, &how, 1, true, on, &err);
}

static int in_force(void) {
    int n = 0;
    list_each(it, &c.partitions) n += it != NULL;
    return n;
}

static const struct partition *only(void) {
    assert_int_equal(in_force(), 1);
    return list_entry(c.partitions.next, struct partition, link);
}

static const struct impairment late = {.delay_ns = 5, .seed = 1},
                               lossy = {.loss_ppm = 7, .seed = 2};

static void test_a_delay_and_a_loss_are_undone_each_by_itself_in_both_orders(void **state) {
    (void)state;
    for (int order = 0; order < 2; order++) {
        assert_int_equal(set("n1|*", late, true), 0);
        int64_t id = only()->id;
        assert_int_equal(set("n1|*", lossy, true), 0);
        assert_int_equal(in_force(), 2);
        assert_int_equal(set("n1|*", order ? late : lossy, false), 0);
        assert_int_equal(only()->how.delay_ns, order ? 0 : 5);
        assert_int_equal(only()->how.loss_ppm, order ? 7 : 0);
        assert_int_equal(only()->id == id, !order); /* what stays goes on with what it knows */
        assert_int_equal(set("n1|*", order ? lossy : late, false), 0);
        assert_int_equal(in_force(), 0);
    }
}

static void test_an_impairment_and_a_cut_are_undone_each_by_itself(void **state) {
    (void)state;
    assert_int_equal(set("n1|*", late, true), 0);
    assert_int_equal(cut("n1|*", ALL, true), 0);
    assert_int_equal(set("n1|*", late, false), 0);
    assert_true(only()->cut);
    assert_int_equal(set("n1|*", lossy, true), 0);
    assert_int_equal(cut("n1|*", ALL, false), 0);
    assert_int_equal(only()->how.loss_ppm, 7);
}

static void test_what_is_done_to_the_same_frames_already_is_refused(void **state) {
    static const struct {
        struct impairment first, then;
        const char *groups;
        bool good;
    } rows[] = {
        {{.delay_ns = 5}, {.delay_ns = 9}, "n1|*", false},
        {{.delay_ns = 5}, {.delay_ns = 9}, "n1|n0", false},
        {{.delay_ns = 5}, {.delay_ns = 9, .planes = DATA}, "n1|*", false},
        {{.delay_ns = 5}, {.delay_ns = 9, .direction = DIRECTION_TO}, "n1|*", false},
        {{.delay_ns = 5}, {.delay_ns = 9}, "n0|*", true}, /* n0 and the store besides */
        {{.delay_ns = 5, .planes = DATA}, {.delay_ns = 9, .planes = STORE}, "n1|*", true},
        {{.delay_ns = 5, .planes = DATA}, {.delay_ns = 9}, "n1|*", true},
        {{.delay_ns = 5, .direction = DIRECTION_FROM}, {.delay_ns = 9}, "n1|*", true},
        {{.delay_ns = 5}, {.loss_ppm = 9}, "n1|*", true},
        {{.rate_bit_s = 5}, {.rate_in_bit_s = 9}, "n1|*", false},
        {{.corrupt_ppm = 5}, {.corrupt_ppm = 5, .corrupt_mends = 1}, "n1|*", false},
        {{.mtu_bytes = 500}, {.mtu_bytes = 900}, "n1|*", false},
        {{.refuses = 1}, {.blocks = 1}, "n1|*", false},
        {{.refuses = 1, .tcp_port = 80}, {.blocks = 1}, "n1|*", true},
        {{.refuses = 1, .tcp_port = 80}, {.blocks = 1, .tcp_port = 80}, "n1|*", false},
        {{.refuses = 1, .tcp_port = 80}, {.refuses = 1, .tcp_port = 81}, "n1|*", true},
        {{.names = NAMES_SILENT}, {.names = NAMES_WRONG}, "n1|*", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_int_equal(set("n1|*", rows[i].first, true), 0);
        int64_t before = linked, r = set(rows[i].groups, rows[i].then, true);
        if (r != (rows[i].good ? 0 : -EBUSY))
            fail_msg("row %zu: %d", i, (int)r);
        if (!rows[i].good) {
            assert_non_null(strstr(err.msg, "end that one first"));
            assert_int_equal(in_force(), 1);
            assert_int_equal(linked, before); /* nothing was done */
        }
        partitions_free(&c);
    }
}

/* It is no less cut for another cut. */
static void test_the_same_cut_twice_ends_with_the_second(void **state) {
    (void)state;
    assert_int_equal(cut("n1|*", ALL, true), 0);
    assert_int_equal(cut("n1|*", DATA, true), 0);
    assert_int_equal(cut("n1|*", ALL, false), 0);
    assert_int_equal(only()->how.planes, DATA);
}

static void test_what_is_undone_twice_or_never_was_changes_nothing(void **state) {
    (void)state;
    assert_int_equal(set("n1|*", late, true), 0);
    assert_int_equal(set("n1|*", lossy, true), 0);
    assert_int_equal(set("n1|*", late, false), 0);
    int before = linked;
    assert_int_equal(set("n1|*", late, false), 0);
    assert_int_equal(cut("n1|*", ALL, false), 0);
    assert_int_equal(linked, before);
    assert_int_equal(only()->how.loss_ppm, 7);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_a_delay_and_a_loss_are_undone_each_by_itself_in_both_orders, begin, end),
        cmocka_unit_test_setup_teardown(test_an_impairment_and_a_cut_are_undone_each_by_itself,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_done_to_the_same_frames_already_is_refused,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_the_same_cut_twice_ends_with_the_second, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_undone_twice_or_never_was_changes_nothing,
                                        begin, end),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
