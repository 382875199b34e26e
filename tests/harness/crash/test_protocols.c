/* Ways to save that everybody knows: the right one is well in every state, and each wrong one has a
 * state that shows it, with the sentence that says why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "harness/crash/causes.h"
#include "harness/crash/words.h"
#include "tests/harness/crash/record_maker.h"

#include <stdio.h>
#include <stdlib.h>

enum { OLD = 'A', NEW = 'a', BYTES = 10000 };

struct tried {
    struct made made;
    struct crash_states states;
    struct arena arena;
    const struct crash_cause *causes;
    size_t causes_n;
    /* Whether a state is bad for a way. */
    bool (*bad)(struct tried *t, size_t state, const struct crash_way *way);
};

static bool whole(const struct looked *l, char with) {
    return l->there && l->size == BYTES && l->told == BYTES && l->first == with;
}

/* Its content is the old one or the new one, and after the job's word the new one. */
static bool neither(struct tried *t, size_t state, const struct crash_way *way) {
    struct looked l = look(&t->states, state, "latest");
    bool told = false;
    for (size_t i = 0; i < way->point; i++)
        told |= t->made.v[i].deed == DISK_MARK && !str_eq(t->made.v[i].path, "barrier");
    return !whole(&l, NEW) && (told || !whole(&l, OLD));
}

static enum crash_verdict verdict(void *arg, size_t state, const struct crash_way *way) {
    struct tried *t = arg;
    return t->bad(t, state, way) ? CRASH_BAD : CRASH_GOOD;
}

static struct tried *begin(void) {
    struct tried *t = calloc(1, sizeof(*t));
    t->bad = neither;
    return t;
}

static void try_models(struct tried *t, const char *models) {
    struct err err = {0};
    struct crash_ask ask = {.record = &t->made.record};
    struct crash_judge judge = {verdict, t, true};
    assert_int_equal(disk_models_parse(models, &ask.models, &err), 0);
    assert_int_equal(crash_states_find(&ask, &t->states, &err), 0);
    assert_int_equal(t->states.ignored, 0);
    crash_causes_find(&t->states, &judge, &t->arena, &t->causes, &t->causes_n);
    for (size_t i = 0; i < t->causes_n; i++)
        print_message("%s: %s; %s\n", models, t->causes[i].sentence,
                      t->causes[i].missing ? t->causes[i].missing : "");
}

static void end(struct tried *t) {
    crash_states_fini(&t->states);
    arena_fini(&t->arena);
    made_drop(&t->made);
    free(t);
}

/* One cause, whose sentence is this. */
static void assert_said(struct tried *t, const char *models, const char *said,
                        const char *missing) {
    try_models(t, models);
    assert_int_equal(t->causes_n, 1);
    assert_string_equal(t->causes[0].sentence, said);
    if (missing)
        assert_string_equal(t->causes[0].missing, missing);
    else
        assert_null(t->causes[0].missing);
    end(t);
}

enum { SYNC_FILE = 1, SYNC_FOLDER = 2, TELL = 4 };

/* The textbook's. */
static struct tried *replaced(int how) {
    struct tried *t = begin();
    struct made *m = &t->made;
    made_had(m, "latest", OLD, BYTES);
    uint64_t f = made_create(m, "latest.tmp");
    made_write(m, f, "latest.tmp", 0, BYTES, NEW);
    if (how & SYNC_FILE)
        made_on(m, DISK_SYNC, f, "latest.tmp");
    made_on(m, DISK_CLOSE, f, "latest.tmp");
    made_names(m, DISK_RENAME, "latest.tmp", "latest");
    if (how & SYNC_FOLDER)
        made_sync_directory(m, "");
    if (how & TELL)
        made_mark(m, "checkpoint-write 20");
    return t;
}

static void test_synced_renamed_and_synced_is_old_or_new_in_every_state(void **state) {
    (void)state;
    struct tried *t = replaced(SYNC_FILE | SYNC_FOLDER | TELL);
    try_models(t, "ext4,xfs,posix,nfs");
    assert_int_equal(t->causes_n, 0);
    assert_true(t->states.n > 10);
    end(t);
}

