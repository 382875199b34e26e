/* A run in which fewer checks are answered from evidence than when its scenario was last recorded
 * says so, and goes on saying so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "harness/judge/coverage.h"
#include "reports/story.h"
#include "tests/harness/scenario/scratch.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    char dir[64], file[PATH_MAX];
    struct folder run;
    struct scratch x;
    struct verdict v;
};

static void begin(struct fixture *f) {
    *f = (struct fixture){.dir = "/tmp/rq-coverage-XXXXXX"};
    assert_int_equal(file_make_temp_dir(f->dir, NULL), 0);
    assert_int_equal(folder_open(&f->run, f->dir, NULL), 0);
    snprintf(f->file, sizeof(f->file), "%s/cache/answered/key", f->dir);
    scratch_load(&f->x, "job: {run: [ls]}\n");
    assert_non_null(f->x.s);
}

static void end(struct fixture *f) {
    scratch_drop(&f->x);
    folder_close(&f->run);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
}

/* A verdict on ranks (of the probe), exits (of the kernel) and a check of the user's own. */
static void judge(struct fixture *f, enum finding_status ranks, enum finding_status exits,
                  enum finding_status own) {
    f->v = (struct verdict){.n = 3};
    f->v.v[0] = (struct finding){.check = "ranks", .status = ranks};
    f->v.v[1] = (struct finding){.check = "exits", .status = exits};
    f->v.v[2] = (struct finding){.check = "own:x", .status = own};
}

/* names: what is said to be lost, "ranks (skip)"; "": nothing is. */
static void take(struct fixture *f, bool renew, size_t n, const char *names) {
    struct coverage_spec s = {.file = f->file, .scenario = f->x.s, .run = &f->run, .renew = renew};
    struct buf text = {0}, wanted = {0};
    size_t lost = 0;
    assert_int_equal(coverage_take(&s, &f->v, NULL), 0);
    story_lost(&f->v, &text);
    if (n)
        buf_printf(&wanted, "%zu check%s answered in %s %s not now: %s", n,
                   n == 1 ? " that was" : "s that were", f->dir, n == 1 ? "is" : "are", names);
    assert_string_equal(buf_str(&text), buf_str(&wanted));
    buf_fini(&text);
    buf_fini(&wanted);
    for (size_t i = 0; i < f->v.n; i++)
        lost += f->v.v[i].lost;
    assert_int_equal(lost, n);
    if (f->v.exit_code != 3 && f->v.exit_code != 130)
        assert_int_equal(coverage_lost(f->file), n);
}

static const enum finding_status P = FINDING_PASS, F = FINDING_FAIL, U = FINDING_UNKNOWN,
                                 S = FINDING_SKIP;

static void test_as_many_answers_as_before_say_nothing(void **state) {
    (void)state;
    struct fixture f;
    begin(&f);
    assert_int_equal(coverage_lost(f.file), 0);
    judge(&f, P, U, P);
    take(&f, false, 0, "");
    judge(&f, F, U, P); /* it failed: that is an answer */
    take(&f, false, 0, "");
    judge(&f, P, P, S); /* what the user's own program says is no evidence of ours */
    take(&f, false, 0, "");
    end(&f);
}

static void test_an_answer_that_is_not_there_any_more_is_told_until_it_is_back(void **state) {
    (void)state;
    struct fixture f;
    begin(&f);
    judge(&f, P, P, P);
    take(&f, false, 0, "");
    for (int i = 0; i < 2; i++) {
        judge(&f, S, P, P);
        take(&f, false, 1, "ranks (skip)");
    }
    judge(&f, P, U, P);
    take(&f, false, 1, "exits (unknown)");
    judge(&f, U, S, P);
    take(&f, false, 2, "ranks (unknown), exits (skip)");
    judge(&f, P, P, P);
    take(&f, false, 0, "");
    end(&f);
}

static void test_a_loss_is_accepted_by_a_change_of_the_scenario_or_a_fresh_run(void **state) {
    (void)state;
    struct fixture f;
    begin(&f);
    judge(&f, P, P, P);
    take(&f, false, 0, "");
    scratch_drop(&f.x);
    scratch_load(&f.x, "job: {run: [ls, -l]}\n");
    judge(&f, S, P, P);
    take(&f, false, 1, "ranks (skip)");
    judge(&f, S, P, P);
    take(&f, false, 0, "");
    judge(&f, S, U, P);
    take(&f, true, 1, "exits (unknown)");
    judge(&f, S, U, P);
    take(&f, false, 0, "");
    end(&f);
}

