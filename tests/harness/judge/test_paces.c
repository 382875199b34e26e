/* A recovery that takes much longer than in earlier runs of its scenario is told, until it is as
 * quick again or accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/sys/file.h"
#include "harness/judge/paces.h"
#include "tests/harness/scenario/scratch.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

struct fixture {
    char dir[64], file[PATH_MAX], history[PATH_MAX];
    struct folder run;
    struct scratch x;
    struct verdict v;
};

static int begin(void **state) {
    static struct fixture f;
    f = (struct fixture){.dir = "/tmp/rq-paces-XXXXXX"};
    assert_int_equal(file_make_temp_dir(f.dir, NULL), 0);
    assert_int_equal(folder_open(&f.run, f.dir, NULL), 0);
    snprintf(f.file, sizeof(f.file), "%s/cache/answered/key.paces", f.dir);
    snprintf(f.history, sizeof(f.history), "%s/history.jsonl", f.dir);
    scratch_load(&f.x, "job: {run: [ls]}\n");
    *state = &f;
    return 0;
}

static int end(void **state) {
    struct fixture *f = *state;
    scratch_drop(&f->x);
    folder_close(&f->run);
    return file_remove_tree(f->dir, NULL);
}

/* A recorded run in which all from the second round's start on comes so much later, and for which the
 * harness was late by so much. */
static void write_history(const struct fixture *f, int64_t later_ns, int64_t lag_ns) {
    BUF_FINI struct buf in = {0}, out = {0};
    char *rest = NULL;
    assert_int_equal(file_read("tests/histories/worker-killed.jsonl", 1 << 20, &in, NULL), 0);
    buf_putc(&in, '\0');
    for (char *l = strtok_r((char *)in.data, "\n", &rest); l; l = strtok_r(NULL, "\n", &rest)) {
        int64_t seq, t;
        int at = 0;
        assert_int_equal(sscanf(l, "{\"seq\":%" SCNd64 ",\"t\":%" SCNd64 "%n", &seq, &t, &at), 2);
        const char *rest_of_line = l + at, *lag = strstr(l, "\"max_ns\":300000,");
        buf_printf(&out, "{\"seq\":%" PRId64 ",\"t\":%" PRId64, seq, seq >= 40 ? t + later_ns : t);
        if (lag)
            buf_printf(&out, "%.*s\"max_ns\":%" PRId64 ",\"window_ns\":1000000000}\n",
                       (int)(lag - rest_of_line), rest_of_line, lag_ns);
        else
            buf_printf(&out, "%s\n", rest_of_line);
    }
    assert_int_equal(file_write(f->history, out.data, out.len, NULL), 0);
}

/* What is said of a run that is so much slower; code: of the call. */
static const char *take_late(struct fixture *f, int64_t later_ns, int64_t lag_ns, bool renew,
                             int exit_code, int code) {
    struct history h;
    struct rounds rs;
    struct err err = {0};
    write_history(f, later_ns, lag_ns);
    assert_int_equal(history_load(&h, f->history, NULL), 0);
    rounds_load(&rs, true, &h);
    f->v = (struct verdict){.n = 1, .exit_code = exit_code};
    f->v.v[0] = (struct finding){.check = "pace", .status = FINDING_PASS, .seen = "2 phases"};
    struct paces_spec s = {.file = f->file,
                           .scenario = f->x.s,
                           .history = &h,
                           .rounds = &rs,
                           .run = &f->run,
                           .renew = renew};
    assert_int_equal(paces_take(&s, &f->v, &err), code);
    assert_int_equal(err.code, code);
    assert_int_equal(*err.msg != 0, code != 0);
    rounds_fini(&rs);
    history_fini(&h);
    return f->v.v[0].loud ? f->v.v[0].seen : "";
}

static const char *take(struct fixture *f, int64_t later_ns, bool renew, int exit_code) {
    return take_late(f, later_ns, 300000, renew, exit_code, 0);
}

static const int64_t SLOW = 1500000000;
static const char slow[] = "rendezvous of kill took 1503 ms, and 3 ms in earlier runs; 2 phases";

static void test_a_recovery_that_is_slower_than_before_is_told(void **state) {
    assert_string_equal(take(*state, 0, false, 0), "");
    assert_string_equal(take(*state, 500000000, false, 0), "");
    assert_string_equal(take(*state, SLOW, false, 0), slow);
}

static void test_it_is_told_again_until_it_is_accepted(void **state) {
    take(*state, 0, false, 0);
    assert_string_equal(take(*state, SLOW, false, 0), slow);
    assert_string_equal(take(*state, SLOW, true, 0), slow);
    assert_string_equal(take(*state, SLOW, false, 0), "");
}