static void test_a_rename_before_fsync_of_the_file_is_found(void **state) {
    (void)state;
    const char *said =
        "rename of latest.tmp to latest before fsync of latest.tmp: after power loss "
        "`latest` is an empty file";
    const char *missing =
        "no fsync of latest.tmp between the write of 10000 bytes at 0 to latest.tmp (operation 2) "
        "and the rename of latest.tmp to latest (operation 4)";
    assert_said(replaced(SYNC_FOLDER), "xfs", said, missing);
    assert_said(replaced(SYNC_FOLDER), "posix", said, missing);
}

static void test_ext4_mends_a_rename_over_a_file_and_nfs_a_close(void **state) {
    (void)state;
    struct tried *t = replaced(SYNC_FOLDER | TELL);
    try_models(t, "ext4,nfs");
    assert_int_equal(t->causes_n, 0);
    end(t);
}

static void test_a_missing_fsync_of_the_directory_is_found(void **state) {
    (void)state;
    assert_said(
        replaced(SYNC_FILE | TELL), "ext4,xfs,posix",
        "the job's word \"checkpoint-write 20\" before fsync of the directory itself: after "
        "power loss `latest` is still the old one",
        "no fsync of the directory itself between the rename of latest.tmp to latest "
        "(operation 5) and the job's word \"checkpoint-write 20\" (operation 6)");
}

static void test_a_save_in_place_is_found_by_a_process_that_dies(void **state) {
    (void)state;
    struct tried *t = begin();
    struct made *m = &t->made;
    uint64_t f = made_had(m, "latest", OLD, BYTES);
    made_truncate(m, f, "latest", 0);
    made_write(m, f, "latest", 0, BYTES, NEW);
    made_on(m, DISK_SYNC, f, "latest");
    assert_said(t, "ext4,xfs,posix",
                "death after the truncate of latest to 0 bytes and before the write of 10000 bytes "
                "at 0 to latest: `latest` is an empty file",
                NULL);
}

static void test_a_rename_before_the_last_write_is_found(void **state) {
    (void)state;
    struct tried *t = begin();
    struct made *m = &t->made;
    made_had(m, "latest", OLD, BYTES);
    uint64_t f = made_create(m, "latest.tmp");
    made_write(m, f, "latest.tmp", 0, 4096, NEW);
    made_on(m, DISK_SYNC, f, "latest.tmp");
    made_names(m, DISK_RENAME, "latest.tmp", "latest");
    made_sync_directory(m, "");
    made_write(m, f, "latest", 4096, BYTES - 4096, NEW);
    made_on(m, DISK_SYNC, f, "latest");
    assert_said(t, "ext4,xfs,posix",
                "death after the rename of latest.tmp to latest and before the fsync of the "
                "directory itself: `latest` has 4096 of its 10000 bytes",
                NULL);
}

/* A pointer file names a directory of a step; bad is a pointer to what is not whole. */
static bool points_nowhere(struct tried *t, size_t state, const struct crash_way *way) {
    struct looked p = look(&t->states, state, "latest");
    struct looked l = look(&t->states, state, p.first == NEW ? "step-20/model.pt" : "step-10.pt");
    (void)way;
    return p.size != 1 || !whole(&l, p.first == NEW ? NEW : OLD);
}

enum { POINTER_FIRST = 8 };

static struct tried *pointed(int how) {
    struct tried *t = begin();
    struct made *m = &t->made;
    t->bad = points_nowhere;
    made_had(m, "latest", OLD, 1);
    made_had(m, "step-10.pt", OLD, BYTES);
    made_mkdir(m, "step-20");
    uint64_t f = made_create(m, "step-20/model.pt");
    made_write(m, f, "step-20/model.pt", 0, BYTES, NEW);
    if (how & SYNC_FILE)
        made_on(m, DISK_SYNC, f, "step-20/model.pt");
    if (how & SYNC_FOLDER)
        made_sync_directory(m, "step-20");
    if (how & SYNC_FOLDER)
        made_sync_directory(m, "");
    uint64_t p = made_create(m, "latest.tmp");
    made_write(m, p, "latest.tmp", 0, 1, NEW);
    made_on(m, DISK_SYNC, p, "latest.tmp");
    made_names(m, DISK_RENAME, "latest.tmp", "latest");
    made_sync_directory(m, "");
    return t;
}

static void test_a_pointer_to_what_is_synced_is_well(void **state) {
    (void)state;
    struct tried *t = pointed(SYNC_FILE | SYNC_FOLDER);
    try_models(t, "ext4,xfs,posix,nfs");
    assert_int_equal(t->causes_n, 0);
    end(t);
}

