/* What a job has told gets into the record of its directory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/crash/marks.h"
#include "tests/harness/crash/record_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/marks-XXXXXX";

static void hear(struct crash_marks *m, const char *kind, int64_t step, int rank, int64_t t_ns) {
    crash_marks_hear(m, &(struct crash_word){kind, step, 100 + rank, rank, "", t_ns});
}

/* Ops of rank 1 at 10, 20, ... */
static struct made *ops(size_t n) {
    struct made *m = calloc(1, sizeof(*m));
    m->rank = 1;
    m->node = "n1";
    for (size_t i = 0; i < n; i++) {
        made_create(m, i ? "b" : "a");
        m->v[i].t_ns = (int64_t)(i + 1) * 10;
    }
    return m;
}

static struct disk_record put(struct crash_marks *marks, struct made *m, struct arena *arena) {
    struct disk_record got = {0};
    struct err err;
    char path[64];
    snprintf(path, sizeof(path), "%s/record", folder);
    assert_int_equal(crash_marks_put(marks, &m->record, path, &err), 0);
    assert_int_equal(disk_record_load(path, arena, &got, &err), 0);
    return got;
}

static void test_words_stand_where_they_were_sent(void **state) {
    (void)state;
    ARENA_FINI struct arena arena = {0};
    struct crash_marks marks = {0};
    struct made *m = ops(2);
    hear(&marks, "checkpoint-commit", 7, -1, 15); /* rank -1: known by its process */
    marks.v[0].pid = 101;
    hear(&marks, "checkpoint-begin", 7, 1, 5);
    hear(&marks, "resume", 7, 1, 5);
    struct disk_record r = put(&marks, m, &arena);
    assert_int_equal(r.n, 4);
    assert_string_equal(r.v[0].path, "checkpoint-begin 7");
    assert_string_equal(r.v[1].path, "a");
    assert_string_equal(r.v[2].path, "checkpoint-commit 7");
    assert_int_equal(r.v[2].rank, 1);
    assert_string_equal(r.v[2].node, "n1");
    assert_string_equal(r.v[3].path, "b");
    crash_marks_fini(&marks);
    made_drop(m);
    free(m);
}

static void test_barriers_that_tell_nothing_are_left_out(void **state) {
    (void)state;
    ARENA_FINI struct arena arena = {0};
    struct crash_marks marks = {0};
    struct made *m = ops(1);
    for (int step = 1; step <= 6; step++) /* 4, 8, then behind the operation at 10 */
        for (int rank = 0; rank < 2; rank++)
            hear(&marks, "step", step, rank, step * 4 + rank);
    struct disk_record r = put(&marks, m, &arena);
    assert_int_equal(r.n, 5); /* of each rank the last before it and the first behind it */
    assert_string_equal(r.v[0].path, "barrier");
    assert_string_equal(r.v[1].path, "barrier");
    assert_string_equal(r.v[2].path, "a");
    assert_string_equal(r.v[3].path, "barrier");
    assert_string_equal(r.v[4].path, "barrier");
    crash_marks_fini(&marks);
    made_drop(m);
    free(m);
}

static void test_they_can_be_kept_in_a_file(void **state) {
    (void)state;
    struct crash_marks marks = {0}, again = {0};
    struct err err;
    char path[64];
    snprintf(path, sizeof(path), "%s/marks", folder);
    hear(&marks, "checkpoint-write", 3, 0, 12);
    hear(&marks, "barrier", -1, 1, 13);
    assert_int_equal(crash_marks_save(&marks, path, &err), 0);
    assert_int_equal(crash_marks_load(&again, path, &err), 0);
    assert_int_equal(again.n, 2);
    assert_string_equal(again.v[0].path, "checkpoint-write 3");
    assert_int_equal(again.v[0].rank, 0);
    assert_int_equal(again.v[1].t_ns, 13);
    crash_marks_fini(&marks);
    crash_marks_fini(&again);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_stand_where_they_were_sent),
        cmocka_unit_test(test_barriers_that_tell_nothing_are_left_out),
        cmocka_unit_test(test_they_can_be_kept_in_a_file),
    };
    char path[64];
    if (!mkdtemp(folder))
        return 1;
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    static const char *const left[] = {"record", "record.bytes", "marks", "marks.bytes"};
    for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, left[i]);
        unlink(path);
    }
    rmdir(folder);
    return r;
}
