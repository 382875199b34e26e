/* Recording: a run directory read back, and what is said of one that is none. */
#include "harness/judge/recording.h"
#include "reports/report.h"

#include "base/sys/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char scenario[] = "scenario: worker-killed\n"
                               "cluster: {nodes: 1}\n"
                               "job:\n"
                               "  nnodes: 1\n"
                               "  workers_per_node: 2\n"
                               "  run: [train, \"--checkpoint-dir={shared}/ckpt\"]\n"
                               "timeline:\n"
                               "  - {id: kill, when: {step: 5}, fault: worker-kill, on: rank 1}\n"
                               "expect: {restarts: 1, model: same-as-undisturbed}\n";

static char dir[128];

static int make_dir(void **state) {
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof(dir), "%s/rq-recording-XXXXXX", tmp ? tmp : "/tmp");
    return !mkdtemp(dir);
}

static int remove_dir(void **state) {
    (void)state;
    return file_remove_tree(dir, NULL);
}

static void put(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
}

static void assert_refused(const char *which, const char *complaint) {
    struct recording r;
    struct buf said = {0};
    assert_int_equal(recording_load(&r, which, &said), -1);
    if (!strstr(buf_str(&said), complaint))
        fail_msg("\"%s\" is not in \"%s\"", complaint, buf_str(&said));
    assert_true(said.len && said.data[said.len - 1] == '\n');
    buf_fini(&said);
}

static void test_what_is_no_run_is_refused_by_what_it_lacks(void **state) {
    (void)state;
    char file[256];
    snprintf(file, sizeof(file), "%s/scenario.yaml", dir);
    assert_refused("/nonexistent", "/nonexistent: No such file or directory");
    assert_refused(dir, "scenario.yaml is missing");
    put("scenario.yaml", scenario);
    assert_refused(dir, "history.jsonl is missing");
    assert_refused(file, "is no directory");
    put("history.jsonl", "{\"seq\":1\n");
    assert_refused(dir, "history.jsonl:1: ");
    put("scenario.yaml", "scenario: [\n");
    assert_refused(dir, "scenario.yaml:");
}

static void test_a_recorded_run_is_judged_again_and_its_reports_written(void **state) {
    (void)state;
    struct buf text = {0}, said = {0};
    struct recording r;
    assert_int_equal(file_read("tests/histories/worker-killed.jsonl", 1 << 20, &text, NULL), 0);
    put("scenario.yaml", scenario);
    put("history.jsonl", buf_str(&text));
    if (recording_load(&r, dir, &said) < 0)
        fail_msg("%s", buf_str(&said));
    assert_int_equal(r.verdict.exit_code, 0);
    assert_int_equal(r.rounds.n, 2);
    assert_int_equal(reports_write(&r.run, NULL), 0);
    static const char *const files[] = {"report.json", "junit.xml"};
    for (size_t i = 0; i < 2; i++) {
        char path[256];
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        assert_true(file_exists(path));
    }
    recording_fini(&r);
    buf_fini(&text);
    buf_fini(&said);
}

/* Whoever reads a directory of somebody else's asks for nothing to be started. */
static void test_programs_of_a_recorded_scenario_are_started_only_when_asked_for(void **state) {
    (void)state;
    struct buf text = {0}, said = {0};
    char touched[300];
    snprintf(touched, sizeof(touched), "%s/touched", dir);
    assert_int_equal(file_read("tests/histories/worker-killed.jsonl", 1 << 20, &text, NULL), 0);
    put("history.jsonl", buf_str(&text));
    buf_clear(&text);
    buf_printf(&text, "%schecks: [{name: own, program: [touch, %s]}]\n", scenario, touched);
    put("scenario.yaml", buf_str(&text));
    for (int asked = 0; asked < 2; asked++) {
        struct recording_source from = {.dir = dir, .programs = asked};
        struct recording r;
        if (recording_read(&r, &from, &said) < 0)
            fail_msg("%s", buf_str(&said));
        const struct finding *own = verdict_find(&r.verdict, "own:own");
        assert_non_null(own);
        assert_int_equal(own->status, FINDING_UNKNOWN);
        assert_int_equal(strstr(own->seen, "--programs starts it") != NULL, !asked);
        assert_int_equal(file_exists(touched), asked);
        recording_fini(&r);
    }
    buf_fini(&text);
    buf_fini(&said);
}

