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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_no_run_is_refused_by_what_it_lacks),
        cmocka_unit_test(test_a_recorded_run_is_judged_again_and_its_reports_written),
        cmocka_unit_test(test_programs_of_a_recorded_scenario_are_started_only_when_asked_for),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
