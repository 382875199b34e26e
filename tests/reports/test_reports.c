/* Reports: what a stranger reads, at any width, and what programs parse. */
#include "tests/reports/told.h"

#include "base/sys/file.h"

#include <sys/stat.h>

static const struct edit none[1],
    off_by_one[] = {{"\"argv0\"", NULL, "COUNT\":\"1\"", "COUNT\":\"2\""}, {0}};

/* The table of checks grows. */
static size_t skipped(const struct verdict *v) {
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++)
        n += v->v[i].status == FINDING_SKIP;
    return n;
}

static void test_a_good_run_begins_with_its_name_and_ends_with_the_command(void **state) {
    (void)state;
    struct told t;
    tell(&t, "worker-killed", none, "terminal", (struct report_style){0});
    assert_int_equal(strncmp(buf_str(&t.text), "+ worker-killed passed (exit code 0)\n", 37), 0);
    char all[64];
    size_t n = t.verdict.n - skipped(&t.verdict);
    snprintf(all, sizeof(all), "checks  %zu of %zu passed, %zu not asked for\n", n, n,
             skipped(&t.verdict));
    assert_says(&t, all);
    assert_says(&t,
                "  1  2 workers     0.010 s     from the beginning, until: kill (worker-kill on "
                "n0/1 (rank 1))\n");
    assert_says(&t, "  2  2 workers     0.076 s     from step 4, until: all workers ended well\n");
    assert_says(&t,
                "  kill: worker-kill on n0/1 (rank 1) at step 5, in force at 0.071 s, 1.0 ms after "
                "its moment\n");
    assert_says(
        &t, "    detected in 2 ms (a worker was ended by a signal), training again after 39 ms; "
            "then stop 0, rendezvous 3, start 0, init 10, load 2, first step 22\n");
    assert_true(
        str_ends(buf_str(&t.text), "\nagain      rankquake run scenarios/planted.yaml --seed 1\n"));
    forget(&t);
}

/* No weights can be read there: that the models are equal is the job's word alone. */
static void test_what_passed_by_the_word_of_the_job_is_told_below_the_headline(void **state) {
    (void)state;
    static const char *const names[] = {"terminal", "junit", "html"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct told t;
        tell(&t, "worker-killed", none, names[i], (struct report_style){0});
        assert_non_null(strcasestr(buf_str(&t.text), "beware"));
        assert_non_null(strstr(buf_str(&t.text), "word alone, as no weights of the last step"));
        forget(&t);
    }
}

/* It is a measure: told whether the scenario asks for it or not, and with whose word it is. */
static void test_goodput_is_told_of_every_run(void **state) {
    (void)state;
    struct told t;
    struct buf text = {0};
    tell(&t, "worker-killed", none, "terminal", (struct report_style){0});
    assert_says(&t,
                "\ngoodput    64 %: 7 steps that count in 0.1 s, 0.1 s in the control run (events "
                "of the job, stamped on receipt)\n");
    verdict_text(&t.verdict, &text);
    assert_non_null(strstr(buf_str(&text), "\"goodput\":{\"percent\":63.6"));
    assert_non_null(strstr(buf_str(&text), "\"steps_from\":\"events\""));
    forget(&t);
    tell(&t, "worker-killed", none, "html", (struct report_style){0});
    assert_says(&t, "<li><b>64<i>\u00a0%</i></b><span>goodput: 7 steps that count");
    forget(&t);
    tell(&t, "worker-killed", (const struct edit[]){{"\"control\",", NULL, NULL, NULL}, {0}},
         "terminal", (struct report_style){0});
    assert_null(strstr(buf_str(&t.text), "\ngoodput "));
    forget(&t);
    buf_fini(&text);
}

static void test_a_bad_run_begins_with_four_lines(void **state) {
    (void)state;
    struct told t;
    tell(&t, "worker-killed", off_by_one, "terminal", (struct report_style){0});
    static const char four[] =
        "broken     Restart count: a worker's failure costs one restart, losing or gaining a node "
        "costs none.\n"
        "expected   TORCHELASTIC_RESTART_COUNT 1 in round 2: only workers were hit (kill)\n"
        "seen       2 on all 2 workers of round 2, after 0 in round 1\n"
        "look at    runs/x/history.jsonl records 40, 42; logs/n0\n"
        "\n"
        "x worker-killed failed: restart_count (exit code 1)\n";
    if (strncmp(buf_str(&t.text), four, strlen(four)) != 0)
        fail_msg("%s", buf_str(&t.text));
    forget(&t);
}

static size_t longest_line(const char *text) {
    size_t longest = 0;
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        longest = n > longest ? n : longest;
    }
    return longest;
}

/* Where the log of the second rank 0 is made, under the test's own directory. */
static void make_log(char *dir, size_t size, const char *text) {
    char path[300];
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, size, "%s/rq-run-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/logs", dir);
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(path, sizeof(path), "%s/logs/n0", dir);
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(path, sizeof(path), "%s/logs/n0/rank-0.2.log", dir);
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
}

