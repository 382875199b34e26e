/* The kernels, compiled as C, on the fake runtime. */
#include "layers.h"

#include "base/sha256.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

struct setup {
    struct layers *layers;
    const struct gpu_backend *gpu;
    void *c;
};

static void open_network(struct setup *s, const struct layers_network *network) {
    char label[COMPUTE_LABEL], path[PATH_MAX];
    struct err err = {0};
    layers_fake(path);
    setenv(BACKEND_VARIABLE, path, 1);
    s->layers = layers_new(network);
    if (backend_open(&s->gpu, &err) < 0 ||
        s->gpu->compute->open(&s->layers->place, &s->c, label, &err) < 0)
        fail_msg("%s", err.msg);
}

static void close_network(struct setup *s) {
    assert_int_equal(s->gpu->compute->close(s->c, NULL), 0);
    layers_free(s->layers);
}

static int begin(void **state) {
    static struct setup s;
    *state = &s;
    open_network(&s, &layers_networks[0]);
    return 0;
}

static int end(void **state) {
    close_network(*state);
    return 0;
}

static void compute(struct setup *s, int n, int64_t *ret_sums) {
    struct err err = {0};
    if (layers_sum(s->layers, s->gpu, s->c, 0, n, ret_sums, &err) < 0)
        fail_msg("%s", err.msg);
}

static size_t sums_of(const struct setup *s) {
    return s->layers->model->values + 1;
}

static int64_t *new_sums(const struct setup *s) {
    return calloc(sums_of(s), sizeof(int64_t));
}

/* Returns how many rows do not agree. */
static int compare(struct setup *s, bool says) {
    struct difference d[LAYERS_ROWS];
    struct err err = {0};
    int bad = 0;
    for (int i = LAYER_IMAGES; i < s->layers->model->n; i++) {
        int n = layers_look(s->layers, s->gpu, s->c, i, d, &err);
        assert_true(n > 0);
        for (int k = 0; k < n; k++) {
            bool agree = layers_agree(s->layers, &d[k]);
            bad += !agree;
            if (says && !agree)
                print_error("%s is off by %g of %g\n", d[k].name, d[k].error, d[k].largest);
        }
    }
    layers_look_at_sums(s->layers, d);
    for (int k = 0; k < 2; k++) {
        bad += !layers_agree(s->layers, &d[k]);
        if (says && !layers_agree(s->layers, &d[k]))
            print_error("%s is off by %g of %g\n", d[k].name, d[k].error, d[k].largest);
    }
    return bad;
}

static void test_every_layer_of_every_network_is_that_of_the_cpu(void **state) {
    (void)state;
    for (int i = 0; i < LAYERS_NETWORKS; i++) {
        struct setup s;
        struct err err = {0};
        open_network(&s, &layers_networks[i]);
        for (int k = 0; k < SHARDS; k += 7) {
            assert_int_equal(layers_compute(s.layers, s.gpu, s.c, k, &err), 0);
            assert_int_equal(compare(&s, true), 0);
        }
        close_network(&s);
    }
}

/* An image without a picture has the same pixels everywhere but at the rim. */
static void test_the_first_of_equals_is_chosen(void **state) {
    struct setup *s = *state;
    struct layers *l = s->layers;
    struct err err = {0};
    struct difference d[LAYERS_ROWS];
    uint8_t was[LAYER_BATCH][FASHION_PIXELS];
    memcpy(was, l->pixels[0], sizeof(was));
    memset(l->pixels[0], 200, sizeof(was));
    assert_int_equal(layers_compute(l, s->gpu, s->c, 0, &err), 0);
    memcpy(l->pixels[0], was, sizeof(was));
    assert_int_equal(layers_look(l, s->gpu, s->c, 1, d, &err), 3);
    assert_true(layers_agree(l, &d[2]));
    assert_int_equal(pass_look(l->cpu, 1).choice[7 * 14 + 7], 0); /* a square in the middle */
}

