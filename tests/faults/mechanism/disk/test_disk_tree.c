#include "faults/mechanism/disk/disk_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct disk_tree tree;
static struct buf path;

static struct stat inode(ino_t ino, mode_t mode) {
    return (struct stat){.st_dev = 1, .st_ino = ino, .st_mode = mode};
}

static struct disk_file *add(ino_t ino, mode_t mode) {
    struct stat st = inode(ino, mode);
    return disk_tree_add(&tree, &st);
}

static int begin(void **state) {
    (void)state;
    return add(1, S_IFDIR)->number == DISK_ROOT ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    disk_tree_fini(&tree);
    buf_fini(&path);
    return 0;
}

static void test_a_number_is_one_files_and_not_used_twice(void **state) {
    (void)state;
    struct disk_file *f = add(10, S_IFREG);
    uint64_t number = f->number;
    assert_ptr_equal(disk_tree_find(&tree, number), f);
    disk_tree_tidy(&tree, f);
    assert_null(disk_tree_find(&tree, number));
    assert_true(add(10, S_IFREG)->number > number);
    assert_null(disk_tree_find(&tree, 99));
}

static void test_who_has_the_inode_anew_has_it_alone(void **state) {
    (void)state;
    struct stat st = inode(10, S_IFREG);
    struct disk_file *old = add(10, S_IFREG), *new = add(10, S_IFREG);
    assert_ptr_equal(disk_tree_at(&tree, &st), new);
    assert_ptr_equal(disk_tree_find(&tree, old->number), old);
    st.st_dev = 2;
    assert_null(disk_tree_at(&tree, &st));
}

static void test_what_has_a_name_or_is_known_stays(void **state) {
    (void)state;
    struct disk_file *f = add(10, S_IFREG);
    disk_file_add_name(f, DISK_ROOT, "a");
    disk_tree_tidy(&tree, f);
    assert_non_null(disk_tree_find(&tree, f->number));
    f->lookups_all = 1;
    disk_file_drop_name(f, DISK_ROOT, "a");
    disk_tree_tidy(&tree, f);
    assert_non_null(disk_tree_find(&tree, f->number));
    f->lookups_all = 0;
    uint64_t number = f->number;
    disk_tree_tidy(&tree, f);
    assert_null(disk_tree_find(&tree, number));
}

static void test_a_path_goes_by_first_names_and_outlives_the_last(void **state) {
    (void)state;
    struct disk_file *d = add(10, S_IFDIR), *f = add(11, S_IFREG);
    disk_file_add_name(d, DISK_ROOT, "step-1");
    disk_file_add_name(f, d->number, "model");
    disk_file_add_name(f, DISK_ROOT, "second");
    assert_string_equal(disk_tree_path(&tree, f, &path), "step-1/model");
    assert_string_equal(disk_tree_entry(&tree, d->number, "new", &path), "step-1/new");
    assert_string_equal(disk_tree_entry(&tree, DISK_ROOT, "new", &path), "new");
    disk_file_drop_name(f, d->number, "model");
    assert_string_equal(disk_tree_path(&tree, f, &path), "second");
    disk_file_drop_name(f, DISK_ROOT, "second");
    assert_int_equal(f->names_n, 0);
    assert_string_equal(disk_tree_path(&tree, f, &path), "second");
}

static void test_a_directory_has_one_name(void **state) {
    (void)state;
    struct disk_file *d = add(10, S_IFDIR);
    disk_file_add_name(d, DISK_ROOT, "a");
    disk_file_add_name(d, DISK_ROOT, "b");
    assert_int_equal(d->names_n, 1);
    assert_string_equal(disk_tree_path(&tree, d, &path), "b");
}

static void test_many_are_found_again(void **state) {
    (void)state;
    for (ino_t i = 100; i < 3100; i++)
        add(i, S_IFREG);
    for (ino_t i = 100; i < 3100; i++) {
        struct stat st = inode(i, S_IFREG);
        assert_int_equal(disk_tree_at(&tree, &st)->ino, i);
    }
}

static void test_after_a_reset_only_the_directory_is_known(void **state) {
    (void)state;
    struct stat st = inode(10, S_IFREG);
    uint64_t number = add(10, S_IFREG)->number;
    disk_tree_reset(&tree);
    assert_null(disk_tree_find(&tree, number));
    assert_null(disk_tree_at(&tree, &st));
    assert_non_null(disk_tree_find(&tree, DISK_ROOT));
}

#define WITH_TREE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_TREE(test_a_number_is_one_files_and_not_used_twice),
        WITH_TREE(test_who_has_the_inode_anew_has_it_alone),
        WITH_TREE(test_what_has_a_name_or_is_known_stays),
        WITH_TREE(test_a_path_goes_by_first_names_and_outlives_the_last),
        WITH_TREE(test_a_directory_has_one_name),
        WITH_TREE(test_many_are_found_again),
        WITH_TREE(test_after_a_reset_only_the_directory_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
