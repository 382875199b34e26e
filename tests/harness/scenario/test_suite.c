/* A file that names scenarios. */
#include "tests/harness/scenario/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* The file stays for as long as the test. */
static struct suite *load(struct scratch *x, const char *text) {
    scratch_load(x, text);
    scenario_free(x->s);
    diagnostics_fini(&x->d);
    x->s = NULL;
    x->d = (struct diagnostics){0};
    return suite_load(x->path, &x->d);
}

static void test_files_are_looked_for_beside_the_suite(void **state) {
    (void)state;
    struct scratch x;
    struct suite *u = load(&x, "about: Two.\nsuite: [restart/a.yaml, /b.yaml]\n");
    assert_non_null(u);
    assert_string_equal(u->about, "Two.");
    assert_int_equal(u->n, 2);
    size_t folder = (size_t)(strrchr(x.path, '/') + 1 - x.path);
    assert_memory_equal(u->files[0], x.path, folder);
    assert_string_equal(u->files[0] + folder, "restart/a.yaml");
    assert_string_equal(u->files[1], "/b.yaml");
    assert_null(u->files[2]);
    suite_free(u);
    scratch_drop(&x);
}

static void test_a_suite_in_this_folder_names_files_of_this_folder(void **state) {
    (void)state;
    struct diagnostics d = {0};
    struct suite *u = suite_load("scenarios/smoke.yaml", &d);
    assert_non_null(u);
    assert_int_equal(u->n, 13);
    for (size_t i = 0; i < u->n; i++) {
        assert_true(str_starts(u->files[i], "scenarios/"));
        assert_int_equal(access(u->files[i], R_OK), 0);
    }
    suite_free(u);
    diagnostics_fini(&d);
}

/* The nth word of what is run, but for those that say how long things take; NULL: there are no
 * more. */
static const char *word_of(const struct scenario *s, size_t nth) {
    for (size_t i = 0; i < s->job.run_n; i++)
        if (!str_starts(s->job.run[i], "--collective-timeout=") &&
            !str_starts(s->job.run[i], "--compute-ms=") && nth-- == 0)
            return s->job.run[i];
    return NULL;
}

static bool same_run(const struct scenario *a, const struct scenario *b) {
    size_t i = 0;
    while (i < a->job.run_n && i < b->job.run_n && str_eq(a->job.run[i], b->job.run[i]))
        i++;
    return i == a->job.run_n && i == b->job.run_n;
}

/* One control run serves those that differ in nothing that it depends on. Where a worker hangs the
 * others wait for a shorter time, and in the two in which a node comes a step takes longer,
 * and nine rounds are a job of their own. */
static void test_the_scenarios_of_smoke_share_one_job(void **state) {
    (void)state;
    struct diagnostics d = {0};
    struct suite *u = suite_load("scenarios/smoke.yaml", &d);
    struct diagnostics of_first = {0};
    struct scenario *first = scenario_load(u->files[0], NULL, &of_first);
    size_t others = 0;
    for (size_t i = 1; i < u->n; i++) {
        struct diagnostics one = {0};
        struct scenario *s = scenario_load(u->files[i], NULL, &one);
        diagnostics_fini(&one);
        assert_non_null(s);
        assert_int_equal(s->cluster.nodes, first->cluster.nodes);
        assert_int_equal(s->job.min_nodes, first->job.min_nodes);
        assert_int_equal(s->job.max_nodes, first->job.max_nodes);
        assert_int_equal(s->job.workers_per_node, first->job.workers_per_node);
        if (s->job.max_restarts != first->job.max_restarts) {
            others++;
            scenario_free(s);
            continue;
        }
        for (size_t j = 0; word_of(first, j) || word_of(s, j); j++) {
            assert_true(word_of(first, j) && word_of(s, j));
            assert_string_equal(word_of(s, j), word_of(first, j));
        }
        others += !same_run(s, first);
        scenario_free(s);
    }
    assert_int_equal(others, 4);
    scenario_free(first);
    diagnostics_fini(&of_first);
    suite_free(u);
    diagnostics_fini(&d);
}

static void test_what_is_no_suite_is_left_to_others(void **state) {
    (void)state;
    static const char *const none[] = {"job: {run: [a]}\n", "", "[a, b]\n", "{"};
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
        struct scratch x;
        assert_null(load(&x, none[i]));
        assert_int_equal(x.d.errors, 0);
        scratch_drop(&x);
    }
    struct diagnostics d = {0};
    assert_null(suite_load("no/such/file.yaml", &d));
    assert_int_equal(d.errors, 0);
}

static void test_a_wrong_suite_says_what_is_wrong(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"suite: []\n", "1:8: suite names no file; it must be a list of files\n"},
        {"suite: a.yaml\n", "1:8: suite must be a list of files, not a single value\n"},
        {"suite: [a.yaml]\nabout: [x]\n", "2:8: about must be a text, not a list; values to run "
                                          "with one after the other stand in sweep\n"},
        {"suite: [a.yaml]\nabut: x\n", "2:1: suite has no key \"abut\"; did you mean \"about\"?\n"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct scratch x;
        struct buf got = {0};
        assert_null(load(&x, wrong[i][0]));
        scratch_messages(&x, &got);
        assert_string_equal(buf_str(&got), wrong[i][1]);
        buf_fini(&got);
        scratch_drop(&x);
    }
}

static void test_a_suite_is_no_scenario(void **state) {
    (void)state;
    struct scratch x;
    struct buf got = {0};
    scratch_load(&x, "suite: [a.yaml]\n");
    assert_null(x.s);
    scratch_messages(&x, &got);
    assert_string_equal(buf_str(&got), "1:1: this is a suite, which names scenarios; run, plan and "
                                       "lint take it\n");
    buf_fini(&got);
    scratch_drop(&x);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_are_looked_for_beside_the_suite),
        cmocka_unit_test(test_a_suite_in_this_folder_names_files_of_this_folder),
        cmocka_unit_test(test_the_scenarios_of_smoke_share_one_job),
        cmocka_unit_test(test_what_is_no_suite_is_left_to_others),
        cmocka_unit_test(test_a_wrong_suite_says_what_is_wrong),
        cmocka_unit_test(test_a_suite_is_no_scenario),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
