/* Reports for other programs: what they must hold so that those understand it. */
#include "tests/reports/told.h"

static const struct edit none[1],
    off_by_one[] = {{"\"argv0\"", NULL, "COUNT\":\"1\"", "COUNT\":\"2\""}, {0}};

static void assert_lacks(const struct told *t, const char *text) {
    if (strstr(buf_str(&t->text), text))
        fail_msg("\"%s\" is in:\n%s", text, buf_str(&t->text));
}

static const struct json *parsed(struct told *t, struct arena *a) {
    struct err err = {0};
    const struct json *j = json_parse(a, buf_str(&t->text), t->text.len, &err);
    if (!j)
        fail_msg("%s", err.msg);
    return j;
}

static size_t found(const struct verdict *v, enum finding_status status) {
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++)
        n += v->v[i].status == status;
    return n;
}

/* ---- tap ---- */

static void test_tap_has_a_point_for_each_check(void **state) {
    (void)state;
    struct told t;
    char plan[40];
    tell(&t, "worker-killed", off_by_one, "tap", (struct report_style){0});
    snprintf(plan, sizeof(plan), "TAP version 14\n1..%zu\n", t.verdict.n);
    assert_int_equal(strncmp(buf_str(&t.text), plan, strlen(plan)), 0);
    size_t points = 0, failed = 0, skipped = 0;
    for (const char *l = buf_str(&t.text); l; l = strchr(l, '\n') ? strchr(l, '\n') + 1 : NULL) {
        points += str_starts(l, "ok ") || str_starts(l, "not ok ");
        failed += str_starts(l, "not ok ");
        skipped += str_starts(l, "ok ") && strstr(l, " # SKIP ") < strchr(l, '\n') &&
                   strstr(l, " # SKIP ");
    }
    assert_int_equal(points, t.verdict.n);
    assert_int_equal(failed, found(&t.verdict, FINDING_FAIL) + found(&t.verdict, FINDING_UNKNOWN));
    assert_int_equal(skipped, found(&t.verdict, FINDING_SKIP));
    assert_says(&t, " - restart_count\n  ---\n  status: \"fail\"\n  broken: \"");
    forget(&t);
}

/* ---- ctrf ---- */

static void test_ctrf_counts_what_it_lists(void **state) {
    (void)state;
    struct told t;
    struct arena a = {0};
    tell(&t, "worker-killed", off_by_one, "ctrf", (struct report_style){0});
    const struct json *results = json_get(parsed(&t, &a), "results");
    const struct json *summary = json_get(results, "summary"), *tests = json_get(results, "tests");
    assert_int_equal(json_get_i64(summary, "tests", -1), t.verdict.n);
    assert_int_equal(tests->length, t.verdict.n);
    assert_int_equal(json_get_i64(summary, "failed", -1), found(&t.verdict, FINDING_FAIL));
    assert_int_equal(json_get_i64(summary, "other", -1), found(&t.verdict, FINDING_UNKNOWN));
    assert_int_equal(json_get_i64(summary, "skipped", -1), found(&t.verdict, FINDING_SKIP));
    json_each(one, tests) {
        bool bad = str_eq(json_get_string(one, "status", ""), "failed");
        assert_true(!bad || *json_get_string(one, "trace", ""));
        assert_true(json_get_i64(one, "duration", -1) >= 0);
    }
    arena_fini(&a);
    forget(&t);
}

/* ---- csv ---- */

static size_t fields(const char *line) {
    size_t n = 1;
    bool quoted = false;
    for (; *line && *line != '\n'; line++) {
        quoted ^= *line == '"';
        n += *line == ',' && !quoted;
    }
    return n;
}

static void test_csv_has_a_row_for_each_fault(void **state) {
    (void)state;
    struct told t;
    tell(&t, "worker-killed", none, "csv", (struct report_style){0});
    const char *row = strchr(buf_str(&t.text), '\n') + 1;
    assert_int_equal(fields(row), fields(buf_str(&t.text)));
    assert_true(
        str_starts(row, "worker-killed,1,rankrun,passed,kill,1,worker-kill,n0/1 (rank 1),5,"));
    assert_true(str_ends(buf_str(&t.text), "\n"));
    assert_string_equal(strchr(row, '\n'), "\n");
    forget(&t);
}

/* ---- GitHub and GitLab ---- */

