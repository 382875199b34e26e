#include "scenarios/jobs/ranktrain/dense.h"
#include "scenarios/jobs/ranktrain/data/draw.h"
#include "scenarios/jobs/ranktrain/loss.h"
#include "tests/scenarios/jobs/ranktrain/naive_blas.h"

#include <math.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { IN = 7, MIDDLE = 6, OUT = 5, BATCH = 3 };

static const struct dense first = {IN, MIDDLE, BATCH, true}, second = {MIDDLE, OUT, BATCH, false};

struct net {
    float input[BATCH * IN], w1[MIDDLE * IN], b1[MIDDLE], w2[OUT * MIDDLE], b2[OUT];
    float hidden[BATCH * MIDDLE], logits[BATCH * OUT], d_logits[BATCH * OUT];
};

static const uint8_t labels[BATCH] = {0, 4, 2};

static double loss_of(struct net *n) {
    dense_forward(&first, &naive_blas, n->w1, n->b1, n->input, n->hidden);
    dense_forward(&second, &naive_blas, n->w2, n->b2, n->hidden, n->logits);
    return loss_cross_entropy(n->logits, labels, BATCH, OUT, n->d_logits);
}

static void randomize(float *x, int n, uint64_t *seed) {
    for (int i = 0; i < n; i++)
        x[i] = (float)(2 * draw_unit(seed) - 1);
}

static void assert_slopes(struct net *n, float *x, const float *gradient, int count) {
    for (int i = 0; i < count; i++) {
        float was = x[i];
        x[i] = was + 1e-3f;
        double above = loss_of(n);
        x[i] = was - 1e-3f;
        double below = loss_of(n);
        x[i] = was;
        assert_true(fabs((above - below) / 2e-3 - (double)gradient[i]) < 5e-3);
    }
}

static void test_gradients_are_slopes(void **state) {
    (void)state;
    struct net n;
    float d_hidden[BATCH * MIDDLE], d_input[BATCH * IN];
    float d_w1[MIDDLE * IN], d_b1[MIDDLE], d_w2[OUT * MIDDLE], d_b2[OUT];
    uint64_t seed = 11;
    randomize(n.input, BATCH * IN, &seed);
    randomize(n.w1, MIDDLE * IN, &seed);
    randomize(n.b1, MIDDLE, &seed);
    randomize(n.w2, OUT * MIDDLE, &seed);
    randomize(n.b2, OUT, &seed);
    loss_of(&n);
    dense_backward(&second, &naive_blas, n.w2, n.hidden, n.logits, n.d_logits, d_w2, d_b2,
                   d_hidden);
    dense_backward(&first, &naive_blas, n.w1, n.input, n.hidden, d_hidden, d_w1, d_b1, d_input);
    assert_slopes(&n, n.w2, d_w2, OUT * MIDDLE);
    assert_slopes(&n, n.b2, d_b2, OUT);
    assert_slopes(&n, n.w1, d_w1, MIDDLE * IN);
    assert_slopes(&n, n.b1, d_b1, MIDDLE);
    assert_slopes(&n, n.input, d_input, BATCH * IN);
}

static void test_loss_of_equal_guesses_is_the_logarithm_of_their_number(void **state) {
    (void)state;
    float logits[BATCH * OUT] = {0}, d[BATCH * OUT];
    for (int i = 0; i < OUT; i++)
        logits[i] = 1e4f; /* large ones overflow nothing */
    double loss = loss_cross_entropy(logits, labels, BATCH, OUT, d);
    assert_true(fabs(loss - BATCH * log(OUT)) < 1e-9);
    assert_true(fabs((double)d[0] - (1.0 / OUT - 1)) < 1e-6);
    assert_true(fabs((double)d[1] - 1.0 / OUT) < 1e-6);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_are_slopes),
        cmocka_unit_test(test_loss_of_equal_guesses_is_the_logarithm_of_their_number),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