/* One own check of a run that is well: the words of its program, and what is found. */
static struct finding ask_own(const char *program, const char *within) {
    struct buf text = {0}, said = {0};
    struct recording r;
    struct finding f;
    assert_int_equal(file_read("tests/histories/worker-killed.jsonl", 1 << 20, &text, NULL), 0);
    put("history.jsonl", buf_str(&text));
    buf_clear(&text);
    buf_printf(&text, "%schecks: [{name: own, program: [%s]%s%s}]\n", scenario, program,
               within ? ", within: " : "", within ? within : "");
    put("scenario.yaml", buf_str(&text));
    if (recording_load(&r, dir, &said) < 0)
        fail_msg("%s", buf_str(&said));
    assert_string_equal(buf_str(&said), "");
    f = *verdict_find(&r.verdict, "own:own");
    recording_fini(&r);
    buf_fini(&text);
    buf_fini(&said);
    return f;
}

static void assert_no_answer(const char *program, const char *within, const char *seen) {
    struct finding f = ask_own(program, within);
    assert_int_equal(f.status, FINDING_UNKNOWN);
    assert_int_equal(f.class, CLASS_EXPECT);
    assert_string_equal(f.seen, seen);
    assert_string_equal(f.broken,
                        "Own check: the program says whether the run is as it should be.");
    assert_string_equal(f.where, "checks/own.log");
    assert_int_equal(f.evidence[0], 0);
}

static void test_what_a_program_answers_is_found(void **state) {
    (void)state;
    struct finding f =
        ask_own("sh, -c, \"echo '{\\\"status\\\":\\\"fail\\\",\\\"seen\\\":\\\"two\\\","
                "\\\"expected\\\":\\\"one\\\",\\\"evidence\\\":[34,36]}'\"",
                NULL);
    assert_int_equal(f.status, FINDING_FAIL);
    assert_string_equal(f.seen, "two");
    assert_string_equal(f.expected, "one");
    assert_string_equal(f.where, "history.jsonl records 34, 36; logs/n0");
    assert_true(f.evidence[0] == 34 && f.evidence[1] == 36 && !f.evidence[2]);
}

static void test_a_program_without_an_answer_leaves_it_open_and_says_why(void **state) {
    (void)state;
    assert_no_answer(
        "\"true\"", NULL,
        "true gave no answer: it must print one JSON object, as {\"status\": \"pass\"}");
    assert_no_answer("sh, -c, exit 3", NULL, "sh gave no answer: it ended with exit code 3");
    assert_no_answer("/nonexistent/program", NULL,
                     "/nonexistent/program gave no answer: execute /nonexistent/program: No such "
                     "file or directory");
    assert_no_answer("sleep, \"100\"", "200ms",
                     "sleep gave no answer: it had not answered after 200 ms");
    assert_no_answer("head, -c, \"1048577\", /dev/zero", NULL,
                     "head gave no answer: it printed more than a megabyte");
}

/* It reads the history, finds the run, and has a log of its own; what was set before is another run. */
static void test_a_program_is_given_the_run(void **state) {
    (void)state;
    struct buf is = {0}, wanted = {0}, history = {0};
    char path[256];
    setenv("RANKQUAKE_RUN", "/another", 1);
    setenv("RANKQUAKE_RUNS", "kept", 1);
    struct finding f = ask_own(
        "sh, -c, \"{ cat; printenv RANKQUAKE_RUN RANKQUAKE_RUNS; } >&2; echo '{\\\"status\\\":"
        "\\\"pass\\\"}'\"",
        NULL);
    unsetenv("RANKQUAKE_RUN");
    unsetenv("RANKQUAKE_RUNS");
    assert_int_equal(f.status, FINDING_PASS);
    assert_string_equal(f.seen, "the program gave no reason");
    assert_string_equal(f.where, "");
    snprintf(path, sizeof(path), "%s/checks/own.log", dir);
    assert_int_equal(file_read(path, 1 << 20, &is, NULL), 0);
    assert_int_equal(file_read("tests/histories/worker-killed.jsonl", 1 << 20, &history, NULL), 0);
    buf_printf(&wanted, "%s%s\nkept\n", buf_str(&history), dir);
    assert_string_equal(buf_str(&is), buf_str(&wanted));
    buf_fini(&is);
    buf_fini(&wanted);
    buf_fini(&history);
}

/* A history and a scenario may lie anywhere; then nothing is written, and there is no run. */
static void test_a_history_of_no_run_is_judged_by_the_scenario_that_is_named(void **state) {
    (void)state;
    struct buf said = {0};
    struct recording r;
    char named[256];
    put("named.yaml", scenario);
    snprintf(named, sizeof(named), "%s/named.yaml", dir);
    struct recording_source from = {.history = "tests/histories/worker-killed.jsonl",
                                    .scenario = named};
    if (recording_read(&r, &from, &said) < 0)
        fail_msg("%s", buf_str(&said));
    assert_int_equal(r.verdict.exit_code, 0);
    assert_string_equal(r.dir, from.history);
    assert_null(r.run.folder);
    assert_string_equal(r.run.dir, from.history);
    assert_ptr_equal(r.run.scenario, r.scenario);
    assert_ptr_equal(r.run.history, &r.history);
    assert_ptr_equal(r.run.rounds, &r.rounds);
    assert_ptr_equal(r.run.verdict, &r.verdict);
    recording_fini(&r);
    from.history = "/nonexistent.jsonl";
    assert_int_equal(recording_read(&r, &from, &said), -1);
    assert_non_null(strstr(buf_str(&said), "/nonexistent.jsonl"));
    buf_fini(&said);
}

