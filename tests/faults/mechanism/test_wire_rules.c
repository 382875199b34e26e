#include "faults/mechanism/wire_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static struct wire_rules rules;

static int clean(void **state) {
    (void)state;
    memset(&rules, 0, sizeof(rules));
    rules.store_port = 29400;
    return 0;
}

static unsigned plane_of(enum frame_kind kind, uint16_t from, uint16_t to) {
    struct frame f = {.kind = kind, .source_port = from, .destination_port = to};
    return wire_rules_plane(&rules, &f);
}

static void test_without_rules_everything_passes(void **state) {
    (void)state;
    for (unsigned plane = 0; plane <= PLANE_DATA; plane++)
        assert_true(wire_rules_pass(&rules, 0, 1, plane));
}

static void test_a_frame_belongs_to_the_plane_of_either_port(void **state) {
    (void)state;
    wire_rules_bootstrap(&rules, 45000);
    assert_int_equal(plane_of(FRAME_TCP, 50000, 29400), PLANE_STORE);
    assert_int_equal(plane_of(FRAME_TCP, 29400, 50000), PLANE_STORE);
    assert_int_equal(plane_of(FRAME_TCP, 50000, 29401), PLANE_DATA);
    rules.store_peer_port = 29401;
    assert_int_equal(plane_of(FRAME_TCP, 50000, 29401), PLANE_STORE);
    assert_int_equal(plane_of(FRAME_TCP, 29401, 50000), PLANE_STORE);
    assert_int_equal(plane_of(FRAME_TCP, 45000, 50000), PLANE_BOOTSTRAP);
    assert_int_equal(plane_of(FRAME_TCP, 50000, 45000), PLANE_BOOTSTRAP);
    assert_int_equal(plane_of(FRAME_TCP, 50000, 22), PLANE_SSH);
    assert_int_equal(plane_of(FRAME_UDP, 50000, 50001), PLANE_DATA);
    assert_int_equal(plane_of(FRAME_IP, 0, 0), PLANE_DATA);
    assert_int_equal(plane_of(FRAME_ARP, 0, 0), 0);
    assert_false(wire_rules_is_bootstrap(&rules, 45001));
}

static void test_silence_holds_in_both_directions_and_only_there(void **state) {
    (void)state;
    wire_rules_silence(&rules, 2, true);
    assert_false(wire_rules_pass(&rules, 2, 0, PLANE_DATA));
    assert_false(wire_rules_pass(&rules, 0, 2, PLANE_STORE));
    assert_false(wire_rules_pass(&rules, 0, 2, 0));
    assert_true(wire_rules_pass(&rules, 0, 1, PLANE_DATA));
    wire_rules_silence(&rules, 2, false);
    assert_true(wire_rules_pass(&rules, 2, 0, PLANE_DATA));
}

static void test_a_cut_of_one_plane_and_direction_leaves_the_others(void **state) {
    (void)state;
    wire_rules_cut(&rules, 0, 1, PLANE_STORE, true);
    assert_false(wire_rules_pass(&rules, 0, 1, PLANE_STORE));
    assert_true(wire_rules_pass(&rules, 1, 0, PLANE_STORE));
    assert_true(wire_rules_pass(&rules, 0, 1, PLANE_DATA));
    assert_true(wire_rules_pass(&rules, 0, 1, 0)); /* ARP */
    wire_rules_cut(&rules, 0, 1, PLANE_ALL, true);
    assert_false(wire_rules_pass(&rules, 0, 1, 0));
    wire_rules_cut(&rules, 0, 1, PLANE_DATA, false);
    assert_true(wire_rules_pass(&rules, 0, 1, PLANE_DATA));
    assert_false(wire_rules_pass(&rules, 0, 1, PLANE_STORE));
}

static void test_a_partition_closes_what_lies_between_groups(void **state) {
    static const struct {
        int direction;
        bool away, back; /* closed from the first group, to it */
    } rows[] = {
        {DIRECTION_BOTH, true, true}, {DIRECTION_FROM, true, false}, {DIRECTION_TO, false, true}};
    int group[WIRE_PORTS_MAX];
    (void)state;
    for (int i = 0; i < WIRE_PORTS_MAX; i++)
        group[i] = i < 2 ? 0 : i < 4 ? 1 : -1;
    for (size_t i = 0; i < 3; i++) {
        wire_rules_clear(&rules);
        wire_rules_partition(
            &rules, group,
            &(struct impairment){.planes = PLANE_ALL, .direction = rows[i].direction});
        for (int a = 0; a < 5; a++)
            for (int b = 0; b < 5; b++) {
                bool between = a < 4 && b < 4 && group[a] != group[b];
                bool closed = between && (a < b ? rows[i].away : rows[i].back);
                assert_int_equal(wire_rules_pass(&rules, a, b, PLANE_DATA), !closed);
            }
    }
    wire_rules_clear(&rules);
    assert_true(wire_rules_pass(&rules, 0, 3, PLANE_DATA));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_without_rules_everything_passes, clean),
        cmocka_unit_test_setup(test_a_frame_belongs_to_the_plane_of_either_port, clean),
        cmocka_unit_test_setup(test_silence_holds_in_both_directions_and_only_there, clean),
        cmocka_unit_test_setup(test_a_cut_of_one_plane_and_direction_leaves_the_others, clean),
        cmocka_unit_test_setup(test_a_partition_closes_what_lies_between_groups, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
