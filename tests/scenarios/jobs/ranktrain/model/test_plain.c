/* Each kind of layer held against what it is to compute, written down as plainly as that can be, at many shapes; which
 * products are asked of the library for it; and what it does where nobody asks for the gradient of what lies below. */
#include "tests/scenarios/jobs/ranktrain/model/layer_scene.h"

#include <math.h>

static double at(const struct scene *s, int channel, int sample, int y, int x) {
    const struct layer_shape *in = &s->l.in;
    if (y < 0 || x < 0 || y >= in->side || x >= in->side)
        return 0;
    return (double)s->in[((channel * in->batch + sample) * in->side + y) * in->side + x];
}

static double cut(const struct scene *s, double v) {
    return s->l.relu && v < 0 ? 0 : v;
}

/* What a layer makes of its input, at one place of its output: of images a pixel, else a feature of a sample. */
static double plain_add(const struct scene *s, int c, int n, int y, int x) {
    int side = s->l.in.side, i = ((c * s->l.in.batch + n) * side + y) * side + x;
    double v = (double)s->in[i] + (double)s->second[i];
    return v > 0 ? v : 0;
}

static double plain_average(const struct scene *s, int c, int n, int y, int x) {
    double sum = 0;
    for (y = 0; y < s->l.in.side; y++)
        for (x = 0; x < s->l.in.side; x++)
            sum += at(s, c, n, y, x);
    return sum / (s->l.in.side * s->l.in.side);
}

static double plain_conv(const struct scene *s, int c, int n, int y, int x) {
    const struct model_layer *l = &s->l;
    double sum = 0;
    for (int i = 0; i < l->in.channels; i++)
        for (int ky = 0; ky < l->kernel; ky++)
            for (int kx = 0; kx < l->kernel; kx++)
                sum +=
                    (double)
                        s->trained[((c * l->in.channels + i) * l->kernel + ky) * l->kernel + kx] *
                    at(s, i, n, y * l->stride + ky - l->padding, x * l->stride + kx - l->padding);
    return sum;
}

static double plain_dense(const struct scene *s, int c, int n, int y, int x) {
    int features = s->l.in.channels;
    double sum = (double)s->trained[s->l.channels * features + c];
    for (int i = 0; i < features; i++)
        sum += (double)s->in[n * features + i] * (double)s->trained[c * features + i];
    return cut(s, sum);
}

static double plain_flatten(const struct scene *s, int c, int n, int y, int x) {
    int side = s->l.in.side, pixels = side * side;
    return at(s, c / pixels, n, c % pixels / side, c % side);
}

static double plain_norm(const struct scene *s, int c, int n, int y, int x) {
    int channels = s->l.in.channels, side = s->l.in.side, pixels = s->l.in.batch * side * side;
    double mean = 0, variance = 0;
    for (int i = 0; i < pixels; i++)
        mean += (double)s->in[c * pixels + i] / pixels;
    for (int i = 0; i < pixels; i++)
        variance += pow((double)s->in[c * pixels + i] - mean, 2) / pixels;
    if (!s->p.learning) {
        mean = (double)s->p.running[c];
        variance = (double)s->p.running[channels + c];
    }
    return cut(s, (at(s, c, n, y, x) - mean) / sqrt(variance + 1e-5) * (double)s->trained[c] +
                      (double)s->trained[channels + c]);
}

static double plain_pool(const struct scene *s, int c, int n, int y, int x) {
    double most = at(s, c, n, 2 * y, 2 * x);
    for (int i = 1; i < 4; i++)
        most = fmax(most, at(s, c, n, 2 * y + i / 2, 2 * x + i % 2));
    return fmax(0, most + (s->l.bias ? (double)s->trained[c] : 0));
}