static void test_a_pointer_before_fsync_of_the_file_is_found(void **state) {
    (void)state;
    assert_said(
        pointed(SYNC_FOLDER), "ext4,xfs,posix",
        "rename of latest.tmp to latest before fsync of step-20/model.pt: after power loss "
        "`step-20/model.pt` is an empty file",
        "no fsync of step-20/model.pt between the write of 10000 bytes at 0 to "
        "step-20/model.pt (operation 3) and the rename of latest.tmp to latest (operation 9)");
}

/* Journals have it in order; POSIX promises nothing about the names. */
static void test_a_pointer_before_fsync_of_directories_is_found_on_posix(void **state) {
    (void)state;
    struct tried *t = pointed(SYNC_FILE);
    try_models(t, "ext4,xfs");
    assert_int_equal(t->causes_n, 0);
    end(t);
    t = pointed(SYNC_FILE);
    try_models(t, "posix");
    assert_int_equal(t->causes_n, 2);
    assert_string_equal(t->causes[0].missing ? t->causes[0].sentence : "",
                        "rename of latest.tmp to latest before fsync of directory step-20: after "
                        "power loss `step-20/model.pt` is not there");
    end(t);
}

/* Two files that belong together, each replaced in the right way: between the two nothing helps. */
static bool not_of_one_save(struct tried *t, size_t state, const struct crash_way *way) {
    struct looked a = look(&t->states, state, "model"), b = look(&t->states, state, "optimizer");
    (void)way;
    return a.first != b.first || a.size != BYTES || b.size != BYTES;
}

static void test_two_files_that_are_replaced_one_by_one_are_found(void **state) {
    (void)state;
    struct tried *t = begin();
    struct made *m = &t->made;
    t->bad = not_of_one_save;
    made_had(m, "model", OLD, BYTES);
    made_had(m, "optimizer", OLD, BYTES);
    uint64_t f = made_create(m, "model.tmp");
    made_write(m, f, "model.tmp", 0, BYTES, NEW);
    made_on(m, DISK_SYNC, f, "model.tmp");
    uint64_t g = made_create(m, "optimizer.tmp");
    made_write(m, g, "optimizer.tmp", 0, BYTES, NEW);
    made_on(m, DISK_SYNC, g, "optimizer.tmp");
    made_names(m, DISK_RENAME, "model.tmp", "model");
    made_names(m, DISK_RENAME, "optimizer.tmp", "optimizer");
    made_sync_directory(m, "");
    assert_said(t, "ext4,xfs",
                "death after the rename of model.tmp to model and before the rename of "
                "optimizer.tmp to optimizer: `optimizer` is still the old one",
                NULL);
}

/* A file `done` says that both shards are there. */
static bool done_too_early(struct tried *t, size_t state, const struct crash_way *way) {
    struct looked d = look(&t->states, state, "done");
    struct looked a = look(&t->states, state, "shard-0"), b = look(&t->states, state, "shard-1");
    (void)way;
    return d.there && (!whole(&a, NEW) || !whole(&b, NEW));
}

static void shard(struct made *m, int rank, const char *path) {
    m->rank = rank;
    uint64_t f = made_create(m, path);
    made_write(m, f, path, 0, BYTES, NEW);
    made_on(m, DISK_SYNC, f, path);
    made_sync_directory(m, "");
}

static void commit(struct made *m) {
    m->rank = 0;
    made_create(m, "done");
    made_sync_directory(m, "");
}

static void barrier(struct made *m, int rank) {
    m->rank = rank;
    made_mark(m, "barrier");
}

static void test_a_commit_before_the_peers_shards_is_found(void **state) {
    (void)state;
    struct tried *t = begin();
    t->bad = done_too_early;
    shard(&t->made, 0, "shard-0");
    commit(&t->made);
    shard(&t->made, 1, "shard-1");
    barrier(&t->made, 0);
    barrier(&t->made, 1);
    try_models(t, "ext4,xfs,posix");
    assert_true(t->causes_n >= 1);
    assert_string_equal(t->causes[0].sentence,
                        "death after the create of done and before the fsync of the directory "
                        "itself: `shard-1` is not there");
    end(t);
}