/* Each check of the table is told, from the first to the last. */
static void note_judged(void *arg, size_t done, size_t of) {
    size_t *told = arg;
    assert_int_equal(done, told[0] + 1);
    assert_true(done <= of && (!told[1] || told[1] == of));
    told[0] = done;
    told[1] = of;
}

static void test_whoever_waits_is_told_of_each_check(void **state) {
    (void)state;
    struct buf said = {0};
    struct recording r;
    size_t told[2] = {0};
    char named[256];
    put("named.yaml", scenario);
    snprintf(named, sizeof(named), "%s/named.yaml", dir);
    struct recording_source from = {.history = "tests/histories/worker-killed.jsonl",
                                    .scenario = named,
                                    .judged = note_judged,
                                    .judged_arg = told};
    assert_int_equal(recording_read(&r, &from, &said), 0);
    assert_int_equal(told[0], r.verdict.n);
    assert_int_equal(told[1], r.verdict.n);
    recording_fini(&r);
    buf_fini(&said);
}

/* What the run has said once, it says again. */
static void test_what_was_lost_and_slower_is_recalled(void **state) {
    (void)state;
    struct buf text = {0}, said = {0};
    struct recording r;
    assert_int_equal(file_read("tests/histories/worker-killed.jsonl", 1 << 20, &text, NULL), 0);
    put("scenario.yaml", scenario);
    put("history.jsonl", buf_str(&text));
    put("lost.json", "{\"v\":1,\"since\":\"runs/1\",\"lost\":[\"heal\"]}");
    put("slower.txt", "all of it");
    assert_int_equal(recording_load(&r, dir, &said), 0);
    assert_string_equal(r.verdict.lost_since, "runs/1");
    assert_true(verdict_find(&r.verdict, "heal")->lost);
    assert_true(verdict_find(&r.verdict, "pace")->loud);
    assert_memory_equal(verdict_find(&r.verdict, "pace")->seen, "all of it; ", 11);
    recording_fini(&r);
    recording_fini(NULL);
    buf_fini(&text);
    buf_fini(&said);
}

static void test_who_it_is_for_is_told_the_whole_complaint(void **state) {
    (void)state;
    char wanted[400];
    put("file", "");
    static const struct {
        const char *suffix, *said;
    } rows[] = {
        {"/none",
         ": No such file or directory; give the directory of a run, as printed at its end"},
        {"/file", " is no directory; give the directory of a run"},
        {"/empty", " is no run: scenario.yaml is missing"},
        {"/half", " is no run: history.jsonl is missing"},
    };
    char path[256];
    snprintf(path, sizeof(path), "%s/empty", dir);
    assert_int_equal(mkdir(path, 0777), 0);
    snprintf(path, sizeof(path), "%s/half", dir);
    assert_int_equal(mkdir(path, 0777), 0);
    put("half/scenario.yaml", scenario);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct recording r;
        struct buf said = {0};
        snprintf(path, sizeof(path), "%s%s", dir, rows[i].suffix);
        buf_printf(&said, "before: ");
        assert_int_equal(recording_load(&r, path, &said), -1);
        snprintf(wanted, sizeof(wanted), "before: %s%s\n", path, rows[i].said);
        assert_string_equal(buf_str(&said), wanted);
        buf_fini(&said);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_no_run_is_refused_by_what_it_lacks),
        cmocka_unit_test(test_a_recorded_run_is_judged_again_and_its_reports_written),
        cmocka_unit_test(test_programs_of_a_recorded_scenario_are_started_only_when_asked_for),
        cmocka_unit_test(test_what_a_program_answers_is_found),
        cmocka_unit_test(test_a_program_without_an_answer_leaves_it_open_and_says_why),
        cmocka_unit_test(test_a_program_is_given_the_run),
        cmocka_unit_test(test_a_history_of_no_run_is_judged_by_the_scenario_that_is_named),
        cmocka_unit_test(test_whoever_waits_is_told_of_each_check),
        cmocka_unit_test(test_what_was_lost_and_slower_is_recalled),
        cmocka_unit_test(test_who_it_is_for_is_told_the_whole_complaint),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
