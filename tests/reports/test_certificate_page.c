/* The page of a certificate, and its lines for a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "reports/certificate/certificate_page.h"
#include "reports/certificate/victim_line.h"

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

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_victim_is_told_in_a_line, tear_down),
        cmocka_unit_test_teardown(test_who_failed_or_is_slower_is_not_well, tear_down),
        cmocka_unit_test_teardown(test_racks_have_a_table_beside_that_of_nodes, tear_down),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
