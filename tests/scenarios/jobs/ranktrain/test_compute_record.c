/* What a processor computes of a rank's shards, by passes that are played: which images with which numbers, what is added up and
 * when somebody hears of a layer, one batch after another or one layer at a time, and who is blamed for what is no number. */
#include "tests/scenarios/jobs/ranktrain/played_rank.h"

#include "scenarios/jobs/ranktrain/fixed_point.h"
#include "scenarios/jobs/ranktrain/model/blas.h"
#include "scenarios/jobs/ranktrain/model/pass.h"

#include "base/mem.h"

#include <math.h>

/* ---- passes ---- */

static int passes; /* that are open */
static bool blas;
static int bad_layer; /* what pass_first_bad answers; -1: none */

struct pass {
    int number;
};

static int played_blas_open(struct blas *ret, struct err *err) {
    if (fails("BLAS"))
        return err_say(err, -played.code, "no BLAS");
    strcpy(ret->label, "played 1");
    blas = true;
    return 0;
}

static void played_blas_close(struct blas *b) {
    note("BLAS close %d", *b->label != 0);
    blas = false;
}

static struct pass *played_new(const struct model *m, const struct blas *b) {
    static int number;
    assert_true(m == &rank_model && *b->label);
    struct pass *p = mem_new(struct pass);
    number = passes == 0 ? 0 : number + 1;
    *p = (struct pass){number};
    passes++;
    note("pass %d", p->number);
    return p;
}

static struct pass *played_free(struct pass *p) {
    note("pass free %d", p ? p->number : -1);
    passes -= p != NULL;
    free(p);
    return NULL;
}

static size_t played_bytes(const struct pass *p) {
    return 100 + (size_t)p->number;
}

/* Numbers, of which one may be none, or as large as it may be, or a little larger. */
static void draw_numbers(float *ret, size_t n, bool may_be_bad) {
    static const float odd[] = {(float)NAN,        (float)INFINITY,    -(float)INFINITY,
                                FIXED_POINT_LIMIT, -FIXED_POINT_LIMIT, 262143.96875f,
                                -262143.96875f};
    rank_draw_floats(ret, n);
    if (n && may_be_bad && draw(3) == 0)
        ret[draw((int)n)] = odd[draw(7)];
}

static void say_images(const uint8_t *const *images) {
    buf_printf(&played.said, " %d %d", (int)(images[0] - rank_pixels),
               (int)(images[1] - rank_pixels));
}

static double draw_loss(void) {
    static const double odd[] = {(double)NAN, (double)INFINITY, (double)FIXED_POINT_LIMIT,
                                 (double)FIXED_POINT_LIMIT - 1};
    return draw(6) ? draw(64) / 4.0 : odd[draw(4)];
}

static double played_gradient(struct pass *p, const float *values, const uint8_t *const *images,
                              const uint8_t *labels, float *ret, const struct pass_watch *watch) {
    buf_printf(&played.said, "gradient %d by %08x of", p->number,
               sum_of(values, RANK_VALUES * sizeof(*values)));
    say_images(images);
    note(", %d %d%s", labels[0], labels[1], watch ? ", watched" : "");
    draw_numbers(ret, RANK_VALUES, true);
    for (int i = RANK_LAYERS - 1; watch && i >= 0; i--)
        watch->layer(watch->arg, i);
    return draw_loss();
}

static void played_classify(struct pass *p, const float *values, const uint8_t *const *images,
                            uint8_t *ret) {
    buf_printf(&played.said, "classify %d by %08x", p->number,
               sum_of(values, RANK_VALUES * sizeof(*values)));
    say_images(images);
    note(".");
    ret[0] = 3;
    ret[1] = 1;
}

static void played_begin(struct pass *p, const uint8_t *const *images) {
    buf_printf(&played.said, "begin %d", p->number);
    say_images(images);
    note(".");
}

static void say_values(const char *what, const struct pass *p, int layer,
                       const struct pass_values *v) {
    const struct model_layer *l = &rank_layers[layer];
    assert_ptr_equal(v->running, v->trained + l->trained);
    assert_true(v->ret_statistics && v->ret_statistics == v->ret_d_trained);
    note("%s %d, layer %d%s by %08x %08x", what, p->number, layer, v->learning ? ", learning" : "",
         sum_of(v->trained, l->trained * 4), sum_of(v->running, l->running * 4));
}

static void played_forward(struct pass *p, int layer, const struct pass_values *v) {
    say_values("forward", p, layer, v);
    if (v->learning)
        draw_numbers(v->ret_statistics, rank_layers[layer].running, draw(2));
}

