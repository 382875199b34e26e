/* Names as they are made, moved and removed through the disk: what lies there then, what the kernel is told,
 * and what the record says; and what cannot be done changes neither. */
#include "tests/faults/mechanism/disk/disk_asker.h"

#include <linux/fs.h>

static int make_dir(struct asker *a, uint64_t parent, const char *name) {
    const struct fuse_mkdir_in in = {.mode = 0750};
    return asker_ask(a, FUSE_MKDIR, parent, &in, sizeof(in), name, strlen(name) + 1);
}

static void put(struct asker *a, const char *name) {
    const struct fuse_mknod_in in = {.mode = S_IFREG | 0600};
    assert_int_equal(asker_ask(a, FUSE_MKNOD, DISK_ROOT, &in, sizeof(in), name, strlen(name) + 1),
                     0);
}

/* two: "from\0to" */
static int moves(struct asker *a, uint64_t to_dir, const char *two, size_t n, unsigned flags) {
    const struct fuse_rename2_in in = {.newdir = to_dir, .flags = flags};
    return asker_ask(a, FUSE_RENAME2, DISK_ROOT, &in, sizeof(in), two, n);
}
#define MOVES(a, to_dir, two, flags) moves(a, to_dir, two, sizeof(two), flags)

static void test_what_is_made_lies_there_with_its_mode(void **state) {
    struct asker *a = *state;
    char said[64];
    put(a, "f");
    assert_int_equal(a->answer.entry.attr.mode & 07777, 0600);
    assert_int_equal(make_dir(a, DISK_ROOT, "d"), 0);
    uint64_t d = a->answer.entry.nodeid;
    assert_int_equal(make_dir(a, d, "e"), 0);
    assert_int_equal(make_dir(a, d, "e"), -EEXIST);
    assert_int_equal(asker_ask(a, FUSE_SYMLINK, DISK_ROOT, NULL, 0, "l\0d/e", 6), 0);
    assert_int_equal(asker_ask(a, FUSE_READLINK, a->answer.entry.nodeid, NULL, 0, NULL, 0), 0);
    assert_memory_equal(a->answer.bytes, "d/e", 3);
    assert_int_equal(asker_lies(a, "f", said), 0);
    assert_int_equal(asker_lies(a, "d/e/x", said), -ENOENT);
    assert_string_equal(asker_record(a),
                        "create f 600\nmkdir d 750\nmkdir d/e 750\nsymlink l d/e\n");
}

static void test_a_rename_moves_over_exchanges_or_refuses(void **state) {
    struct asker *a = *state;
    put(a, "a");
    put(a, "b");
    assert_int_equal(make_dir(a, DISK_ROOT, "d"), 0);
    uint64_t d = a->answer.entry.nodeid, of_a = asker_look(a, DISK_ROOT, "a");
    assert_int_equal(MOVES(a, DISK_ROOT, "a\0b", RENAME_NOREPLACE), -EEXIST);
    assert_int_equal(MOVES(a, DISK_ROOT, "none\0b", 0), -ENOENT);
    assert_int_equal(asker_look(a, DISK_ROOT, "a"), of_a);
    assert_int_equal(MOVES(a, DISK_ROOT, "a\0b", RENAME_EXCHANGE), 0);
    assert_int_equal(asker_look(a, DISK_ROOT, "b"), of_a);
    assert_int_equal(MOVES(a, DISK_ROOT, "b\0a", 0), 0);
    assert_int_equal(asker_look(a, DISK_ROOT, "a"), of_a);
    assert_int_equal(asker_look(a, DISK_ROOT, "b"), 0);
    assert_int_equal(MOVES(a, d, "a\0c", 0), 0);
    assert_int_equal(asker_look(a, d, "c"), of_a);
    assert_string_equal(asker_record(a), "create a 600\ncreate b 600\nmkdir d 750\n"
                                         "exchange a b\nrename b a\nrename a d/c\n");
}

