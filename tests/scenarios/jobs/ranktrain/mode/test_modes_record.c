/* What each mode does in a world that is drawn: every exchange and every computation, with the numbers that go out, what it
 * makes of those that come in, what it says, and what it leaves when one of them fails. */
#include "tests/scenarios/jobs/ranktrain/played_rank.h"

#include "scenarios/jobs/ranktrain/mode/part.h"
#include "scenarios/jobs/ranktrain/mode/reducer.h"
#include "scenarios/jobs/ranktrain/mode/work.h"
#include "scenarios/jobs/ranktrain/save.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <semaphore.h>

/* ---- what modes call besides ---- */

static int threads; /* of this opening; one that cannot be had beside others waits for them */

int pthread_create(pthread_t *ret, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *arg) {
    static int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!create)
        create = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))(
            uintptr_t)dlsym(RTLD_NEXT, "pthread_create");
    if (threads++ == 0 && fails("thread"))
        return played.code;
    return create(ret, attributes, run, arg);
}

int save_copy(struct trainer *t, const struct state *s, struct err *err) {
    assert_ptr_equal(t, &scene.t);
    note("a copy is kept");
    rank_say_state(s);
    return fails("keep it") ? err_say(err, -played.code, "the copy could not be kept") : 0;
}

/* ---- a parameter server and its workers ---- */

struct head { /* as mode/ps.c has it */
    uint64_t step, at;
    uint32_t batches, ends, moments;
};

/* Between its numbers there may be anything. */
static size_t say_head(const struct collective_call *call) {
    const struct head *h = call->data;
    size_t behind = call->bytes - sizeof(*h);
    if (call->op != COLLECTIVE_SEND ||
        (behind != RANK_VALUES * 4 && behind != (RANK_VALUES + 1) * 8))
        return 0;
    buf_printf(&played.said, " (step %llu, at %llu, %u batches, ends %u, moments %u)",
               (unsigned long long)h->step, (unsigned long long)h->at, h->batches, h->ends,
               h->moments);
    return sizeof(*h);
}

/* Who serves hears sums of this step, or of one that is over. */
static void bring_to_server(struct collective_call *call) {
    struct head *head = call->data;
    if (call->op != COLLECTIVE_RECEIVE)
        return;
    uint64_t step = scene.t.state.step + 1;
    *head = (struct head){.step = draw(3) ? step : step - 1, .batches = (uint32_t)draw(4) + 1};
    memset(head + 1, 0, call->bytes - sizeof(*head));
    rank_draw_sums((int64_t *)(head + 1), (call->bytes - sizeof(*head)) / 8);
}

/* Who works is told a step and hears weights, moments and a loss. */
static void bring_to_worker(struct collective_call *call) {
    struct head *head = call->data;
    if (call->op == COLLECTIVE_RECEIVE && call->bytes == sizeof(*head) + RANK_VALUES * 4) {
        uint64_t step = scene.t.state.step + 2;
        *head = (struct head){.step = step + (uint64_t)draw(2),
                              .at = step - 1,
                              .ends = (uint32_t)(draw(4) ? 0 : 1 + draw(2)),
                              .moments = draw(3) == 0};
        rank_draw_floats((float *)(head + 1), RANK_VALUES);
    } else if (call->op == COLLECTIVE_RECEIVE) {
        rank_draw_floats(call->data, call->bytes / 4);
    } else if (call->op == COLLECTIVE_BROADCAST && call->bytes == 8) {
        double loss = draw(16) / 4.0;
        uint64_t step = scene.t.state.step + 1 + (uint64_t)(draw(4) == 0);
        memcpy(call->data, scene.turn == 1 ? (void *)&step : (void *)&loss, 8);
    } else if (call->op == COLLECTIVE_BROADCAST) {
        rank_draw_floats(call->data, call->bytes / 4);
    }
}

/* ---- plays ---- */

static void open_it(void) {
    struct trainer *t = &scene.t;
    const struct compute_place at = {.model = t->model,
                                     .batches = t->mode->alone ? 1 : t->n_shards,
                                     .layered = t->mode->layered,
                                     .wake_fd = t->asked.end_fd};
    char text[RATION_TEXT];
    threads = 0;
    int r = t->compute->open(&at, &t->c, t->label, &scene.err);
    if (r == 0)
        r = t->mode->open(t, &scene.err);
    rank_say("open", r);
    ration_print(&t->ration, text);
    note("  %s", text);
    if (r < 0) {
        t->mode->close(t);
        t->compute->close(t->c, NULL);
        t->o = NULL;
    }
}

