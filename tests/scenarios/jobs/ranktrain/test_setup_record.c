/* What a worker brings before it meets anybody, in a world that is drawn: what it asks of data, loaders, computation and mode,
 * what it then knows of its training, and what it says, also where one of them is not to be had. */
#include "tests/scenarios/jobs/ranktrain/played_rank.h"

#include "scenarios/jobs/ranktrain/setup.h"

#include "scenarios/jobs/ranktrain/data/dataset_kind.h"

#include "base/mem.h"

/* ---- what it asks ---- */

static int fails_so(const char *what, struct err *err) {
    return fails("  %s", what) ? err_say(err, -played.code, "could not %s", what) : 0;
}

static uint32_t images, parts;

static int played_data(const struct dataset_kind *k, const char *dir, int side, int sets,
                       struct dataset *ret, struct err *err) {
    note("data: %s in %s, side %d, sets %d", k->name, dir ? dir : "-", side, sets);
    int r = fails_so("open data", err);
    if (r < 0)
        return r;
    *ret = (struct dataset){.kind = k, .train = scene.t.data.test, .test = scene.t.data.test};
    ret->train.count = images;
    ret->train.parts = parts;
    ret->train.part = parts ? (uint32_t)draw((int)parts) : 0;
    ret->train.whole = images * (parts ? parts : 1) + (parts > 1);
    ret->train.tail = 4711;
    ret->train.pictures = draw(4) ? NULL : (struct pictures *)&images;
    return 0;
}

static int played_loaders(const struct loaders_job *job, struct loaders **ret, struct err *err) {
    note("loaders: %d, seed %llu, batch %u, parts %u, drop %d, up to %llu", job->loaders,
         (unsigned long long)job->seed, job->batch, job->parts, job->drop_last,
         (unsigned long long)job->last_step);
    assert_ptr_equal(job->images, &scene.t.data.train);
    for (uint32_t i = 0; i < job->places_n; i++)
        buf_printf(&played.said, " %u", job->places[i]);
    int r = fails_so("start loaders", err);
    if (r == 0)
        *ret = (struct loaders *)&images;
    return r;
}

static struct model *played_model(const char *network, int width, const struct model_data *d,
                                  struct err *err) {
    note("model: %s of %d: %dx%dx%d, %d classes, batch %d, %g %g", network, width, d->channels,
         d->side, d->side, d->classes, d->batch, (double)d->mean[0], (double)d->deviation[0]);
    return fails_so("make a model", err) ? NULL : &rank_model;
}

static int played_told(struct asked *ret, struct err *err) {
    int r = fails_so("be asked", err);
    if (r == 0)
        *ret = (struct asked){.told_fd = 31, .end_fd = 31, .stop_fd = -1};
    return r;
}

static int played_allow(struct asked *a, int64_t grace_ns, struct err *err) {
    note("grace %lld", (long long)grace_ns);
    int r = fails_so("wait for the end", err);
    a->end_fd = r == 0 ? 32 : a->end_fd;
    return r;
}

static struct compute gpu_compute;
static struct collective gpu_collective;
static struct gpu_backend gpu;
static int device; /* 0: there is one, else why there is not */

static int played_backend(const struct gpu_backend **ret, struct err *err) {
    if (device == -ENOENT)
        return err_say(err, device, "there is no file");
    int r = fails_so("open the GPU's library", err);
    if (r == 0)
        *ret = &gpu;
    return r;
}

static int gpu_open(const struct compute_place *at, void **ret, char ret_label[COMPUTE_LABEL],
                    struct err *err) {
    note("GPU");
    if (device < 0)
        return err_say(err, device, "there is no device");
    return rank_compute_open(at, ret, ret_label, err);
}

static int gpu_prepare(struct err *err) {
    return fails_so("prepare", err);
}

static struct compute cpu;

static int mode_open(struct trainer *t, struct err *err) {
    assert_ptr_equal(t, &scene.t);
    return fails_so("open the mode", err);
}

static int mode_gather(struct trainer *t, struct state *ret, struct err *err) {
    (void)t;
    (void)ret;
    (void)err;
    return 0;
}