static void tell_of(struct told *t, const struct edit *edits, const char *dir, int width) {
    struct report_style style = {.width = width};
    struct folder folder = FOLDER_NONE;
    tell(t, "printed-steps", edits, "terminal", style);
    buf_clear(&t->text);
    t->run.dir = dir;
    t->run.folder = folder_open(&folder, dir, NULL) == 0 ? &folder : NULL;
    assert_int_equal(report_find("terminal")->render(&t->run, &style, &t->text, NULL), 0);
    t->run.folder = NULL;
    folder_close(&folder);
}

#define FAILED(end)                                                                                \
    {"agent-exit", NULL, "\"code\":0", "\"code\":1"},                                              \
        {"worker-exit", "\"pid\":120", "\"code\":0", end},                                         \
        {"worker-exit", "\"pid\":121", "\"code\":0", "\"signal\":15"}, {                           \
        0                                                                                          \
    }

static void test_the_last_words_of_the_worker_that_failed_are_told(void **state) {
    (void)state;
    static const struct edit failed[] = {FAILED("\"code\":1")}, killed[] = {FAILED("\"signal\":9")};
    char dir[200], said[600];
    struct told t;
    make_log(dir, sizeof(dir), "step 5\nTraceback:\n  in load\nEOFError: Ran out of input\n");
    tell_of(&t, failed, dir, 0);
    snprintf(said, sizeof(said),
             "; logs/n0\nlast words rank 0 on n0 of round 2 ended with status 1; last lines of "
             "%s/logs/n0/rank-0.2.log:\n"
             "           step 5\n           Traceback:\n             in load\n"
             "           EOFError: Ran out of input\n\nx printed-steps failed: ",
             dir);
    assert_says(&t, said);
    assert_true(str_ends(finding_of(&t.verdict, "model")->where, "; logs/n0/rank-1.2.log"));
    forget(&t);
    tell_of(&t, failed, dir, 40);
    assert_says(&t, "EOFError: Ran out of input\n");
    assert_true(longest_line(buf_str(&t.text)) <= 40);
    forget(&t);
    tell_of(&t, killed, dir, 0);
    assert_null(strstr(buf_str(&t.text), "last words"));
    forget(&t);
    snprintf(said, sizeof(said), "%s/logs/n0/rank-0.2.log", dir);
    assert_true(remove(said) == 0 && symlink("/etc/passwd", said) == 0);
    tell_of(&t, failed, dir, 0); /* somebody has made it lead out of the directory */
    assert_null(strstr(buf_str(&t.text), "last words"));
    assert_null(strstr(buf_str(&t.text), "root:"));
    forget(&t);
    tell_of(&t, failed, "runs/x", 0); /* somebody has taken its log away */
    assert_null(strstr(buf_str(&t.text), "last words"));
    forget(&t);
    assert_int_equal(file_remove_tree(dir, NULL), 0);
}

static void test_an_open_question_is_told_as_one(void **state) {
    (void)state;
    static const struct edit edits[] = {{"fault-evidence", NULL, "", NULL}, {0}};
    struct told t;
    tell(&t, "worker-killed", edits, "terminal", (struct report_style){0});
    assert_says(&t, "expected   evidence that answers the question\n");
    assert_says(&t, "? worker-killed inconclusive: fired (exit code 2)\n");
    assert_says(&t, "in force at 0.071 s, 1.0 ms after its moment, no evidence\n");
    forget(&t);
}

static void test_no_line_is_wider_than_the_terminal(void **state) {
    (void)state;
    for (int width = 40; width <= 140; width += 10) {
        struct told t;
        tell(&t, "worker-killed", off_by_one, "terminal", (struct report_style){.width = width});
        if (longest_line(buf_str(&t.text)) > (size_t)width)
            fail_msg("wider than %d:\n%s", width, buf_str(&t.text));
        forget(&t);
    }
}

static void test_a_hostile_name_is_spelled_out_before_it_is_measured(void **state) {
    (void)state;
    static const struct edit edits[] = {
        {"{", NULL, "\"n0\"", "\"n\\u001b]0;x\\u0007\302\233J\u202e\""},
        {"\"health\"", NULL, "[]", "[\"process 7\\n  passed \\u001b[2J \u2066\"]"},
        {0}};
    for (int width = 40; width <= 140; width += 20) {
        struct told t;
        tell(&t, "worker-killed", edits, "terminal", (struct report_style){.width = width});
        for (const char *s = buf_str(&t.text); *s; s++)
            assert_true(*s == '\n' || (*s >= 0x20 && *s < 0x7f));
        assert_true(longest_line(buf_str(&t.text)) <= (size_t)width);
        assert_says(&t, "\\x1b[2J");
        forget(&t);
    }
}

static void test_colour_and_signs_come_only_where_they_are_wanted(void **state) {
    (void)state;
    struct told t;
    tell(&t, "worker-killed", off_by_one, "terminal", (struct report_style){0});
    for (const char *s = buf_str(&t.text); *s; s++)
        assert_true(*s == '\n' || (*s >= 0x20 && *s < 0x7f));
    forget(&t);
    tell(&t, "worker-killed", off_by_one, "terminal",
         (struct report_style){.color = true, .unicode = true, .width = 80});
    assert_says(&t, "\033[31m\u2717\033[0m");
    assert_says(&t, "\033[32m\u2713\033[0m");
    forget(&t);
}

