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

/* Every set of classes of which something failed, and of which something is open, in the order in which
 * they are shown. It is told by what weighs most, one rule after the other. */
static const struct {
    enum finding_class class;
    enum finding_status status;
    int code;
} weights[] = {
    {CLASS_HARNESS, FINDING_FAIL, 3},      {CLASS_INVARIANT, FINDING_FAIL, 1},
    {CLASS_EXPECT, FINDING_FAIL, 1},       {CLASS_CLEANUP, FINDING_FAIL, 5},
    {CLASS_CLEANUP, FINDING_UNKNOWN, 5},   {CLASS_HARNESS, FINDING_UNKNOWN, 2},
    {CLASS_FAULTS, FINDING_FAIL, 2},       {CLASS_FAULTS, FINDING_UNKNOWN, 2},
    {CLASS_INVARIANT, FINDING_UNKNOWN, 2}, {CLASS_EXPECT, FINDING_UNKNOWN, 2},
};
enum { WEIGHTS_N = sizeof(weights) / sizeof(*weights), FAULTS_FAIL = 6, EXPECT_FAIL = 2 };

/* The place in `weights` of what decides; -1: nothing does. */
static int deciding(unsigned set) {
    for (int k = 0; k < WEIGHTS_N; k++)
        if (set >> k & 1 && !(k == EXPECT_FAIL && set >> FAULTS_FAIL & 1))
            return k;
    return -1;
}

static void test_of_every_set_of_findings_what_weighs_most_decides(void **state) {
    (void)state;
    for (unsigned set = 0; set < 1u << WEIGHTS_N; set++) {
        struct history h = {0};
        struct verdict v = {.n = WEIGHTS_N};
        for (int k = 0; k < WEIGHTS_N; k++) /* the lightest comes first */
            v.v[WEIGHTS_N - 1 - k] =
                (struct finding){.class = weights[k].class,
                                 .status = set >> k & 1 ? weights[k].status : FINDING_PASS};
        int k = deciding(set);
        v.exit_code = verdict_exit_code(&v, &h);
        assert_int_equal(v.exit_code, k < 0 ? 0 : weights[k].code);
        assert_ptr_equal(verdict_first(&v), k < 0 ? NULL : &v.v[WEIGHTS_N - 1 - k]);
        v.exit_code = 130;
        assert_ptr_equal(verdict_first(&v), set >> 1 & 1 ? &v.v[WEIGHTS_N - 2] : NULL);
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

/* Each text has no more than what its status keeps. */
static void test_a_finding_keeps_what_belongs_to_its_status(void **state) {
    (void)state;
    struct finding f = {.expected = "more"};
    assert_true(finding_pass(&f, "%d of %s", 3, "4"));
    assert_int_equal(f.status, FINDING_PASS);
    assert_string_equal(f.seen, "3 of 4");
    assert_string_equal(f.expected, "");
    assert_ptr_equal(finding_expected(&f, "%d s", 5), f.expected);
    assert_string_equal(f.expected, "5 s");
    assert_false(finding_fail(&f, "Broken.", f.expected, "after %d s", 6));
    assert_int_equal(f.status, FINDING_FAIL);
    assert_string_equal(f.broken, "Broken.");
    assert_string_equal(f.expected, "5 s");
    assert_string_equal(f.seen, "after 6 s");
    assert_false(finding_fail(&f, "Torn.", "7 s", "after %d s", 8));
    assert_string_equal(f.broken, "Torn.");
    assert_string_equal(f.expected, "7 s");
    assert_string_equal(f.seen, "after 8 s");
    assert_false(finding_unknown(&f, "Dark.", "%s", "nobody saw"));
    assert_int_equal(f.status, FINDING_UNKNOWN);
    assert_string_equal(f.broken, "Dark.");
    assert_string_equal(f.expected, "");
    assert_string_equal(f.seen, "nobody saw");
    finding_expected(&f, "9");
    assert_false(finding_skip(&f, "no %s", "need"));
    assert_int_equal(f.status, FINDING_SKIP);
    assert_string_equal(f.expected, "");
    assert_string_equal(f.seen, "no need");
}

/* All that a verdict may hold, each text only where there is one. */
static void test_a_verdict_is_written_with_all_that_it_holds(void **state) {
    (void)state;
    static const char *const statuses[] = {"pass", "fail", "unknown", "skip", "pass"};
    static const char *const classes[] = {"invariant", "expect", "faults", "harness", "cleanup"};
    struct verdict v = {.n = 5,
                        .exit_code = 2,
                        .lost_since = "runs/a",
                        .goodput = {.percent = 62.5,
                                    .steps = 8,
                                    .span_s = 2,
                                    .control_s = 1.25,
                                    .first_seq = 3,
                                    .last_seq = 9}};
    struct buf is = {0}, wanted = {0};
    buf_puts(&wanted, "{\"v\":1,\"exit_code\":2,\"findings\":[");
    for (int i = 0; i < 5; i++) {
        struct finding *f = &v.v[i];
        *f = (struct finding){.check = i ? "b" : "a",
                              .class = (enum finding_class)i,
                              .status = (enum finding_status)(i % 4),
                              .seen = "seen",
                              .lost = i == 2,
                              .loud = i == 3};
        buf_printf(&wanted, "%s{\"check\":\"%s\",\"class\":\"%s\",\"status\":\"%s\"", i ? "," : "",
                   f->check, classes[i], statuses[i]);
        if (i == 1) {
            finding_fail(f, "broken", "expected", "seen");
            strcpy(f->where, "where");
            finding_prove(f, 4, 0, 7);
            buf_puts(&wanted, ",\"broken\":\"broken\",\"expected\":\"expected\"");
        }
        buf_printf(&wanted, ",\"seen\":\"seen\"%s,\"evidence\":[%s]%s}",
                   i == 1 ? ",\"where\":\"where\"" : "", i == 1 ? "4,7" : "",
                   i == 2   ? ",\"lost\":true"
                   : i == 3 ? ",\"loud\":true"
                            : "");
    }
    buf_puts(&wanted, "],\"lost_since\":\"runs/a\",\"goodput\":{\"percent\":62.5,\"steps\":8,"
                      "\"span_s\":2,\"control_s\":1.25,\"steps_from\":\"events\"}}\n");
    verdict_text(&v, &is);
    assert_string_equal(buf_str(&is), buf_str(&wanted));
    buf_fini(&wanted);
    v = (struct verdict){.goodput = {.unknown = "no steps"}};
    buf_clear(&is);
    verdict_text(&v, &is);
    assert_string_equal(buf_str(&is), "{\"v\":1,\"exit_code\":0,\"findings\":[],"
                                      "\"goodput\":{\"unknown\":\"no steps\"}}\n");
    v.goodput = (struct goodput){0};
    buf_clear(&is);
    verdict_text(&v, &is);
    assert_string_equal(buf_str(&is), "{\"v\":1,\"exit_code\":0,\"findings\":[]}\n");
    buf_fini(&is);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_exit_code_follows_from_the_findings),
        cmocka_unit_test(test_of_every_set_of_findings_what_weighs_most_decides),
        cmocka_unit_test(test_a_finding_keeps_what_belongs_to_its_status),
        cmocka_unit_test(test_a_verdict_is_written_with_all_that_it_holds),
        cmocka_unit_test(test_how_the_job_ended_comes_before_what_follows_from_it),
        cmocka_unit_test(test_an_interrupted_run_ends_130_whatever_was_found),
        cmocka_unit_test(test_a_finding_remembers_its_proof_once_and_no_more_than_fits),
        cmocka_unit_test(test_texts_that_are_too_long_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