/* Of what each rank holds, or all, or nothing. */
static void gather(void) {
    struct trainer *t = &scene.t;
    struct state all = {0};
    size_t lo = (size_t)draw(RANK_TRAINED), hi = lo + (size_t)draw((int)(RANK_TRAINED - lo) + 1);
    int what = draw(3);
    if (what == 1)
        state_init(&all, t->model, t->optimizer.kind);
    if (what == 2)
        state_init_part(&all, t->model, t->optimizer.kind, (struct state_range){lo, hi},
                        (struct state_range){lo, hi});
    int r = t->mode->gather(t, what ? &all : NULL, &scene.err);
    rank_say("gather", r);
    if (r == 0 && what)
        rank_say_state(&all);
    state_fini(&all);
}

static void hash(void) {
    char text[65] = "";
    int r = trainer_hash(&scene.t, text, &scene.err);
    rank_say("hash", r);
    note("  %s", text);
}

static void classify(void) {
    const uint8_t *images[LAYER_BATCH_MAX] = {rank_pixels + 3, rank_pixels + 8};
    uint8_t classes[LAYER_BATCH_MAX] = {0};
    int r = scene.t.mode->classify(&scene.t, draw(3) ? images : NULL, classes, &scene.err);
    rank_say("classify", r);
    note("  %d %d", classes[0], classes[1]);
}

static int step(void) {
    struct trainer *t = &scene.t;
    double loss = -1;
    memset(t->read, 0xee, (size_t)scene.o.batch_size * sizeof(*t->read));
    scene.begun_ns = deadline_now_ns();
    scene.turn = 0;
    rank_listen();
    int r = t->mode->step(t, &loss, &scene.err);
    rank_heard();
    rank_say("step", r);
    if (r == 0)
        note("  loss %.17g, read %08x", loss,
             sum_of(t->read, (size_t)scene.o.batch_size * sizeof(*t->read)));
    rank_say_state(&t->state);
    return r;
}

static void live(void) {
    struct trainer *t = &scene.t;
    int steps = 2 + draw(4), r = 0;
    if (draw(2))
        t->last_step = (uint64_t)steps;
    rank_draw_floats(t->state.weights, state_range_length(t->state.held));
    for (int i = 0; i < t->state.moments; i++)
        rank_draw_floats(t->state.moment[i], state_range_length(t->state.held_moments));
    for (int i = 0; i < steps && !t->ends; i++) {
        r = step();
        bool broken = scene.beside && scene.fails_n >= 0; /* what computes: then all ends */
        if (r < 0 && (broken || draw(2)))
            break;
        if (r < 0 && t->mode->forget)
            t->mode->forget(t);
    }
    scene.begun_ns = deadline_now_ns();
    if (r == 0 && t->mode->gather && !scene.o.ps_async)
        gather();
    if (r == 0)
        hash();
    if (r == 0 && t->mode->classify)
        classify();
    rank_hear();
    t->mode->close(t);
    t->compute->close(t->c, NULL);
}

static void play(const char *mode, int number, int world) {
    rank_begin_as(mode, number, world, 4 + 4 * draw(2));
    rank_set_page(draw(2), draw(2));
}

static void play_out(void) {
    if (draw(5) == 0) {
        rank_ask_to_end();
        scene.o.compute_ns = draw(2) ? INT64_C(3600000000000) : 0;
    }
    if (draw(6) == 0) { /* an image that is damaged */
        static const uint8_t sums[RANK_IMAGES * 4];
        scene.t.data.train.checksums = sums;
        scene.t.data.train.map = rank_pixels;
    }
    if (draw(5) == 0) /* a device that may have too little memory */
        scene.t.ration.limit = ((size_t)1 << draw(12)) + (size_t)draw(64);
    open_it();
    if (scene.t.o)
        live();
    rank_end();
}

static void alike(uint64_t seed) {
    static const char *const names[] = {"manual", "ddp", "zero", "fsdp"};
    int world = 1 + draw(4);
    play(names[seed % 4], draw(world), world);
    play_out();
}

/* What computes says what it has been asked when all is over, for peers are heard meanwhile. */
static void beside(uint64_t seed) {
    static const int codes[] = {-EIO, -ERANGE, -ECANCELED};
    bool devices = seed % 2;
    int world = devices ? 1 : 2 + draw(2), n = devices ? 1 + draw(4) : 1;
    play(devices ? "dp" : "ddp", draw(world), world);
    scene.beside = true;
    scene.o.overlap = true;
    scene.o.devices = n;
    if (draw(4) == 0) {
        scene.fails_n = devices ? 1 + draw(n) : 0;
        scene.fails_code = codes[draw(3)];
    }
    if (devices && draw(3) == 0) /* a device that holds less than that of the rank itself */
        scene.t.ration.limit = 1500 + (size_t)draw(1200);
    play_out();
}

