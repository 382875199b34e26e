/* Whole networks: what they are made of, their gradients, that they learn. */
#include "scenarios/jobs/ranktrain/data/draw.h"
#include "scenarios/jobs/ranktrain/model/networks.h"
#include "scenarios/jobs/ranktrain/model/pass.h"
#include "tests/scenarios/jobs/ranktrain/model/fashion.h"

#include <math.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

struct scene {
    struct blas blas;
    struct model *model;
    struct pass *pass;
    float *values, *gradient, *other;
    uint8_t pixels[LAYER_BATCH][FASHION_PIXELS], labels[LAYER_BATCH];
    const uint8_t *images[LAYER_BATCH];
};

static struct scene *scene_open(const char *network, int width) {
    struct scene *s = calloc(1, sizeof(*s));
    struct err err;
    uint64_t seed = 17;
    assert_int_equal(blas_open(&s->blas, &err), 0);
    s->model = fashion_model(network, width);
    s->pass = pass_new(s->model, &s->blas);
    s->values = calloc(s->model->values, sizeof(float));
    s->gradient = calloc(s->model->values, sizeof(float));
    s->other = calloc(s->model->values, sizeof(float));
    model_init(s->model, 5, s->values);
    for (int n = 0; n < LAYER_BATCH; n++) {
        s->images[n] = s->pixels[n];
        s->labels[n] = (uint8_t)draw_below(&seed, FASHION_CLASSES);
        for (int i = 0; i < FASHION_PIXELS; i++)
            s->pixels[n][i] = (uint8_t)draw_below(&seed, 256);
    }
    return s;
}

static void scene_close(struct scene *s) {
    pass_free(s->pass);
    model_free(s->model);
    blas_close(&s->blas);
    free(s->values);
    free(s->gradient);
    free(s->other);
    free(s);
}

static double loss_of(struct scene *s, float *gradient) {
    return pass_gradient(s->pass, s->values, s->images, s->labels, gradient, NULL);
}

/* Some parameters of every layer; kinks of maxima and cuts make single slopes a little wrong. */
static void assert_slopes(const char *network, int width) {
    struct scene *s = scene_open(network, width);
    uint64_t seed = 1;
    int off = 0, tried = 0;
    loss_of(s, s->gradient);
    for (size_t i = 0; i < s->model->trained;
         i += 1 + draw_below(&seed, (uint32_t)s->model->trained / 25), tried++) {
        float was = s->values[i];
        s->values[i] = was + 2e-3f;
        double above = loss_of(s, s->other);
        s->values[i] = was - 2e-3f;
        double slope = (above - loss_of(s, s->other)) / 4e-3;
        s->values[i] = was;
        off += fabs(slope - (double)s->gradient[i]) > 0.02 + 0.1 * fabs(slope);
    }
    assert_true(tried >= 20);
    if (off > tried / 8)
        fail_msg("%s: %d of %d gradients are no slopes", network, off, tried);
    scene_close(s);
}

static void test_gradients_are_slopes(void **state) {
    (void)state;
    assert_slopes("lenet", 0);
    assert_slopes("resnet18", 2);
    assert_slopes("resnet50", 2);
    assert_slopes("vgg11", 2);
}

static void test_the_same_samples_give_the_same_bits(void **state) {
    (void)state;
    static const char *const networks[] = {"lenet", "resnet32", "vgg16"};
    for (int i = 0; i < 3; i++) {
        struct scene *s = scene_open(networks[i], 2);
        double loss = loss_of(s, s->gradient);
        assert_true(loss_of(s, s->other) == loss);
        assert_memory_equal(s->gradient, s->other, s->model->values * sizeof(float));
        scene_close(s);
    }
}

static void test_first_weights_depend_on_the_seed_alone(void **state) {
    (void)state;
    struct scene *s = scene_open("lenet", 0);
    size_t bytes = s->model->values * sizeof(float);
    model_init(s->model, 5, s->gradient);
    model_init(s->model, 6, s->other);
    assert_memory_equal(s->values, s->gradient, bytes);
    assert_memory_not_equal(s->values, s->other, bytes);
    scene_close(s);
}

/* One after another from one stream, evenly up to one over the root of how many inputs an output has; a bias that lies
 * with the layer behind it as that before it; of norms 1 and 0, and of their statistics 0 and 1. */
static void draw_plainly(const struct model *m, uint64_t seed, float *ret) {
    uint64_t state = draw_stream(seed, 1);
    size_t at = 0, running = m->trained;
    int inputs = 0;
    for (int i = 0; i < m->n; i++) {
        const struct model_layer *l = &m->layers[i];
        bool norm = l->kind == &layer_norm;
        inputs = l->kind == &layer_conv    ? l->in.channels * l->kernel * l->kernel
                 : l->kind == &layer_dense ? l->in.channels
                                           : inputs;
        for (size_t k = 0; k < l->trained; k++)
            ret[at++] = norm ? k < l->trained / 2
                             : (float)((2 * draw_unit(&state) - 1) * (1 / sqrt(inputs)));
        for (size_t k = 0; k < l->running; k++)
            ret[running++] = k >= l->running / 2;
    }
    assert_int_equal(at, m->trained);
    assert_int_equal(running, m->values);
}

