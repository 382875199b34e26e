/* Verdict: which findings lead to which exit code, and which of them is shown first. */
#include "harness/judge/verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

static const struct {
    int code;
    const char *first; /* the check that is shown first; NULL: none */
    const char *findings;
} rows[] = {
    /* class: I invariant, E expect, F faults, H harness, C cleanup; then + pass, - fail, ? unknown,
     * 0 skip */
    {0, NULL, "I+ E+ F+ H+ C+"}, {0, NULL, "I0 E0 F+ H+ C+"}, {1, "I-", "I+ I- E+ F+ H+ C+"},
    {1, "E-", "I+ E- F+ H+ C+"}, {2, "F-", "I+ E+ F- H+ C+"}, {2, "F?", "I+ E+ F? H+ C+"},
    {2, "I?", "I+ I? F+ H+ C+"}, {2, "E?", "I+ E? F+ H+ C+"}, {2, "F-", "I+ E- F- H+ C+"},
    {1, "E-", "E- E? F+ H+ C+"}, {1, "I-", "I- E- F- H+ C+"}, {1, "I-", "I- I? H+ C+"},
    {3, "H-", "I- E- F- H- C+"}, {2, "H?", "I+ E+ F+ H? C+"}, {5, "C-", "I+ E+ F+ H+ C-"},
    {5, "C-", "I+ E+ F- H+ C-"}, {1, "I-", "I- F+ H+ C-"},    {1, "E-", "E- F+ H+ C-"},
    {3, "H-", "H- C-"},          {1, "E-", "E- F? H? C+"},    {1, "I-", "I- E? H? C+"},
    {3, "H-", "H- H? I-"},       {1, "E-", "E- I? F+ H+ C+"}, {2, "F-", "E- I? F- H+ C+"},
    {5, "C-", "E- F- H+ C-"},
};

static void read_findings(struct verdict *v, const char *text) {
    static const char classes[] = "IEFHC", statuses[] = "+-?0";
    *v = (struct verdict){0};
    for (; *text; text += text[2] ? 3 : 2) {
        struct finding *f = &v->v[v->n++];
        f->check = text;
        f->class = (enum finding_class)(strchr(classes, text[0]) - classes);
        f->status = (enum finding_status)(strchr(statuses, text[1]) - statuses);
    }
}

static void test_the_exit_code_follows_from_the_findings(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct history h = {0};
        struct verdict v;
        read_findings(&v, rows[i].findings);
        v.exit_code = verdict_exit_code(&v, &h);
        if (v.exit_code != rows[i].code)
            fail_msg("%s: %d, expected %d", rows[i].findings, v.exit_code, rows[i].code);
        const struct finding *f = verdict_first(&v);
        if (!f != !rows[i].first || (f && strncmp(f->check, rows[i].first, 2) != 0))
            fail_msg("%s: first is %.2s", rows[i].findings, f ? f->check : "--");
    }
}

static void test_how_the_job_ended_comes_before_what_follows_from_it(void **state) {
    (void)state;
    struct verdict v;
    read_findings(&v, "E- E- E- I?");
    assert_ptr_equal(verdict_first(&v), &v.v[0]);
    v.v[1].leads = true;
    assert_ptr_equal(verdict_first(&v), &v.v[1]);
    v.v[1].status = FINDING_PASS;
    assert_ptr_equal(verdict_first(&v), &v.v[0]);
}

static void test_an_interrupted_run_ends_130_whatever_was_found(void **state) {
    (void)state;
    struct history h = {0};
    struct verdict v;
    json_put_i64(history_begin(&h, 1, SOURCE_HARNESS, "interrupted"), "signal", 2);
    history_end(&h);
    read_findings(&v, "F- E- I? H-");
    v.exit_code = verdict_exit_code(&v, &h);
    assert_int_equal(v.exit_code, 130);
    assert_null(verdict_first(&v));
    read_findings(&v, "F- I- H-");
    v.exit_code = verdict_exit_code(&v, &h);
    assert_int_equal(v.exit_code, 130);
    assert_ptr_equal(verdict_first(&v), &v.v[1]);
    history_fini(&h);
}

static void test_a_finding_remembers_its_proof_once_and_no_more_than_fits(void **state) {
    (void)state;
    struct finding f = {0};
    for (int64_t seq = 1; seq < 20; seq++) {
        finding_prove(&f, seq);
        finding_prove(&f, seq);
    }
    finding_prove(&f, 0);
    assert_int_equal(f.evidence[0], 1);
    assert_int_equal(f.evidence[6], 7);
    assert_int_equal(f.evidence[7], 0);
}

static void test_texts_that_are_too_long_are_cut(void **state) {
    (void)state;
    struct finding f = {0};
    char text[1000];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = 0;
    finding_fail(&f, text, text, "%s", text);
    assert_int_equal(strlen(f.broken), sizeof(f.broken) - 1);
    assert_int_equal(strlen(f.expected), sizeof(f.expected) - 1);
    assert_int_equal(strlen(f.seen), sizeof(f.seen) - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_exit_code_follows_from_the_findings),
        cmocka_unit_test(test_how_the_job_ended_comes_before_what_follows_from_it),
        cmocka_unit_test(test_an_interrupted_run_ends_130_whatever_was_found),
        cmocka_unit_test(test_a_finding_remembers_its_proof_once_and_no_more_than_fits),
        cmocka_unit_test(test_texts_that_are_too_long_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
