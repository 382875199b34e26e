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

static int begin(void **state) {
    static struct setup s;
    char label[COMPUTE_LABEL], path[PATH_MAX];
    struct err err = {0};
    layers_fake(path);
    setenv(BACKEND_VARIABLE, path, 1);
    s.layers = layers_new();
    *state = &s;
    if (backend_open(&s.gpu, &err) < 0 ||
        s.gpu->compute->open(&s.layers->place, &s.c, label, &err) < 0)
        fail_msg("%s", err.msg);
    return 0;
}

static int end(void **state) {
    struct setup *s = *state;
    assert_int_equal(s->gpu->compute->close(s->c, NULL), 0);
    layers_free(s->layers);
    return 0;
}

static void compute(struct setup *s, int n, int64_t *ret_sums) {
    struct err err = {0};
    int shard = -1;
    if (s->gpu->compute->sum(s->c, s->layers->parameters, s->layers->batches, n, ret_sums, &shard,
                             &err) < 0)
        fail_msg("%s", err.msg);
}

static void test_every_layer_is_that_of_the_cpu(void **state) {
    struct setup *s = *state;
    struct difference layers[LAYERS];
    struct err err = {0};
    for (int k = 0; k < NETWORK_SHARDS; k += 5) {
        assert_int_equal(layers_compute(s->layers, s->gpu, s->c, k, &err), 0);
        int n = layers_look(s->layers, layers);
        assert_int_equal(n, LAYERS);
        for (int i = 0; i < n; i++)
            if (!layers_agree(&layers[i]))
                fail_msg("%s of batch %d is off by %g of %g", layers[i].name, k, layers[i].error,
                         layers[i].largest);
    }
}

/* An image without a picture has the same pixels everywhere but at the rim. */
static void test_the_first_of_equals_is_chosen(void **state) {
    struct setup *s = *state;
    struct layers *l = s->layers;
    struct err err = {0};
    uint8_t was[LENET_BATCH][LENET_PIXELS];
    int inner = 7 * 14 + 7; /* a square in the middle */
    memcpy(was, l->pixels[0], sizeof(was));
    memset(l->pixels[0], 200, sizeof(was));
    assert_int_equal(layers_compute(l, s->gpu, s->c, 0, &err), 0);
    memcpy(l->pixels[0], was, sizeof(was));
    assert_memory_equal(l->gpu.choice1, pass_look(l->cpu, POOL1).choice, sizeof(l->gpu.choice1));
    for (int i = 0; i < 6 * LENET_BATCH; i++)
        assert_int_equal(l->gpu.choice1[i * 196 + inner], 0);
}

/* The comparison itself: one weight in the last place but ten, and it shows where it must. */
static void test_a_wrong_weight_shows_from_its_layer_on(void **state) {
    struct setup *s = *state;
    struct layers *l = s->layers;
    struct difference layers[LAYERS];
    struct err err = {0};
    float *weight = &l->parameters[LENET_CONV2_WEIGHTS + 7], was = *weight;
    int64_t sums[LENET_PARAMETERS + 1];
    int shard;
    assert_int_equal(layers_compute(l, s->gpu, s->c, 0, &err), 0);
    *weight = was + 0.001f;
    s->gpu->compute->sum(s->c, l->parameters, l->batches, 1, sums, &shard, &err);
    s->gpu->inspect(s->c, 0, &l->gpu, &err);
    *weight = was;
    layers_look(l, layers);
    assert_true(layers_agree(&layers[1]));  /* pooled1 */
    assert_false(layers_agree(&layers[2])); /* pooled2 */
    assert_false(layers_agree(&layers[12]));
}

static void test_sums_are_those_of_the_gradients_in_fixed_point(void **state) {
    struct setup *s = *state;
    static int64_t want[LENET_PARAMETERS + 1], got[LENET_PARAMETERS + 1];
    struct err err = {0};
    memset(want, 0, sizeof(want));
    compute(s, 3, got);
    for (int k = 0; k < 3; k++) {
        double loss = 0;
        assert_int_equal(s->gpu->inspect(s->c, k, &s->layers->gpu, &err), 0);
        assert_true(fixed_point_add(want, s->layers->gpu.gradient, LENET_PARAMETERS));
        for (int i = 0; i < LENET_BATCH; i++)
            loss += s->layers->gpu.losses[i];
        want[LENET_PARAMETERS] += fixed_point_of(loss);
    }
    assert_memory_equal(got, want, sizeof(want));
}

