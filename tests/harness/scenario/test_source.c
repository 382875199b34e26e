/* Which files are read for a scenario, and which are not opened. */
#include "base/sys/file.h"
#include "harness/scenario/scenario.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[200], inside[210];

static const char *in_dir(const char *name) {
    static char path[400];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void put(const char *name, const char *text) {
    assert_int_equal(file_write(in_dir(name), text, strlen(text), NULL), 0);
}

static int make_dir(void **state) {
    (void)state;
    const char *tmp = getenv("TMPDIR");
    char path[200];
    snprintf(path, sizeof(path), "%s/source-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(path) || !realpath(path, dir))
        return -1;
    snprintf(inside, sizeof(inside), "%s/in", dir);
    put("out.yaml", "job: {run: [secret]}\n");
    put("out.csv", "start,end,node,cause\n1,2,a,gpu\n");
    return mkdir(inside, 0700) || mkfifo(in_dir("in/fifo"), 0600) ||
           symlink("../out.yaml", in_dir("in/link.yaml"));
}

static int remove_dir(void **state) {
    (void)state;
    return file_remove_tree(dir, NULL);
}

/* want NULL: it loads. */
static void assert_said(const char *within, const char *text, const char *want) {
    struct diagnostics d = {.within = within};
    put("in/x.yaml", text);
    char path[400];
    snprintf(path, sizeof(path), "%s/x.yaml", inside);
    struct scenario *s = scenario_load(path, NULL, &d);
    assert_int_equal(s == NULL, want != NULL);
    if (want && !strstr(buf_str(&d.out), want))
        fail_msg("\"%s\" is not in:\n%s", want, buf_str(&d.out));
    if (strstr(buf_str(&d.out), "secret"))
        fail_msg("it shows what it may not read:\n%s", buf_str(&d.out));
    scenario_free(s);
    diagnostics_fini(&d);
}

static void test_what_waits_for_ever_is_not_opened(void **state) {
    (void)state;
    static const char *const fifo = "fifo is a FIFO, and only plain files are read";
    assert_said(NULL, "include: fifo\njob: {run: [a]}\n", ":1:10: include: fifo is a FIFO, and");
    assert_said(NULL,
                "job: {run: [a]}\nreplay: {trace: fifo, speed: 1, causes: {gpu: worker-kill}}\n",
                fifo);
    assert_said(NULL, "include: /dev/zero\n", "include: /dev/zero is a device, and only plain");
    assert_said(NULL, "include: .\n", "include: . is a directory");
}

static void test_nothing_is_followed_out_of_a_strangers_folder(void **state) {
    (void)state;
    static const char trace[] =
        "job: {run: [a]}\nreplay: {trace: ../out.csv, speed: 1, causes: {gpu: worker-kill}}\n";
    put("in/base.yaml", "job: {run: [a]}\n");
    assert_said(inside, "include: base.yaml\n", NULL);
    assert_said(NULL, "include: ../out.yaml\n", NULL);
    assert_said(dir, "include: ../out.yaml\n", NULL);
    assert_said(inside, "include: ../out.yaml\n", ":1:10: include: ../out.yaml lies outside ");
    assert_said(inside, "include: link.yaml\n", ":1:10: include: link.yaml lies outside ");
    assert_said(inside, "include: /etc/passwd\n", "include: /etc/passwd lies outside ");
    assert_said(inside, trace, "lies outside ");
}

static void test_a_file_that_is_a_link_out_is_not_read(void **state) {
    (void)state;
    struct diagnostics d = {.within = inside};
    assert_null(scenario_load(in_dir("in/link.yaml"), NULL, &d));
    assert_non_null(strstr(buf_str(&d.out), "link.yaml: lies outside "));
    diagnostics_fini(&d);
}

static void test_the_root_is_where_one_is_if_the_file_lies_below(void **state) {
    (void)state;
    char root[4096], here[4096];
    assert_non_null(getcwd(here, sizeof(here)));
    assert_true(source_root(in_dir("in/x.yaml"), false, root, sizeof(root)));
    assert_string_equal(root, inside);
    assert_true(source_root(inside, true, root, sizeof(root)));
    assert_string_equal(root, inside);
    assert_int_equal(chdir(dir), 0);
    assert_true(source_root("in/x.yaml", false, root, sizeof(root)));
    assert_string_equal(root, dir);
    assert_true(source_root("x.yaml", false, root, sizeof(root)));
    assert_string_equal(root, dir);
    assert_false(source_root("none/x.yaml", false, root, sizeof(root)));
    assert_int_equal(chdir(here), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_waits_for_ever_is_not_opened),
        cmocka_unit_test(test_nothing_is_followed_out_of_a_strangers_folder),
        cmocka_unit_test(test_a_file_that_is_a_link_out_is_not_read),
        cmocka_unit_test(test_the_root_is_where_one_is_if_the_file_lies_below),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
