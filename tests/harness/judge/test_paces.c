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

/* A recorded run in which all from the second round's start on comes so much later. */
static void write_history(const struct fixture *f, int64_t later_ns) {
    BUF_FINI struct buf in = {0}, out = {0};
    char *rest = NULL;
    assert_int_equal(file_read("tests/histories/worker-killed.jsonl", 1 << 20, &in, NULL), 0);
    buf_putc(&in, '\0');
    for (char *l = strtok_r((char *)in.data, "\n", &rest); l; l = strtok_r(NULL, "\n", &rest)) {
        int64_t seq, t;
        int at = 0;
        assert_int_equal(sscanf(l, "{\"seq\":%" SCNd64 ",\"t\":%" SCNd64 "%n", &seq, &t, &at), 2);
        buf_printf(&out, "{\"seq\":%" PRId64 ",\"t\":%" PRId64 "%s\n", seq,
                   seq >= 40 ? t + later_ns : t, l + at);
    }
    assert_int_equal(file_write(f->history, out.data, out.len, NULL), 0);
}

/* What is said of a run that is so much slower. */
static const char *take(struct fixture *f, int64_t later_ns, bool renew, int exit_code) {
    struct history h;
    struct rounds rs;
    write_history(f, later_ns);
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
    assert_int_equal(paces_take(&s, &f->v, NULL), 0);
    rounds_fini(&rs);
    history_fini(&h);
    return f->v.v[0].loud ? f->v.v[0].seen : "";
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

#define TEST(t) cmocka_unit_test_setup_teardown(t, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_a_recovery_that_is_slower_than_before_is_told),
        TEST(test_it_is_told_again_until_it_is_accepted),
        TEST(test_a_run_that_failed_is_compared_with_nothing_and_not_kept),
        TEST(test_a_changed_scenario_begins_anew),
        TEST(test_a_run_that_is_judged_again_says_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
