/* An evaluator whose directory, data and network are played: which checkpoints it reads in which order, what it asks of each,
 * what it says of one that it cannot use, what it holds for itself and lets go, and when it ends, also where something fails. */
#include "tests/played.h"
#include "tests/scenarios/jobs/ranktrain/heard.h"

#include "scenarios/jobs/ranktrain/asked.h"
#include "scenarios/jobs/ranktrain/checkpoint.h"
#include "scenarios/jobs/ranktrain/checkpoint_dir.h"
#include "scenarios/jobs/ranktrain/checkpoints/follow.h"
#include "scenarios/jobs/ranktrain/checkpoints/leases.h"
#include "scenarios/jobs/ranktrain/data/dataset.h"
#include "scenarios/jobs/ranktrain/data/dataset_kind.h"
#include "scenarios/jobs/ranktrain/evaluate.h"
#include "scenarios/jobs/ranktrain/model/blas.h"
#include "scenarios/jobs/ranktrain/model/loss.h"
#include "scenarios/jobs/ranktrain/model/networks.h"
#include "scenarios/jobs/ranktrain/model/pass.h"

#include "base/mem.h"

#include <unistd.h>

enum { STEPS_MAX = 24, IMAGES = 21, CLASSES = 4, TOLD = 41 };

static struct {
    int64_t steps[STEPS_MAX]; /* that are there, oldest first */
    int n, dir, left, asks; /* left: steps that are still to come; asks: until it is asked to end */
    bool follows, leased, data, blas, asked;
    int models, passes;
    struct model *model, *before; /* the newest, and the one that it was made beside */
    uint8_t pixels[IMAGES], labels[IMAGES];
    float out[64 * CLASSES];
} world;

static int fails_so(const char *what, struct err *err) {
    return fails("  %s", what) ? err_say(err, -played.code, "could not %s", what) : 0;
}

/* ---- the directory ---- */

/* Newest first. */
static int played_steps(int dir, int64_t **ret, struct err *err) {
    assert_int_equal(dir, world.dir);
    int r = fails_so("list steps", err);
    if (r < 0)
        return r;
    *ret = mem_array(int64_t, STEPS_MAX);
    for (int i = 0; i < world.n; i++)
        (*ret)[i] = world.steps[world.n - 1 - i];
    return world.n;
}

/* Of any network and data, by its step. */
static int played_manifest(int dir, int64_t step, struct manifest *ret, struct err *err) {
    static const char *const networks[] = {"lenet", "lenet", "alexnet", "vgg11"};
    assert_int_equal(dir, world.dir);
    note("manifest of %lld", (long long)step);
    int r = fails_so("read it", err);
    *ret = (struct manifest){.step = step, .width = 1 + draw(2), .seed = draw(9), .parameters = 6};
    if (draw(6) == 0)
        ret->width = (int64_t[]){-1, 0, MODEL_WIDTH, MODEL_WIDTH + 1}[draw(4)];
    if (draw(8) == 0)
        ret->parameters = (int64_t[]){-6, 0, 5, 7}[draw(4)];
    strcpy(ret->network, networks[draw(4)]);
    strcpy(ret->optimizer, draw(2) ? "sgd" : "adam");
    strcpy(ret->training.dataset, draw(8) ? "generated" : draw(2) ? "" : "mnist");
    return r;
}

static int played_load(const struct checkpoint_place *p, int dir, int64_t step, struct state *ret,
                       struct err *err) {
    assert_true(dir == world.dir && p->model == world.model && !p->training);
    note("load %lld from %s: run \"%s\", %s, round %lld, seed %lld, %zu %d", (long long)step,
         p->dir, p->run_id, p->optimizer->name, (long long)p->round, (long long)p->seed,
         ret->values, ret->moments);
    ret->weights[0] = (float)step;
    return fails_so("load it", err);
}

