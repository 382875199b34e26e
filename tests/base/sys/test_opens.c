/* What is opened in a tree: read, written, listed, by whomever. */
#include "base/sys/opens.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char top[200];

static const char *path_of(const char *name) {
    static char path[300];
    snprintf(path, sizeof(path), "%s/%s", top, name);
    return path;
}

static int make_tree(void **state) {
    (void)state;
    const char *dir = getenv("TMPDIR");
    snprintf(top, sizeof(top), "%s/opens-XXXXXX", dir ? dir : "/tmp");
    if (!mkdtemp(top))
        return -1;
    static const char *const folders[] = {"sub", "out", ".git"};
    static const char *const files[] = {"read", "unread", "written", "sub/deep", "out/x", ".git/y"};
    for (size_t i = 0; i < 3; i++)
        mkdir(path_of(folders[i]), 0777);
    for (size_t i = 0; i < 6; i++)
        file_write(path_of(files[i]), "1", 1, NULL);
    return symlink("sub/deep", path_of("link"));
}

static int remove_tree(void **state) {
    (void)state;
    return file_remove_tree(top, NULL);
}

static void begin(struct opens *o) {
    char out[300];
    str_copy(out, sizeof(out), path_of("out"));
    const char *const without[] = {out, NULL};
    assert_int_equal(opens_begin(o, top, without, NULL), 0);
}

static const struct opens_folder *folder_of(const struct opens *o, const char *path) {
    for (size_t i = 0; i < o->n; i++)
        if (str_eq(o->v[i].path, path))
            return &o->v[i];
    return NULL;
}

/* -1: it is not known at all. */
static int seen(const struct opens *o, const char *folder, const char *name) {
    const struct opens_folder *f = folder_of(o, folder);
    for (size_t i = 0; f && i < f->names.n; i++)
        if (str_eq(f->names.v[i], name))
            return f->seen[i];
    return -1;
}

static void touch(const char *name, int flags) {
    int fd = open(path_of(name), flags, 0666);
    assert_true(fd >= 0);
    if (flags & O_WRONLY)
        assert_int_equal(write(fd, "2", 1), 1);
    close(fd);
}

static void test_each_open_is_seen_and_no_other(void **state) {
    (void)state;
    struct opens o;
    begin(&o);
    opens_take(&o);
    for (size_t i = 0; i < o.n; i++) /* to look at the tree is no listing of it */
        assert_int_equal(o.v[i].own, 0);
    touch("read", O_RDONLY);
    touch("written", O_WRONLY);
    touch("link", O_RDONLY);
    touch("new", O_WRONLY | O_CREAT);
    opens_take(&o);
    assert_int_equal(seen(&o, ".", "read"), OPENS_READ);
    assert_int_equal(seen(&o, ".", "unread"), 0);
    assert_int_equal(seen(&o, ".", "written"), OPENS_READ | OPENS_WRITTEN);
    assert_int_equal(seen(&o, ".", "new"), -1);
    assert_int_equal(seen(&o, "sub", "deep"), OPENS_READ);
    assert_true(o.links.n == 1 && str_eq(o.links.v[0], "link"));
    assert_false(o.lost);
    opens_fini(&o);
}

static void test_a_listing_is_seen(void **state) {
    (void)state;
    struct opens o;
    begin(&o);
    closedir(opendir(path_of("sub")));
    opens_take(&o);
    assert_int_equal(folder_of(&o, "sub")->own, OPENS_READ);
    assert_int_equal(folder_of(&o, ".")->own, 0);
    opens_fini(&o);
}

static void test_what_is_excepted_is_not_watched(void **state) {
    (void)state;
    struct opens o;
    begin(&o);
    assert_null(folder_of(&o, "out"));
    assert_null(folder_of(&o, ".git"));
    assert_int_equal(seen(&o, ".", "out"), 0); /* but it is there */
    opens_fini(&o);
}

/* The kernel keeps so many events, and then says that it has lost some. */
static void test_what_was_lost_is_told(void **state) {
    (void)state;
    struct opens o;
    BUF_FINI struct buf most = {0};
    assert_int_equal(file_read("/proc/sys/fs/inotify/max_queued_events", 64, &most, NULL), 0);
    long n = atol(buf_str(&most));
    if (n > 100000)
        skip();
    begin(&o);
    for (long i = 0; i < n / 2 + 10; i++) { /* two of a kind in a row are one event */
        touch("read", O_RDONLY);
        touch("unread", O_RDONLY);
    }
    opens_take(&o);
    assert_true(o.lost);
    opens_fini(&o);
}

static void test_a_tree_that_is_not_there_is_empty(void **state) {
    (void)state;
    struct opens o;
    assert_int_equal(opens_begin(&o, "/nowhere/at/all", (const char *const[]){NULL}, NULL), 0);
    assert_int_equal(o.n, 1);
    assert_int_equal(o.v[0].names.n, 0);
    opens_fini(&o);
}

int main(void) {
#define IN_TREE(t) cmocka_unit_test_setup_teardown(t, make_tree, remove_tree)
    const struct CMUnitTest tests[] = {
        IN_TREE(test_each_open_is_seen_and_no_other),    IN_TREE(test_a_listing_is_seen),
        IN_TREE(test_what_is_excepted_is_not_watched),   IN_TREE(test_what_was_lost_is_told),
        IN_TREE(test_a_tree_that_is_not_there_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
