/* Each kind of layer by itself: its gradients held against differences, where the loss is a sum of
 * weight * output for random weights; what it makes of a few numbers that can be worked out. */
#include "tests/scenarios/jobs/ranktrain/model/layer_scene.h"

#include <math.h>

static double loss_of(struct scene *s) {
    double loss = 0;
    s->l.kind->forward(&s->p);
    for (size_t i = 0; i < s->n_out; i++)
        loss += (double)s->p.out[i] * (double)s->pull[i];
    return loss;
}

/* Where a maximum or a cut changes sides within the difference the slope is none: one in fifty. */
static void assert_slopes(struct scene *s, float *x, const float *gradient, size_t n) {
    size_t off = 0;
    for (size_t i = 0; i < n; i++) {
        float was = x[i];
        x[i] = was + 1e-3f;
        double above = loss_of(s);
        x[i] = was - 1e-3f;
        double below = loss_of(s), slope = (above - below) / 2e-3;
        x[i] = was;
        off += !(fabs(slope - (double)gradient[i]) < 0.02 * (1 + fabs(slope)));
    }
    if (off > n / 50)
        fail_msg("%s: %zu of %zu gradients are no slopes", s->l.kind->name, off, n);
}

static void assert_gradients(struct model_layer l) {
    struct scene s;
    scene_open(&s, l);
    loss_of(&s);
    memcpy(s.p.d_out, s.pull, s.n_out * sizeof(*s.pull));
    l.kind->backward(&s.p);
    assert_slopes(&s, s.trained, s.p.ret_d_trained, s.l.trained);
    assert_slopes(&s, s.in, s.p.ret_d_in, s.n_in);
    if (l.second != LAYER_NONE)
        assert_slopes(&s, s.second, s.p.ret_d_second, s.n_in);
    scene_close(&s);
}

static void test_gradients_are_slopes(void **state) {
    (void)state;
    const struct model_layer layers[] = {
        {.kind = &layer_add, .in = {.channels = 2, .side = 2}, .second = 0},
        {.kind = &layer_average, IMAGES(3, 3)},
        {.kind = &layer_conv, IMAGES(2, 6), .channels = 3, .kernel = 5, .stride = 1},
        {.kind = &layer_conv, IMAGES(2, 4), .channels = 3, .kernel = 3, .stride = 1, .padding = 1},
        {.kind = &layer_conv, IMAGES(2, 5), .channels = 3, .kernel = 3, .stride = 2, .padding = 1},
        {.kind = &layer_conv, IMAGES(3, 3), .channels = 2, .kernel = 1, .stride = 1},
        {.kind = &layer_conv, IMAGES(3, 4), .channels = 2, .kernel = 1, .stride = 2},
        {.kind = &layer_conv, IMAGES(2, 3), .channels = 2, .kernel = 1, .stride = 1, .padding = 2},
        {.kind = &layer_conv, IMAGES(1, 4), .channels = 6, .kernel = 3, .stride = 1, .padding = 1},
        {.kind = &layer_dense, IMAGES(7, 0), .channels = 5},
        {.kind = &layer_dense, IMAGES(7, 0), .channels = 5, .relu = true},
        {.kind = &layer_flatten, IMAGES(3, 2)},
        {.kind = &layer_norm, IMAGES(3, 2)},
        {.kind = &layer_norm, IMAGES(3, 2), .relu = true},
        {.kind = &layer_pool, IMAGES(2, 4)},
        {.kind = &layer_pool, IMAGES(2, 4), .bias = true},
    };
    for (size_t i = 0; i < sizeof(layers) / sizeof(*layers); i++)
        assert_gradients(layers[i]);
}