static void played_backward(struct pass *p, int layer, const struct pass_values *v) {
    say_values("backward", p, layer, v);
    draw_numbers(v->ret_d_trained, rank_layers[layer].trained, draw(2));
}

static void played_classes(const struct pass *p, uint8_t *ret) {
    note("classes %d", p->number);
    ret[0] = 2;
    ret[1] = 0;
}

static double played_loss(struct pass *p, const uint8_t *labels) {
    note("loss %d: %d %d", p->number, labels[0], labels[1]);
    return draw_loss();
}

static int played_first_bad(const struct pass *p) {
    note("bad of %d: %d", p->number, bad_layer);
    return bad_layer;
}

#define blas_open      played_blas_open
#define blas_close     played_blas_close
#define pass_new       played_new
#define pass_free      played_free
#define pass_bytes     played_bytes
#define pass_gradient  played_gradient
#define pass_classify  played_classify
#define pass_begin     played_begin
#define pass_forward   played_forward
#define pass_backward  played_backward
#define pass_classes   played_classes
#define pass_loss      played_loss
#define pass_first_bad played_first_bad
#include "scenarios/jobs/ranktrain/cpu.c"
#include "scenarios/jobs/ranktrain/shards.c"

/* ---- plays ---- */

static const struct layer_kind kinds[] = {{.name = "conv"}, {.name = "relu"}, {.name = "norm"}};
static float values[RANK_VALUES], scratch[RANK_VALUES];
static int64_t sums[RANK_VALUES + 2];

static void hear_layer(void *arg, int layer) {
    const struct model_layer *l = &rank_layers[layer];
    assert_ptr_equal(arg, &values);
    note("> layer %d: %08x", layer, sum_of(sums + l->trained_at, l->trained * sizeof(*sums)));
}

static void set_scene(void) {
    rank_begin_as("manual", 0, 1 + draw(3), 4);
    for (int i = 0; i < RANK_LAYERS; i++)
        rank_layers[i].kind = &kinds[i % 3];
    rank_draw_floats(values, RANK_VALUES);
    for (size_t i = 0; i < RANK_VALUES + 2; i++)
        sums[i] = 77;
    bad_layer = draw(3) ? -1 : draw(RANK_LAYERS);
    if (draw(6) == 0) {
        static const uint8_t none[RANK_IMAGES * 4];
        scene.t.data.train.checksums = none;
        scene.t.data.train.map = rank_pixels;
    }
}

static int open_cpu(void **ret, bool layered) {
    char label[COMPUTE_LABEL] = "";
    struct err err = {0};
    const struct compute_place at = {.model = &rank_model, .batches = draw(5), .layered = layered};
    int r = compute_cpu.open(&at, ret, label, &err);
    note("open: %d, %d %s, for %d, label %s", r, err.code, err.msg, at.batches, label);
    return r;
}

/* The shards of a rank, summed; what was not asked for is not touched. */
static void sum(uint64_t seed) {
    void *c = NULL;
    uint64_t read[12] = {0};
    struct err err = {0};
    (void)seed;
    set_scene();
    struct compute own = compute_cpu;
    if (draw(4) == 0)
        own.blame = NULL;
    if (draw(5) == 0) {
        own.sum = rank_sum;
        scene.computes[0].open = true;
    }
    if (open_cpu(&c, false) == 0) {
        struct compute_memory m;
        const struct shards_work work = {.compute = &own,
                                         .c = own.sum ? (void *)&scene.computes[0] : c,
                                         .model = &rank_model,
                                         .data = &scene.t.data.train,
                                         .scratch = scratch,
                                         .ready = draw(2) ? hear_layer : NULL,
                                         .arg = &values};
        int r = shards_sum(&work, values, sampler_step(&scene.t.sampler, 1), scene.t.shards,
                           scene.t.n_shards, sums, draw(2) ? read : NULL, &err);
        note("sum: %d, %d %s", r, err.code, err.msg);
        if (r == 0)
            note("  %08x, read %08x", sum_of(sums, sizeof(sums)), sum_of(read, sizeof(read)));
        assert_int_equal(sums[RANK_VALUES + 1], 77);
        compute_cpu.memory(c, &m);
        note("memory %zu %zu %zu", m.parameters, m.gradients, m.activations);
        uint8_t classes[LAYER_BATCH_MAX] = {9, 9, 9};
        const uint8_t *images[LAYER_BATCH_MAX] = {rank_pixels + 2, rank_pixels + 5};
        r = compute_cpu.classify(c, values, images, classes, &err);
        note("classes: %d, %d %d %d", r, classes[0], classes[1], classes[2]);
    }
    note("close: %d", compute_cpu.close(c, NULL));
    assert_true(passes == 0 && !blas);
    rank_end();
}

