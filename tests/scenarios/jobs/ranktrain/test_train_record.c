/* One worker's life, in which everything it has is played: what it does when in which order, from its data to the model, when
 * peers go, when it is asked to end and when something fails, what it tells and says, and that it gives all back. */
#include "tests/scenarios/jobs/ranktrain/played_rank.h"

#include "scenarios/jobs/ranktrain/finish.h"
#include "scenarios/jobs/ranktrain/meet.h"
#include "scenarios/jobs/ranktrain/save.h"
#include "scenarios/jobs/ranktrain/setup.h"
#include "scenarios/jobs/ranktrain/train.h"

#include "base/mem.h"

/* ---- what a worker has ---- */

static struct {
    struct trainer *t;
    bool q_open, set_up, model, data, loaders, asked, computes, mode, met, has_all;
    int told_fd, trials; /* trials: groups */
} life;

static int fails_so(const char *what, struct err *err) {
    return fails("  %s", what) ? err_say(err, -played.code, "could not %s", what) : 0;
}

/* A loss that nobody has planned. */
static int lost(const char *what, struct err *err) {
    static const int codes[] = {-ECONNRESET, -EPIPE, -ETIMEDOUT, -EIO, -ECANCELED};
    int code = codes[draw(5)];
    if (life.trials > 4 || draw(14))
        return fails_so(what, err);
    note("  %s: %s", what, strerror(-code));
    return code == -ECANCELED ? code : err_say(err, code, "rank 7 is gone, %d", -code);
}

static int played_q_open(struct rankquake *q) {
    note("q: open");
    int r = fails("  so far") ? -played.code : draw(2);
    *q = (struct rankquake){.fd = -1};
    if (r == 1)
        *q = scene.t.q;
    life.q_open = true;
    return r;
}

static void played_q_close(struct rankquake *q) {
    assert_true(q == &life.t->q && life.q_open);
    rank_hear();
    note("q: close");
    life.q_open = false;
}

static int played_setup(struct trainer *t, struct err *err) {
    assert_true(t->o == &scene.o && t->compute == &compute_cpu && !t->ring && !t->writer);
    assert_ptr_equal(t->collective, &collective_tcp_ring);
    assert_true(t->asked.told_fd == -1 && t->asked.end_fd == -1 && t->asked.stop_fd == -1);
    life.t = t;
    note("setup");
    int r = fails_so("set up", err);
    t->mode = r < 0 && draw(2) ? NULL : scene.t.mode;
    t->collective = scene.t.collective;
    t->compute = scene.t.compute;
    life.mode = t->mode != NULL;
    if (r < 0)
        return r;
    life.set_up = life.model = life.data = life.asked = life.computes = true;
    t->data = scene.t.data;
    t->sampler = scene.t.sampler;
    t->loaders = life.loaders ? (struct loaders *)&life : NULL;
    t->model = scene.t.model;
    t->optimizer = scene.t.optimizer;
    t->c = &scene.computes[0];
    t->asked = scene.t.asked;
    t->parts = scene.t.parts;
    t->last_step = scene.t.last_step;
    t->n_shards = scene.t.n_shards;
    memcpy(t->shards, scene.t.shards, sizeof(t->shards));
    t->read = mem_array(uint64_t, (size_t)scene.o.batch_size);
    t->ration.held[RATION_GRADIENTS] = 12;
    state_init(&t->state, t->model, t->optimizer.kind);
    scene.weights_at = (uintptr_t)t->state.weights;
    if (draw(4) == 0)
        t->writer = (struct checkpoint_writer *)&life;
    return 0;
}

static int played_meet(struct trainer *t, struct err *err) {
    note("meet%s", t->in_memory ? ", in memory" : "");
    assert_true(t == life.t && !t->ring);
    life.trials++;
    int r = lost("meet", err);
    if (r == 0 || draw(2))
        t->ring = &scene;
    life.met = t->ring != NULL;
    t->durable_step = t->saved_step = t->state.step;
    return r;
}

static int played_save_open(struct trainer *t, struct err *err) {
    assert_ptr_equal(t, life.t);
    return fails_so("save: open", err);
}

static int played_save_step(struct trainer *t, struct err *err) {
    assert_ptr_equal(t, life.t);
    note("save: step %llu", (unsigned long long)t->state.step);
    if (draw(3) == 0)
        t->durable_step = t->state.step;
    return lost("save", err);
}

static int played_save_last(struct trainer *t, struct err *err) {
    assert_ptr_equal(t, life.t);
    note("save: last of %llu", (unsigned long long)t->state.step);
    return fails_so("save", err);
}

static bool played_has_all(const struct trainer *t) {
    assert_ptr_equal(t, life.t);
    return life.has_all;
}

static void played_save_close(struct trainer *t) {
    note("save: close");
    t->writer = NULL;
}

static int played_finish(struct trainer *t, struct err *err) {
    assert_ptr_equal(t, life.t);
    note("finish");
    return lost("finish", err);
}

static int played_take(struct loaders *l, uint64_t step, int wake_fd, struct err *err) {
    assert_true(l == (void *)&life && wake_fd == life.t->asked.end_fd);
    note("take %llu", (unsigned long long)step);
    return fails_so("take", err);
}

static void played_loaders_end(struct loaders *l) {
    note("loaders end %d", l != NULL);
    life.loaders = false;
}

static int played_writer_wait(struct checkpoint_writer *w, struct err *err) {
    assert_true(w && w == life.t->writer);
    return fails_so("wait for the writer", err);
}

static struct model *played_model_free(struct model *m) {
    note("model free %d", m != NULL);
    life.model = false;
    return NULL;
}

static void played_sampler_fini(struct sampler *s) {
    note("sampler fini %d", s->order != NULL);
}