static void serve(uint64_t seed) {
    int world = 2 + draw(4);
    play("ps", 0, world);
    scene.o.ps_async = seed % 4 != 0;
    scene.o.backup_workers = scene.o.ps_async ? draw(world - 1) : 0;
    scene.o.recover = draw(4) ? "restart" : "in-process";
    scene.o.checkpoint_dir = draw(2) ? "d" : NULL;
    scene.deliver = bring_to_server;
    scene.head = say_head;
    scene.t.save_every = 1 + (uint64_t)draw(3);
    for (int i = 0; i < world; i++)
        scene.t.resume.places.keeper[i] = draw(2) ? i : 0;
    play_out();
}

static void work(uint64_t seed) {
    int world = 2 + draw(4);
    play("ps", 1 + draw(world - 1), world);
    scene.o.ps_async = seed % 3 != 0;
    scene.deliver = bring_to_worker;
    scene.head = say_head;
    play_out();
}

static const struct play plays[] = {
    {"tests/scenarios/jobs/ranktrain/record/alike.txt", alike, 96, true, {ECONNRESET, ECANCELED}},
    {"tests/scenarios/jobs/ranktrain/record/beside.txt", beside, 96, true, {ETIMEDOUT, EPIPE}},
    /* an exchange begins and ends: each is lost in each way */
    {"tests/scenarios/jobs/ranktrain/record/server.txt", serve, 96, true, {EPIPE, ECONNRESET}},
    {"tests/scenarios/jobs/ranktrain/record/server_late.txt", serve, 96, true, {ETIMEDOUT, EPIPE}},
    {"tests/scenarios/jobs/ranktrain/record/server_reset.txt", serve, 96, true, {EIO, ETIMEDOUT}},
    {"tests/scenarios/jobs/ranktrain/record/worker.txt", work, 64, true, {ECONNRESET, ERANGE}},
};
enum { PLAYS = sizeof(plays) / sizeof(*plays) };

static void test_what_modes_exchange_is_on_record(void **state) {
    (void)state;
    for (int i = 0; i < PLAYS; i++)
        played_check(&plays[i]);
}

/* ---- tensors longer than a block ---- */

enum { BLOCK_LONG = 64 * 1024 };

static size_t expected;
static float right_of(size_t at) {
    return (float)(at % 4093);
}

static void take(void *arg, size_t at, const float *x, size_t n) {
    assert_ptr_equal(arg, &expected);
    assert_int_equal(at, expected);
    assert_true(n > 0 && n <= BLOCK_LONG);
    for (size_t i = 0; i < n; i++)
        if (x[i] != right_of(at + i))
            fail_msg("number %zu is %g", at + i, (double)x[i]);
    expected += n;
}

static void bring_block(struct collective_call *call) {
    float *x = call->data;
    for (size_t i = 0; i < call->bytes / 4 && call->peer != scene.o.rank; i++)
        x[i] = right_of(expected + i);
}

/* Block by block, of each rank's part, from the first number to the last. */
static void test_a_tensor_longer_than_a_block_is_visited_whole(void **state) {
    (void)state;
    static const size_t lengths[] = {BLOCK_LONG - 1, BLOCK_LONG, BLOCK_LONG + 1, 3 * BLOCK_LONG,
                                     2 * BLOCK_LONG + 7};
    for (size_t k = 0; k < sizeof(lengths) / sizeof(*lengths); k++)
        for (int world = 1; world <= 2; world++)
            for (int number = 0; number < world; number++) {
                struct model model = {.trained = lengths[k], .values = lengths[k] + 3};
                played.fails_at = 0;
                rank_begin_as("fsdp", number, world, 4);
                scene.t.model = &model;
                scene.deliver = bring_block;
                struct state_range own = part_of_weights(&scene.t, number);
                float *x = mem_array(float, state_range_length(own));
                for (size_t i = own.lo; i < own.hi; i++)
                    x[i - own.lo] = right_of(i);
                expected = 0;
                assert_int_equal(
                    part_visit(&scene.t, part_of_weights, x, take, &expected, &scene.err), 0);
                assert_int_equal(expected, model.values);
                free(x);
                rank_end();
                buf_clear(&played.said);
            }
}

/* ---- buckets ---- */