static void test_github_is_told_what_did_not_pass(void **state) {
    (void)state;
    struct told t;
    tell(&t, "worker-killed", off_by_one, "github", (struct report_style){0});
    assert_says(&t, "::error file=scenarios/planted.yaml,title=worker-killed%3A restart_count::");
    forget(&t);
    tell(&t, "worker-killed", none, "github", (struct report_style){0});
    assert_lacks(&t, "::error");
    assert_lacks(&t, "::warning");
    assert_says(&t, "::notice file=scenarios/planted.yaml,title=worker-killed%3A model::");
    forget(&t);
}

static const char *fingerprint(struct told *t, struct arena *a, const char *check) {
    json_each(one, parsed(t, a)) if (str_eq(json_get_string(one, "check_name", ""),
                                            check)) return json_get_string(one, "fingerprint", "");
    fail_msg("no issue of %s in %s", check, buf_str(&t->text));
    return NULL;
}

/* An issue that stays must not look like a new one. */
static void test_gitlab_knows_an_issue_again(void **state) {
    (void)state;
    struct told t;
    struct arena a = {0};
    tell(&t, "worker-killed", off_by_one, "gitlab", (struct report_style){0});
    const char *first = fingerprint(&t, &a, "restart_count");
    assert_string_not_equal(first, fingerprint(&t, &a, "restarts"));
    forget(&t);
    tell(&t, "worker-killed",
         (const struct edit[]){{"\"argv0\"", NULL, "COUNT\":\"1\"", "COUNT\":\"3\""}, {0}},
         "gitlab", (struct report_style){0});
    assert_string_equal(first, fingerprint(&t, &a, "restart_count"));
    forget(&t);
    tell(&t, "worker-killed", none, "gitlab", (struct report_style){0});
    assert_string_equal(buf_str(&t.text), "[]\n");
    forget(&t);
    arena_fini(&a);
}

/* ---- markdown ---- */

static void test_markdown_begins_with_what_failed(void **state) {
    (void)state;
    struct told t;
    tell(&t, "worker-killed", off_by_one, "markdown", (struct report_style){0});
    assert_int_equal(strncmp(buf_str(&t.text), "### ❌ worker-killed: failed\n", 30), 0);
    const char *failed = strstr(buf_str(&t.text), "| ❌ | restart\\_count | ");
    assert_non_null(failed);
    assert_true(failed < strstr(buf_str(&t.text), "<details>"));
    assert_says(&t, "| kill | worker-kill | n0/1 (rank 1) | ");
    assert_says(&t, "\n```sh\nrankquake run scenarios/planted.yaml --seed 1\n```\n");
    forget(&t);
}

/* ---- prometheus ---- */

static void test_prometheus_is_told_numbers_and_checks(void **state) {
    (void)state;
    struct told t;
    tell(&t, "worker-killed", off_by_one, "prometheus", (struct report_style){0});
    assert_says(&t, "\nrankquake_exit_code{scenario=\"worker-killed\",launcher=\"rankrun\"} 1\n");
    assert_says(&t, "check=\"restart_count\",status=\"fail\"} 1\n");
    assert_says(&t, "id=\"kill\",n=\"1\",fault=\"worker-kill\",phase=\"first step\"} 0.0");
    for (const char *l = buf_str(&t.text); *l; l = strchr(l, '\n') + 1)
        assert_true(*l == '#' || str_starts(l, "rankquake_"));
    forget(&t);
}

/* ---- trace ---- */

/* The phases of the one fault follow each other from t0 to the end of the recovery. */
static void test_a_trace_shows_lives_and_phases(void **state) {
    (void)state;
    struct told t;
    struct arena a = {0};
    int rounds = 0, workers = 0, phases = 0;
    double recovery = 0, begin = -1, at = -1;
    tell(&t, "worker-killed", none, "trace", (struct report_style){0});
    json_each(e, json_get(parsed(&t, &a), "traceEvents")) {
        int64_t process = json_get_i64(e, "pid", 0);
        double ts = json_number(json_get(e, "ts"), -1), dur = json_number(json_get(e, "dur"), 0);
        if (!str_eq(json_get_string(e, "ph", ""), "X"))
            continue;
        rounds += process == 1;
        workers += process > 3 && str_starts(json_get_string(e, "name", ""), "rank ");
        if (process == 2)
            begin = ts;
        if (process != 3)
            continue;
        assert_true(phases++ == 0 ? ts == begin : ts > at - 0.01 && ts < at + 0.01);
        recovery += dur;
        at = ts + dur;
    }
    assert_int_equal(rounds, 2);
    assert_int_equal(workers, t.rounds.workers_n);
    assert_true(phases > 3);
    assert_true(recovery > 38e3 && recovery < 40e3);
    arena_fini(&a);
    forget(&t);
}