/* Channel 1, sample 1, row 2, column 1 of a convolution with stride and border. */
static void test_an_output_pixel_is_the_product_of_its_window(void **state) {
    (void)state;
    struct scene s;
    double sum = 0;
    scene_open(&s, (struct model_layer){.kind = &layer_conv,
                                        IMAGES(2, 6),
                                        .channels = 3,
                                        .kernel = 3,
                                        .stride = 2,
                                        .padding = 1});
    assert_int_equal(s.l.out.side, 3);
    s.l.kind->forward(&s.p);
    for (int c = 0; c < 2; c++)
        for (int y = 0; y < 3; y++)
            for (int x = 0; x < 3; x++) {
                int row = 2 * 2 - 1 + y, column = 1 * 2 - 1 + x;
                if (row < 6 && column < 6)
                    sum += (double)s.trained[(1 * 2 + c) * 9 + y * 3 + x] *
                           (double)s.in[((c * LAYER_BATCH + 1) * 6 + row) * 6 + column];
            }
    assert_true(fabs(sum - (double)s.p.out[((1 * LAYER_BATCH + 1) * 3 + 2) * 3 + 1]) < 1e-5);
    scene_close(&s);
}

static void test_pooling_takes_the_first_of_equals(void **state) {
    (void)state;
    struct scene s;
    scene_open(&s, (struct model_layer){.kind = &layer_pool, IMAGES(1, 2), .bias = true});
    for (int i = 0; i < 4; i++)
        s.in[i] = 1;
    s.trained[0] = 1;
    s.l.kind->forward(&s.p);
    assert_true(s.p.out[0] == 2 && s.p.choice[0] == 0);
    s.p.d_out[0] = 3;
    s.l.kind->backward(&s.p);
    assert_true(s.p.ret_d_in[0] == 3 && s.p.ret_d_in[1] == 0 && s.p.ret_d_in[3] == 0);
    s.in[3] = 2;
    s.l.kind->forward(&s.p);
    s.l.kind->backward(&s.p);
    assert_true(s.p.ret_d_in[0] == 0 && s.p.ret_d_in[3] == 3);
    s.trained[0] = -5;
    s.l.kind->forward(&s.p);
    s.l.kind->backward(&s.p);
    assert_true(s.p.out[0] == 0 && s.p.ret_d_in[3] == 0);
    scene_close(&s);
}

static void test_an_odd_side_cannot_be_halved(void **state) {
    (void)state;
    struct model_layer odd = {.kind = &layer_pool, IMAGES(1, 7)};
    struct model_layer small = {
        .kind = &layer_conv, IMAGES(1, 2), .channels = 1, .kernel = 5, .stride = 1};
    assert_false(odd.kind->plan(&odd));
    assert_false(small.kind->plan(&small));
}

/* While learning by the batch's own mean and variance, which it tells; afterwards by the running
 * ones. */
static void test_norm_tells_what_it_has_measured(void **state) {
    (void)state;
    struct scene s;
    scene_open(&s, (struct model_layer){.kind = &layer_norm, IMAGES(2, 1)});
    for (int i = 0; i < LAYER_BATCH; i++)
        s.in[LAYER_BATCH + i] = (float)(10 + 2 * (i % 2)); /* mean 11, variance 1 */
    s.trained[1] = 3;                                      /* scale */
    s.trained[3] = 5;                                      /* shift */
    s.l.kind->forward(&s.p);
    assert_true(fabs((double)s.p.out[LAYER_BATCH] - 2) < 1e-4);
    assert_true(fabs((double)s.p.out[LAYER_BATCH + 1] - 8) < 1e-4);
    assert_true(fabs((double)s.p.ret_statistics[1] - 11) < 1e-6);
    assert_true(fabs((double)s.p.ret_statistics[3] - 8.0 / 7) < 1e-6);
    ((float *)s.p.running)[1] = 4;
    ((float *)s.p.running)[3] = 9;
    s.p.learning = false;
    s.l.kind->forward(&s.p);
    assert_true(fabs((double)s.p.out[LAYER_BATCH] - 11) < 1e-4);
    scene_close(&s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_are_slopes),
        cmocka_unit_test(test_an_output_pixel_is_the_product_of_its_window),
        cmocka_unit_test(test_pooling_takes_the_first_of_equals),
        cmocka_unit_test(test_an_odd_side_cannot_be_halved),
        cmocka_unit_test(test_norm_tells_what_it_has_measured),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
