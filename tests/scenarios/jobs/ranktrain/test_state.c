/* A state of which a rank holds all or a part: what is allocated, copied, compared and hashed, and what is left alone. */
#include "scenarios/jobs/ranktrain/state.h"

#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct model model = {.values = 11, .trained = 7};

static const struct optimizer_kind *kind(const char *name) {
    struct err err;
    return optimizer_find(name, &err);
}

/* Each way in which [0, 6) may lie in a range that begins anywhere. */
static void test_what_lies_in_a_range_is_put_there_and_nothing_else(void **state) {
    (void)state;
    enum { ALL = 6 };
    for (size_t lo = 0; lo <= ALL; lo++)
        for (size_t hi = lo; hi <= ALL; hi++)
            for (size_t at = 0; at <= ALL; at++)
                for (size_t n = 0; at + n <= ALL; n++) {
                    float x[ALL], to[ALL + 2], wanted[ALL + 2];
                    for (size_t i = 0; i < n; i++)
                        x[i] = (float)(at + i);
                    for (size_t i = 0; i < ALL + 2; i++)
                        to[i] = wanted[i] = -1;
                    for (size_t i = lo; i < hi; i++)
                        if (i >= at && i < at + n)
                            wanted[1 + i - lo] = (float)i;
                    state_put(to + 1, (struct state_range){lo, hi}, at, x, n);
                    assert_memory_equal(to, wanted, sizeof(to));
                }
}

static void test_a_part_has_room_for_what_it_holds(void **state) {
    (void)state;
    for (size_t lo = 0; lo <= model.values; lo++)
        for (size_t m = 0; m <= model.trained; m++)
            for (int adam = 0; adam < 2; adam++) {
                struct state s;
                struct state_range held = {lo, model.values}, moments = {0, m};
                state_init_part(&s, &model, kind(adam ? "adam" : "sgd"), held, moments);
                size_t weights = model.values - lo, floats = weights + (size_t)(1 + adam) * m;
                assert_int_equal(s.moments, 1 + adam);
                assert_int_equal(state_bytes(&s), floats * sizeof(float));
                assert_int_equal(state_is_whole(&s), lo == 0 && m == model.trained);
                assert_ptr_equal(s.moment[0], s.weights + weights);
                if (adam)
                    assert_ptr_equal(s.moment[1], s.weights + weights + m);
                assert_int_equal(s.step, 0);
                for (size_t i = 0; i < floats; i++)
                    assert_true(s.weights[i] == 0);
                state_fini(&s);
                assert_null(s.weights);
            }
}

static void fill(struct state *s, float first) {
    s->step = (uint64_t)first;
    for (size_t i = 0; i < state_bytes(s) / sizeof(float); i++)
        s->weights[i] = first + (float)i;
}

static void test_a_copy_is_equal_until_a_number_is_another(void **state) {
    (void)state;
    struct state a, b;
    state_init(&a, &model, kind("adam"));
    state_init(&b, &model, kind("adam"));
    fill(&a, 3);
    state_copy(&b, &a);
    assert_true(state_is_equal(&a, &b));
    for (size_t i = 0; i < state_bytes(&a) / sizeof(float); i++) {
        b.weights[i] += 1;
        assert_false(state_is_equal(&a, &b));
        b.weights[i] -= 1;
    }
    b.step++;
    assert_false(state_is_equal(&a, &b));
    state_clear(&b);
    assert_int_equal(b.step, 0);
    for (size_t i = 0; i < state_bytes(&b) / sizeof(float); i++)
        assert_true(b.weights[i] == 0);
    struct state part;
    state_init_part(&part, &model, kind("adam"), a.held, (struct state_range){0, 6});
    part.step = a.step;
    memcpy(part.weights, a.weights, state_bytes(&part));
    assert_false(state_is_equal(&a, &part));
    assert_false(state_is_equal(&part, &a));
    state_fini(&a);
    state_fini(&b);
    state_fini(&part);
}

static void test_states_are_alike_that_hold_the_same_part(void **state) {
    (void)state;
    const struct state one = {.held = {1, 5}, .held_moments = {2, 4}};
    for (int i = 0; i <= 4; i++) {
        struct state other = one;
        size_t *ends[] = {&other.held.lo, &other.held.hi, &other.held_moments.lo,
                          &other.held_moments.hi};
        if (i < 4)
            ++*ends[i];
        assert_int_equal(state_is_alike(&one, &other), i == 4);
        assert_int_equal(state_is_alike(&other, &one), i == 4);
    }
}

static void test_the_hash_is_of_the_weights_that_are_here(void **state) {
    (void)state;
    struct state s;
    char hash[65], wanted[65], mark[STATE_MARK];
    state_init_part(&s, &model, kind("sgd"), (struct state_range){2, 7},
                    (struct state_range){2, 7});
    fill(&s, 1);
    sha256_of(s.weights, 5 * sizeof(float), wanted);
    state_hash(&s, hash);
    assert_string_equal(hash, wanted);
    memset(mark, 'x', sizeof(mark));
    state_mark(&s, mark);
    assert_int_equal(strlen(mark), STATE_MARK - 1);
    assert_memory_equal(mark, wanted, STATE_MARK - 1);
    s.moment[0][0] += 1;
    state_hash(&s, hash);
    assert_string_equal(hash, wanted);
    s.weights[4] += 1;
    state_hash(&s, hash);
    assert_string_not_equal(hash, wanted);
    state_fini(&s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_lies_in_a_range_is_put_there_and_nothing_else),
        cmocka_unit_test(test_a_part_has_room_for_what_it_holds),
        cmocka_unit_test(test_a_copy_is_equal_until_a_number_is_another),
        cmocka_unit_test(test_states_are_alike_that_hold_the_same_part),
        cmocka_unit_test(test_the_hash_is_of_the_weights_that_are_here),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
