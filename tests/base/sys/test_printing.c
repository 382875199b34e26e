/* What our programs print, by whatever function: nothing that a terminal obeys comes through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const char *self;

/* What comes out of the one (1, 2) while the other goes nowhere, and how it ended. */
static int printed(const char *what, int fd, struct buf *out) {
    char own[4096], command[8192], block[4096];
    snprintf(own, sizeof(own), "%s", self);
    snprintf(command, sizeof(command), "%s/spawn_printing %s %s", dirname(own), what,
             fd == 1 ? "2>/dev/null" : "2>&1 >/dev/null");
    FILE *f = popen(command, "r");
    assert_non_null(f);
    for (size_t n; (n = fread(block, 1, sizeof(block), f)) > 0;)
        buf_put(out, block, n);
    return WEXITSTATUS(pclose(f));
}

#define SHOWN "\\x1b[2J \\u009b \\u202e \\xff \\x07\\r"

static void test_each_way_of_printing_goes_through_it(void **state) {
    (void)state;
    struct buf out = {0};
    assert_int_equal(printed("each-way", 1, &out), 0);
    assert_string_equal(buf_str(&out), SHOWN " 1\n" SHOWN "\n" SHOWN SHOWN "\n\\x1b\\x7f" SHOWN);
    buf_clear(&out);
    printed("each-way", 2, &out);
    assert_string_equal(buf_str(&out), SHOWN "\n" SHOWN "\\x1b");
    buf_fini(&out);
}

static void test_a_character_in_pieces_stays_one(void **state) {
    (void)state;
    struct buf out = {0};
    assert_int_equal(printed("in-pieces", 1, &out), 0);
    assert_int_equal(out.len, 5001 * 3 + 1);
    for (size_t i = 0; i < 5001; i++)
        assert_memory_equal(out.data + 3 * i, "\342\202\254", 3);
    buf_clear(&out);
    printed("in-pieces", 2, &out);
    assert_string_equal(buf_str(&out), "\\u202e\n");
    buf_fini(&out);
}

static void test_our_own_controls_go_around_it_in_their_place(void **state) {
    (void)state;
    struct buf out = {0};
    assert_int_equal(printed("as-it-is", 1, &out), 0);
    assert_string_equal(buf_str(&out), SHOWN "|\033[32mgood\033[0m\ntwo\\nlines\n");
    buf_fini(&out);
}

static void test_what_could_not_be_written_is_known(void **state) {
    (void)state;
    struct buf out = {0};
    assert_int_equal(printed("full", 1, &out), 0);
    buf_fini(&out);
}

static void test_what_ends_within_a_character_is_not_lost(void **state) {
    (void)state;
    struct buf out = {0};
    assert_int_equal(printed("cut-off", 1, &out), 0);
    assert_string_equal(buf_str(&out), "a\\xe2\\x82");
    buf_fini(&out);
}

static void test_a_hidden_text_is_covered_in_pieces_too(void **state) {
    (void)state;
    struct buf out = {0};
    assert_int_equal(printed("hidden", 1, &out), 0);
    assert_string_equal(buf_str(&out), "a ********* b hunter-2[*********]********* hunt");
    buf_fini(&out);
}

int main(int argc, char **argv) {
    (void)argc;
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_way_of_printing_goes_through_it),
        cmocka_unit_test(test_a_character_in_pieces_stays_one),
        cmocka_unit_test(test_our_own_controls_go_around_it_in_their_place),
        cmocka_unit_test(test_what_could_not_be_written_is_known),
        cmocka_unit_test(test_a_hidden_text_is_covered_in_pieces_too),
        cmocka_unit_test(test_what_ends_within_a_character_is_not_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
