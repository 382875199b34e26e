/* What each kind of disk has promised at each point, of records that have one question each. The whole definition is held
 * against another one in test_models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "harness/crash/promises.h"
#include "tests/harness/crash/record_maker.h"

static struct made made;
static struct crash_changes changes;
static struct crash_promises promises[DISK_MODELS_N];
enum { EXT4, XFS, POSIX, NFS };

static void begin(void) {
    made = (struct made){.rank = 0};
}

static void promise(void) {
    crash_changes_find(&changes, &made.record, false);
    for (size_t i = 0; i < DISK_MODELS_N; i++)
        crash_promises_find(&promises[i], &disk_models[i], NULL, &changes, &made.arena);
    assert_int_equal(changes.ignored, 0);
}

static void end(void) {
    crash_changes_fini(&changes);
    made_drop(&made);
}

static void all_is(size_t operation, size_t ext4, size_t xfs, size_t posix, size_t nfs) {
    assert_int_equal(promises[EXT4].all[operation], ext4);
    assert_int_equal(promises[XFS].all[operation], xfs);
    assert_int_equal(promises[POSIX].all[operation], posix);
    assert_int_equal(promises[NFS].all[operation], nfs);
}

static void bytes_are(size_t operation, size_t ext4, size_t xfs, size_t posix, size_t nfs) {
    assert_int_equal(promises[EXT4].bytes[operation], ext4);
    assert_int_equal(promises[XFS].bytes[operation], xfs);
    assert_int_equal(promises[POSIX].bytes[operation], posix);
    assert_int_equal(promises[NFS].bytes[operation], nfs);
}

static const size_t never = CRASH_NONE;

static void test_the_order_of_the_models_is_the_one_told(void **state) {
    static const char *const names[] = {"ext4", "xfs", "posix", "nfs"};
    for (size_t i = 0; i < DISK_MODELS_N; i++)
        assert_string_equal(disk_models[i].name, names[i]);
}

static void test_an_fsync_of_a_file_keeps_its_bytes_and_only_a_journal_its_name(void **state) {
    begin();
    uint64_t f = made_create(&made, "a");  /* 0 */
    made_write(&made, f, "a", 0, 600, 1);  /* 1 */
    made_on(&made, DISK_SYNC, f, "a");     /* 2 */
    made_write(&made, f, "a", 600, 10, 1); /* 3: after it */
    promise();
    all_is(0, 3, 3, never, 1);
    bytes_are(1, 3, 3, 3, 3);
    bytes_are(3, never, never, never, never);
    end();
}

static void test_an_fsync_of_another_file_keeps_neither_bytes_nor_later_names(void **state) {
    begin();
    uint64_t a = made_create(&made, "a"); /* 0 */
    uint64_t b = made_create(&made, "b"); /* 1 */
    made_write(&made, a, "a", 0, 600, 1); /* 2 */
    made_on(&made, DISK_SYNC, b, "b");    /* 3 */
    uint64_t c = made_create(&made, "c"); /* 4 */
    made_on(&made, DISK_SYNC, a, "a");    /* 5: up to what changed it last */
    (void)c;
    promise();
    all_is(0, 4, 4, never, 1);
    bytes_are(2, 6, 6, 6, 6);
    all_is(4, never, never, never, 5);
    end();
}

static void test_an_fsync_of_a_directory_keeps_its_names(void **state) {
    begin();
    made_mkdir(&made, "d");         /* 0 */
    made_create(&made, "d/a");      /* 1 */
    made_create(&made, "b");        /* 2 */
    made_sync_directory(&made, ""); /* 3 */
    made_create(&made, "d/c");      /* 4 */
    promise();
    all_is(0, 4, 4, 4, 1);
    all_is(1, 4, 4, never, 2);
    all_is(2, 4, 4, 4, 3);
    all_is(4, never, never, never, 5);
    end();
}

static void test_a_rename_over_a_file_waits_for_the_bytes_on_ext4_alone(void **state) {
    begin();
    made_had(&made, "a", 1, 600);             /* 0 */
    uint64_t f = made_create(&made, "b");     /* 1 */
    made_write(&made, f, "b", 0, 600, 2);     /* 2 */
    made_names(&made, DISK_RENAME, "b", "a"); /* 3 */
    promise();
    assert_int_equal(promises[EXT4].flushes[2], 3);
    assert_int_equal(promises[XFS].flushes[2], never);
    assert_int_equal(promises[POSIX].flushes[2], never);
    end();
}

static void
test_a_close_is_a_promise_on_nfs_and_of_a_file_cut_to_nothing_an_order_on_ext4(void **state) {
    begin();
    uint64_t f = made_had(&made, "a", 1, 600); /* 0 */
    made_truncate(&made, f, "a", 0);           /* 1 */
    made_write(&made, f, "a", 0, 600, 2);      /* 2 */
    made_on(&made, DISK_CLOSE, f, "a");        /* 3 */
    promise();
    bytes_are(2, never, never, never, 4);
    assert_int_equal(promises[EXT4].flushes[2], 3);
    assert_int_equal(promises[XFS].flushes[2], never);
    end();
}

/* The old name has gone for sure only when its directory has been synced. */
static void test_a_file_that_goes_to_another_directory_may_be_in_both(void **state) {
    begin();
    made_had_directory(&made, "d");             /* 0 */
    made_had(&made, "a", 1, 600);               /* 1 */
    made_names(&made, DISK_RENAME, "a", "d/a"); /* 2 */
    made_sync_directory(&made, "d");            /* 3 */
    made_sync_directory(&made, "");             /* 4 */
    promise();
    all_is(2, 4, 4, 4, 3);
    assert_int_equal(promises[POSIX].removal[2], 5);
    assert_int_equal(promises[EXT4].removal[2], 4);
    end();
}

static void test_a_sync_of_everything_keeps_everything(void **state) {
    begin();
    uint64_t f = made_create(&made, "a"); /* 0 */
    made_write(&made, f, "a", 0, 600, 1); /* 1 */
    made_on(&made, DISK_SYNC_ALL, 0, ""); /* 2 */
    promise();
    all_is(0, 3, 3, 3, 1);
    bytes_are(1, 3, 3, 3, 3);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_order_of_the_models_is_the_one_told),
        cmocka_unit_test(test_an_fsync_of_a_file_keeps_its_bytes_and_only_a_journal_its_name),
        cmocka_unit_test(test_an_fsync_of_another_file_keeps_neither_bytes_nor_later_names),
        cmocka_unit_test(test_an_fsync_of_a_directory_keeps_its_names),
        cmocka_unit_test(test_a_rename_over_a_file_waits_for_the_bytes_on_ext4_alone),
        cmocka_unit_test(
            test_a_close_is_a_promise_on_nfs_and_of_a_file_cut_to_nothing_an_order_on_ext4),
        cmocka_unit_test(test_a_file_that_goes_to_another_directory_may_be_in_both),
        cmocka_unit_test(test_a_sync_of_everything_keeps_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