static int played_follow_new(struct follow **ret, const char *dir, int64_t interval_ns,
                             int64_t beat_ns, int wake_fd, struct err *err) {
    note("follow %s, interval %lld, beat %lld, wake %d", dir, (long long)interval_ns,
         (long long)beat_ns, wake_fd);
    int r = fails_so("follow it", err);
    if (r == 0)
        *ret = (struct follow *)&world;
    world.follows = r == 0;
    return r;
}

static struct follow *played_follow_free(struct follow *f) {
    note("follow no more %d", f != NULL);
    assert_int_equal(f != NULL, world.follows);
    world.follows = false;
    return NULL;
}

static int played_follow_open(struct follow *f, struct err *err) {
    assert_ptr_equal(f, &world);
    int r = fails_so("open it", err);
    return r < 0 ? r : (world.dir = played_open());
}

/* Others come, or nothing did and a beat was over; in the end it is asked to end. */
static int played_follow_wait(struct follow *f, struct err *err) {
    assert_ptr_equal(f, &world);
    int r = fails_so("wait", err);
    if (r < 0)
        return r;
    if (world.left <= 0 || world.asks-- == 0)
        return -ECANCELED;
    for (int i = draw(4); i > 0 && world.left > 0; i--, world.left--) {
        int64_t last = world.n ? world.steps[world.n - 1] : 0;
        if (world.n == STEPS_MAX / 2)
            memmove(world.steps, world.steps + 1, (size_t)--world.n * sizeof(*world.steps));
        world.steps[world.n++] = last + 1 + draw(2);
    }
    note("  there are %d now", world.n);
    return 0;
}

static int played_lease_take(struct lease *ret, int dir, int64_t every, struct err *err) {
    assert_int_equal(dir, world.dir);
    note("lease: every %lld", (long long)every);
    int r = fails_so("take a lease", err);
    world.leased = r == 0;
    if (r == 0)
        *ret = (struct lease){.fd = 5, .dir = dir, .every = every};
    return r;
}

static int played_lease_read(struct lease *l, int64_t step, struct err *err) {
    assert_int_equal(l->fd, 5);
    note("lease: read %lld", (long long)step);
    return fails_so("say so", err);
}

static void played_lease_renew(struct lease *l) {
    assert_int_equal(l->fd, 5);
    note("lease: renew");
}

static void played_lease_drop(struct lease *l) {
    assert_int_equal(l->fd, world.leased ? 5 : -1);
    note("lease: drop %d", l->fd);
    world.leased = false;
}

/* ---- data and network ---- */

static int played_data_open(const struct dataset_kind *k, const char *dir, int side, int sets,
                            struct dataset *ret, struct err *err) {
    note("data: %s in %s, side %d, sets %d", k->name, dir ? dir : "-", side, sets);
    int r = fails_so("open data", err);
    if (r < 0)
        return r;
    world.data = true;
    *ret = (struct dataset){.kind = k,
                            .test = {.shape = {.channels = 1,
                                               .side = 1,
                                               .classes = CLASSES,
                                               .mean = {0.5f},
                                               .deviation = {0.25f}},
                                     .count = 1 + (uint32_t)draw(IMAGES),
                                     .bytes = 1,
                                     .pixels = world.pixels,
                                     .labels = world.labels,
                                     .path = "images"}};
    if (draw(12) == 0) {
        static const uint8_t none[IMAGES * 4];
        ret->test.checksums = none;
        ret->test.map = world.pixels;
    }
    return 0;
}

static void played_data_close(struct dataset *d) {
    note("data close %u", d->test.count);
    assert_int_equal(d->test.count > 0, world.data);
    world.data = false;
}

static int played_blas_open(struct blas *ret, struct err *err) {
    (void)ret;
    int r = fails_so("open BLAS", err);
    world.blas = r == 0;
    return r;
}

static void played_blas_close(struct blas *b) {
    (void)b;
    note("BLAS close");
    world.blas = false;
}

static struct model *played_model_new(const char *network, int width, const struct model_data *d,
                                      struct err *err) {
    note("model %s of %d: %dx%d, %d classes, batch %d, %g %g", network, width, d->channels, d->side,
         d->classes, d->batch, (double)d->mean[0], (double)d->deviation[0]);
    if (fails_so("make it", err))
        return NULL;
    struct model *m = mem_new(struct model);
    *m = (struct model){.width = width, .data = *d, .n = 3, .trained = 5, .values = 6};
    snprintf(m->name, sizeof(m->name), "%s", network);
    world.models++;
    world.before = world.model;
    return world.model = m;
}