static void test_a_broken_or_interrupted_run_is_not_compared(void **state) {
    (void)state;
    struct fixture f;
    begin(&f);
    judge(&f, P, P, P);
    take(&f, false, 0, "");
    judge(&f, U, U, P);
    f.v.exit_code = 3;
    take(&f, false, 0, "");
    judge(&f, S, S, P);
    f.v.exit_code = 130;
    take(&f, false, 0, "");
    judge(&f, P, S, P);
    take(&f, false, 1, "exits (skip)");
    end(&f);
}

static void test_a_run_that_is_judged_again_says_what_it_said(void **state) {
    (void)state;
    struct fixture f;
    struct buf first = {0}, again = {0};
    char lost[100];
    begin(&f);
    judge(&f, P, P, P);
    take(&f, false, 0, "");
    judge(&f, U, P, P);
    take(&f, false, 1, "ranks (unknown)");
    story_lost(&f.v, &first);
    judge(&f, U, P, P);
    coverage_recall(&f.run, &f.v);
    story_lost(&f.v, &again);
    assert_string_equal(buf_str(&first), buf_str(&again));
    judge(&f, P, P, P); /* a newer version finds the answer after all */
    coverage_recall(&f.run, &f.v);
    assert_false(f.v.v[0].lost);
    assert_int_equal(remove(strcat(strcpy(lost, f.dir), "/lost.json")), 0);
    coverage_recall(&f.run, &f.v);
    assert_false(f.v.v[0].lost);
    buf_fini(&first);
    buf_fini(&again);
    end(&f);
}

static void test_a_record_that_cannot_be_read_is_none(void **state) {
    (void)state;
    struct fixture f;
    static const char *const texts[] = {"",
                                        "{",
                                        "[]",
                                        "{\"v\":2,\"answered\":[\"ranks\"]}",
                                        "{\"v\":1,\"answered\":7}",
                                        "{\"v\":1,\"answered\":[1,null,\"nobody\"],\"lost\":3}"};
    begin(&f);
    judge(&f, P, P, P);
    take(&f, false, 0, "");
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        assert_int_equal(file_write(f.file, texts[i], strlen(texts[i]), NULL), 0);
        assert_int_equal(coverage_lost(f.file), 0);
        judge(&f, S, S, P);
        take(&f, false, 0, "");
    }
    end(&f);
}

static void assert_text(const char *path, const char *wanted) {
    struct buf is = {0};
    assert_int_equal(file_read(path, 1 << 16, &is, NULL), 0);
    assert_string_equal(buf_str(&is), wanted);
    buf_fini(&is);
}

/* Word for word: what was answered when nothing had been lost, and what is lost since. */
static void test_the_record_holds_what_was_answered_and_what_is_lost(void **state) {
    (void)state;
    struct fixture f;
    struct buf wanted = {0};
    char hash[65], lost[PATH_MAX];
    begin(&f);
    coverage_hash(f.x.s, hash);
    snprintf(lost, sizeof(lost), "%s/lost.json", f.dir);
    for (int turn = 0; turn < 3; turn++) { /* the second time it is renewed */
        judge(&f, P, P, P);
        take(&f, false, 0, "");
        assert_false(file_exists(lost));
        buf_clear(&wanted);
        buf_printf(&wanted,
                   "{\"v\":1,\"scenario\":\"%s\",\"dir\":\"%s\",\"answered\":[\"ranks\",\"exits\"],"
                   "\"lost\":[]}\n",
                   hash, f.dir);
        assert_text(f.file, buf_str(&wanted));
    }
    for (int turn = 0; turn < 2; turn++) {
        judge(&f, P, U, P);
        take(&f, false, 1, "exits (unknown)");
        buf_clear(&wanted);
        buf_printf(&wanted,
                   "{\"v\":1,\"scenario\":\"%s\",\"dir\":\"%s\",\"answered\":[\"ranks\",\"exits\"],"
                   "\"lost\":[\"exits\"]}\n",
                   hash, f.dir);
        assert_text(f.file, buf_str(&wanted));
        buf_clear(&wanted);
        buf_printf(&wanted, "{\"v\":1,\"since\":\"%s\",\"lost\":[\"exits\"]}\n", f.dir);
        assert_text(lost, buf_str(&wanted));
    }
    take(&f, true, 1, "exits (unknown)");
    buf_clear(&wanted);
    buf_printf(&wanted,
               "{\"v\":1,\"scenario\":\"%s\",\"dir\":\"%s\",\"answered\":[\"ranks\"],\"lost\":"
               "[\"exits\"]}\n",
               hash, f.dir);
    assert_text(f.file, buf_str(&wanted));
    buf_fini(&wanted);
    end(&f);
}

