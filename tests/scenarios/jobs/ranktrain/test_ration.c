/* The memory of a device: what fits, what does not, and how it is told. */
#include "scenarios/jobs/ranktrain/ration.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void test_what_fits_is_counted_and_what_does_not_is_named(void **state) {
    (void)state;
    static const char *const names[RATION_COUNT] = {"parameters", "gradients", "optimizer state",
                                                    "activations"};
    for (int kind = 0; kind < RATION_COUNT; kind++) {
        struct ration r = {.limit = 100}, before;
        struct err err = {0};
        char wanted[256];
        r.held[(kind + 1) % RATION_COUNT] = 30;
        assert_int_equal(ration_take(&r, (enum ration_kind)kind, 40, &err), 0);
        assert_int_equal(r.held[kind], 40);
        before = r;
        assert_int_equal(ration_take(&r, (enum ration_kind)kind, 31, &err), -ENOMEM);
        snprintf(wanted, sizeof(wanted),
                 "the device's memory is full: 31 bytes for %s do not fit beside the 70 that it "
                 "holds of --device-memory=100; --mode=fsdp holds less",
                 names[kind]);
        assert_string_equal(err.msg, wanted);
        assert_memory_equal(&r, &before, sizeof(r));
        assert_null(ration_alloc(&r, (enum ration_kind)kind, 4, 8, &err));
        assert_memory_equal(&r, &before, sizeof(r));
        assert_int_equal(ration_take(&r, (enum ration_kind)kind, 30, &err), 0);
        assert_int_equal(r.held[kind], 70);
        assert_int_equal(r.held[(kind + 1) % RATION_COUNT], 30);
    }
}

static void test_without_a_limit_all_fits(void **state) {
    (void)state;
    struct ration r = {0};
    struct err err;
    assert_int_equal(ration_take(&r, RATION_PARAMETERS, SIZE_MAX / 2, &err), 0);
    char *p = ration_alloc(&r, RATION_GRADIENTS, 3, 5, &err);
    assert_non_null(p);
    for (int i = 0; i < 15; i++)
        assert_int_equal(p[i], 0);
    free(p);
    assert_int_equal(r.held[RATION_GRADIENTS], 15);
    p = ration_alloc(&r, RATION_ACTIVATIONS, 0, 5, &err); /* something to free */
    assert_non_null(p);
    free(p);
    assert_int_equal(r.held[RATION_ACTIVATIONS], 5);
}

static void test_what_is_held_is_told_of_each_kind(void **state) {
    (void)state;
    struct ration r = {.held = {246824, 740480, 1, 0}};
    char text[RATION_TEXT];
    ration_print(&r, text);
    assert_string_equal(
        text, "parameters 246824, gradients 740480, optimizer state 1, activations 0 bytes");
    r = (struct ration){.held = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX}};
    ration_print(&r, text);
    assert_string_equal(text, "parameters 18446744073709551615, gradients 18446744073709551615, "
                              "optimizer state 18446744073709551615, activations "
                              "18446744073709551615 bytes");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_fits_is_counted_and_what_does_not_is_named),
        cmocka_unit_test(test_without_a_limit_all_fits),
        cmocka_unit_test(test_what_is_held_is_told_of_each_kind),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
