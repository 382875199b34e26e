#include "base/manual.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void put(struct buf *out, const struct manual_part *parts) {
    static const char *const synopsis[] = {"thing FILE [--deep N]", NULL};
    static const char *const see_also[] = {"other-thing", "more", NULL};
    manual_put(out, &(struct manual_page){.name = "the-thing",
                                          .version = "1.2",
                                          .summary = "does a thing",
                                          .synopsis = synopsis,
                                          .parts = parts,
                                          .see_also = see_also});
}

static void test_page_has_the_parts_of_a_manual(void **state) {
    BUF_FINI struct buf b = {0};
    static const struct manual_option options[] = {
        {.letter = 'd', .name = "--deep", .value = "N", .text = "so deep"},
        {.name = "--flat", .text = "not at all"},
        {0}};
    static const char *const words[][2] = {{"0", "passed"}, {NULL, NULL}};
    put(&b, (const struct manual_part[]){
                {.title = "OPTIONS", .options = options, .text_after = "At the end."},
                {.title = "EXIT STATUS", .words = words},
                {0}});
    assert_string_equal(buf_str(&b), ".TH THE\\-THING 1 \"\" \"RankQuake 1.2\" \"RankQuake\"\n"
                                     ".SH NAME\nthe\\-thing \\- does a thing\n"
                                     ".SH SYNOPSIS\n.nf\n\\fBthing\\fR FILE [\\-\\-deep N]\n.fi\n"
                                     ".SH OPTIONS\n"
                                     ".TP\n\\fB\\-d\\fR, \\fB\\-\\-deep\\fR \\fIN\\fR\nso deep\n"
                                     ".TP\n\\fB\\-\\-flat\\fR\nnot at all\n"
                                     ".PP\nAt the end.\n"
                                     ".SH EXIT STATUS\n.TP\n\\fB0\\fR\npassed\n"
                                     ".SH SEE ALSO\n.BR other\\-thing (1),\n.BR more (1)\n");
}

static void test_what_roff_would_obey_stands_for_itself(void **state) {
    BUF_FINI struct buf b = {0};
    put(&b, (const struct manual_part[]){
                {.title = "NOTES", .text = ".so /etc/passwd\n'br\na\\fBb `c' ^~\n"}, {0}});
    assert_non_null(strstr(buf_str(&b), "\n\\&.so /etc/passwd\n"));
    assert_non_null(strstr(buf_str(&b), "\n\\&\\(aqbr\n"));
    assert_non_null(strstr(buf_str(&b), "\na\\efBb \\(gac\\(aq \\(ha\\(ti\n"));
}

static void test_lines_that_are_indented_are_kept(void **state) {
    BUF_FINI struct buf b = {0};
    put(&b,
        (const struct manual_part[]){{.title = "NOTES", .text = "as in\n  a b\n  c\n\nso"}, {0}});
    assert_non_null(strstr(buf_str(&b), "as in\n.nf\n  a b\n  c\n.fi\n.PP\nso\n"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page_has_the_parts_of_a_manual),
        cmocka_unit_test(test_what_roff_would_obey_stands_for_itself),
        cmocka_unit_test(test_lines_that_are_indented_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
