#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/certify/certificate.h"
#include "harness/certify/difference.h"
#include "harness/certify/victims.h"

#include <string.h>

static struct arena arena;

static int tear_down(void **state) {
    (void)state;
    arena_fini(&arena);
    return 0;
}

static const struct json *parse(const char *text) {
    return json_parse(&arena, text, strlen(text), NULL);
}

/* ---- what follows from runs ---- */

static bool is_slower(const struct json *node) {
    return json_first(json_get(node, "slower"));
}

#define RUN(code, node, us)                                                                        \
    "{\"scenario\":\"s\",\"exit_code\":" #code ",\"faults\":[{\"name\":\"f\",\"nodes\":[\"" node   \
    "\"],\"recover_us\":" #us "}]}"

static const struct json *victims_of(const char *scenarios, const char *key) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    victims_put(parse(scenarios), &w, key);
    json_end_object(&w);
    return json_get(parse(buf_str(&text)), key);
}

static const struct json *nodes_of(const char *scenarios) {
    return victims_of(scenarios, VICTIMS_NODES);
}

static const struct json *node(const struct json *nodes, const char *name) {
    json_each(n, nodes) if (strcmp(json_get_string(n, "name", ""), name) == 0) return n;
    return NULL;
}

static void test_runs_of_a_victim_are_counted_and_the_median_taken(void **state) {
    (void)state;
    const struct json *nodes = nodes_of(
        "[" RUN(0, "n1", 100) "," RUN(1, "n1", 300) "," RUN(0, "n1", 900) "," RUN(0, "n0", -1) "]");
    assert_int_equal(json_get_i64(node(nodes, "n1"), "runs", 0), 3);
    assert_int_equal(json_get_i64(node(nodes, "n1"), "passed", 0), 2);
    assert_int_equal(json_get_i64(node(nodes, "n1"), "recover_us", 0), 300);
    assert_int_equal(json_get_i64(node(nodes, "n0"), "recover_us", 0), -1);
}

static void test_a_node_that_is_slower_than_its_peers_is_named(void **state) {
    (void)state;
    const struct json *nodes = nodes_of("[" RUN(0, "n0", 1000000) "," RUN(0, "n1", 1010000) "," RUN(
        0, "n2", 6000000) "," RUN(0, "n3", 990000) "]");
    assert_true(is_slower(node(nodes, "n2")));
    assert_false(is_slower(node(nodes, "n0")));
    assert_false(is_slower(node(nodes, "n3")));
}

/* A node that was struck by something slower is not slower. */
static void test_only_the_same_fault_is_compared(void **state) {
    (void)state;
    const struct json *nodes = nodes_of("[" RUN(0, "n0", 1000) "," RUN(
        0, "n1",
        1000) ","
              "{\"scenario\":\"t\",\"exit_code\":0,\"faults\":[{\"name\":\"f\",\"nodes\":[\"n2\"],"
              "\"recover_us\":9000000}]}]");
    assert_false(is_slower(node(nodes, "n2")));
}

static void test_a_few_milliseconds_make_no_outlier(void **state) {
    (void)state;
    const struct json *nodes =
        nodes_of("[" RUN(0, "n0", 1000) "," RUN(0, "n1", 1000) "," RUN(0, "n2", 150000) "]");
    assert_false(is_slower(node(nodes, "n2")));
}

#define RACK_RUN(code, nodes, racks, us)                                                           \
    "{\"scenario\":\"s\",\"exit_code\":" #code ",\"faults\":[{\"name\":\"f\",\"nodes\":[" nodes    \
    "],\"racks\":[" racks "],\"recover_us\":" #us "}]}"

static void test_a_rack_has_the_runs_of_its_nodes(void **state) {
    (void)state;
    const struct json *racks = victims_of(
        "[" RACK_RUN(0, "\"n0\"", "\"rack 0\"", 100) "," RACK_RUN(
            1, "\"n1\"", "\"rack 0\"",
            300) "," RACK_RUN(0, "\"n1\"", "\"rack 0\"",
                              900) "," RACK_RUN(0, "\"n2\"", "\"rack 10\"",
                                                -1) "," RACK_RUN(0, "\"n3\"", "\"rack 9\"",
                                                                 7) "," RUN(1, "n4", 5) "]",
        VICTIMS_RACKS);
    assert_int_equal(racks->length, 3); /* n4 is in none */
    const struct json *first = json_first(racks);
    assert_string_equal(json_get_string(first, "name", ""), "rack 0");
    assert_int_equal(json_get_i64(first, "runs", 0), 3);
    assert_int_equal(json_get_i64(first, "passed", 0), 2);
    assert_int_equal(json_get_i64(first, "recover_us", 0), 300);
    assert_int_equal(json_get_i64(first, "recover_least_us", 0), 100);
    assert_int_equal(json_get_i64(first, "recover_most_us", 0), 900);
    assert_string_equal(json_get_string(first->next, "name", ""), "rack 9");
    assert_int_equal(json_get_i64(node(racks, "rack 10"), "recover_least_us", 0), -1);
    assert_int_equal(json_get_i64(node(racks, "rack 10"), "recover_most_us", 0), -1);
}

/* Its nodes were two victims, and it was one. */
static void test_a_rack_that_is_lost_as_a_whole_is_one_victim(void **state) {
    (void)state;
    const char *run = "[" RACK_RUN(0, "\"n0\",\"n1\"", "\"rack 0\"", 500) "]";
    assert_int_equal(victims_of(run, VICTIMS_NODES)->length, 2);
    assert_int_equal(json_get_i64(json_first(victims_of(run, VICTIMS_RACKS)), "runs", 0), 1);
}