static struct model *played_model_free(struct model *m) {
    note("model free %s", m ? m->name : "-");
    world.models -= m != NULL;
    if (m && m == world.model)
        world.model = world.before;
    free(m);
    return NULL;
}

static struct pass *played_pass_new(const struct model *m, const struct blas *b) {
    assert_true(m == world.model && b && world.blas);
    world.passes++;
    note("pass");
    return (struct pass *)&world.passes;
}

static struct pass *played_pass_free(struct pass *p) {
    note("pass free %d", p != NULL);
    world.passes -= p != NULL;
    return NULL;
}

static void played_classify(struct pass *p, const float *values, const uint8_t *const *images,
                            uint8_t *ret_classes) {
    assert_ptr_equal(p, &world.passes);
    buf_printf(&played.said, "classify by %g:", (double)values[0]);
    for (int i = 0; i < world.model->data.batch; i++) {
        buf_printf(&played.said, " %d", (int)(images[i] - world.pixels));
        ret_classes[i] = (uint8_t)(*images[i] % CLASSES);
    }
    note(".");
}

static struct pass_layer played_look(const struct pass *p, int layer) {
    assert_true(p == (void *)&world.passes && layer == 2);
    return (struct pass_layer){.out = world.out};
}

static double played_loss(const float *logits, const uint8_t *labels, int samples, int classes,
                          float *ret) {
    assert_true(samples == 1 && classes == CLASSES && ret);
    note("  loss of %td: %d", logits - world.out, *labels);
    return (double)(logits - world.out) / 4 + *labels;
}

static int played_asked_open(struct asked *ret, struct err *err) {
    int r = fails_so("be asked", err);
    world.asked = r == 0;
    if (r == 0)
        *ret = (struct asked){.told_fd = TOLD, .end_fd = TOLD, .stop_fd = -1};
    return r;
}

static bool played_asked_is(const struct asked *a) {
    assert_int_equal(a->told_fd, TOLD);
    return draw(30) == 0;
}

static void played_asked_close(struct asked *a) {
    note("asked close %d", a->told_fd);
    assert_int_equal(a->told_fd, world.asked ? TOLD : -1);
    world.asked = false;
}

#define checkpoint_dir_steps    played_steps
#define checkpoint_dir_manifest played_manifest
#define checkpoint_load_step    played_load
#define follow_new              played_follow_new
#define follow_free             played_follow_free
#define follow_open             played_follow_open
#define follow_wait             played_follow_wait
#define lease_take              played_lease_take
#define lease_read              played_lease_read
#define lease_renew             played_lease_renew
#define lease_drop              played_lease_drop
#define dataset_open            played_data_open
#define dataset_close           played_data_close
#define blas_open               played_blas_open
#define blas_close              played_blas_close
#define model_new               played_model_new
#define model_free              played_model_free
#define pass_new                played_pass_new
#define pass_free               played_pass_free
#define pass_classify           played_classify
#define pass_look               played_look
#define loss_cross_entropy      played_loss
#define asked_open              played_asked_open
#define asked_is                played_asked_is
#define asked_close             played_asked_close
#define file_close              played_file_close
#include "scenarios/jobs/ranktrain/evaluate.c"

/* ---- plays ---- */