static const int64_t *sums_begin;
static size_t summed_from, least_of, calls;

/* From the last parameter to the first, none twice, and each but the last as long as it must be at least; behind them what is
 * there at the end alone. */
static void see_bucket(struct collective_call *call) {
    const struct model *m = scene.t.model;
    size_t at = (size_t)((const int64_t *)call->data - sums_begin), n = call->bytes / 8;
    calls++;
    if (at == m->trained) {
        assert_int_equal(n, m->values - m->trained + 1);
        assert_int_equal(summed_from, 0);
        summed_from = SIZE_MAX;
        return;
    }
    assert_int_equal(at + n, summed_from);
    assert_true(n >= least_of || at == 0);
    summed_from = at;
}

static int watched_sum(void *c, const float *values, const struct compute_batch *batches, int n,
                       const struct pass_watch *watch, int64_t *ret_sums,
                       struct compute_wrong *wrong, struct err *err) {
    (void)c;
    (void)values;
    (void)batches;
    (void)n;
    (void)wrong;
    (void)err;
    sums_begin = ret_sums;
    for (int i = scene.t.model->n - 1; watch && i >= 0; i--)
        watch->layer(watch->arg, i);
    return 0;
}

static void test_buckets_are_of_all_sums_and_not_too_many(void **state) {
    (void)state;
    static const size_t layers[][2] = {
        {3, 100}, {70, 8000}, {70, 32 * 1024}, {80, 40000}, {2, 32 * 1024}};
    for (size_t k = 0; k < sizeof(layers) / sizeof(*layers); k++) {
        size_t n = layers[k][0], each = layers[k][1];
        struct model_layer *l = mem_array(struct model_layer, n);
        struct model model = {.data = rank_model.data, .layers = l, .n = (int)n};
        struct compute compute = rank_compute_sum;
        double loss;
        for (size_t i = 0; i < n; i++)
            l[i] = (struct model_layer){.trained = each, .trained_at = i * each};
        model.trained = n * each;
        model.values = model.trained + 5;
        compute.sum = watched_sum;
        played.fails_at = 0;
        rank_begin_as("ddp", 0, 2, 4);
        scene.o.overlap = scene.beside = true;
        scene.t.model = &model;
        scene.t.compute = &compute;
        scene.deliver = see_bucket;
        open_it();
        assert_non_null(scene.t.o);
        summed_from = model.trained;
        least_of = model.trained / 62 + 1 > 32 * 1024 ? model.trained / 62 + 1 : 32 * 1024;
        calls = 0;
        assert_int_equal(scene.t.mode->step(&scene.t, &loss, &scene.err), 0);
        assert_int_equal(summed_from, SIZE_MAX);
        size_t layers_each = (least_of + each - 1) / each;
        assert_int_equal(calls, (n + layers_each - 1) / layers_each + 1);
        scene.t.mode->close(&scene.t);
        scene.t.compute->close(scene.t.c, NULL);
        rank_end();
        free(l);
        buf_clear(&played.said);
    }
}

/* ---- sums that are under way ---- */

static sem_t given_up;
static int aborts;

static int start_for_ever(void *ring, struct collective_call *call, struct err *err) {
    assert_true(ring == &scene && call->op == COLLECTIVE_ALL_REDUCE && err);
    return 0;
}

/* A peer says nothing; only who gives up comes back. */
static int poll_for_ever(void *ring, int timeout_ms, struct err *err) {
    assert_true(ring == &scene && timeout_ms == -1 && err);
    while (sem_wait(&given_up) < 0)
        continue;
    return -ECANCELED;
}

static void give_up(void *ring) {
    assert_ptr_equal(ring, &scene);
    aborts++;
    sem_post(&given_up);
}

static int sum_that_fails(void *c, const float *values, const struct compute_batch *batches, int n,
                          const struct pass_watch *watch, int64_t *ret_sums,
                          struct compute_wrong *wrong, struct err *err) {
    watched_sum(c, values, batches, n, watch, ret_sums, wrong, err);
    return err_say(err, -EIO, "the device is gone");
}

