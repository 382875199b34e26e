/* A file that goes on from others. */
#include "tests/harness/scenario/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <cmocka.h>

static char folder[200];

static const char *path_of(const char *name) {
    static char path[300];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text) {
    FILE *f = fopen(path_of(name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int make_folder(void **state) {
    (void)state;
    const char *dir = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%s/include-XXXXXX", dir ? dir : "/tmp");
    if (!mkdtemp(folder))
        return -1;
    mkdir(path_of("sub"), 0777);
    write_file("base.yaml", "scenario: base\n"
                            "about: Not run by itself.\n"
                            "tags: [base]\n"
                            "cluster: {nodes: 4, start: 3}\n"
                            "job: {run: [train], max_restarts: 2, env: {A: 1, B: 2}}\n"
                            "expect: {model: same-as-undisturbed}\n"
                            "timeline: [{when: {step: 5}, fault: worker-kill, on: rank 0}]\n");
    write_file("sub/power.yaml",
               "include: deep.yaml\n"
               "timeline: [{id: dark, when: {step: 9}, fault: node-poweroff, on: n1}]\n"
               "job: {max_restarts: 7}\n");
    write_file("sub/deep.yaml", "limits: {total: 77s}\n");
    return 0;
}

static void load(struct scratch *x, const char *text, const char *const *set) {
    *x = (struct scratch){0};
    write_file("own.yaml", text);
    str_copy(x->path, sizeof(x->path), path_of("own.yaml"));
    x->s = scenario_load(x->path, set, &x->d);
}

static void load_well(struct scratch *x, const char *text) {
    load(x, text, NULL);
    assert_string_equal(buf_str(&x->d.out), "");
    assert_non_null(x->s);
}

static void test_maps_are_put_together_and_all_else_is_replaced(void **state) {
    (void)state;
    struct scratch x;
    load_well(&x, "include: base.yaml\n"
                  "cluster: {start: 2}\n"
                  "job: {env: {B: 3, C: 4}}\n"
                  "timeline: [{when: {step: 6}, fault: node-kill, on: n0}]\n");
    assert_int_equal(x.s->cluster.nodes, 4);
    assert_int_equal(x.s->cluster.start, 2);
    assert_string_equal(x.s->job.run[0], "train");
    assert_int_equal(x.s->job.env_n, 3);
    assert_int_equal(x.s->timeline_n, 1);
    assert_string_equal(x.s->timeline[0].fault, "node-kill");
    assert_true(x.s->expect.model_same);
    scratch_drop(&x);
}

static void test_what_a_file_says_of_itself_is_not_taken_over(void **state) {
    (void)state;
    struct scratch x;
    load_well(&x, "include: base.yaml\n");
    assert_string_equal(x.s->name, "own");
    assert_null(x.s->about);
    assert_int_equal(x.s->tags_n, 0);
    scratch_drop(&x);
}

static void
test_the_later_file_has_the_last_word_and_files_are_found_beside_who_names_them(void **state) {
    (void)state;
    struct scratch x;
    load_well(&x, "include: [base.yaml, sub/power.yaml]\n");
    assert_string_equal(x.s->timeline[0].id, "dark");
    assert_int_equal(x.s->job.max_restarts, 7);
    assert_int_equal(x.s->limits.total_ns, 77000000000);
    scratch_drop(&x);
    load_well(&x, "include: [sub/power.yaml, base.yaml]\n");
    assert_string_equal(x.s->timeline[0].fault, "worker-kill");
    assert_int_equal(x.s->job.max_restarts, 2);
    scratch_drop(&x);
}

static void test_nothing_takes_a_key_away(void **state) {
    (void)state;
    struct scratch x;
    load_well(&x, "include: base.yaml\ntimeline: ~\nexpect: {model: ~}\n");
    assert_int_equal(x.s->timeline_n, 0);
    assert_false(x.s->expect.model_same);
    scratch_drop(&x);
}

static void test_what_is_set_goes_before_what_is_included(void **state) {
    (void)state;
    static const char *const set[] = {"job.max_restarts=5", NULL};
    struct scratch x;
    load(&x, "include: base.yaml\n", set);
    assert_non_null(x.s);
    assert_int_equal(x.s->job.max_restarts, 5);
    scratch_drop(&x);
}

static void test_a_sweep_may_be_included(void **state) {
    (void)state;
    write_file("swept.yaml", "include: base.yaml\nsweep: {job.max_restarts: [1, 2, 3]}\n");
    struct scratch x;
    load_well(&x, "include: swept.yaml\n");
    assert_string_equal(x.s->name, "own.max_restarts-1");
    struct sweep *s = scenario_sweep(x.path, NULL, NULL);
    assert_int_equal(s->n, 3);
    sweep_free(s);
    scratch_drop(&x);
}

/* "FILE:LINE:COLUMN: message", the folder cut off. */
static void assert_said(const char *text, const char *const *set, const char *want) {
    struct scratch x;
    load(&x, text, set);
    assert_null(x.s);
    const char *said = buf_str(&x.d.out);
    if (str_starts(said, folder))
        said += strlen(folder) + 1;
    if (!str_starts(said, want))
        fail_msg("said:\n%swanted:\n%s", said, want);
    scratch_drop(&x);
}

static void test_what_is_wrong_is_shown_where_it_stands(void **state) {
    (void)state;
    write_file("bad.yaml", "# two\njob: {run: [train], max_restart: 2}\n");
    assert_said("include: bad.yaml\n", NULL,
                "bad.yaml:2:21: job has no key \"max_restart\"; did you mean \"max_restarts\"?\n"
                "    job: {run: [train], max_restart: 2}\n"
                "                        ^\n");
    write_file("bytes.yaml", "job: \xff\n");
    assert_said("include: bytes.yaml\n", NULL, "bytes.yaml:1:6: this is not text");
    assert_said("include: [base.yaml, nowhere.yaml]\n", NULL,
                "own.yaml:1:22: include: nowhere.yaml cannot be opened: No such file");
    assert_said("include: sub\n", NULL, "own.yaml:1:10: include: sub is a directory");
    assert_said("include: {a: b}\n", NULL,
                "own.yaml:1:10: include must be a file or a list of files; this is a map");
    assert_said("include:\n", NULL, "own.yaml:");
}

static void test_circles_suites_and_what_is_set_too_late_are_refused(void **state) {
    (void)state;
    write_file("a.yaml", "include: b.yaml\n");
    write_file("b.yaml", "include: sub/../a.yaml\n");
    assert_said("include: a.yaml\n", NULL, "b.yaml:1:10: include: sub/../a.yaml includes itself");
    write_file("suite.yaml", "suite: [base.yaml]\n");
    assert_said("include: suite.yaml\n", NULL, "own.yaml:1:10: include: suite.yaml is a suite");
    static const char *const set[] = {"include=base.yaml", NULL};
    assert_said("job: {run: [a]}\n", set, "--set include: files are included before");
}

static void test_no_more_files_than_anybody_needs(void **state) {
    (void)state;
    struct buf text = {0};
    buf_puts(&text, "include: [");
    for (int i = 0; i < 40; i++)
        buf_puts(&text, i ? ", base.yaml" : "base.yaml");
    buf_puts(&text, "]\n");
    assert_said(buf_str(&text), NULL, "own.yaml:1:");
    buf_fini(&text);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps_are_put_together_and_all_else_is_replaced),
        cmocka_unit_test(test_what_a_file_says_of_itself_is_not_taken_over),
        cmocka_unit_test(
            test_the_later_file_has_the_last_word_and_files_are_found_beside_who_names_them),
        cmocka_unit_test(test_nothing_takes_a_key_away),
        cmocka_unit_test(test_what_is_set_goes_before_what_is_included),
        cmocka_unit_test(test_a_sweep_may_be_included),
        cmocka_unit_test(test_what_is_wrong_is_shown_where_it_stands),
        cmocka_unit_test(test_circles_suites_and_what_is_set_too_late_are_refused),
        cmocka_unit_test(test_no_more_files_than_anybody_needs),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, make_folder, NULL);
}