static void test_a_run_that_failed_is_compared_with_nothing_and_not_kept(void **state) {
    take(*state, SLOW, false, 1);
    assert_string_equal(take(*state, 0, false, 0), "");
    assert_string_equal(take(*state, SLOW, false, 1), "");
    assert_string_equal(take(*state, SLOW, false, 0), slow);
}

static void test_a_changed_scenario_begins_anew(void **state) {
    struct fixture *f = *state;
    take(f, 0, false, 0);
    scratch_drop(&f->x);
    scratch_load(&f->x, "job: {run: [ls, -l]}\n");
    assert_string_equal(take(f, SLOW, false, 0), "");
}

static void test_a_run_that_is_judged_again_says_the_same(void **state) {
    struct fixture *f = *state;
    take(f, 0, false, 0);
    take(f, SLOW, false, 0);
    f->v.v[0] = (struct finding){.check = "pace", .status = FINDING_PASS, .seen = "2 phases"};
    paces_recall(&f->run, &f->v);
    assert_true(f->v.v[0].loud);
    assert_string_equal(f->v.v[0].seen, slow);
}

/* Twice the 3 ms of before and a second more. */
static void test_what_is_as_slow_as_it_may_be_is_not_told(void **state) {
    take(*state, 0, false, 0);
    assert_string_equal(take(*state, 1003000001, false, 0),
                        "rendezvous of kill took 1006 ms, and 3 ms in earlier runs; 2 phases");
    assert_string_equal(take(*state, 1003000000, false, 0), "");
}

/* A tenth of that. */
static void test_where_the_harness_was_late_itself_nothing_is_told(void **state) {
    take(*state, 0, false, 0);
    assert_string_equal(take_late(*state, SLOW, 100600001, false, 0, 0), "");
    take(*state, 0, true, 0);
    assert_string_equal(take_late(*state, SLOW, 100600000, false, 0, 0), slow);
}

/* Of an even number the quicker of the two in the middle. */
static void test_it_is_compared_with_the_median_of_earlier_runs(void **state) {
    static const int64_t ms = 1000000, runs[] = {800, 0, 400};
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(take(*state, runs[i] * ms, false, 0), "");
    assert_non_null(strstr(take(*state, 1803 * ms + 1, false, 0), "and 403 ms in earlier runs"));
    assert_string_equal(take(*state, 1803 * ms, false, 0), "");
    assert_non_null(strstr(take(*state, 1803 * ms + 1, false, 0), "and 403 ms in earlier runs"));
}

static void read_kept(const struct fixture *f, struct buf *ret) {
    buf_clear(ret);
    assert_int_equal(file_read(f->file, 1 << 20, ret, NULL), 0);
}

static void put_run(struct buf *out, const struct fixture *f, int64_t rendezvous_ns) {
    buf_printf(
        out,
        "{\"dir\":\"%s\",\"incidents\":[{\"id\":\"kill\",\"n\":1,\"phases\":[2000000,0,%" PRId64
        ",20000,9990000,2000000,22000000]}]}",
        f->dir, rendezvous_ns);
}

/* The newest eight, word for word. */
static void test_the_newest_runs_are_kept(void **state) {
    struct fixture *f = *state;
    struct buf is = {0}, wanted = {0};
    const char *scenario;
    for (int run = 1; run <= 9; run++) {
        assert_string_equal(take(f, run * 1000000, false, 0), "");
        if (run != 1 && run < 8)
            continue;
        read_kept(f, &is);
        assert_non_null(scenario = strstr(buf_str(&is), "\"scenario\":\""));
        buf_clear(&wanted);
        buf_printf(&wanted, "{\"v\":1,%.*s,\"runs\":[", 77, scenario);
        for (int kept = run == 9 ? 2 : 1; kept <= run; kept++) {
            buf_puts(&wanted, kept == 1 || (run == 9 && kept == 2) ? "" : ",");
            put_run(&wanted, f, (3 + kept) * 1000000);
        }
        buf_puts(&wanted, "]}\n");
        assert_string_equal(buf_str(&is), buf_str(&wanted));
    }
    take(f, 5000000, true, 0); /* all of them are forgotten */
    read_kept(f, &is);
    buf_clear(&wanted);
    put_run(&wanted, f, 8000000);
    assert_non_null(strstr(buf_str(&is), buf_str(&wanted)));
    assert_non_null(strstr(buf_str(&is), "\"runs\":[{"));
    assert_null(strstr(buf_str(&is), "},{\"dir\""));
    buf_fini(&is);
    buf_fini(&wanted);
}

static void keep(const struct fixture *f, const char *text) {
    assert_int_equal(file_write(f->file, text, strlen(text), NULL), 0);
}