static void test_a_link_is_one_more_name_and_goes_alone(void **state) {
    struct asker *a = *state;
    put(a, "a");
    const struct fuse_link_in in = {.oldnodeid = asker_look(a, DISK_ROOT, "a")};
    assert_int_equal(asker_ask(a, FUSE_LINK, DISK_ROOT, &in, sizeof(in), "b", 2), 0);
    assert_int_equal(a->answer.entry.attr.nlink, 2);
    assert_int_equal(a->answer.entry.nodeid, in.oldnodeid);
    assert_int_equal(asker_ask(a, FUSE_UNLINK, DISK_ROOT, NULL, 0, "a", 2), 0);
    assert_int_equal(asker_ask(a, FUSE_UNLINK, DISK_ROOT, NULL, 0, "a", 2), -ENOENT);
    assert_int_equal(asker_look(a, DISK_ROOT, "b"), in.oldnodeid);
    assert_string_equal(asker_record(a), "create a 600\nlink a b\nunlink a\n");
}

static void test_a_directory_with_something_in_it_stays(void **state) {
    struct asker *a = *state;
    assert_int_equal(make_dir(a, DISK_ROOT, "d"), 0);
    uint64_t d = a->answer.entry.nodeid;
    assert_int_equal(make_dir(a, d, "e"), 0);
    assert_int_equal(asker_ask(a, FUSE_RMDIR, DISK_ROOT, NULL, 0, "d", 2), -ENOTEMPTY);
    assert_int_equal(asker_ask(a, FUSE_RMDIR, d, NULL, 0, "e", 2), 0);
    assert_int_equal(asker_ask(a, FUSE_RMDIR, DISK_ROOT, NULL, 0, "d", 2), 0);
    assert_string_equal(asker_record(a), "mkdir d 750\nmkdir d/e 750\nrmdir d/e\nrmdir d\n");
}

static void test_modes_and_sizes_are_recorded_and_times_are_not(void **state) {
    struct asker *a = *state;
    put(a, "f");
    uint64_t f = asker_look(a, DISK_ROOT, "f");
    struct fuse_setattr_in in = {.valid = FATTR_MODE, .mode = 0751};
    assert_int_equal(asker_ask(a, FUSE_SETATTR, f, &in, sizeof(in), NULL, 0), 0);
    assert_int_equal(a->answer.attr.attr.mode & 07777, 0751);
    in = (struct fuse_setattr_in){.valid = FATTR_SIZE, .size = 70};
    assert_int_equal(asker_ask(a, FUSE_SETATTR, f, &in, sizeof(in), NULL, 0), 0);
    assert_int_equal(a->answer.attr.attr.size, 70);
    in = (struct fuse_setattr_in){.valid = FATTR_MTIME, .mtime = 7};
    assert_int_equal(asker_ask(a, FUSE_SETATTR, f, &in, sizeof(in), NULL, 0), 0);
    assert_int_equal(a->answer.attr.attr.mtime, 7);
    assert_string_equal(asker_record(a), "create f 600\nmode f 751\ntruncate f 70+0\n");
}

static void test_of_what_nobody_has_asked_for_nothing_is_known(void **state) {
    struct asker *a = *state;
    const struct fuse_getattr_in in = {0};
    assert_int_equal(asker_look(a, DISK_ROOT, "none"), 0);
    assert_int_equal(a->answer.head.error, -ENOENT);
    assert_int_equal(asker_ask(a, FUSE_GETATTR, 12345, &in, sizeof(in), NULL, 0), -ESTALE);
    assert_int_equal(make_dir(a, 12345, "d"), -ESTALE);
    assert_string_equal(asker_record(a), "");
}

int main(void) {
    umask(022);
#define TEST(name) cmocka_unit_test_setup_teardown(name, asker_begin, asker_end)
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_made_lies_there_with_its_mode),
        TEST(test_a_rename_moves_over_exchanges_or_refuses),
        TEST(test_a_link_is_one_more_name_and_goes_alone),
        TEST(test_a_directory_with_something_in_it_stays),
        TEST(test_modes_and_sizes_are_recorded_and_times_are_not),
        TEST(test_of_what_nobody_has_asked_for_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