/* What computes fails while sums of layers go round: they are given up, once, and the thread ends. */
static void test_sums_are_given_up_where_the_rest_is_not_computed(void **state) {
    (void)state;
    struct model_layer l[2] = {{.trained = 40000}, {.trained = 40000, .trained_at = 40000}};
    struct model model = {
        .data = rank_model.data, .layers = l, .n = 2, .trained = 80000, .values = 80000};
    struct collective collective = rank_collective;
    struct compute compute = rank_compute_sum;
    double loss;
    collective.start = start_for_ever;
    collective.poll = poll_for_ever;
    collective.abort = give_up;
    compute.sum = sum_that_fails;
    played.fails_at = aborts = 0;
    sem_init(&given_up, 0, 0);
    rank_begin_as("ddp", 0, 2, 4);
    scene.o.overlap = scene.beside = true;
    scene.t.model = &model;
    scene.t.compute = &compute;
    scene.t.collective = &collective;
    open_it();
    assert_non_null(scene.t.o);
    assert_int_equal(scene.t.mode->step(&scene.t, &loss, &scene.err), -EIO);
    assert_string_equal(scene.err.msg, "the device is gone");
    assert_int_equal(aborts, 0);
    scene.t.mode->close(&scene.t);
    assert_int_equal(aborts, 1);
    scene.t.compute->close(scene.t.c, NULL);
    rank_end();
    sem_destroy(&given_up);
    buf_clear(&played.said);
}

/* ---- time ---- */

/* A computation that is over sooner takes as long as it was to take, and no longer than that where it is over late. */
static void test_a_step_takes_as_long_as_it_was_told(void **state) {
    (void)state;
    static const int64_t short_ns = INT64_C(20000000);
    played.fails_at = 0;
    rank_begin_as("manual", 0, 1, 4);
    scene.o.compute_ns = short_ns;
    int64_t begun_ns = deadline_now_ns();
    assert_int_equal(work_floor(&scene.t, begun_ns, &scene.err), 0);
    assert_true(deadline_now_ns() - begun_ns >= short_ns);
    scene.o.compute_ns = INT64_C(3600000000000);
    begun_ns = deadline_now_ns();
    assert_int_equal(work_floor(&scene.t, begun_ns - scene.o.compute_ns, &scene.err), 0);
    assert_true(deadline_now_ns() - begun_ns < INT64_C(60000000000));
    rank_ask_to_end();
    assert_int_equal(work_floor(&scene.t, deadline_now_ns(), &scene.err), -ECANCELED);
    scene.t.mode = mode_find("zero", &scene.err); /* they end together */
    assert_int_equal(work_floor(&scene.t, deadline_now_ns(), &scene.err), 0);
    scene.o.compute_ns = 0;
    scene.t.mode = mode_find("manual", &scene.err);
    assert_int_equal(work_floor(&scene.t, deadline_now_ns(), &scene.err), 0);
    rank_end();
}

/* ---- what is refused ---- */

static void test_each_mode_refuses_what_it_cannot(void **state) {
    (void)state;
    static const struct {
        const char *mode;
        int world, async, backups, devices;
        const char *said; /* NULL: it is right */
    } rows[] = {
        {"ps", 1, 0, 0, 1,
         "--mode=ps wants a server and at least one worker: WORLD_SIZE=2 or more"},
        {"ps", 2, 0, 0, 1, NULL},
        {"ps", 2, 1, 0, 1, NULL},
        {"ps", 3, 0, 1, 1, "--backup-workers=1: only with --ps-async"},
        {"ps", 3, 1, 1, 1, NULL},
        {"ps", 3, 1, 2, 1,
         "--backup-workers=2: there are 2 workers, and at least one must be waited for"},
        {"ps", 2, 1, 1, 1,
         "--backup-workers=1: there are 1 workers, and at least one must be waited for"},
        {"dp", 1, 0, 0, 12, NULL},
        {"dp", 1, 0, 0, 13,
         "--devices=13: at most 12, for the batch has 12 shards; --shards makes more of it"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct ranktrain_options o = {.world = rows[i].world,
                                            .ps_async = rows[i].async,
                                            .backup_workers = rows[i].backups,
                                            .devices = rows[i].devices,
                                            .shards = 12};
        struct err err = {0};
        int r = mode_find(rows[i].mode, &err)->check(&o, &err);
        assert_int_equal(r, rows[i].said ? -EINVAL : 0);
        assert_int_equal(err.code, r);
        assert_string_equal(err.msg, rows[i].said ? rows[i].said : "");
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_modes_exchange_is_on_record),
        cmocka_unit_test(test_a_tensor_longer_than_a_block_is_visited_whole),
        cmocka_unit_test(test_buckets_are_of_all_sums_and_not_too_many),
        cmocka_unit_test(test_sums_are_given_up_where_the_rest_is_not_computed),
        cmocka_unit_test(test_a_step_takes_as_long_as_it_was_told),
        cmocka_unit_test(test_each_mode_refuses_what_it_cannot),
    };
    return played_main(argc, argv, plays, tests);
}
