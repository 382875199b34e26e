/* Bytes as they are written, read, cut and synced through the disk: what lies there then, and what the
 * record says. */
#include "tests/faults/mechanism/disk/disk_asker.h"

static int writes_cut(struct asker *a, uint64_t node, uint64_t fh, unsigned flags, uint64_t at,
                      const char *text, size_t cut) {
    const struct fuse_write_in in = {
        .fh = fh, .offset = at, .size = (uint32_t)strlen(text), .flags = flags};
    int r = asker_ask_cut(a, FUSE_WRITE, node, &in, sizeof(in), text, strlen(text), cut);
    return r ? r : (int)a->answer.write.size;
}

static int writes(struct asker *a, uint64_t node, uint64_t fh, unsigned flags, uint64_t at,
                  const char *text) {
    return writes_cut(a, node, fh, flags, at, text, 0);
}

static int syncs(struct asker *a, uint64_t node, uint64_t fh, bool data_only) {
    const struct fuse_fsync_in in = {.fh = fh, .fsync_flags = data_only};
    return asker_ask(a, FUSE_FSYNC, node, &in, sizeof(in), NULL, 0);
}

static void test_what_is_written_lies_there_is_read_and_recorded(void **state) {
    struct asker *a = *state;
    char said[64];
    uint64_t fh, f = asker_create(a, "f", O_RDWR, &fh);
    assert_int_equal(writes(a, f, fh, O_RDWR, 0, "weights"), 7);
    assert_int_equal(writes(a, f, fh, O_RDWR, 2, "XY"), 2);
    assert_int_equal(asker_lies(a, "f", said), 7);
    assert_string_equal(said, "weXYhts");
    const struct fuse_read_in in = {.fh = fh, .offset = 1, .size = 100};
    assert_int_equal(asker_ask(a, FUSE_READ, f, &in, sizeof(in), NULL, 0), 0);
    assert_int_equal(a->size, 6);
    assert_memory_equal(a->answer.bytes, "eXYhts", 6);
    assert_string_equal(asker_record(a), "create f 640\nopen f\nwrite f 0+7\nwrite f 2+2\n");
}

/* Where the kernel says it should go is as old as what it knows of the size. */
static void test_an_append_goes_to_the_end_that_there_is(void **state) {
    struct asker *a = *state;
    char said[64];
    uint64_t fh, f = asker_create(a, "f", O_WRONLY | O_APPEND, &fh);
    assert_int_equal(writes(a, f, fh, O_WRONLY | O_APPEND, 0, "abc"), 3);
    assert_int_equal(writes(a, f, fh, O_WRONLY | O_APPEND, 0, "de"), 2);
    assert_int_equal(asker_lies(a, "f", said), 5);
    assert_string_equal(said, "abcde");
    assert_string_equal(asker_record(a), "create f 640\nopen f\nwrite f 0+3\nwrite f 3+2\n");
}

static void test_of_a_write_that_is_cut_so_much_is_there_and_told(void **state) {
    struct asker *a = *state;
    char said[64];
    uint64_t fh, f = asker_create(a, "f", O_WRONLY, &fh);
    assert_int_equal(writes_cut(a, f, fh, O_WRONLY, 0, "weights", 3), 3);
    assert_int_equal(asker_lies(a, "f", said), 3);
    assert_string_equal(asker_record(a), "create f 640\nopen f\nwrite f 0+3\n");
}

static void test_syncs_and_closes_are_told_apart(void **state) {
    struct asker *a = *state;
    uint64_t fh, f = asker_create(a, "f", O_WRONLY, &fh);
    assert_int_equal(syncs(a, f, fh, true), 0);
    assert_int_equal(syncs(a, f, fh, false), 0);
    const struct fuse_flush_in in = {.fh = fh};
    assert_int_equal(asker_ask(a, FUSE_FLUSH, f, &in, sizeof(in), NULL, 0), 0);
    const struct fuse_release_in out = {.fh = fh};
    assert_int_equal(asker_ask(a, FUSE_RELEASE, f, &out, sizeof(out), NULL, 0), 0);
    assert_int_equal(a->mount->opened_n, 0);
    assert_string_equal(asker_record(a), "create f 640\nopen f\nsync_data f\nsync f\nclose f\n");
}

static void test_room_is_made_and_what_fails_is_not_told(void **state) {
    struct asker *a = *state;
    uint64_t fh, f = asker_create(a, "f", O_WRONLY, &fh);
    struct fuse_fallocate_in in = {.fh = fh, .offset = 0, .length = 5000};
    int r = asker_ask(a, FUSE_FALLOCATE, f, &in, sizeof(in), NULL, 0);
    in.length = 0;
    assert_int_equal(asker_ask(a, FUSE_FALLOCATE, f, &in, sizeof(in), NULL, 0) < 0, true);
    assert_string_equal(asker_record(a), r == 0 ? "create f 640\nopen f\nallocate f 0+5000\n"
                                                : "create f 640\nopen f\n");
}

static void test_who_only_reads_opens_and_closes_unrecorded(void **state) {
    struct asker *a = *state;
    uint64_t fh, f = asker_create(a, "f", O_RDONLY, &fh);
    const struct fuse_open_in in = {.flags = O_RDONLY};
    assert_int_equal(asker_ask(a, FUSE_OPEN, f, &in, sizeof(in), NULL, 0), 0);
    uint64_t read_only = a->answer.open.fh;
    assert_int_equal(writes(a, f, read_only, O_RDONLY, 0, "x"), -EBADF);
    const struct fuse_flush_in out = {.fh = read_only};
    assert_int_equal(asker_ask(a, FUSE_FLUSH, f, &out, sizeof(out), NULL, 0), 0);
    assert_string_equal(asker_record(a), "create f 640\n");
}

static void test_a_write_that_has_lost_bytes_on_its_way_is_refused(void **state) {
    struct asker *a = *state;
    uint64_t fh, f = asker_create(a, "f", O_WRONLY, &fh);
    const struct fuse_write_in in = {.fh = fh, .size = 100, .flags = O_WRONLY};
    assert_int_equal(asker_ask(a, FUSE_WRITE, f, &in, sizeof(in), "short", 5), -EIO);
    assert_string_equal(asker_record(a), "create f 640\nopen f\n");
}

int main(void) {
    umask(022);
#define TEST(name) cmocka_unit_test_setup_teardown(name, asker_begin, asker_end)
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_written_lies_there_is_read_and_recorded),
        TEST(test_an_append_goes_to_the_end_that_there_is),
        TEST(test_of_a_write_that_is_cut_so_much_is_there_and_told),
        TEST(test_syncs_and_closes_are_told_apart),
        TEST(test_room_is_made_and_what_fails_is_not_told),
        TEST(test_who_only_reads_opens_and_closes_unrecorded),
        TEST(test_a_write_that_has_lost_bytes_on_its_way_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