static int take_code(struct fixture *f, const char *file, struct err *err) {
    struct coverage_spec s = {.file = file, .scenario = f->x.s, .run = &f->run};
    *err = (struct err){0};
    return coverage_take(&s, &f->v, err);
}

static void test_what_cannot_be_written_is_said(void **state) {
    (void)state;
    struct fixture f;
    struct err err;
    char path[PATH_MAX], none[PATH_MAX];
    begin(&f);
    judge(&f, P, P, P);
    take(&f, false, 0, "");
    snprintf(path, sizeof(path), "%s/lost.json", f.dir);
    assert_int_equal(file_make_dirs(path, 0777, NULL), 0);
    judge(&f, P, U, P);
    assert_true(take_code(&f, f.file, &err) < 0);
    assert_non_null(strstr(err.msg, "lost.json"));
    assert_true(f.v.v[1].lost);
    assert_int_equal(coverage_lost(f.file), 1); /* that was written before */
    snprintf(path, sizeof(path), "%s/plain", f.dir);
    assert_int_equal(file_write(path, "", 0, NULL), 0);
    snprintf(none, sizeof(none), "%s/plain/answered/key", f.dir);
    judge(&f, P, P, P);
    assert_int_equal(take_code(&f, none, &err), -ENOTDIR);
    assert_non_null(strstr(err.msg, "plain"));
    assert_int_equal(coverage_lost(none), 0);
    end(&f);
}

/* Of everything but the seed. */
static void test_a_hash_is_that_of_the_scenario_whatever_its_seed_is(void **state) {
    (void)state;
    struct scratch plain, seeded, other;
    struct buf text = {0};
    char hash[65], same[65], differs[65], by_hand[65];
    struct sha256 sum;
    scratch_load(&plain, "scenario: x\njob: {run: [ls]}\n");
    scratch_load(&seeded, "scenario: x\nseed: 7\njob: {run: [ls]}\n");
    scratch_load(&other, "scenario: x\njob: {run: [ls, x]}\n");
    coverage_hash(plain.s, hash);
    coverage_hash(seeded.s, same);
    coverage_hash(other.s, differs);
    assert_true(seeded.s->has_seed);
    assert_string_equal(hash, same);
    assert_string_not_equal(hash, differs);
    scenario_print(plain.s, &text);
    sha256_init(&sum);
    sha256_update(&sum, text.data, text.len);
    sha256_hex(&sum, by_hand);
    assert_string_equal(hash, by_hand);
    buf_fini(&text);
    scratch_drop(&plain);
    scratch_drop(&seeded);
    scratch_drop(&other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_many_answers_as_before_say_nothing),
        cmocka_unit_test(test_an_answer_that_is_not_there_any_more_is_told_until_it_is_back),
        cmocka_unit_test(test_a_loss_is_accepted_by_a_change_of_the_scenario_or_a_fresh_run),
        cmocka_unit_test(test_a_broken_or_interrupted_run_is_not_compared),
        cmocka_unit_test(test_a_run_that_is_judged_again_says_what_it_said),
        cmocka_unit_test(test_a_record_that_cannot_be_read_is_none),
        cmocka_unit_test(test_the_record_holds_what_was_answered_and_what_is_lost),
        cmocka_unit_test(test_what_cannot_be_written_is_said),
        cmocka_unit_test(test_a_hash_is_that_of_the_scenario_whatever_its_seed_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