static void test_the_same_batches_give_the_same_bits_however_they_are_dealt_out(void **state) {
    struct setup *s = *state;
    static int64_t all[LENET_PARAMETERS + 1], part[LENET_PARAMETERS + 1], sum[LENET_PARAMETERS + 1];
    struct err err = {0};
    int shard;
    compute(s, NETWORK_SHARDS, all);
    compute(s, NETWORK_SHARDS, part);
    assert_memory_equal(all, part, sizeof(all));
    for (int world = 2; world <= 4; world++) {
        int each = NETWORK_SHARDS / world;
        memset(sum, 0, sizeof(sum));
        for (int rank = 0; rank < world; rank++) {
            s->gpu->compute->sum(s->c, s->layers->parameters, s->layers->batches + rank * each,
                                 each, part, &shard, &err);
            for (int i = 0; i <= LENET_PARAMETERS; i++)
                sum[i] += part[i];
        }
        assert_memory_equal(all, sum, sizeof(all));
    }
}

/* So small a change of a kernel as one addition in another order changes it; and whoever means to
 * change the bits changes it here. */
static void test_the_bits_are_those_that_were_written_down(void **state) {
    struct setup *s = *state;
    static int64_t sums[LENET_PARAMETERS + 1];
    struct sha256 sum;
    char hex[65];
    compute(s, NETWORK_SHARDS, sums);
    sha256_init(&sum);
    sha256_update(&sum, sums, sizeof(sums));
    sha256_hex(&sum, hex);
    assert_string_equal(hex, "0601838032ed50160ac212cda798646793ac1aa7839bd2723a67d3d8a357f4ca");
}

static void test_classes_are_those_of_the_cpu(void **state) {
    struct setup *s = *state;
    struct layers *l = s->layers;
    struct err err = {0};
    for (int k = 0; k < NETWORK_SHARDS; k++) {
        uint8_t want[LENET_BATCH], got[LENET_BATCH] = {0};
        pass_classify(l->cpu, l->parameters, l->batches[k].images, want);
        assert_int_equal(
            s->gpu->compute->classify(s->c, l->parameters, l->batches[k].images, got, &err), 0);
        assert_memory_equal(want, got, LENET_BATCH);
    }
}

static void test_a_batch_with_a_number_beyond_the_limit_is_named(void **state) {
    struct setup *s = *state;
    static int64_t sums[LENET_PARAMETERS + 1];
    static const float bad[] = {NAN, INFINITY, -INFINITY, 1e30f};
    float *weight = &s->layers->parameters[LENET_DENSE3_WEIGHTS + 5], was = *weight;
    struct err err = {0};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        int shard = -1;
        *weight = bad[i];
        assert_int_equal(s->gpu->compute->sum(s->c, s->layers->parameters, s->layers->batches + 4,
                                              2, sums, &shard, &err),
                         -ERANGE);
        assert_int_equal(shard, 4);
    }
    *weight = was;
    compute(s, 2, sums);
}

static void test_a_rank_without_batches_sums_to_nothing(void **state) {
    static int64_t sums[LENET_PARAMETERS + 1];
    sums[17] = 1;
    compute(*state, 0, sums);
    for (int i = 0; i <= LENET_PARAMETERS; i++)
        assert_int_equal(sums[i], 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_layer_is_that_of_the_cpu),
        cmocka_unit_test(test_the_first_of_equals_is_chosen),
        cmocka_unit_test(test_a_wrong_weight_shows_from_its_layer_on),
        cmocka_unit_test(test_sums_are_those_of_the_gradients_in_fixed_point),
        cmocka_unit_test(test_the_same_batches_give_the_same_bits_however_they_are_dealt_out),
        cmocka_unit_test(test_the_bits_are_those_that_were_written_down),
        cmocka_unit_test(test_classes_are_those_of_the_cpu),
        cmocka_unit_test(test_a_batch_with_a_number_beyond_the_limit_is_named),
        cmocka_unit_test(test_a_rank_without_batches_sums_to_nothing),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, begin, end);
}