/* A shape, and how many products it takes: forward, backward, and backward where nobody asks for what lies below. */
static const struct row {
    struct model_layer l;
    double (*plain)(const struct scene *s, int c, int n, int y, int x);
    int forward, backward, last;
} rows[] = {
    {{.kind = &layer_add, .in = {.channels = 2, .side = 3}, .second = 0}, plain_add, 0, 0, -1},
    {{.kind = &layer_average, IMAGES(3, 3)}, plain_average, 0, 0, -1},
    {{.kind = &layer_conv, IMAGES(1, 6), .channels = 3, .kernel = 3, .stride = 1},
     plain_conv,
     1,
     2,
     1},
    {{.kind = &layer_conv, IMAGES(2, 5), .channels = 5, .kernel = 5, .stride = 1, .padding = 2},
     plain_conv,
     1,
     2,
     1},
    {{.kind = &layer_conv, IMAGES(2, 7), .channels = 3, .kernel = 3, .stride = 2, .padding = 1},
     plain_conv,
     1,
     2,
     1},
    {{.kind = &layer_conv, IMAGES(2, 9), .channels = 2, .kernel = 3, .stride = 3},
     plain_conv,
     1,
     2,
     1},
    {{.kind = &layer_conv, IMAGES(3, 3), .channels = 2, .kernel = 1, .stride = 1},
     plain_conv,
     1,
     2,
     1},
    {{.kind = &layer_conv, IMAGES(3, 4), .channels = 2, .kernel = 1, .stride = 2},
     plain_conv,
     1,
     2,
     1},
    {{.kind = &layer_conv, IMAGES(2, 3), .channels = 2, .kernel = 1, .stride = 1, .padding = 2},
     plain_conv,
     1,
     2,
     1},
    {{.kind = &layer_conv, IMAGES(1, 14), .channels = 3, .kernel = 5, .stride = 1},
     plain_conv,
     1,
     2,
     1},
    {{.kind = &layer_conv, IMAGES(1, 28), .channels = 2, .kernel = 3, .stride = 1, .padding = 1},
     plain_conv,
     1,
     2,
     1},
    {{.kind = &layer_conv, IMAGES(1, 3), .channels = 2, .kernel = 3, .stride = 1},
     plain_conv,
     1,
     2,
     1},
    /* Six rows and columns in sixteens are multiplied by narrow.h; five or seven, or others, are not. */
    {{.kind = &layer_conv, IMAGES(2, 6), .channels = 6, .kernel = 3, .stride = 1},
     plain_conv,
     0,
     1,
     0},
    {{.kind = &layer_conv, IMAGES(1, 12), .channels = 6, .kernel = 5, .stride = 1, .padding = 2},
     plain_conv,
     0,
     1,
     0},
    {{.kind = &layer_conv, IMAGES(2, 6), .channels = 5, .kernel = 3, .stride = 1},
     plain_conv,
     1,
     2,
     1},
    {{.kind = &layer_conv, IMAGES(2, 6), .channels = 7, .kernel = 3, .stride = 1},
     plain_conv,
     1,
     2,
     1},
    {{.kind = &layer_conv, IMAGES(2, 5), .channels = 6, .kernel = 3, .stride = 1},
     plain_conv,
     1,
     2,
     1},
    {{.kind = &layer_conv,
      .in = {2, 4, 4},
      .second = LAYER_NONE,
      .channels = 6,
      .kernel = 3,
      .stride = 1},
     plain_conv,
     0,
     1,
     0},
    {{.kind = &layer_conv,
      .in = {2, 4, 2},
      .second = LAYER_NONE,
      .channels = 6,
      .kernel = 3,
      .stride = 1},
     plain_conv,
     1,
     2,
     1},
    {{.kind = &layer_conv,
      .in = {1, 9, 3},
      .second = LAYER_NONE,
      .channels = 6,
      .kernel = 2,
      .stride = 1},
     plain_conv,
     0,
     1,
     0},
    {{.kind = &layer_dense, IMAGES(7, 0), .channels = 5}, plain_dense, 1, 2, 1},
    {{.kind = &layer_dense, IMAGES(3, 0), .channels = 9, .relu = true}, plain_dense, 1, 2, 1},
    {{.kind = &layer_flatten, IMAGES(3, 2)}, plain_flatten, 0, 0, -1},
    {{.kind = &layer_norm, IMAGES(3, 2)}, plain_norm, 0, 0, 0},
    {{.kind = &layer_norm, .in = {2, 3, 3}, .second = LAYER_NONE, .relu = true},
     plain_norm,
     0,
     0,
     0},
    {{.kind = &layer_pool, IMAGES(2, 4)}, plain_pool, 0, 0, -1},
    {{.kind = &layer_pool, .in = {3, 6, 5}, .second = LAYER_NONE, .bias = true},
     plain_pool,
     0,
     0,
     -1},
};
enum { ROWS = sizeof(rows) / sizeof(*rows) };