/* Rounds that go on at one time lie on tracks of their own, and others do not. */
static void test_rounds_that_overlap_have_a_track_each(void **state) {
    (void)state;
    static const struct edit lives_on[] = {
        {"worker-exit", "\"pid\":110", "\"t\":1073", "\"t\":1077", NULL}, {0}};
    for (int overlaps = 0; overlaps < 2; overlaps++) {
        struct told t;
        struct arena a = {0};
        int64_t tracks = 0, rounds = 0, named = 0;
        tell(&t, "worker-killed", overlaps ? lives_on : none, "trace", (struct report_style){0});
        json_each(e, json_get(parsed(&t, &a), "traceEvents")) {
            bool thread = str_eq(json_get_string(e, "name", ""), "thread_name");
            if (json_get_i64(e, "pid", 0) != 1)
                continue;
            named += thread;
            if (!str_eq(json_get_string(e, "ph", ""), "X"))
                continue;
            tracks += json_get_i64(e, "tid", -1) == rounds;
            rounds++;
        }
        assert_int_equal(rounds, 2);
        assert_int_equal(tracks, overlaps ? 2 : 1);
        assert_int_equal(named, overlaps ? 2 : 1);
        arena_fini(&a);
        forget(&t);
    }
}

/* ---- clocks ---- */

static const char clock_record[] =
    "{\"t\":1050033000,\"source\":\"harness\",\"kind\":\"clock\",\"node\":\"n1\",\"host\":\"far\","
    "\"ahead_ns\":7000012000,\"bound_ns\":100000,\"round_ns\":150000,\"samples\":34,\"steps\":0}";

/* n1 is elsewhere: what is measured against it is told with its bound, and the bound is told. */
static void test_every_report_tells_the_bounds_of_clocks(void **state) {
    (void)state;
    static const struct edit elsewhere[] = {
        {"\"kernel\"", "\"node\":\"n1\"", "\"source\"", "\"bound\":400000,\"source\"", NULL},
        {"\"probe\"", "\"node\":\"n1\"", "\"source\"", "\"bound\":400000,\"source\"", NULL},
        {"\"job\"", "\"node\":\"n1\"", "\"source\"", "\"bound\":400000,\"source\"", NULL},
        {"\"steady\"", NULL, NULL, clock_record, NULL},
        {0}};
    static const struct {
        const char *report, *says;
        bool unicode;
    } rows[] = {
        {"terminal", "training again after 879 ms \u00b1 0.4 ms", true},
        {"terminal", "training again after 879 ms +- 0.4 ms", false},
        {"terminal", "n1 far: 7.000012 s ahead, asked 34 times, its stamps known to \u00b1 0.4 ms",
         true},
        {"html", "<h2>Clocks</h2>", true},
        {"html", "<tr><td>n1</td><td>far: 7.000012 s ahead", true},
        {"html", "\u00b1 0.4 ms</b>", true},
        {"json", "\"recover_bound_ms\":0.4", true},
        {"json", "\"clocks\":[{\"node\":\"n1\",\"host\":\"far\",\"ahead_ns\":7000012000", true},
        {"junit", "<property name=\"clock.n1\" value=\"far: 7.000012 s ahead, asked 34 times",
         true},
        {"markdown", "879 ms \u00b1 0.4 ms", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct told t;
        tell(&t, "node-powered-off", elsewhere, rows[i].report,
             (struct report_style){.unicode = rows[i].unicode});
        assert_says(&t, rows[i].says);
        forget(&t);
        tell(&t, "node-powered-off", none, rows[i].report,
             (struct report_style){.unicode = rows[i].unicode});
        assert_lacks(&t, rows[i].says);
        forget(&t);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tap_has_a_point_for_each_check),
        cmocka_unit_test(test_ctrf_counts_what_it_lists),
        cmocka_unit_test(test_csv_has_a_row_for_each_fault),
        cmocka_unit_test(test_github_is_told_what_did_not_pass),
        cmocka_unit_test(test_gitlab_knows_an_issue_again),
        cmocka_unit_test(test_markdown_begins_with_what_failed),
        cmocka_unit_test(test_prometheus_is_told_numbers_and_checks),
        cmocka_unit_test(test_a_trace_shows_lives_and_phases),
        cmocka_unit_test(test_rounds_that_overlap_have_a_track_each),
        cmocka_unit_test(test_every_report_tells_the_bounds_of_clocks),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