static const struct mode kinds[] = {{.name = "alike", .open = mode_open},
                                    {.name = "alone", .alone = true, .open = mode_open},
                                    {.name = "layers", .layered = true, .gather = mode_gather},
                                    {.name = "server", .serves = true, .gather = mode_gather}};
static const struct mode *kind; /* NULL: its name is not known */

static const struct mode *played_mode(const char *name, struct err *err) {
    if (!kind)
        err_say(err, -EINVAL, "--mode=%s is not known", name);
    return kind;
}

#define dataset_open  played_data
#define loaders_start played_loaders
#define model_new     played_model
#define asked_open    played_told
#define asked_allow   played_allow
#define backend_open  played_backend
#define compute_cpu   cpu
#define mode_find     played_mode
#include "scenarios/jobs/ranktrain/setup.c"
#undef mode_find

/* ---- plays ---- */

static void set_options(int number, int world, int shards) {
    static const char *const devices[] = {"cpu", "auto", "cuda"};
    struct ranktrain_options *o = &scene.o;
    o->mode = "some";
    o->dataset = draw(16) == 0 ? "unknown" : draw(2) ? "fashion-mnist" : "generated";
    o->data_dir = draw(2) ? "/data" : NULL;
    o->image_size = draw(2) * 32;
    o->loaders = draw(3) == 0 ? 1 + draw(3) : 0;
    o->samples = draw(2) ? 1 + draw(40) : 0;
    o->steps = draw(2) ? 1 + draw(9) : 0;
    o->epochs = 1 + draw(3);
    o->drop_last = draw(2);
    o->optimizer = draw(16) == 0 ? "unknown" : draw(2) ? "sgd" : "adam";
    o->network = "lenet";
    o->width = draw(3);
    o->lr = draw(2) ? -1 : 0.25;
    o->momentum = 0.5;
    o->scale_lr = draw(3);
    o->checkpoint_dir = draw(2) ? "d" : NULL;
    o->checkpoint_every = draw(2) ? 1 + draw(5) : -1 - draw(3);
    o->checkpoint_keep = 1 + draw(4);
    o->grace_ns = 1000 + draw(5);
    o->device = devices[draw(3)];
    o->dist_backend = draw(2) ? "tcp" : "nccl";
    o->renamed_backend = draw(2) ? "gloo" : NULL;
    o->device_memory = draw(2) * 12345;
    o->ps_async = draw(2);
    o->seed = draw(5);
    o->round = draw(5);
    strcpy(o->run_id, "run");
    o->rank = number;
    o->world = world;
    o->shards = shards;
    o->batch_size = shards * RANK_BATCH;
}

/* Everything that setup may have written. */
static void say_trainer(const struct trainer *t) {
    const struct checkpoint_place *p = &t->place;
    note("mode %s, label %s, %s computes, %s sums, gpu %d", t->mode ? t->mode->name : "-", t->label,
         t->compute == &cpu           ? "cpu"
         : t->compute == &gpu_compute ? "gpu"
                                      : "nobody",
         t->collective == &gpu_collective ? "gpu" : "who was there", t->gpu != NULL);
    note("images %u of %u, parts %u, sampler %u %u %u %d seed %llu", t->data.train.count,
         t->data.train.whole, t->parts, t->sampler.samples, t->sampler.batch, t->sampler.block,
         t->sampler.drop_last, (unsigned long long)t->sampler.seed);
    buf_printf(&played.said,
               "steps %llu, save every %llu, limit %zu, loaders %d %d, asked %d %d, shards",
               (unsigned long long)t->last_step, (unsigned long long)t->save_every, t->ration.limit,
               t->loaders != NULL, t->data.train.ahead != NULL, t->asked.told_fd, t->asked.end_fd);
    for (int i = 0; i < t->n_shards; i++)
        buf_printf(&played.said, " %d", t->shards[i]);
    note("; optimizer %s %.9g %.9g", t->optimizer.kind ? t->optimizer.kind->name : "-",
         (double)t->optimizer.lr, (double)t->optimizer.momentum);
    if (p->model)
        note("place %s, %s, %s, run %s, round %lld, seed %lld, world %d, keep %d, speaking %d, "
             "training %d",
             p->dir ? p->dir : "-", p->model->name, p->optimizer->name, p->run_id,
             (long long)p->round, (long long)p->seed, p->world, p->keep,
             p->speaking == &t->speaking, p->training == &t->training);
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    training_write(&t->training, &w);
    json_end_object(&w);
    note("training %s", buf_str(&text));
}