static void assert_plain(const struct row *row, struct scene *s) {
    const struct layer_shape *out = &s->l.out;
    int side = out->side ? out->side : 1;
    s->l.kind->forward(&s->p);
    for (int c = 0; c < out->channels; c++)
        for (int n = 0; n < out->batch; n++)
            for (int i = 0; i < side * side; i++) {
                int place =
                    out->side ? (c * out->batch + n) * side * side + i : n * out->channels + c;
                double is = (double)s->p.out[place],
                       wanted = row->plain(s, c, n, i / side, i % side);
                if (!(fabs(is - wanted) < 1e-4 * (1 + fabs(wanted))))
                    fail_msg("row %d, %s, channel %d, sample %d, pixel %d is %g, not %g",
                             (int)(row - rows), s->l.kind->name, c, n, i, is, wanted);
            }
}

static void test_a_layer_computes_what_it_is_to_compute(void **state) {
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        struct scene s;
        scene_open(&s, rows[i].l);
        assert_plain(&rows[i], &s);
        s.p.learning = false;
        for (size_t k = 0; k < s.l.running; k++)
            ((float *)(uintptr_t)s.p.running)[k] = 0.5f + (float)k;
        assert_plain(&rows[i], &s);
        scene_close(&s);
    }
}

/* Of how many numbers it is made, and how many inputs an output has, by which they are drawn. */
static void test_a_layer_knows_its_sizes(void **state) {
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        struct scene s;
        scene_open(&s, rows[i].l);
        const struct model_layer *l = &s.l;
        size_t c = (size_t)l->in.channels, window = (size_t)(l->kernel * l->kernel);
        bool conv = l->kind == &layer_conv, dense = l->kind == &layer_dense;
        bool norm = l->kind == &layer_norm, pool = l->kind == &layer_pool;
        assert_int_equal(l->fan_in, conv ? c * window : dense ? c : 0);
        assert_int_equal(l->trained, conv              ? (size_t)l->channels * c * window
                                     : dense           ? (size_t)l->channels * (c + 1)
                                     : norm            ? 2 * c
                                     : pool && l->bias ? c
                                                       : 0);
        assert_int_equal(l->running, norm ? 2 * c : 0);
        assert_int_equal(l->choices, pool ? s.n_out : 0);
        assert_int_equal(l->out.batch, l->in.batch);
        scene_close(&s);
    }
}

static int products;

