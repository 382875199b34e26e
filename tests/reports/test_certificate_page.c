/* The page of a certificate, and its lines for a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "reports/certificate/alike.h"
#include "reports/certificate/certificate_page.h"
#include "reports/certificate/victim_line.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;

static int tear_down(void **state) {
    (void)state;
    arena_fini(&arena);
    return 0;
}

static const struct json *parse(const char *text) {
    const struct json *j = json_parse(&arena, text, strlen(text), NULL);
    assert_non_null(j);
    return j;
}

static void assert_has(const struct buf *page, const char *text) {
    if (!strstr(buf_str(page), text))
        fail_msg("the page has no %s: %s", text, buf_str(page));
}

#define SLOW                                                                                       \
    "{\"name\":\"rack 2\",\"runs\":3,\"passed\":2,\"recover_us\":6000000,"                         \
    "\"recover_least_us\":1100000,\"recover_most_us\":6100000,\"slower\":[{\"name\":"              \
    "\"node-killed\",\"recover_us\":6000000,\"peers_us\":1100000}]}"
#define WELL                                                                                       \
    "{\"name\":\"rack 0\",\"runs\":1,\"passed\":1,\"recover_us\":1000000,"                         \
    "\"recover_least_us\":1000000,\"recover_most_us\":1000000,\"slower\":[]}"
#define UNHURT                                                                                     \
    "{\"name\":\"rack 1\",\"runs\":2,\"passed\":2,\"recover_us\":-1,\"recover_least_us\":-1,"      \
    "\"recover_most_us\":-1,\"slower\":[]}"

/* ---- lines ---- */

static void assert_line(const char *victim, const char *line) {
    BUF_FINI struct buf out = {0};
    victim_line(parse(victim), &out);
    assert_string_equal(buf_str(&out), line);
}

static void test_a_victim_is_told_in_a_line(void **state) {
    (void)state;
    assert_line(SLOW, "2 of 3 runs passed, recovered in 6.00 s (1.10 to 6.10 s); slower in "
                      "node-killed: 6.00 s, its peers 1.10 s");
    assert_line(WELL, "1 of 1 run passed, recovered in 1.00 s");
    assert_line(UNHURT, "2 of 2 runs passed");
}

static void test_who_failed_or_is_slower_is_not_well(void **state) {
    (void)state;
    assert_true(victim_is_well(parse(WELL)));
    assert_false(victim_is_well(parse(SLOW)));
    assert_false(victim_is_well(parse("{\"runs\":2,\"passed\":1,\"slower\":[]}")));
    assert_false(victim_is_well(parse("{\"runs\":1,\"passed\":1,\"slower\":[{}]}")));
}

/* ---- the page ---- */

static void test_racks_have_a_table_beside_that_of_nodes(void **state) {
    (void)state;
    BUF_FINI struct buf page = {0};
    certificate_page(parse("{\"racks\":[" WELL "," SLOW "," UNHURT "]}"), &page);
    assert_has(&page, "<h2>Racks as victims</h2>");
    assert_null(strstr(buf_str(&page), "<h2>Nodes as victims</h2>"));
    assert_has(&page, "<tr><td>rack 2</td><td class=\"n\">3</td><td class=\"n bad\">2</td><td "
                      "class=\"n\">6.00 s (1.10 to 6.10 s)</td>");
    assert_has(&page, "node-killed: 6.00 s, its peers 1.10 s<br>");
    assert_has(&page, "<td class=\"n good\">1</td><td class=\"n\">1.00 s</td>");
    assert_has(&page, "<td class=\"n good\">2</td><td class=\"n\">\xe2\x80\x93</td>");
}

/* ---- many hosts ---- */

/* So many hosts, all alike but what the words change: of host 7 the kernel, of 9 the driver. */
static void put_many(struct json_writer *w, int n) {
    char name[16];
    json_array(w, "hosts");
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        json_object(w, NULL);
        json_put_string(w, "name", name);
        json_object(w, "inventory");
        json_put_string(w, "host", name);
        json_put_string(w, "kernel", i == 7 ? "6.2" : "6.1");
        json_put_string(w, "driver", i == 9 ? "" : "550");
        json_put_i64(w, "processors", 64);
        json_end_object(w);
        json_end_object(w);
    }
    json_end_array(w);
    json_array(w, "preflight");
    json_object(w, NULL);
    json_put_string(w, "name", "limits");
    json_put_string(w, "status", "pass");
    json_object(w, "figures");
    json_put_i64(w, "rounds", 3);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        json_object(w, name);
        json_put_i64(w, "nofile", 4096);
        json_put_bool(w, "rdma", i < 2);
        json_put_i64(w, "kb_s", 1000 + (i * 5) % n);
        json_end_object(w);
    }
    json_end_object(w);
    json_end_object(w);
    json_end_array(w);
}

static void page_of_many(struct buf *ret, int hosts) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    put_many(&w, hosts);
    json_end_object(&w);
    certificate_page(parse(buf_str(&text)), ret);
}

