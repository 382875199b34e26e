/* What is said of a host's half of a partition, and the rules that come of it. */
#include "harness/host/part_rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct part_order taken(struct arena *a, const char *text) {
    struct part_order o;
    struct err err = {0};
    const struct json *m = json_parse(a, text, strlen(text), &err);
    assert_non_null(m);
    assert_int_equal(part_order_take(m, &o, &err), 0);
    return o;
}

static void refused(const char *text, const char *says) {
    ARENA_FINI struct arena a = {0};
    struct part_order o;
    struct err err = {0};
    const struct json *m = json_parse(&a, text, strlen(text), &err);
    assert_non_null(m);
    assert_int_equal(part_order_take(m, &o, &err), -EINVAL);
    assert_non_null(strstr(err.msg, says));
}

#define PEERS                                                                                      \
    "\"name\":\"p\",\"peers\":[{\"name\":\"n1\",\"addresses\":[\"10.0.0.2\",\"fd00:0::2\"]}]"

static void test_addresses_are_compared_in_one_way_of_writing(void **state) {
    ARENA_FINI struct arena a = {0};
    struct part_order o = taken(&a, "{" PEERS "}");
    assert_int_equal(part_order_peer(&o, "fd00::2"), 0);
    assert_int_equal(part_order_peer(&o, "10.0.0.2"), 0);
    assert_int_equal(part_order_peer(&o, "10.0.0.3"), -1);
    assert_true(o.peers[0].deaf && o.peers[0].mute);
    assert_int_equal(o.planes, PLANE_ALL);
    part_order_fini(&o);
}

static void test_a_named_peer_goes_before_everybody(void **state) {
    ARENA_FINI struct arena a = {0};
    struct part_order o =
        taken(&a, "{\"name\":\"p\",\"peers\":[{\"name\":\"all\",\"addresses\":[\"*\"]},"
                  "{\"name\":\"n1\",\"addresses\":[\"10.0.0.2\"],\"mute\":false}]}");
    assert_int_equal(part_order_peer(&o, "10.0.0.2"), 1);
    assert_int_equal(part_order_peer(&o, "10.0.0.9"), 0);
    assert_false(o.peers[1].mute);
    part_order_fini(&o);
}

static void test_ports_are_sorted_into_planes(void **state) {
    ARENA_FINI struct arena a = {0};
    struct part_order o = taken(
        &a, "{" PEERS
            ",\"planes\":[\"store\",\"ssh\"],\"ports\":{\"store\":29400,\"bootstrap\":[29500]}}");
    assert_int_equal(o.planes, PLANE_STORE | PLANE_SSH);
    assert_int_equal(part_order_plane(&o, 40000, 29400), PLANE_STORE);
    assert_int_equal(part_order_plane(&o, 29500, 40000), PLANE_BOOTSTRAP);
    assert_int_equal(part_order_plane(&o, 22, 40000), PLANE_SSH);
    assert_int_equal(part_order_plane(&o, 40001, 40000), PLANE_DATA);
    part_order_fini(&o);
}

static void test_what_is_kept_is_one_connection_or_all_of_an_address(void **state) {
    ARENA_FINI struct arena a = {0};
    struct part_order o = taken(&a, "{" PEERS ",\"keep\":[{\"address\":\"10.0.0.7\"}]}");
    assert_true(part_order_keep_ssh(&o, "10.0.0.9 51000 10.0.0.1 22"));
    assert_false(part_order_keep_ssh(&o, "somewhere"));
    assert_false(part_order_keep_ssh(&o, NULL));
    assert_true(part_order_keeps(&o, "10.0.0.7", 1, 2));
    assert_true(part_order_keeps(&o, "10.0.0.9", 22, 51000));
    assert_false(part_order_keeps(&o, "10.0.0.9", 22, 51001));
    assert_false(part_order_keeps(&o, "10.0.0.9", 23, 51000));
    part_order_fini(&o);
}

static void test_what_cannot_be_meant_is_refused(void **state) {
    refused("{\"name\":\"p\"}", "peers must be a list");
    refused("{\"name\":\"p\",\"peers\":[{\"name\":\"n1\",\"addresses\":[\"node7\"]}]}", "node7");
    refused("{" PEERS ",\"way\":\"road\"}", "road");
    refused("{" PEERS ",\"planes\":[\"sky\"]}", "sky");
    refused("{" PEERS ",\"ports\":{\"bootstrap\":[0]}}", "no port");
    refused("{" PEERS ",\"keep\":[{\"address\":\"10.0.0.7\",\"theirs\":-1}]}", "no port");
}

static const struct owned_rule *rule_of(const struct owned_rule *v, size_t n, enum owned_chain c,
                                        uint16_t theirs) {
    for (size_t i = 0; i < n; i++)
        if (v[i].chain == c && v[i].theirs == theirs && !v[i].ours)
            return &v[i];
    return NULL;
}

static void test_a_cut_of_data_lets_ports_of_other_planes_pass(void **state) {
    ARENA_FINI struct arena a = {0};
    struct part_order o =
        taken(&a, "{" PEERS ",\"planes\":[\"data\"],\"ports\":{\"store\":29400}}");
    size_t n;
    struct owned_rule *v = part_rules_make(&o, &n);
    assert_int_equal(rule_of(v, n, OWNED_IN, 29400)->what, OWNED_PASS);
    assert_int_equal(rule_of(v, n, OWNED_IN, 0)->what, OWNED_DROP);
    assert_true(rule_of(v, n, OWNED_IN, 29400) < rule_of(v, n, OWNED_IN, 0));
    assert_int_equal(rule_of(v, n, OWNED_IN_BEHIND, 0)->what, OWNED_COUNT);
    assert_true(part_rules_is_passed(rule_of(v, n, OWNED_IN_BEHIND, 0)->tag));
    assert_false(part_rules_is_passed(rule_of(v, n, OWNED_IN, 0)->tag));
    assert_int_equal(part_rules_peer(rule_of(v, n, OWNED_IN, 0)->tag), 0);
    assert_int_equal(part_rules_peer(rule_of(v, n, OWNED_OUT, 0)->tag), 0);
    assert_true(part_rules_is_said(rule_of(v, n, OWNED_OUT, 0)->tag));
    assert_false(part_rules_is_said(rule_of(v, n, OWNED_IN, 0)->tag));
    assert_false(part_rules_is_said(rule_of(v, n, OWNED_IN_BEHIND, 0)->tag));
    free(v);
    part_order_fini(&o);
}

static void test_a_cut_of_a_port_leaves_data_alone(void **state) {
    ARENA_FINI struct arena a = {0};
    struct part_order o =
        taken(&a, "{" PEERS ",\"planes\":[\"store\"],\"ports\":{\"store\":29400}}");
    size_t n;
    struct owned_rule *v = part_rules_make(&o, &n);
    assert_int_equal(rule_of(v, n, OWNED_OUT, 29400)->what, OWNED_DROP);
    assert_null(rule_of(v, n, OWNED_OUT, 0));
    assert_null(rule_of(v, n, OWNED_OUT, 22));
    free(v);
    part_order_fini(&o);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses_are_compared_in_one_way_of_writing),
        cmocka_unit_test(test_a_named_peer_goes_before_everybody),
        cmocka_unit_test(test_ports_are_sorted_into_planes),
        cmocka_unit_test(test_what_is_kept_is_one_connection_or_all_of_an_address),
        cmocka_unit_test(test_what_cannot_be_meant_is_refused),
        cmocka_unit_test(test_a_cut_of_data_lets_ports_of_other_planes_pass),
        cmocka_unit_test(test_a_cut_of_a_port_leaves_data_alone),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
