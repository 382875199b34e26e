/* An entry: what is taken out of a run, and that a line brings all of it back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/sys/file.h"
#include "harness/trend/entry.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

static const struct trend_origin origin = {"c0ffee", "main", "m x 2"};

/* A directory as a run leaves it, of a recorded history with two records of the calibration more. */
static void make_run(const char *dir) {
    BUF_FINI struct buf text = {0};
    char path[PATH_MAX];
    static const char scenario[] = "scenario: planted\ncluster: {nodes: 1}\njob: {run: [ls]}\n";
    assert_int_equal(file_read("tests/histories/worker-killed.jsonl", 1 << 20, &text, NULL), 0);
    int64_t seq = 0;
    for (size_t i = 0; i < text.len; i++)
        seq += text.data[i] == '\n';
    static const char *const walls[] = {"[1000000,3000000]", "[2000000,2000000]"};
    for (int i = 0; i < 2; i++)
        buf_printf(
            &text,
            "{\"seq\":%lld,\"t\":99999999999999,\"source\":\"harness\",\"kind\":\"calibration\","
            "\"at\":\"begin\",\"wall_ns\":%s}\n",
            (long long)seq + 1 + i, walls[i]);
    snprintf(path, sizeof(path), "%s/history.jsonl", dir);
    assert_int_equal(file_write(path, text.data, text.len, NULL), 0);
    snprintf(path, sizeof(path), "%s/scenario.yaml", dir);
    assert_int_equal(file_write(path, scenario, sizeof(scenario) - 1, NULL), 0);
}

static void test_a_run_gives_its_times_and_its_noise(void **state) {
    char dir[] = "/tmp/rq-entry-XXXXXX";
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf complaint = {0}, line = {0};
    static struct recording r;
    struct trend_entry e, back;
    struct err err = {0};
    assert_int_equal(file_make_temp_dir(dir, NULL), 0);
    make_run(dir);
    const struct recording_source from = {.dir = dir};
    if (recording_read(&r, &from, &complaint) < 0)
        fail_msg("%s", buf_str(&complaint));
    assert_int_equal(trend_entry_take(&e, &a, &r.run, &origin, &err), 0);
    assert_int_equal(strlen(e.id), 64);
    assert_string_equal(e.scenario, "planted");
    assert_int_equal(e.exit_code, r.verdict.exit_code);
    assert_true(fabs(e.calibration_ms - 2) < 1e-9); /* the mean of 1, 3, 2, 2 */
    assert_true(fabs(e.calibration_spread - sqrt(2.0 / 3) / 2) < 1e-9);
    struct incidents is;
    incidents_load(&is, &r.history, &r.rounds);
    char name[80];
    snprintf(name, sizeof(name), "%s/recover", is.v[0]->id);
    assert_true(fabs(trend_entry_measure(&e, name) - (double)is.v[0]->recover_ns / 1e6) < 1e-9);
    snprintf(name, sizeof(name), "%s/detect", is.v[0]->id);
    assert_true(
        fabs(trend_entry_measure(&e, name) - (double)is.v[0]->phase_ns[PHASE_DETECT] / 1e6) < 1e-9);
    assert_true(trend_entry_measure(&e, "job") > 0);
    incidents_fini(&is);

    trend_entry_put(&e, &line);
    assert_null(strchr(buf_str(&line), '\n'));
    assert_int_equal(trend_entry_parse(&back, &a, line.data, line.len, &err), 0);
    assert_string_equal(back.id, e.id);
    assert_string_equal(back.origin.branch, "main");
    assert_int_equal(back.time_ns, e.time_ns);
    assert_int_equal(back.n, e.n);
    for (size_t i = 0; i < e.n; i++)
        assert_true(trend_entry_measure(&back, e.v[i].name) == e.v[i].value);
    recording_fini(&r);
    file_remove_tree(dir, NULL);
}

static void test_a_line_that_lacks_something_is_refused_with_its_name(void **state) {
    static const struct {
        const char *line, *said;
    } bad[] = {
        {"", "is no whole entry"},
        {"[1]", "is no whole entry"},
        {"{\"v\":7}", "is of version 7"},
        {"{\"v\":1}", "\"id\""},
        {"{\"v\":1,\"id\":\"a\",\"commit\":\"c\",\"branch\":3}", "\"branch\""},
        {"{\"v\":1,\"id\":\"a\",\"commit\":\"c\",\"branch\":\"b\",\"machine\":\"m\",\"scenario\":"
         "\"s\","
         "\"launcher\":\"l\",\"measures\":[]}",
         "\"measures\""},
    };
    ARENA_FINI struct arena a = {0};
    struct trend_entry e;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct err err = {0};
        assert_int_equal(trend_entry_parse(&e, &a, bad[i].line, strlen(bad[i].line), &err),
                         -EBADMSG);
        if (!strstr(err.msg, bad[i].said))
            fail_msg("%s: %s", bad[i].line, err.msg);
    }
}

/* Numbers that are none, and those below 0, are no times. */
static void test_what_is_no_time_is_no_measure(void **state) {
    static const char line[] =
        "{\"v\":1,\"id\":\"a\",\"commit\":\"c\",\"branch\":\"b\",\"machine\":\"m\",\"scenario\":"
        "\"s\","
        "\"launcher\":\"l\",\"measures\":{\"job\":\"x\",\"a\":-1,\"b\":null,\"c\":5}}";
    ARENA_FINI struct arena a = {0};
    struct trend_entry e;
    assert_int_equal(trend_entry_parse(&e, &a, line, sizeof(line) - 1, NULL), 0);
    assert_int_equal(e.n, 1);
    assert_true(trend_entry_measure(&e, "c") == 5);
    assert_true(isnan(trend_entry_measure(&e, "job")));
    assert_false(trend_entry_passed(&e)); /* it does not say so */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_gives_its_times_and_its_noise),
        cmocka_unit_test(test_a_line_that_lacks_something_is_refused_with_its_name),
        cmocka_unit_test(test_what_is_no_time_is_no_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
