/* Where ranks wait for each other, of the steps that they tell. */
#include "harness/crash/barriers.h"

#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

/* Rank 0 saves between its steps 2 and 3, from 25 to 28. */
static const struct disk_operation save[] = {
    {.deed = DISK_HAD, .path = "old", .to = "", .t_ns = 11, .rank = -1, .node = ""},
    {.deed = DISK_CREATE, .path = "a", .to = "", .t_ns = 25, .pid = 7, .rank = 0, .node = ""},
    {.deed = DISK_SYNC, .path = "a", .to = "", .t_ns = 28, .pid = 7, .rank = 0, .node = ""},
};
static const struct disk_record record = {save, 3, 0, 0};

static void tell(struct barriers *b, int rank, int64_t step, int64_t t_ns) {
    barriers_note(b, &(struct barrier){step, t_ns, 7 + rank, rank});
}

static void steps_to(struct barriers *b, int64_t last) {
    for (int64_t step = 1; step <= last; step++)
        for (int rank = 0; rank < 2; rank++)
            tell(b, rank, step, 10 * step + rank);
}

static void test_steps_without_a_change_beside_them_are_left_out(void **state) {
    struct barriers b = {0};
    struct disk_operation *marks = NULL;
    size_t n = 0;
    steps_to(&b, 5);
    barriers_mark(&b, &record, &marks, &n);
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++) {
        assert_true(barriers_is(&marks[i]));
        assert_int_equal(marks[i].t_ns, (i < 2 ? 20 : 30) + i % 2);
        assert_int_equal(marks[i].rank, i % 2);
        assert_int_equal(marks[i].pid, 7 + i % 2);
    }
    free(marks);
    barriers_fini(&b);
}

/* A slow rank tells its step when the save has begun: then that step is kept of both, or one would
 * have come to more of them than the other. */
static void test_a_step_is_kept_of_all_ranks_or_of_none(void **state) {
    struct barriers b = {0};
    struct disk_operation *marks = NULL;
    size_t n = 0;
    tell(&b, 0, 1, 10), tell(&b, 1, 1, 11);
    tell(&b, 0, 2, 20), tell(&b, 1, 2, 26);
    tell(&b, 1, 3, 31), tell(&b, 0, 3, 30);
    barriers_mark(&b, &record, &marks, &n);
    assert_int_equal(n, 6);
    for (size_t i = 1; i < n; i++)
        assert_true(marks[i - 1].t_ns < marks[i].t_ns);
    free(marks);
    barriers_fini(&b);
}

static void test_marks_stay_in_the_order_of_their_moments(void **state) {
    struct barriers b = {0};
    struct disk_operation *marks = NULL;
    size_t n = 0;
    mem_push(marks, n) = (struct disk_operation){
        .deed = DISK_MARK, .path = "checkpoint-commit 2", .to = "", .t_ns = 29, .node = ""};
    mem_push(marks, n) = (struct disk_operation){
        .deed = DISK_MARK, .path = "checkpoint-begin 4", .to = "", .t_ns = 45, .node = ""};
    steps_to(&b, 3);
    barriers_mark(&b, &record, &marks, &n);
    assert_int_equal(n, 6);
    assert_string_equal(marks[2].path, "checkpoint-commit 2");
    assert_string_equal(marks[5].path, "checkpoint-begin 4");
    for (size_t i = 1; i < n; i++)
        assert_true(marks[i - 1].t_ns < marks[i].t_ns);
    free(marks);
    barriers_fini(&b);
}

static void test_one_process_waits_for_nobody(void **state) {
    struct barriers b = {0};
    struct disk_operation *marks = NULL;
    size_t n = 0;
    tell(&b, 0, -1, 5);
    for (int64_t step = 1; step < 5; step++)
        tell(&b, 0, step, 10 * step);
    tell(&b, 1, -1, 12); /* tells something else */
    barriers_mark(&b, &record, &marks, &n);
    assert_int_equal(n, 0);
    free(marks);
    barriers_fini(&b);
}

static void test_what_is_known_of_a_record(void **state) {
    struct disk_operation v[3] = {save[1], save[2], save[2]};
    struct disk_record r = {v, 3, 0, 0};
    assert_false(barriers_missing(&r)); /* of one rank */
    assert_false(barriers_known(&r));
    v[2].rank = 1;
    assert_true(barriers_missing(&r));
    v[1] = (struct disk_operation){
        .deed = DISK_MARK, .path = "barrier", .to = "", .rank = -1, .node = ""};
    assert_true(barriers_known(&r));
    assert_false(barriers_missing(&r));
    v[1].path = "checkpoint-write 2";
    assert_true(barriers_missing(&r));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_without_a_change_beside_them_are_left_out),
        cmocka_unit_test(test_a_step_is_kept_of_all_ranks_or_of_none),
        cmocka_unit_test(test_marks_stay_in_the_order_of_their_moments),
        cmocka_unit_test(test_one_process_waits_for_nobody),
        cmocka_unit_test(test_what_is_known_of_a_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
