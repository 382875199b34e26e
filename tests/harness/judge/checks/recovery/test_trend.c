/* Trend: what readings say, against what the words say of them. */
#include "base/rand.h"
#include "harness/judge/checks/recovery/trend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* So many values below `below`, each with the number of its place, from 1. */
static void draw(struct readings *r, struct rand *dice, size_t n, uint64_t below) {
    r->n = 0;
    for (size_t i = 0; i < n; i++)
        readings_add(r, (int64_t)rand_below(dice, below), (int64_t)i + 1);
    assert_int_equal(r->n, n);
}

/* Every one of the last third is higher than every one of the first by that at least. */
static int64_t growth_of(const struct readings *r) {
    int64_t least = INT64_MAX;
    size_t third = r->n / 3;
    for (size_t i = 0; i < third; i++)
        for (size_t k = r->n - third; k < r->n; k++)
            if (r->v[k] - r->v[i] < least)
                least = r->v[k] - r->v[i];
    return third && least > 0 ? least : 0;
}

static void test_growth_is_what_lies_between_the_thirds(void **state) {
    (void)state;
    struct rand dice;
    rand_init(&dice, 3);
    for (int turn = 0; turn < 20000; turn++) {
        static struct readings r;
        draw(&r, &dice, (size_t)turn % 13, turn & 1 ? 4 : 1000);
        assert_int_equal(readings_growth(&r), growth_of(&r));
        if (!r.n)
            continue;
        int64_t low = readings_lowest(r.v, r.n), high = readings_highest(r.v, r.n);
        bool has_low = false, has_high = false;
        for (size_t i = 0; i < r.n; i++) {
            assert_true(r.v[i] >= low && r.v[i] <= high);
            has_low |= r.v[i] == low;
            has_high |= r.v[i] == high;
        }
        assert_true(has_low && has_high);
    }
}

static void test_rising_is_more_in_each_from_there_on(void **state) {
    (void)state;
    struct rand dice;
    rand_init(&dice, 4);
    int rising = 0;
    for (int turn = 0; turn < 20000; turn++) {
        static struct readings r;
        draw(&r, &dice, (size_t)turn % 5, 4);
        for (size_t from = 0; from <= r.n; from++) {
            bool falls = false;
            for (size_t i = from + 1; i < r.n; i++)
                falls |= r.v[i] <= r.v[i - 1];
            bool is = from + 1 < r.n && !falls;
            assert_int_equal(readings_rise(&r, from), is);
            rising += is;
        }
    }
    assert_true(rising > 1000);
}

/* From the middle on by more than a third of one for each reading. */
static void test_what_goes_on_still_grows_in_the_second_half(void **state) {
    (void)state;
    static const struct {
        size_t n;
        int64_t v[8];
        bool goes_on;
    } rows[] = {
        {0, {0}, false},
        {1, {9}, false},
        {2, {0, 1}, false}, /* the middle is the last */
        {3, {0, 1, 1}, false},
        {3, {0, 1, 2}, true},
        {6, {0, 0, 0, 5, 5, 6}, false}, /* one more in three readings */
        {6, {0, 0, 0, 5, 5, 7}, true},
        {6, {9, 9, 9, 5, 0, 7}, true},
        {5, {0, 0, 5, 9, 6}, false},
        {5, {0, 0, 5, 0, 7}, true},
        {8, {0, 0, 0, 0, 1, 1, 1, 2}, false},
        {8, {0, 0, 0, 0, 1, 1, 1, 3}, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        static struct readings r;
        r.n = 0;
        for (size_t k = 0; k < rows[i].n; k++)
            readings_add(&r, rows[i].v[k], 1);
        if (readings_goes_on(&r) != rows[i].goes_on)
            fail_msg("row %zu", i);
    }
}

static void test_no_more_readings_than_there_is_room_for_and_none_below_zero(void **state) {
    (void)state;
    static struct readings r;
    readings_add(&r, -1, 7);
    assert_int_equal(r.n, 0);
    readings_add(&r, 0, 7);
    assert_int_equal(r.n, 1);
    for (int64_t i = 1; i < READINGS_MAX + 5; i++)
        readings_add(&r, i, 7 + i);
    assert_int_equal(r.n, READINGS_MAX);
    for (int64_t i = 0; i < READINGS_MAX; i++)
        assert_true(r.v[i] == i && r.seq[i] == 7 + i);
}

static void test_they_are_proved_by_the_first_the_middle_and_the_last(void **state) {
    (void)state;
    struct rand dice;
    struct finding f = {0};
    static struct readings r;
    rand_init(&dice, 5);
    draw(&r, &dice, 7, 9);
    readings_prove(&f, &r);
    assert_true(f.evidence[0] == 1 && f.evidence[1] == 4 && f.evidence[2] == 7 && !f.evidence[3]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growth_is_what_lies_between_the_thirds),
        cmocka_unit_test(test_rising_is_more_in_each_from_there_on),
        cmocka_unit_test(test_what_goes_on_still_grows_in_the_second_half),
        cmocka_unit_test(test_no_more_readings_than_there_is_room_for_and_none_below_zero),
        cmocka_unit_test(test_they_are_proved_by_the_first_the_middle_and_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