static void counted_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                          const float *a, int lda, const float *b, int ldb, float beta, float *c,
                          int ldc) {
    products++;
    assert_true(order == 101 && (trans_a == 111 || trans_a == 112) && alpha == 1 && beta == 0);
    assert_true(trans_b == 111 || trans_b == 112);
    naive_sgemm(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static int products_of(void (*compute)(const struct layer_pass *p), struct scene *s) {
    products = 0;
    memcpy(s->p.d_out, s->pull, s->n_out * sizeof(*s->pull));
    compute(&s->p);
    return products;
}

/* -1: such a layer is always asked. */
static void test_a_product_is_asked_for_where_it_is_needed(void **state) {
    (void)state;
    static const struct blas counted = {.sgemm = counted_sgemm};
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        struct scene s, last;
        scene_open(&s, row->l);
        scene_open(&last, row->l);
        s.p.blas = last.p.blas = &counted;
        int forward = products_of(s.l.kind->forward, &s);
        int backward = products_of(s.l.kind->backward, &s), below = row->last;
        if (row->last >= 0) {
            last.p.ret_d_in = NULL;
            products_of(last.l.kind->forward, &last);
            below = products_of(last.l.kind->backward, &last);
            assert_memory_equal(last.p.ret_d_trained, s.p.ret_d_trained,
                                s.l.trained * sizeof(float));
        }
        if (forward != row->forward || backward != row->backward || below != row->last)
            fail_msg("row %zu, %s: %d, %d and %d products", i, s.l.kind->name, forward, backward,
                     below);
        scene_close(&s);
        scene_close(&last);
    }
}

/* What is computed twice is the same, whatever has stood there before. */
static void test_nothing_is_left_of_the_batch_before(void **state) {
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        struct scene s, used;
        uint64_t seed = 9;
        scene_open(&s, rows[i].l);
        scene_open(&used, rows[i].l);
        float *batch = scene_floats(&used, used.n_in);
        scene_randomize(batch, used.n_in, &seed);
        used.p.in = batch;
        products_of(used.l.kind->forward, &used);
        products_of(used.l.kind->backward, &used);
        used.p.in = used.in;
        products_of(s.l.kind->forward, &s);
        products_of(s.l.kind->backward, &s);
        products_of(used.l.kind->forward, &used);
        products_of(used.l.kind->backward, &used);
        assert_memory_equal(s.p.out, used.p.out, s.n_out * sizeof(float));
        assert_memory_equal(s.p.ret_d_in, used.p.ret_d_in, s.n_in * sizeof(float));
        assert_memory_equal(s.p.ret_d_trained, used.p.ret_d_trained, s.l.trained * sizeof(float));
        assert_memory_equal(s.p.ret_statistics, used.p.ret_statistics, s.l.running * sizeof(float));
        scene_close(&s);
        scene_close(&used);
    }
}

static void test_what_a_layer_cannot_take_is_refused(void **state) {
    (void)state;
    static const struct {
        struct model_layer l;
        bool taken;
    } asked[] = {
        {{.kind = &layer_average, IMAGES(3, 0)}, false},
        {{.kind = &layer_average, IMAGES(3, 1)}, true},
        {{.kind = &layer_flatten, IMAGES(3, 0)}, false},
        {{.kind = &layer_flatten, IMAGES(3, 1)}, true},
        {{.kind = &layer_norm, IMAGES(3, 0)}, false},
        {{.kind = &layer_norm, IMAGES(3, 1)}, true},
        {{.kind = &layer_dense, IMAGES(3, 0), .channels = 2}, true},
        {{.kind = &layer_dense, IMAGES(3, 1), .channels = 2}, false},
        {{.kind = &layer_pool, IMAGES(3, 0)}, false},
        {{.kind = &layer_pool, IMAGES(3, 1)}, false},
        {{.kind = &layer_pool, IMAGES(3, 2)}, true},
        {{.kind = &layer_pool, IMAGES(3, 3)}, false},
        {{.kind = &layer_conv, IMAGES(1, 0), .channels = 1, .kernel = 1, .stride = 1}, false},
        {{.kind = &layer_conv, IMAGES(1, 0), .channels = 1, .kernel = 1, .stride = 1, .padding = 1},
         false},
        {{.kind = &layer_conv, IMAGES(1, 2), .channels = 1, .kernel = 3, .stride = 1}, false},
        {{.kind = &layer_conv, IMAGES(1, 3), .channels = 1, .kernel = 3, .stride = 1}, true},
        {{.kind = &layer_conv, IMAGES(1, 1), .channels = 1, .kernel = 3, .stride = 1, .padding = 1},
         true},
    };
    for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
        struct model_layer l = asked[i].l;
        l.in.batch = LAYER_BATCH;
        if (l.kind->plan(&l) != asked[i].taken)
            fail_msg("%s, row %zu", l.kind->name, i);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_layer_computes_what_it_is_to_compute),
        cmocka_unit_test(test_a_layer_knows_its_sizes),
        cmocka_unit_test(test_a_product_is_asked_for_where_it_is_needed),
        cmocka_unit_test(test_nothing_is_left_of_the_batch_before),
        cmocka_unit_test(test_what_a_layer_cannot_take_is_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