static void set_up(uint64_t seed) {
    static const int whys[] = {0, 0, -ENOENT, -ENODEV, -EIO};
    struct trainer *t = &scene.t;
    int world = 1 + draw(4), shards = 4 + 4 * draw(2), number = draw(world);
    rank_begin_as("manual", number, world, shards);
    scene.t.data.test.shape.mean[0] = 0.75f;
    sampler_fini(&t->sampler);
    free(t->read);
    t->read = NULL;
    t->compute = NULL;
    t->optimizer = (struct optimizer){0};
    t->n_shards = 0;
    t->parts = 0;
    t->model = NULL;
    int told = t->asked.told_fd;
    t->asked = ASKED_CLOSED;
    kind = draw(24) ? &kinds[seed % 4] : NULL;
    if (kind && kind->serves && world == 1)
        scene.o.rank = number = 0, world = 2;
    set_options(number, world, shards);
    parts = (uint32_t)(draw(2) ? draw(4) : 0);
    images = 9 + (uint32_t)draw(60);
    device = whys[draw(5)];
    cpu = gpu_compute = rank_compute_sum;
    gpu_compute.open = gpu_open;
    gpu_collective = (struct collective){.name = "nccl", .prepare = draw(2) ? gpu_prepare : NULL};
    gpu = (struct gpu_backend){.compute = &gpu_compute,
                               .collective = draw(3) ? &gpu_collective : NULL};
    rank_listen();
    int r = setup(t, &scene.err);
    rank_heard();
    rank_say("setup", r);
    t->asked.told_fd = t->asked.told_fd == 31 ? 31 : -1;
    say_trainer(t);
    if (t->c)
        rank_compute_close(t->c, NULL);
    t->asked.told_fd = told;
    rank_end();
}

static const struct play plays[] = {
    {"tests/scenarios/jobs/ranktrain/record/setup.txt", set_up, 240, true, {ENODEV, EIO}}};

static void test_what_a_worker_brings_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

/* Each rank's data is split as its shards are, or is refused, for every world, whatever its part. */
static void test_a_part_is_for_its_ranks_alone(void **state) {
    (void)state;
    static const struct mode plain = {.name = "plain"}, serving = {.name = "ps", .serves = true};
    for (int serves = 0; serves < 2; serves++)
        for (int world = 1 + serves; world <= 7; world++)
            for (int number = 0; number < world; number++)
                for (uint32_t of = 1; of <= 4; of++)
                    for (uint32_t part = 0; part < of; part++) {
                        struct ranktrain_options o = {.rank = number, .world = world, .shards = 12};
                        struct trainer t = {.o = &o,
                                            .mode = serves ? &serving : &plain,
                                            .data.train = {.part = part, .parts = of, .path = "P"}};
                        struct err err = {0};
                        uint32_t workers = (uint32_t)(world - serves);
                        char want[200] = "";
                        bool split = workers > 1 && of > 1;
                        bool even = workers % of == 0 && 12 % of == 0;
                        uint32_t due = even && number >= serves
                                           ? (uint32_t)(number - serves) / (workers / of)
                                           : part;
                        if (split && !even)
                            snprintf(
                                want, sizeof(want),
                                "P is part %u of %u: %u workers and 12 shards cannot be divided "
                                "by %u",
                                part, of, workers, of);
                        else if (split && due != part)
                            snprintf(
                                want, sizeof(want),
                                "P is part %u of %u, and rank %d of %d is due part %u: prepare it "
                                "on each node by --split=node",
                                part, of, number, world, due);
                        assert_int_equal(check_part(&t, &err), *want ? -EINVAL : 0);
                        assert_string_equal(err.msg, want);
                        assert_int_equal(t.parts, split ? of : 1);
                    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_worker_brings_is_on_record),
        cmocka_unit_test(test_a_part_is_for_its_ranks_alone),
    };
    return played_main(argc, argv, plays, tests);
}