static void test_a_rack_that_is_slower_than_its_peers_is_named(void **state) {
    (void)state;
    const struct json *racks = victims_of(
        "[" RACK_RUN(0, "\"n0\"", "\"rack 0\"", 1000000) "," RACK_RUN(
            0, "\"n1\"", "\"rack 1\"",
            1010000) "," RACK_RUN(0, "\"n2\"", "\"rack 2\"",
                                  6000000) "," RACK_RUN(0, "\"n3\"", "\"rack 2\"", 6100000) "]",
        VICTIMS_RACKS);
    assert_true(is_slower(node(racks, "rack 2")));
    assert_int_equal(
        json_get_i64(json_first(json_get(node(racks, "rack 2"), "slower")), "peers_us", 0),
        1010000);
    assert_false(is_slower(node(racks, "rack 0")));
    assert_false(is_slower(node(racks, "rack 1")));
}

static void test_a_probe_that_failed_fails_all(void **state) {
    (void)state;
    const struct json *run = parse("[{\"exit_code\":0}]");
    assert_int_equal(
        certificate_result(run, parse("[{\"status\":\"pass\"},{\"status\":\"skip\"}]")), 0);
    assert_int_equal(
        certificate_result(run, parse("[{\"status\":\"pass\"},{\"status\":\"fail\"}]")), 1);
    assert_int_equal(certificate_result(run, parse("[{}]")), 1);
}

static void test_one_run_that_failed_fails_all(void **state) {
    (void)state;
    assert_int_equal(certificate_result(parse("[{\"exit_code\":0},{\"exit_code\":0}]"), NULL), 0);
    assert_int_equal(certificate_result(parse("[{\"exit_code\":0},{\"exit_code\":1}]"), NULL), 1);
    assert_int_equal(certificate_result(parse("[{\"exit_code\":2},{\"exit_code\":0}]"), NULL), 2);
    assert_int_equal(certificate_result(parse("[{}]"), NULL), 3); /* what is not said is broken */
    assert_int_equal(certificate_result(parse("[]"), NULL), 4);
}

/* ---- differences ---- */

static void add_line(void *arg, const struct difference *d) {
    struct buf *out = arg;
    buf_printf(out, "%s: ", d->path);
    difference_put_value(d->was, out);
    buf_puts(out, " -> ");
    difference_put_value(d->is, out);
    buf_puts(out, "; ");
}

static void assert_differ(const char *was, const char *is, const char *lines) {
    static const char *const left_out[] = {"seen", NULL};
    BUF_FINI struct buf out = {0};
    difference_each(parse(was), parse(is), left_out, add_line, &out);
    assert_string_equal(buf_str(&out), lines);
}

static void test_differences_are_named_by_their_path(void **state) {
    (void)state;
    assert_differ("{\"a\":{\"b\":1,\"c\":\"x\"},\"seen\":1}",
                  "{\"a\":{\"b\":2,\"c\":\"x\"},\"seen\":2}", "a.b: 1 -> 2; ");
    assert_differ("{\"a\":true}", "{\"b\":[1,2]}", "a: yes -> nothing; b: nothing -> 2 elements; ");
    assert_differ("[1,2,3]", "[1,4]", "[1]: 2 -> 4; [2]: 3 -> nothing; ");
    assert_differ("{\"a\":1}", "{\"a\":\"1\"}", "a: 1 -> 1; ");
}

static void test_elements_with_names_are_matched_by_them(void **state) {
    (void)state;
    assert_differ("[{\"name\":\"p\",\"v\":1},{\"name\":\"q\",\"v\":2}]",
                  "[{\"name\":\"q\",\"v\":3},{\"name\":\"p\",\"v\":1},{\"name\":\"r\"}]",
                  "q.v: 2 -> 3; r: nothing -> 1 members; ");
    assert_differ("[{\"name\":\"p\",\"v\":1},{\"name\":\"p\",\"v\":2}]",
                  "[{\"name\":\"p\",\"v\":1},{\"name\":\"p\",\"v\":5}]", "p[1].v: 2 -> 5; ");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_runs_of_a_victim_are_counted_and_the_median_taken,
                                  tear_down),
        cmocka_unit_test_teardown(test_a_node_that_is_slower_than_its_peers_is_named, tear_down),
        cmocka_unit_test_teardown(test_only_the_same_fault_is_compared, tear_down),
        cmocka_unit_test_teardown(test_a_few_milliseconds_make_no_outlier, tear_down),
        cmocka_unit_test_teardown(test_a_rack_has_the_runs_of_its_nodes, tear_down),
        cmocka_unit_test_teardown(test_a_rack_that_is_lost_as_a_whole_is_one_victim, tear_down),
        cmocka_unit_test_teardown(test_a_rack_that_is_slower_than_its_peers_is_named, tear_down),
        cmocka_unit_test_teardown(test_a_probe_that_failed_fails_all, tear_down),
        cmocka_unit_test_teardown(test_one_run_that_failed_fails_all, tear_down),
        cmocka_unit_test_teardown(test_differences_are_named_by_their_path, tear_down),
        cmocka_unit_test_teardown(test_elements_with_names_are_matched_by_them, tear_down),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