/* Of another fault, of another time of it, or none: nothing is compared with that. */
static void test_what_was_not_measured_is_compared_with_nothing(void **state) {
    struct fixture *f = *state;
    struct buf is = {0};
    static const struct {
        const char *from, *to;
        const char *said;
    } rows[] = {
        {"\"id\":\"kill\"", "\"id\":\"kilt\"", ""},
        {"\"n\":1", "\"n\":2", ""},
        {"[2000000,0,3000000,", "[2000000,0,-1,", ""},
        {"[2000000,0,3000000,20000,9990000,2000000,22000000]", "[2000000,0]", ""},
        {"\"v\":1", "\"v\":2", ""},
        {"\"scenario\":\"", "\"scenario\":\"0", ""},
        {"3000000", "3000000",
         "rendezvous of kill took 1503 ms, and 3 ms in earlier runs; 2 phases"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct buf text = {0};
        take(f, 0, true, 0);
        read_kept(f, &is);
        const char *all = buf_str(&is), *at = strstr(all, rows[i].from);
        assert_non_null(at);
        buf_printf(&text, "%.*s%s%s", (int)(at - all), all, rows[i].to, at + strlen(rows[i].from));
        keep(f, buf_str(&text));
        assert_string_equal(take(f, SLOW, false, 0), rows[i].said);
        buf_fini(&text);
    }
    buf_fini(&is);
}

/* Neither the record nor what was told can be written: it is said, and what was slower is marked. */
static void test_what_cannot_be_written_is_said(void **state) {
    struct fixture *f = *state;
    char told[PATH_MAX], cache[PATH_MAX];
    take(f, 0, false, 0);
    snprintf(told, sizeof(told), "%s/slower.txt", f->dir);
    assert_int_equal(file_make_dirs(told, 0777, NULL), 0);
    assert_string_equal(take_late(f, SLOW, 0, false, 0, -EINVAL), slow);
    snprintf(cache, sizeof(cache), "%s/cache", f->dir);
    assert_int_equal(file_remove_tree(cache, NULL), 0);
    assert_int_equal(file_write(cache, "", 0, NULL), 0);
    assert_string_equal(take_late(f, 0, 0, false, 0, -ENOTDIR), "");
}

/* What is told of many phases is longer than a finding; as much as fits is told again, too. */
static void test_much_that_was_slower_is_told_again(void **state) {
    struct fixture *f = *state;
    struct buf text = {0};
    char path[PATH_MAX];
    while (text.len < 2000)
        buf_puts(&text, "rendezvous of kill took 1503 ms; ");
    snprintf(path, sizeof(path), "%s/slower.txt", f->dir);
    assert_int_equal(file_write(path, text.data, text.len, NULL), 0);
    f->v = (struct verdict){.n = 2};
    f->v.v[0] = (struct finding){.check = "recover", .seen = "all"};
    f->v.v[1] = (struct finding){.check = "pace", .seen = "2 phases"};
    paces_recall(&f->run, &f->v);
    assert_true(f->v.v[1].loud && !f->v.v[0].loud);
    assert_string_equal(f->v.v[0].seen, "all");
    assert_int_equal(strlen(f->v.v[1].seen), sizeof(f->v.v[1].seen) - 1);
    assert_memory_equal(f->v.v[1].seen, text.data, sizeof(f->v.v[1].seen) - 1);
    buf_fini(&text);
}

/* Nothing was told of it, and nothing is marked. */
static void test_a_run_in_which_nothing_was_slower_recalls_nothing(void **state) {
    struct fixture *f = *state;
    f->v = (struct verdict){.n = 1};
    f->v.v[0] = (struct finding){.check = "pace", .seen = "2 phases"};
    paces_recall(&f->run, &f->v);
    assert_false(f->v.v[0].loud);
    assert_string_equal(f->v.v[0].seen, "2 phases");
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_a_recovery_that_is_slower_than_before_is_told),
        TEST(test_it_is_told_again_until_it_is_accepted),
        TEST(test_a_run_that_failed_is_compared_with_nothing_and_not_kept),
        TEST(test_a_changed_scenario_begins_anew),
        TEST(test_a_run_that_is_judged_again_says_the_same),
        TEST(test_what_is_as_slow_as_it_may_be_is_not_told),
        TEST(test_where_the_harness_was_late_itself_nothing_is_told),
        TEST(test_it_is_compared_with_the_median_of_earlier_runs),
        TEST(test_the_newest_runs_are_kept),
        TEST(test_what_was_not_measured_is_compared_with_nothing),
        TEST(test_what_cannot_be_written_is_said),
        TEST(test_much_that_was_slower_is_told_again),
        TEST(test_a_run_in_which_nothing_was_slower_recalls_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
