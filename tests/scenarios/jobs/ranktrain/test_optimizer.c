#include "scenarios/jobs/ranktrain/fixed_point.h"
#include "scenarios/jobs/ranktrain/optimizer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { TRAINED = 3, VALUES = 4 };

struct scene {
    struct optimizer o;
    float values[VALUES], first[TRAINED], second[TRAINED];
};

static void update(struct scene *s, uint64_t step, const double gradients[VALUES]) {
    int64_t sums[VALUES];
    for (int i = 0; i < VALUES; i++)
        sums[i] = fixed_point_of(gradients[i] * (i < TRAINED ? 8 : 2));
    float *const moments[OPTIMIZER_MOMENTS] = {s->first, s->second};
    const struct optimizer_update u = {.sums = sums,
                                       .trained = TRAINED,
                                       .values = VALUES,
                                       .samples = 8,
                                       .batches = 2,
                                       .step = step};
    optimizer_step(&s->o, &u, s->values, moments);
}

static void assert_near(float got, double want) {
    if (!(fabs((double)got - want) < 1e-6))
        fail_msg("%.9g is not %.9g", (double)got, want);
}

static void test_sgd_keeps_a_velocity(void **state) {
    (void)state;
    struct err err;
    struct scene s = {.o = {optimizer_find("sgd", &err), 0.1f, 0.5f}, .values = {1, 2, 3, 4}};
    update(&s, 1, (double[]){1, -2, 0, 14});
    update(&s, 2, (double[]){1, -2, 0, 14});
    assert_near(s.first[0], 1.5);
    assert_near(s.values[0], 1 - 0.1 - 0.15);
    assert_near(s.values[1], 2 + 0.2 + 0.3);
    assert_near(s.values[2], 3);
    assert_near(s.values[3], 0.9 * (0.9 * 4 + 1.4) + 1.4); /* a running statistic */
}

/* By the formulas of the paper, in double precision. */
static void test_adam_is_that_of_the_paper(void **state) {
    (void)state;
    struct err err;
    struct scene s = {.o = {optimizer_find("adam", &err), 0.01f, 0}, .values = {1, 2, 3, 4}};
    double m = 0, v = 0, x = 1;
    for (int t = 1; t <= 50; t++) {
        double g = 0.3 * cos(t);
        update(&s, (uint64_t)t, (double[]){g, 1, 0, 0});
        m = 0.9 * m + 0.1 * g;
        v = 0.999 * v + 0.001 * g * g;
        x -= 0.01 * (m / (1 - pow(0.9, t))) / (sqrt(v / (1 - pow(0.999, t))) + 1e-8);
    }
    assert_true(fabs((double)s.values[0] - x) < 1e-5);
    assert_near(s.values[2], 3);
    assert_true(fabs((double)s.values[1] - (2 - 50 * 0.01)) <
                1e-4); /* a steady gradient: lr a step */
}

static void test_an_unknown_one_is_named(void **state) {
    (void)state;
    struct err err;
    assert_null(optimizer_find("adagrad", &err));
    assert_string_equal(err.msg, "--optimizer=adagrad: expected sgd or adam");
    assert_int_equal(optimizer_moments(optimizer_find("sgd", &err)), 1);
    assert_int_equal(optimizer_moments(optimizer_find("adam", &err)), 2);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sgd_keeps_a_velocity),
        cmocka_unit_test(test_adam_is_that_of_the_paper),
        cmocka_unit_test(test_an_unknown_one_is_named),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
