/* Gradients held against differences: d loss = sum of weight * output, for random weights. */
#include "scenarios/jobs/ranktrain/conv.h"
#include "scenarios/jobs/ranktrain/data/draw.h"
#include "tests/scenarios/jobs/ranktrain/naive_blas.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { IN = 2, OUT = 3, SIZE = 10, SIDE = 6, BATCH = 2, ROWS = IN * 25 };
enum { PIXELS = BATCH * SIDE * SIDE, POOLED = OUT * PIXELS / 4 };

static const struct conv shape = {IN, OUT, SIZE, SIDE, BATCH};

struct layer {
    float input[IN * BATCH * SIZE * SIZE], weights[OUT * ROWS], bias[OUT], pull[POOLED];
    float unfolded[ROWS * PIXELS], out[OUT * PIXELS], pooled[POOLED];
    int32_t choice[POOLED];
};

static double loss_of(struct layer *l) {
    double loss = 0;
    conv_unfold(&shape, l->input, l->unfolded);
    conv_forward(&shape, &naive_blas, l->weights, l->unfolded, l->out);
    conv_pool(&shape, l->out, l->bias, l->pooled, l->choice);
    for (int i = 0; i < POOLED; i++)
        loss += (double)l->pooled[i] * (double)l->pull[i];
    return loss;
}

static void randomize(float *x, size_t n, uint64_t *seed) {
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(2 * draw_unit(seed) - 1);
}

static void assert_slopes(struct layer *l, float *x, const float *gradient, int n) {
    for (int i = 0; i < n; i++) {
        float was = x[i];
        x[i] = was + 1e-3f;
        double above = loss_of(l);
        x[i] = was - 1e-3f;
        double below = loss_of(l);
        x[i] = was;
        double slope = (above - below) / 2e-3;
        assert_true(fabs(slope - (double)gradient[i]) < 0.02 * (1 + fabs(slope)));
    }
}

static void test_gradients_are_slopes(void **state) {
    (void)state;
    static struct layer l;
    static float d_out[OUT * PIXELS], d_weights[OUT * ROWS], d_bias[OUT];
    static float d_unfolded[ROWS * PIXELS], d_input[IN * BATCH * SIZE * SIZE];
    uint64_t seed = 3;
    randomize(l.input, sizeof(l.input) / 4, &seed);
    randomize(l.weights, sizeof(l.weights) / 4, &seed);
    randomize(l.bias, OUT, &seed);
    randomize(l.pull, POOLED, &seed);
    loss_of(&l);
    conv_unpool(&shape, l.pooled, l.choice, l.pull, d_out);
    conv_backward(&shape, &naive_blas, l.weights, l.unfolded, d_out, d_weights, d_bias, d_unfolded);
    conv_fold(&shape, d_unfolded, d_input);
    assert_slopes(&l, l.weights, d_weights, OUT * ROWS);
    assert_slopes(&l, l.bias, d_bias, OUT);
    assert_slopes(&l, l.input, d_input, IN * BATCH * SIZE * SIZE);
}

static void test_an_output_pixel_is_the_product_of_its_window(void **state) {
    (void)state;
    static struct layer l;
    uint64_t seed = 5;
    randomize(l.input, sizeof(l.input) / 4, &seed);
    randomize(l.weights, sizeof(l.weights) / 4, &seed);
    loss_of(&l);
    double sum = 0; /* channel 1, sample 1, row 2, column 3 */
    for (int c = 0; c < IN; c++)
        for (int y = 0; y < 5; y++)
            for (int x = 0; x < 5; x++)
                sum += (double)l.weights[1 * ROWS + c * 25 + y * 5 + x] *
                       (double)l.input[((c * BATCH + 1) * SIZE + 2 + y) * SIZE + 3 + x];
    assert_true(fabs(sum - (double)l.out[(1 * BATCH + 1) * SIDE * SIDE + 2 * SIDE + 3]) < 1e-4);
}

static void test_pooling_takes_the_first_of_equals(void **state) {
    (void)state;
    struct conv one = {1, 1, 6, 2, 1};
    float out[4] = {1, 1, 1, 1}, bias = 1, pooled, pull = 3, d_out[4];
    int32_t choice;
    conv_pool(&one, out, &bias, &pooled, &choice);
    assert_true(pooled == 2 && choice == 0);
    conv_unpool(&one, &pooled, &choice, &pull, d_out);
    assert_true(d_out[0] == 3 && d_out[1] == 0 && d_out[2] == 0 && d_out[3] == 0);
    out[3] = 2;
    conv_pool(&one, out, &bias, &pooled, &choice);
    conv_unpool(&one, &pooled, &choice, &pull, d_out);
    assert_true(d_out[0] == 0 && d_out[1] == 0 && d_out[2] == 0 && d_out[3] == 3);
    bias = -5;
    conv_pool(&one, out, &bias, &pooled, &choice);
    conv_unpool(&one, &pooled, &choice, &pull, d_out);
    assert_true(pooled == 0 && d_out[3] == 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_are_slopes),
        cmocka_unit_test(test_an_output_pixel_is_the_product_of_its_window),
        cmocka_unit_test(test_pooling_takes_the_first_of_equals),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
