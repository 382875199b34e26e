#include "scenarios/jobs/ranktrain/lenet.h"
#include "scenarios/jobs/ranktrain/data/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

struct setup {
    struct blas blas;
    struct lenet *lenet;
    float parameters[LENET_PARAMETERS], gradient[LENET_PARAMETERS], other[LENET_PARAMETERS];
    uint8_t pixels[LENET_BATCH][LENET_PIXELS], labels[LENET_BATCH];
    const uint8_t *images[LENET_BATCH];
};

static struct setup *setup_new(void) {
    struct setup *s = calloc(1, sizeof(*s));
    struct err err;
    uint64_t seed = 17;
    assert_int_equal(blas_open(&s->blas, &err), 0);
    s->lenet = lenet_new();
    lenet_init(s->parameters, 5);
    for (int n = 0; n < LENET_BATCH; n++) {
        s->images[n] = s->pixels[n];
        s->labels[n] = (uint8_t)draw_below(&seed, LENET_CLASSES);
        for (int i = 0; i < LENET_PIXELS; i++)
            s->pixels[n][i] = (uint8_t)draw_below(&seed, 256);
    }
    return s;
}

static void setup_free(struct setup *s) {
    lenet_free(s->lenet);
    blas_close(&s->blas);
    free(s);
}

static double loss_of(struct setup *s, float *gradient) {
    return lenet_gradient(s->lenet, &s->blas, s->parameters, s->images, s->labels, gradient);
}

/* Some parameters of every layer; kinks of the maxima make single slopes a little wrong. */
static void test_gradients_are_slopes(void **state) {
    (void)state;
    struct setup *s = setup_new();
    uint64_t seed = 1;
    int off = 0;
    loss_of(s, s->gradient);
    for (int i = 0; i < LENET_PARAMETERS; i += 1 + (int)draw_below(&seed, 1200)) {
        float was = s->parameters[i];
        s->parameters[i] = was + 2e-3f;
        double above = loss_of(s, s->other);
        s->parameters[i] = was - 2e-3f;
        double slope = (above - loss_of(s, s->other)) / 4e-3;
        s->parameters[i] = was;
        off += fabs(slope - (double)s->gradient[i]) > 0.02 + 0.05 * fabs(slope);
    }
    assert_true(off <= 2);
    setup_free(s);
}

static void test_the_same_samples_give_the_same_bits(void **state) {
    (void)state;
    struct setup *s = setup_new();
    double loss = loss_of(s, s->gradient);
    assert_true(loss_of(s, s->other) == loss);
    assert_memory_equal(s->gradient, s->other, sizeof(s->gradient));
    setup_free(s);
}

static void test_first_weights_depend_on_the_seed_alone(void **state) {
    (void)state;
    struct setup *s = setup_new();
    lenet_init(s->gradient, 5);
    lenet_init(s->other, 6);
    assert_memory_equal(s->parameters, s->gradient, sizeof(s->gradient));
    assert_memory_not_equal(s->parameters, s->other, sizeof(s->gradient));
    assert_int_equal(LENET_PARAMETERS, 61706);
    setup_free(s);
}

static void test_a_batch_that_is_repeated_is_learnt(void **state) {
    (void)state;
    struct setup *s = setup_new();
    uint8_t classes[LENET_BATCH];
    double first = loss_of(s, s->gradient), last = first;
    for (int step = 0; step < 200; step++) {
        for (int i = 0; i < LENET_PARAMETERS; i++)
            s->parameters[i] -= 0.01f * s->gradient[i];
        last = loss_of(s, s->gradient);
    }
    assert_true(last < first / 10);
    lenet_classify(s->lenet, &s->blas, s->parameters, s->images, classes);
    assert_memory_equal(classes, s->labels, LENET_BATCH);
    setup_free(s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_are_slopes),
        cmocka_unit_test(test_the_same_samples_give_the_same_bits),
        cmocka_unit_test(test_first_weights_depend_on_the_seed_alone),
        cmocka_unit_test(test_a_batch_that_is_repeated_is_learnt),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