/* The comparison itself: one weight a thousandth larger, and it shows from its layer on. */
static void test_a_wrong_weight_shows_from_its_layer_on(void **state) {
    struct setup *s = *state;
    struct layers *l = s->layers;
    struct difference d[LAYERS_ROWS];
    struct err err = {0};
    float *weight = &l->values[l->model->layers[2].trained_at + 7], was = *weight;
    assert_int_equal(layers_compute(l, s->gpu, s->c, 0, &err), 0);
    *weight = was + 0.001f;
    assert_int_equal(layers_sum(l, s->gpu, s->c, 0, 1, l->sums, &err), 0);
    *weight = was;
    assert_true(layers_look(l, s->gpu, s->c, 1, d, &err) > 0);
    assert_true(layers_agree(l, &d[0]));
    assert_true(layers_look(l, s->gpu, s->c, 2, d, &err) > 0);
    assert_false(layers_agree(l, &d[0]));
    assert_true(compare(s, false) > 5);
}

static void test_the_same_batches_give_the_same_bits_however_they_are_dealt_out(void **state) {
    struct setup *s = *state;
    int64_t *all = new_sums(s), *part = new_sums(s), *sum = new_sums(s);
    size_t bytes = sums_of(s) * sizeof(*all);
    struct err err = {0};
    compute(s, SHARDS, all);
    compute(s, SHARDS, part);
    assert_memory_equal(all, part, bytes);
    for (int world = 2; world <= 4; world++) {
        int each = SHARDS / world;
        memset(sum, 0, bytes);
        for (int rank = 0; rank < world; rank++) {
            assert_int_equal(layers_sum(s->layers, s->gpu, s->c, rank * each, each, part, &err), 0);
            for (size_t i = 0; i < sums_of(s); i++)
                sum[i] += part[i];
        }
        assert_memory_equal(all, sum, bytes);
    }
    free(all);
    free(part);
    free(sum);
}

struct heard {
    struct setup *s;
    int64_t *sums, *want;
    int next;
};

static void on_layer(void *arg, int layer) {
    struct heard *h = arg;
    const struct model_layer *l = &h->s->layers->model->layers[layer];
    assert_int_equal(layer, h->next--);
    assert_memory_equal(h->sums + l->trained_at, h->want + l->trained_at,
                        l->trained * sizeof(*h->sums));
}

/* From the last to the first, each with sums that are whole. */
static void test_who_watches_is_told_of_every_layer(void **state) {
    struct setup *s = *state;
    struct heard h = {s, new_sums(s), new_sums(s), s->layers->model->n - 1};
    const struct pass_watch watch = {.layer = on_layer, .arg = &h};
    struct compute_wrong wrong;
    struct err err = {0};
    compute(s, 3, h.want);
    assert_int_equal(s->gpu->compute->sum(s->c, s->layers->values, s->layers->batches, 3, &watch,
                                          h.sums, &wrong, &err),
                     0);
    assert_int_equal(h.next, -1);
    assert_memory_equal(h.sums, h.want, sums_of(s) * sizeof(*h.sums));
    free(h.sums);
    free(h.want);
}

/* The same bits one layer at a time, by who has no more than a layer's numbers. */
static void test_a_layer_at_a_time_gives_the_same_bits(void **state) {
    (void)state;
    struct setup whole, part;
    struct err err = {0};
    struct compute_wrong wrong;
    char label[COMPUTE_LABEL];
    float one[1 << 16];
    open_network(&whole, &layers_networks[1]);
    part = whole;
    struct compute_place at = whole.layers->place;
    at.layered = true;
    assert_int_equal(whole.gpu->compute->open(&at, &part.c, label, &err), 0);
    const struct compute_layers *layers = whole.gpu->compute->layers;
    const struct model *m = whole.layers->model;
    int64_t *want = new_sums(&whole), *got = new_sums(&whole);
    compute(&whole, 3, want);
    assert_int_equal(layers->begin(part.c, whole.layers->batches, 3, true, &err), 0);
    for (int i = 0; i < m->n; i++) {
        const struct model_layer *l = &m->layers[i];
        memcpy(one, whole.layers->values + l->trained_at, l->trained * sizeof(*one));
        assert_int_equal(layers->forward(part.c, i, one, got + l->running_at, &wrong, &err), 0);
    }
    assert_int_equal(layers->loss(part.c, got + m->values, &wrong, &err), 0);
    for (int i = m->n - 1; i >= 0; i--) {
        const struct model_layer *l = &m->layers[i];
        memcpy(one, whole.layers->values + l->trained_at, l->trained * sizeof(*one));
        assert_int_equal(layers->backward(part.c, i, one, got + l->trained_at, &wrong, &err), 0);
    }
    assert_memory_equal(want, got, sums_of(&whole) * sizeof(*want));
    assert_int_equal(whole.gpu->compute->close(part.c, NULL), 0);
    close_network(&whole);
    free(want);
    free(got);
}