static size_t count(const char *text, const char *word) {
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        n++;
    return n;
}

static void test_hosts_that_are_alike_are_one_row_and_others_are_named(void **state) {
    (void)state;
    BUF_FINI struct buf page = {0};
    page_of_many(&page, 64);
    assert_has(&page, "<tr><td>processors</td><td>64</td><td>all 64</td></tr>");
    assert_has(&page, "<tr><td>kernel</td><td>6.1</td><td>n0 to n6, n8 to n63</td></tr>");
    assert_has(&page, "<tr><td>kernel</td><td>6.2</td><td>n7</td></tr>");
    assert_has(&page, "<tr><td>driver</td><td>550</td><td>n0 to n8, n10 to n63</td></tr>");
    assert_has(&page, "<tr><td>driver</td><td>\xe2\x80\x93</td><td>n9</td></tr>");
    assert_int_equal(count(buf_str(&page), "<td>processors</td>"), 1);
    assert_int_equal(count(buf_str(&page), "<td>kernel</td>"), 2);
}

static void test_figures_that_are_equal_are_one_row_and_others_a_spread(void **state) {
    (void)state;
    BUF_FINI struct buf page = {0};
    page_of_many(&page, 64);
    assert_has(&page, "<tr><td>limits nofile</td><td>4096</td><td>all 64</td></tr>");
    assert_has(&page, "<tr><td>limits rdma</td><td>yes</td><td>n0, n1</td></tr>");
    assert_has(&page, "<tr><td>limits rdma</td><td>no</td><td>n2 to n63</td></tr>");
    assert_has(&page, "<tr><td>limits rounds</td><td>3</td><td></td></tr>");
    assert_has(&page, "<tr><td>limits kb_s</td><td>1000 to 1063, in the middle 1031</td><td>least "
                      "on n0, most on n51</td></tr>");
}

static void put_rows(const char *const *names, const char *const *values, struct buf *out) {
    struct alike a = {0};
    for (size_t i = 0; names[i]; i++)
        alike_add_host(&a, names[i]);
    for (size_t i = 0; names[i]; i++)
        alike_add(&a, i, "t", parse(values[i]), NULL);
    alike_put(&a, out);
    alike_fini(&a);
}

/* Only what is counted on is a range. */
static void test_ranges_of_names(void **state) {
    (void)state;
    BUF_FINI struct buf out = {0};
    static const char *const names[] = {"r1-08", "r1-09", "r1-10", "r2-11", "a9",
                                        "a10",   "a011",  "b",     "<x>",   NULL};
    static const char *const values[] = {"1", "1", "1", "1", "1", "1", "1", "1", "2"};
    put_rows(names, values, &out);
    assert_string_equal(buf_str(&out),
                        "<tr><td>t</td><td>1</td><td>r1-08 to r1-10, r2-11, a9, a10, a011, "
                        "b</td></tr>\n<tr><td>t</td><td>2</td><td>&lt;x&gt;</td></tr>\n");
}

static void test_trees_are_taken_apart(void **state) {
    (void)state;
    BUF_FINI struct buf out = {0};
    static const char *const names[] = {"a", "b", NULL};
    static const char *const values[] = {"{\"cards\":[{\"name\":\"eth0\",\"mtu\":1500}],\"gpus\":[{"
                                         "\"name\":\"GPU-1\",\"model\":\"H\"}],"
                                         "\"none\":[],\"list\":[1,\"x\"],\"null\":null}",
                                         "{\"cards\":[{\"name\":\"eth0\",\"mtu\":9000}],\"gpus\":[{"
                                         "\"name\":\"GPU-2\",\"model\":\"H\"}],"
                                         "\"none\":[],\"list\":[1,\"x\"],\"null\":null}"};
    put_rows(names, values, &out);
    assert_has(&out, "<tr><td>t cards eth0 mtu</td><td>1500</td><td>a</td></tr>");
    assert_has(&out, "<tr><td>t cards eth0 mtu</td><td>9000</td><td>b</td></tr>");
    assert_has(&out, "<tr><td>t gpus 0 model</td><td>H</td><td>all 2</td></tr>");
    assert_has(&out, "<tr><td>t none</td><td>none</td><td>all 2</td></tr>");
    assert_has(&out, "<tr><td>t list</td><td>1, x</td><td>all 2</td></tr>");
    assert_null(strstr(buf_str(&out), "t null"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_victim_is_told_in_a_line, tear_down),
        cmocka_unit_test_teardown(test_who_failed_or_is_slower_is_not_well, tear_down),
        cmocka_unit_test_teardown(test_racks_have_a_table_beside_that_of_nodes, tear_down),
        cmocka_unit_test_teardown(test_hosts_that_are_alike_are_one_row_and_others_are_named,
                                  tear_down),
        cmocka_unit_test_teardown(test_figures_that_are_equal_are_one_row_and_others_a_spread,
                                  tear_down),
        cmocka_unit_test_teardown(test_ranges_of_names, tear_down),
        cmocka_unit_test_teardown(test_trees_are_taken_apart, tear_down),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