static void played_dataset_close(struct dataset *d) {
    assert_false(life.loaders);
    note("dataset close %u", d->train.count);
    life.data = false;
}

static void played_asked_close(struct asked *a) {
    assert_true(a == &life.t->asked);
    note("asked close %d", a->told_fd >= 0);
    life.asked = false;
}

static int close_compute(void *c, struct err *err) {
    note("compute close %d", c != NULL);
    life.computes = false;
    return fails_so("close what computes", err);
}

static int close_ring(void *ring, struct err *err) {
    note("ring close %d", ring != NULL);
    assert_int_equal(ring != NULL, life.met);
    life.met = false;
    return fails_so("close the ring", err);
}

static int mode_step(struct trainer *t, double *ret_loss, struct err *err) {
    assert_true(t == life.t && t->ring);
    note("step %llu", (unsigned long long)t->state.step + 1);
    if (draw(10) == 0) {
        note("  asked to end");
        eventfd_write(life.told_fd, 1);
    }
    int r = lost("step", err);
    t->leaves = draw(2);
    if (r < 0)
        return r;
    t->state.step++;
    t->ends = draw(16) == 0;
    t->state.weights[3] += 0.5f;
    for (uint64_t i = 0; i < (uint64_t)scene.o.batch_size; i++)
        t->read[i] = t->state.step * 100 + i;
    *ret_loss = (double)t->state.step / 8;
    return 0;
}

static int mode_gather(struct trainer *t, struct state *ret, struct err *err) {
    (void)t;
    (void)ret;
    (void)err;
    fail_msg("nothing is gathered here");
    return 0;
}

static int mode_hash(struct trainer *t, char ret[65], struct err *err) {
    snprintf(ret, 65, "%064llx", (unsigned long long)t->state.step);
    for (int i = 0; i < 48; i++)
        ret[i] = "0123456789abcdef"[(i * 7 + 3) % 16];
    return fails_so("hash", err);
}

static void mode_forget(struct trainer *t) {
    assert_ptr_equal(t, life.t);
    note("mode: forget");
}

static void mode_close(struct trainer *t) {
    assert_true(t == life.t && life.mode);
    note("mode: close");
    state_fini(&t->state);
    life.mode = false;
}

#define rankquake_open  played_q_open
#define rankquake_close played_q_close
#define setup           played_setup
#define meet            played_meet
#define save_open       played_save_open
#define save_step       played_save_step
#define save_last       played_save_last
#define save_has_all    played_has_all
#define save_close      played_save_close
#define finish          played_finish
#define loaders_take    played_take
#define loaders_end     played_loaders_end
#define writer_wait     played_writer_wait
#define model_free      played_model_free
#define sampler_fini    played_sampler_fini
#define dataset_close   played_dataset_close
#define asked_close     played_asked_close
#include "scenarios/jobs/ranktrain/train.c"
#undef sampler_fini

/* ---- plays ---- */

static const struct mode kinds[] = {
    {.name = "alike", .step = mode_step, .close = mode_close},
    {.name = "parts",
     .step = mode_step,
     .gather = mode_gather,
     .hash = mode_hash,
     .close = mode_close},
    {.name = "server",
     .step = mode_step,
     .gather = mode_gather,
     .serves = true,
     .forget = mode_forget,
     .close = mode_close},
};
static struct collective collective;
static struct compute compute;

static void set_scene(void) {
    struct trainer *t = &scene.t;
    int world = 1 + draw(3);
    memset(&life, 0, sizeof(life));
    rank_begin_as("manual", draw(world), world, 4);
    rank_set_page(draw(2), draw(2));
    t->mode = &kinds[draw(3)];
    collective = *t->collective;
    collective.close = close_ring;
    compute = *t->compute;
    compute.close = close_compute;
    t->collective = &collective;
    t->compute = &compute;
    t->last_step = (uint64_t)draw(7);
    t->parts = 1 + (uint32_t)draw(2);
    if (draw(2)) { /* a step may end an epoch and more */
        sampler_fini(&t->sampler);
        sampler_init(&t->sampler, 7, 5, 8, 2, draw(2));
    }
    life.told_fd = t->asked.told_fd;
    life.loaders = draw(2);
    life.has_all = draw(2);
    scene.o.recover = draw(2) ? "in-process" : "restart";
    scene.o.log_every = draw(4);
    scene.o.checkpoint_dir = draw(2) ? "d" : NULL;
    scene.o.ps_async = t->mode->serves && draw(2);
    scene.computes_n = 1;
    scene.computes[0].open = true;
}

static void live_once(uint64_t seed) {
    struct err err = {0}, stuck = {0};
    (void)seed;
    set_scene();
    rank_listen();
    int r = train_run(&scene.o, &stuck, &err);
    rank_heard();
    note("train: %d, %d \"%s\"; stuck: %d \"%s\"", r, err.code, err.msg, stuck.code, stuck.msg);
    assert_false(life.q_open || life.model || life.data || life.asked || life.mode || life.met);
    free(scene.t.read);
    scene.t.read = NULL;
    rank_end();
}

static const struct play plays[] = {
    {"tests/scenarios/jobs/ranktrain/record/life_lost.txt",
     live_once,
     128,
     true,
     {ECONNRESET, EPIPE}},
    {"tests/scenarios/jobs/ranktrain/record/life_late.txt", live_once, 64, true, {ETIMEDOUT, EIO}},
    {"tests/scenarios/jobs/ranktrain/record/life_ended.txt",
     live_once,
     64,
     true,
     {ECANCELED, ESTALE}},
};
enum { PLAYS = sizeof(plays) / sizeof(*plays) };

static void test_what_a_worker_does_is_on_record(void **state) {
    (void)state;
    for (int i = 0; i < PLAYS; i++)
        played_check(&plays[i]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_worker_does_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