/* In time it stood behind the peer's shard, but nothing made it wait: seen where the peer dies. */
static void test_a_commit_that_does_not_wait_is_found_where_the_peer_dies(void **state) {
    (void)state;
    struct tried *t = begin();
    t->bad = done_too_early;
    shard(&t->made, 1, "shard-1");
    shard(&t->made, 0, "shard-0");
    commit(&t->made);
    try_models(t, "ext4,xfs,posix");
    assert_int_equal(t->causes_n, 1);
    assert_string_equal(t->causes[0].sentence,
                        "the death of rank 1 before its create of shard-1, while the others went "
                        "on: `shard-1` is not there");
    assert_string_equal(t->causes[0].missing,
                        "a wait of the others for rank 1; if they do wait there, this cannot "
                        "happen, and what settles it is the event barrier, told by each rank just "
                        "before it waits");
    end(t);
}

static void test_a_commit_behind_a_barrier_is_well(void **state) {
    (void)state;
    struct tried *t = begin();
    t->bad = done_too_early;
    shard(&t->made, 1, "shard-1");
    shard(&t->made, 0, "shard-0");
    barrier(&t->made, 1);
    barrier(&t->made, 0);
    commit(&t->made);
    try_models(t, "ext4,xfs,posix,nfs");
    assert_int_equal(t->causes_n, 0);
    end(t);
}

/* Who waits already when the peer dies does not go on to the next barrier. */
static void test_who_came_to_the_barrier_first_waits_there(void **state) {
    (void)state;
    struct tried *t = begin();
    t->bad = done_too_early;
    shard(&t->made, 0, "shard-0");
    barrier(&t->made, 0);
    shard(&t->made, 1, "shard-1");
    barrier(&t->made, 1);
    commit(&t->made);
    barrier(&t->made, 0);
    barrier(&t->made, 1);
    try_models(t, "ext4,xfs,posix,nfs");
    assert_int_equal(t->causes_n, 0);
    end(t);
}

/* From a folder for unfinished files to where they are looked for. */
static void test_a_rename_to_another_directory_wants_an_fsync_of_the_new_one(void **state) {
    (void)state;
    struct tried *t = begin();
    struct made *m = &t->made;
    made_had_directory(m, "unfinished");
    made_had(m, "latest", OLD, BYTES);
    uint64_t f = made_create(m, "unfinished/latest");
    made_write(m, f, "unfinished/latest", 0, BYTES, NEW);
    made_on(m, DISK_SYNC, f, "unfinished/latest");
    made_names(m, DISK_RENAME, "unfinished/latest", "latest");
    made_on(m, DISK_MARK, 0, "checkpoint-write 20");
    assert_said(
        t, "posix",
        "the job's word \"checkpoint-write 20\" before fsync of the directory itself: after "
        "power loss `latest` is still the old one",
        "no fsync of the directory itself between the rename of unfinished/latest to "
        "latest (operation 4) and the job's word \"checkpoint-write 20\" (operation 5)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_synced_renamed_and_synced_is_old_or_new_in_every_state),
        cmocka_unit_test(test_a_rename_before_fsync_of_the_file_is_found),
        cmocka_unit_test(test_ext4_mends_a_rename_over_a_file_and_nfs_a_close),
        cmocka_unit_test(test_a_missing_fsync_of_the_directory_is_found),
        cmocka_unit_test(test_a_save_in_place_is_found_by_a_process_that_dies),
        cmocka_unit_test(test_a_rename_before_the_last_write_is_found),
        cmocka_unit_test(test_a_pointer_to_what_is_synced_is_well),
        cmocka_unit_test(test_a_pointer_before_fsync_of_the_file_is_found),
        cmocka_unit_test(test_a_pointer_before_fsync_of_directories_is_found_on_posix),
        cmocka_unit_test(test_two_files_that_are_replaced_one_by_one_are_found),
        cmocka_unit_test(test_a_commit_before_the_peers_shards_is_found),
        cmocka_unit_test(test_a_commit_that_does_not_wait_is_found_where_the_peer_dies),
        cmocka_unit_test(test_a_commit_behind_a_barrier_is_well),
        cmocka_unit_test(test_who_came_to_the_barrier_first_waits_there),
        cmocka_unit_test(test_a_rename_to_another_directory_wants_an_fsync_of_the_new_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