static void evaluate(uint64_t seed) {
    static const char *const networks[] = {NULL, NULL, "lenet", "vgg11", "unknown"};
    struct err err = {0};
    (void)seed;
    memset(&world, 0, sizeof(world));
    for (int i = 0; i < IMAGES; i++) {
        world.pixels[i] = (uint8_t)i;
        world.labels[i] = (uint8_t)(i * 3 % CLASSES);
    }
    world.dir = -1;
    world.left = draw(12);
    world.asks = 3 + draw(20);
    for (int i = 0, n = draw(4); i < n; i++)
        world.steps[world.n++] = i * 2 + draw(2);
    const struct ranktrain_options o = {.dataset = draw(20) ? "generated" : "unknown",
                                        .data_dir = draw(2) ? "/data" : NULL,
                                        .checkpoint_dir = "d",
                                        .network = networks[draw(5)],
                                        .image_size = 32,
                                        .eval_batch_size = draw(3) ? 1 + draw(9) : 63 + draw(3),
                                        .interval_ns = draw(2) * 1000,
                                        .checkpoint_every = 1 + draw(3),
                                        .steps = draw(3) ? 0 : 1 + draw(9)};
    heard_begin();
    int r = evaluate_run(&o, &err);
    heard_end();
    note("evaluate: %d, %d \"%s\"", r, err.code, err.msg);
    assert_false(world.follows || world.leased || world.data || world.asked);
    assert_true(world.models == 0 && world.passes == 0);
}

static const struct play plays[] = {
    {"tests/scenarios/jobs/ranktrain/record/evaluate.txt", evaluate, 160, true, {EIO, ECANCELED}}};

static void test_what_an_evaluator_does_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

/* ---- what it is told ---- */

static void test_an_evaluator_is_told_a_directory_and_a_pace(void **state) {
    (void)state;
    static const struct {
        const char *words[5];
        int64_t every;
        const char *network, *said; /* said: it is refused */
    } rows[] = {
        {{"--model-dir=d"}, 1, NULL, NULL},
        {{"--model-dir=d", "--eval-freq=5"}, 5, NULL, NULL},
        {{"--model-dir=d", "--eval_freq=6"}, 6, NULL, NULL},
        {{"--model-dir=d", "--eval-freq", "7"}, 7, NULL, NULL},
        {{"--checkpoint-dir=d", "--checkpoint-every=8"}, 8, NULL, NULL},
        {{"--model-dir=d", "--checkpoint-every", "9"}, 9, NULL, NULL},
        {{"--model-dir=d", "--network=lenet"}, 1, "lenet", NULL},
        {{"--model-dir=d", "--arch=vgg11"}, 1, "vgg11", NULL},
        {{"--model-dir=d", "--arch", "vgg11"}, 1, "vgg11", NULL},
        {{"--help"}, 1, NULL, NULL},
        {{"--version"}, 1, NULL, NULL},
        {{NULL}, 0, NULL, "evaluate needs --model-dir=DIR, where the checkpoints come"},
        {{"--model-dir=d", "--steps=x"},
         0,
         NULL,
         "--steps=x: expected a whole number from 0 to 99999999"},
        {{"--eval-freq=5"}, 0, NULL, "evaluate needs --model-dir=DIR, where the checkpoints come"},
        {{"--model-dir=d", "--eval-freq=2ep"},
         0,
         NULL,
         "--eval-freq: evaluate counts steps, not epochs"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char *argv[7] = {"ranktrain"};
        int argc = 1;
        struct ranktrain_options o, before;
        struct err err = {0};
        memset(&o, 0x5a, sizeof(o));
        before = o;
        for (int k = 0; k < 5 && rows[i].words[k]; k++)
            argv[argc++] = (char *)(uintptr_t)rows[i].words[k];
        int r = evaluate_parse(argc, argv, &o, &err);
        assert_int_equal(r, rows[i].said ? -EINVAL : 0);
        assert_string_equal(err.msg, rows[i].said ? rows[i].said : "");
        if (r < 0) {
            assert_memory_equal(&o, &before, sizeof(o));
            continue;
        }
        assert_int_equal(o.checkpoint_every, rows[i].every);
        if (rows[i].network)
            assert_string_equal(o.network, rows[i].network);
        else
            assert_null(o.network);
    }
}

int main(int argc, char **argv) {
    unsetenv(OPTIONS_VARIABLE);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_an_evaluator_does_is_on_record),
        cmocka_unit_test(test_an_evaluator_is_told_a_directory_and_a_pace),
    };
    return played_main(argc, argv, plays, tests);
}
