/* What nodes with a root file system of their own find where, asked before anything is done. */
#include "harness/plan/rootfs.h"

#include "base/sys/file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char tree[] = "/tmp/rootfs_XXXXXX", old_dir[4096];

static void put(const char *path, const char *content, mode_t mode) {
    char full[200];
    snprintf(full, sizeof(full), "%s%s", tree, path);
    *strrchr(full, '/') = '\0';
    assert_int_equal(file_make_dirs(full, 0755, NULL), 0);
    full[strlen(full)] = '/';
    assert_int_equal(file_write(full, content, strlen(content), NULL), 0);
    assert_int_equal(chmod(full, mode), 0);
}

/* The tree, and beside it a folder of the caller's, who is there. */
static int set_up(void **state) {
    (void)state;
    char path[200];
    if (!getcwd(old_dir, sizeof(old_dir)) || !mkdtemp(tree))
        return -1;
    put("/root/usr/bin/torchrun", "#!/usr/bin/python3\n", 0755);
    put("/root/usr/bin/notes", "", 0644);
    put("/mine/train.py", "pass\n", 0644);
    put("/elsewhere/data", "", 0644);
    snprintf(path, sizeof(path), "%s/root/bin", tree);
    if (symlink("/usr/bin", path) != 0)
        return -1;
    snprintf(path, sizeof(path), "%s/root/way-out", tree);
    if (symlink("../../../../../../etc", path) != 0)
        return -1;
    snprintf(path, sizeof(path), "%s/mine", tree);
    return chdir(path);
}

static int tear_down(void **state) {
    (void)state;
    if (chdir(old_dir) != 0)
        return -1;
    return file_remove_tree(tree, NULL);
}

static struct plan plan_of(struct scenario *s, const char *const *run, size_t n) {
    static char root[60];
    snprintf(root, sizeof(root), "%s/root", tree);
    *s = (struct scenario){.cluster.rootfs = root, .job = {.run = run, .run_n = n}};
    return (struct plan){.scenario = s, .rootfs = root};
}

static void test_programs_are_looked_for_in_the_tree(void **state) {
    (void)state;
    struct scenario s;
    struct plan p = plan_of(&s, NULL, 0);
    assert_int_equal(rootfs_look(&p, "/usr/bin/torchrun"), FOUND);
    assert_int_equal(rootfs_look(&p, "/bin/torchrun"), FOUND); /* an absolute link, in the tree */
    assert_int_equal(rootfs_look(&p, "/usr/bin/notes"), NOT_EXECUTABLE);
    assert_int_equal(rootfs_look(&p, "/usr/bin"), NOT_THERE);
    assert_int_equal(rootfs_look(&p, "/usr/bin/env"), NOT_THERE);    /* of the host */
    assert_int_equal(rootfs_look(&p, "/way-out/passwd"), NOT_THERE); /* no link leads out */
    assert_int_equal(rootfs_look(NULL, "/usr/bin/env"), FOUND);
    p.rootfs = NULL;
    assert_int_equal(rootfs_look(&p, "/usr/bin/env"), FOUND);
}

static void test_the_callers_directory_is_seen_in_the_tree(void **state) {
    (void)state;
    struct scenario s;
    struct plan p = plan_of(&s, NULL, 0);
    char path[200];
    int fd = plan_open(&p, "train.py");
    assert_true(fd >= 0);
    close(fd);
    snprintf(path, sizeof(path), "%s/mine/train.py", tree);
    fd = plan_open(&p, path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(path, sizeof(path), "%s/elsewhere/data", tree);
    assert_true(plan_open(&p, path) < 0);
}

static void test_a_folder_of_the_system_is_not_shown_over_that_of_the_tree(void **state) {
    (void)state;
    assert_true(plan_is_shown("/home/me/train"));
    assert_true(plan_is_shown("/root"));
    assert_true(plan_is_shown("/usrlocal"));
    assert_false(plan_is_shown("/"));
    assert_false(plan_is_shown("/usr/src/train"));
    assert_false(plan_is_shown("/home"));
    assert_false(plan_is_shown("/tmp"));
    assert_true(plan_is_shown("/tmp/train"));
}

static void test_a_path_that_only_the_host_has_is_refused_with_the_fix(void **state) {
    (void)state;
    struct scenario s;
    struct err err = {0};
    const char *const run[] = {"torchrun", "train.py", "--data=/etc/passwd", NULL};
    struct plan p = plan_of(&s, run, 3);
    assert_int_equal(rootfs_check(&p, &err), -ENOENT);
    assert_non_null(strstr(err.msg, "job.run: /etc/passwd exists on this host, but not in the "
                                    "nodes, whose root file system is /tmp/rootfs_"));
    const char *const fine[] = {"torchrun",   "train.py",         "--out=/not/made/yet",
                                "--tmp=/tmp", "--null=/dev/null", "x=y",
                                NULL};
    p = plan_of(&s, fine, 6);
    assert_int_equal(rootfs_check(&p, &err), 0);
    static const char *const args[] = {"--log-dir=/etc/passwd", NULL};
    s.job.launcher_args = args;
    assert_int_equal(rootfs_check(&p, &err), -ENOENT);
    assert_non_null(strstr(err.msg, "job.launcher_args: /etc/passwd exists on this host"));
}

static void test_a_tree_is_tried_as_the_root_of_a_node(void **state) {
    (void)state;
    struct scenario s;
    struct err err = {0};
    struct plan p = plan_of(&s, NULL, 0);
    char path[200];
    int r = rootfs_try(&p, &err); /* this host may not be able to; then it says why */
    assert_true(r == 0 || (r == -ENOTSUP && strstr(err.msg, "cluster.rootfs: ")));
    snprintf(path, sizeof(path), "%s/nowhere", tree);
    p.rootfs = path;
    assert_int_equal(rootfs_try(&p, &err), -ENOTSUP);
    p.rootfs = NULL;
    assert_int_equal(rootfs_try(&p, &err), 0);
}

static void test_what_is_no_tree_is_refused(void **state) {
    (void)state;
    struct scenario s;
    struct err err = {0};
    struct plan p = plan_of(&s, NULL, 0);
    p.rootfs = "/no/tree";
    assert_int_equal(rootfs_check(&p, &err), -ENOENT);
    assert_non_null(strstr(err.msg, "cluster.rootfs: /no/tree: No such file"));
    p.rootfs = "/etc/passwd";
    assert_int_equal(rootfs_check(&p, &err), -ENOENT);
    assert_non_null(strstr(err.msg, "is no directory"));
    p.rootfs = "/";
    assert_int_equal(rootfs_check(&p, &err), -ENOENT);
    assert_non_null(strstr(err.msg, "leave rootfs out"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs_are_looked_for_in_the_tree),
        cmocka_unit_test(test_the_callers_directory_is_seen_in_the_tree),
        cmocka_unit_test(test_a_folder_of_the_system_is_not_shown_over_that_of_the_tree),
        cmocka_unit_test(test_a_path_that_only_the_host_has_is_refused_with_the_fix),
        cmocka_unit_test(test_a_tree_is_tried_as_the_root_of_a_node),
        cmocka_unit_test(test_what_is_no_tree_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