/* Sums that have met what is no number say nothing. */
static int say_wrong(const char *what, int layer, int r, const struct compute_wrong *w) {
    note("%s %d: %d, shard %d, %s; %08x", what, layer, r, w->shard, w->where,
         r < 0 ? 0 : sum_of(sums, sizeof(sums)));
    return r;
}

/* There and back, as far as all are numbers. */
static void pass_layers(void *c, const struct compute_batch *batches, int n, bool learning) {
    const struct compute_layers *l = compute_cpu.layers;
    struct compute_wrong w = {0};
    struct err err = {0};
    uint8_t classes[LAYER_BATCH_MAX] = {9, 9, 9};
    int r = l->begin(c, batches, n, learning, &err);
    for (int i = 0; i < RANK_LAYERS && r == 0; i++)
        r = say_wrong("forward", i,
                      l->forward(c, i, values + rank_layers[i].trained_at, sums, &w, &err), &w);
    if (r == 0)
        r = say_wrong("loss", 0, l->loss(c, sums + 3, &w, &err), &w);
    for (int i = RANK_LAYERS - 1; i >= 0 && r == 0; i--)
        r = say_wrong("backward", i,
                      l->backward(c, i, values + rank_layers[i].trained_at, sums, &w, &err), &w);
    r = l->classes(c, classes, &err);
    note("classes: %d, %d %d %d", r, classes[0], classes[1], classes[2]);
}

/* One layer at a time. */
static void layers(uint64_t seed) {
    void *c = NULL;
    (void)seed;
    set_scene();
    if (open_cpu(&c, true) == 0) {
        struct compute_memory m;
        struct compute_batch batches[5];
        const struct cpu *cpu = c;
        int n = draw(cpu->batches + 1);
        memset(batches, 0, sizeof(batches));
        for (int i = 0; i < n; i++)
            batches[i] = (struct compute_batch){.shard = 10 + i,
                                                .images = {rank_pixels + i, rank_pixels + i + 7},
                                                .labels = {1, (uint8_t)i}};
        compute_cpu.memory(c, &m);
        note("memory %zu %zu %zu", m.parameters, m.gradients, m.activations);
        pass_layers(c, batches, n, draw(4));
    }
    note("close: %d", compute_cpu.close(c, NULL));
    assert_true(passes == 0 && !blas);
    rank_end();
}

static const struct play plays[] = {
    {"tests/scenarios/jobs/ranktrain/record/cpu_shards.txt", sum, 300, true, {ERANGE, EINVAL}},
    {"tests/scenarios/jobs/ranktrain/record/cpu_layers.txt", layers, 200, true, {ENOENT, EINVAL}},
};

static void test_what_a_processor_is_given_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
    played_check(&plays[1]);
}

/* Each number of a gradient as the one that is bad: the layer is named that was computed first, backward, or whose statistics are. */
static void test_the_layer_of_a_bad_number_is_named(void **state) {
    (void)state;
    static const float odd[] = {(float)NAN, (float)INFINITY, FIXED_POINT_LIMIT, -FIXED_POINT_LIMIT};
    struct pass own = {0};
    const struct cpu cpu = {.model = &rank_model, .pass = &own};
    for (int i = 0; i < RANK_LAYERS; i++)
        rank_layers[i].kind = &kinds[i % 3];
    played.fails_at = 0;
    bad_layer = -1;
    for (size_t at = 0; at <= RANK_VALUES; at++)
        for (size_t k = 0; k < sizeof(odd) / sizeof(*odd); k++) {
            float gradient[RANK_VALUES + 1] = {0};
            char where[COMPUTE_LABEL], want[COMPUTE_LABEL] = "";
            gradient[at] = odd[k];
            for (int i = 0; i < RANK_LAYERS; i++) {
                const struct model_layer *l = &rank_layers[i];
                bool trained = at >= l->trained_at && at < l->trained_at + l->trained;
                bool running = at >= l->running_at && at < l->running_at + l->running;
                if (trained || running)
                    snprintf(want, sizeof(want), "the %s of layer %d (%s)",
                             trained ? "gradient" : "statistics", i + 1, l->kind->name);
            }
            compute_cpu.blame(&cpu, gradient, where);
            assert_string_equal(where, want);
        }
    bad_layer = 2;
    char where[COMPUTE_LABEL];
    compute_cpu.blame(&cpu, scratch, where);
    assert_string_equal(where, "the output of layer 3 (norm)");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_processor_is_given_is_on_record),
        cmocka_unit_test(test_the_layer_of_a_bad_number_is_named),
    };
    return played_main(argc, argv, plays, tests);
}