/* All of them, and any part: what lies beside it is left alone. */
static void test_first_weights_are_those_that_are_drawn(void **state) {
    (void)state;
    static const char *const networks[] = {"lenet", "resnet18", "resnet50", "vgg11"};
    for (int i = 0; i < 4; i++) {
        struct scene *s = scene_open(networks[i], 2);
        size_t n = s->model->values, lo = n / 3, hi = n - n / 4;
        draw_plainly(s->model, 5, s->gradient);
        assert_memory_equal(s->values, s->gradient, n * sizeof(float));
        for (size_t k = 0; k < n; k++)
            s->other[k] = 4711;
        model_init_part(s->model, 5, lo, hi, s->other + lo);
        assert_memory_equal(s->other + lo, s->gradient + lo, (hi - lo) * sizeof(float));
        assert_true(s->other[lo - 1] == 4711 && s->other[hi] == 4711);
        for (int k = 0; k < s->model->n; k++) { /* the first and the last of each layer alone */
            const struct model_layer *l = &s->model->layers[k];
            size_t ends[] = {l->trained_at, l->trained_at + l->trained - 1, l->running_at,
                             l->running_at + l->running - 1};
            for (int e = 0; e < 4; e++)
                if (e < 2 ? l->trained : l->running) {
                    model_init_part(s->model, 5, ends[e], ends[e] + 1, s->other);
                    assert_true(s->other[0] == s->gradient[ends[e]] && s->other[1] == 4711);
                }
        }
        scene_close(s);
    }
}

/* As PyTorch counts them: parameters of convolutions without bias, norms and the dense layer; the
 * statistics are two for each channel of a norm. */
static void test_networks_have_as_many_parameters_as_published(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int width;
        size_t trained, statistics;
    } rows[] = {
        {"lenet", 6, 61706, 0},           {"ResNet-18", 64, 11172810, 9600},
        {"resnet32", 16, 466618, 2464},   {"resnet50", 64, 23519690, 53120},
        {"resnet110", 16, 1730426, 8288}, {"resnet152", 64, 58155466, 151424},
        {"vgg11", 64, 9227210, 5504},     {"vgg16", 64, 14722890, 8448},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct model *m = fashion_model(rows[i].name, 0);
        assert_int_equal(m->width, rows[i].width);
        assert_int_equal(m->trained, rows[i].trained);
        assert_int_equal(m->values - m->trained, rows[i].statistics);
        model_free(m);
    }
}

static void test_a_batch_that_is_repeated_is_learnt(void **state) {
    (void)state;
    static const struct {
        const char *network;
        int width;
    } rows[] = {{"lenet", 0}, {"resnet18", 4}, {"vgg11", 4}};
    for (int k = 0; k < 3; k++) {
        struct scene *s = scene_open(rows[k].network, rows[k].width);
        size_t trained = s->model->trained, values = s->model->values;
        uint8_t classes[LAYER_BATCH];
        double first = loss_of(s, s->gradient), last = first;
        for (int step = 0; step < 200; step++) {
            for (size_t i = 0; i < trained; i++)
                s->values[i] -= 0.01f * s->gradient[i];
            for (size_t i = trained; i < values; i++)
                s->values[i] = 0.9f * s->values[i] + 0.1f * s->gradient[i];
            last = loss_of(s, s->gradient);
        }
        assert_true(last < first / 10);
        pass_classify(s->pass, s->values, s->images, classes);
        assert_memory_equal(classes, s->labels, LAYER_BATCH);
        scene_close(s);
    }
}

static void test_a_network_that_cannot_be_is_named(void **state) {
    (void)state;
    const struct model_data odd = {
        .channels = 1, .side = 27, .classes = 10, .batch = LAYER_BATCH, .deviation = {1}};
    struct err err = {0};
    assert_null(model_new("resnet34", 0, &odd, &err));
    assert_non_null(strstr(err.msg, "resnet34 is not known: there are lenet, resnet18"));
    assert_null(model_new("lenet", 0, &odd, &err));
    assert_non_null(
        strstr(err.msg, "lenet cannot take images of 27x27 pixels: its layer 2 (pool)"));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_are_slopes),
        cmocka_unit_test(test_the_same_samples_give_the_same_bits),
        cmocka_unit_test(test_first_weights_depend_on_the_seed_alone),
        cmocka_unit_test(test_first_weights_are_those_that_are_drawn),
        cmocka_unit_test(test_networks_have_as_many_parameters_as_published),
        cmocka_unit_test(test_a_batch_that_is_repeated_is_learnt),
        cmocka_unit_test(test_a_network_that_cannot_be_is_named),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