static void test_a_history_that_stops_early_can_be_told(void **state) {
    (void)state;
    static const struct edit edits[] = {{"\"t\":1", "\"source\":\"probe\"", "", NULL}, {0}};
    static const char *const names[] = {"html", "json", "junit", "svg", "terminal"};
    for (size_t i = 0; i < 5; i++) {
        struct told t;
        tell(&t, "worker-killed", edits, names[i], (struct report_style){0});
        assert_true(t.text.len > 0);
        forget(&t);
    }
}

static void test_json_holds_verdict_rounds_and_times(void **state) {
    (void)state;
    struct told t;
    struct arena a = {0};
    tell(&t, "node-powered-off", none, "json", (struct report_style){0});
    const struct json *j = json_parse(&a, buf_str(&t.text), t.text.len, NULL);
    assert_non_null(j);
    assert_string_equal(json_get_string(j, "outcome", ""), "passed");
    assert_int_equal(json_get_i64(json_get(j, "verdict"), "exit_code", -1), 0);
    assert_int_equal(json_get(j, "rounds")->length, 2);
    const struct json *fault = json_first(json_get(j, "faults"));
    assert_string_equal(json_get_string(fault, "id", ""), "dark");
    assert_true(json_number(json_get(fault, "recover_ms"), 0) > 878);
    assert_true(json_number(json_get(json_get(fault, "phases_ms"), "detect"), 0) > 808);
    arena_fini(&a);
    forget(&t);
}

static void test_junit_has_a_case_for_each_check_and_escapes(void **state) {
    (void)state;
    static const struct edit edits[] = {
        {"\"health\"", NULL, "[]", "[\"<a> & \\\"b\\\" \\u0001 \u00e4\"]"},
        {"leftovers", NULL, "", NULL},
        {0}};
    struct told t;
    tell(&t, "worker-killed", edits, "junit", (struct report_style){0});
    char all[80];
    snprintf(all, sizeof(all), "tests=\"%zu\" failures=\"1\" errors=\"1\" skipped=\"%zu\"",
             t.verdict.n, skipped(&t.verdict));
    assert_says(&t, all);
    assert_says(&t, "<testcase classname=\"worker-killed\" name=\"agreement\"/>");
    assert_says(&t, "1 left: &lt;a&gt; &amp; &quot;b&quot; \\x01 \u00e4");
    assert_says(&t, "<error type=\"unknown\" message=\"n0 was not looked at");
    assert_says(
        &t,
        "<property name=\"reproduce\" value=\"rankquake run scenarios/planted.yaml --seed 1\"/>");
    forget(&t);
}

static void test_words_of_the_command_are_quoted_for_the_shell(void **state) {
    (void)state;
    static const struct edit edits[] = {
        {"\"kind\":\"run\"", NULL, "\"launcher\":\"rankrun\"",
         "\"file\":\"my runs/it's.yaml\",\"launcher\":\"srun "
         "{worker}\",\"set\":[\"job.max_restarts=0\",\"about=it is\"]"},
        {0}};
    struct told t;
    tell(&t, "worker-killed", edits, "terminal", (struct report_style){0});
    assert_says(&t, "rankquake run 'my runs/it'\\''s.yaml' --seed 1 --set job.max_restarts=0 --set "
                    "'about=it is'\n");
    forget(&t);
}

static void test_the_table_is_in_alphabetical_order(void **state) {
    (void)state;
    for (size_t i = 0; reports[i]; i++) {
        assert_true(*reports[i]->name && *reports[i]->summary);
        assert_ptr_equal(report_find(reports[i]->name), reports[i]);
        if (i)
            assert_true(strcmp(reports[i - 1]->name, reports[i]->name) < 0);
    }
    assert_null(report_find("papyrus"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_good_run_begins_with_its_name_and_ends_with_the_command),
        cmocka_unit_test(test_what_passed_by_the_word_of_the_job_is_told_below_the_headline),
        cmocka_unit_test(test_goodput_is_told_of_every_run),
        cmocka_unit_test(test_a_bad_run_begins_with_four_lines),
        cmocka_unit_test(test_the_last_words_of_the_worker_that_failed_are_told),
        cmocka_unit_test(test_an_open_question_is_told_as_one),
        cmocka_unit_test(test_no_line_is_wider_than_the_terminal),
        cmocka_unit_test(test_a_hostile_name_is_spelled_out_before_it_is_measured),
        cmocka_unit_test(test_colour_and_signs_come_only_where_they_are_wanted),
        cmocka_unit_test(test_a_history_that_stops_early_can_be_told),
        cmocka_unit_test(test_json_holds_verdict_rounds_and_times),
        cmocka_unit_test(test_junit_has_a_case_for_each_check_and_escapes),
        cmocka_unit_test(test_words_of_the_command_are_quoted_for_the_shell),
        cmocka_unit_test(test_the_table_is_in_alphabetical_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
