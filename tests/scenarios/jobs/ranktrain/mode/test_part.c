/* Which part of a state each rank holds: no number twice, none left out, and where a collective cuts them. */
#include "scenarios/jobs/ranktrain/mode/part.h"
#include "scenarios/jobs/ranktrain/mode/mode.h"
#include "scenarios/jobs/ranktrain/model/model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { TRAINED = 13, VALUES = 17, WORLDS = 16 };

static struct model model = {.trained = TRAINED, .values = VALUES};
static struct ranktrain_options options;
static const struct trainer trainer = {.o = &options, .model = &model};

static void test_each_number_is_one_ranks(void **state) {
    (void)state;
    for (options.world = 1; options.world <= WORLDS; options.world++) {
        size_t next = 0, next_weight = 0;
        for (int rank = 0; rank < options.world; rank++) {
            struct state_range m = part_of_moments(&trainer, rank);
            struct state_range w = part_of_weights(&trainer, rank);
            bool last = rank == options.world - 1;
            size_t share = TRAINED / (size_t)options.world;
            assert_int_equal(m.lo, next);
            assert_int_equal(w.lo, next_weight);
            assert_int_equal(w.hi, last ? VALUES : m.hi);
            assert_true(state_range_length(m) >= share && state_range_length(m) <= share + 1);
            next = m.hi;
            next_weight = w.hi;
        }
        assert_int_equal(next, TRAINED);
        assert_int_equal(next_weight, VALUES);
    }
}

/* Against the parts themselves: a rank's bytes are those of the numbers of the range that it holds. The running
 * statistics are the last rank's. */
static void test_a_range_is_cut_where_the_parts_begin(void **state) {
    (void)state;
    size_t bounds[BOOTSTRAP_MEMBERS + 1];
    for (options.world = 1; options.world <= WORLDS; options.world++)
        for (size_t lo = 0; lo <= VALUES; lo++)
            for (size_t hi = lo; hi <= VALUES; hi++) {
                memset(bounds, 0xa5, sizeof(bounds));
                part_bounds(&trainer, (struct state_range){lo, hi}, 8, bounds);
                assert_int_equal(bounds[0], 0);
                assert_int_equal(bounds[options.world], (hi - lo) * 8);
                assert_int_equal(bounds[options.world + 1], 0xa5a5a5a5a5a5a5a5);
                for (int rank = 0; rank < options.world; rank++) {
                    struct state_range w = part_of_weights(&trainer, rank);
                    size_t from = w.lo > lo ? w.lo : lo, to = w.hi < hi ? w.hi : hi;
                    size_t n = from < to ? to - from : 0;
                    assert_int_equal(bounds[rank + 1] - bounds[rank], n * 8);
                    if (n)
                        assert_int_equal(bounds[rank], (from - lo) * 8);
                }
            }
}

static void test_modes_are_found_by_their_names(void **state) {
    (void)state;
    static const char *const names[] = {"ddp", "dp", "fsdp", "manual", "ps", "zero"};
    struct err err;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        assert_string_equal(mode_find(names[i], &err)->name, names[i]);
    static const char *const none[] = {"", "dd", "ddpx", "DDP"};
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
        char wanted[128];
        assert_null(mode_find(none[i], &err));
        assert_int_equal(err.code, -EINVAL);
        snprintf(wanted, sizeof(wanted),
                 "--mode=%s is not known: there are ddp, dp, fsdp, manual, ps, zero", none[i]);
        assert_string_equal(err.msg, wanted);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_number_is_one_ranks),
        cmocka_unit_test(test_a_range_is_cut_where_the_parts_begin),
        cmocka_unit_test(test_modes_are_found_by_their_names),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