/* So small a change of a kernel as one addition in another order changes it; and whoever means to
 * change the bits changes it here. */
static void test_the_bits_are_those_that_were_written_down(void **state) {
    (void)state;
    static const char *const want[LAYERS_NETWORKS] = {
        "18f20cc5ca070647966b07db77a46a491dfccfcba7dcd9de70718034f1ccd8da",
        "7f1374c7fb82adfc3f5335155c6c8c8cddacec787d0ec9fe5304d09e761cb33d",
        "2d24d1261349bf818697d4b41f22c7a98e64b57ebf14abe85d18b325e8ddd9b4"};
    for (int i = 0; i < LAYERS_NETWORKS; i++) {
        struct setup s;
        struct sha256 sum;
        char hex[65];
        open_network(&s, &layers_networks[i]);
        compute(&s, 4, s.layers->sums);
        sha256_init(&sum);
        sha256_update(&sum, s.layers->sums, sums_of(&s) * sizeof(*s.layers->sums));
        sha256_hex(&sum, hex);
        close_network(&s);
        assert_string_equal(hex, want[i]);
    }
}

static void test_classes_are_those_of_the_cpu(void **state) {
    (void)state;
    for (int i = 0; i < LAYERS_NETWORKS; i++) {
        struct setup s;
        struct err err = {0};
        open_network(&s, &layers_networks[i]);
        for (int k = 0; k < SHARDS; k += 5) {
            uint8_t want[LAYER_BATCH], got[LAYER_BATCH] = {0};
            const struct compute_batch *b = &s.layers->batches[k];
            pass_classify(s.layers->cpu, s.layers->values, b->images, want);
            assert_int_equal(s.gpu->compute->classify(s.c, s.layers->values, b->images, got, &err),
                             0);
            assert_memory_equal(want, got, LAYER_BATCH);
        }
        close_network(&s);
    }
}

static void test_a_batch_with_a_number_beyond_the_limit_is_named_with_its_layer(void **state) {
    struct setup *s = *state;
    struct layers *l = s->layers;
    static const struct {
        int layer; /* where the weight is */
        float bad;
        const char *where;
    } rows[] = {{7, NAN, "the output of layer 8 (dense)"},
                {7, INFINITY, "the output of layer 8 (dense)"},
                {2, -INFINITY, "the output of layer 3 (conv)"},
                {5, NAN, "the output of layer 6 (dense)"},
                {7, 1e30f, "the gradient of layer 7 (dense)"}};
    struct err err = {0};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        float *weight = &l->values[l->model->layers[rows[i].layer].trained_at + 5], was = *weight;
        struct compute_wrong wrong = {.shard = -1};
        *weight = rows[i].bad;
        int r =
            s->gpu->compute->sum(s->c, l->values, l->batches + 4, 2, NULL, l->sums, &wrong, &err);
        *weight = was;
        assert_int_equal(r, -ERANGE);
        assert_int_equal(wrong.shard, 4);
        assert_string_equal(wrong.where, rows[i].where);
    }
    compute(s, 2, l->sums);
}

static void test_a_rank_without_batches_sums_to_nothing(void **state) {
    struct setup *s = *state;
    s->layers->sums[17] = 1;
    compute(s, 0, s->layers->sums);
    for (size_t i = 0; i < sums_of(s); i++)
        assert_int_equal(s->layers->sums[i], 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_layer_of_every_network_is_that_of_the_cpu),
        cmocka_unit_test(test_the_first_of_equals_is_chosen),
        cmocka_unit_test(test_a_wrong_weight_shows_from_its_layer_on),
        cmocka_unit_test(test_the_same_batches_give_the_same_bits_however_they_are_dealt_out),
        cmocka_unit_test(test_who_watches_is_told_of_every_layer),
        cmocka_unit_test(test_a_layer_at_a_time_gives_the_same_bits),
        cmocka_unit_test(test_the_bits_are_those_that_were_written_down),
        cmocka_unit_test(test_classes_are_those_of_the_cpu),
        cmocka_unit_test(test_a_batch_with_a_number_beyond_the_limit_is_named_with_its_layer),
        cmocka_unit_test(test_a_rank_without_batches_sums_to_nothing),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, begin, end);
}
