/* How a rank meets its group and leaves it, in a world that is drawn: what it tells of its job, what it asks of bootstrap, of
 * where the group goes on and of the collective, how it tests what was trained, and what it says, also where one fails. */
#include "tests/scenarios/jobs/ranktrain/played_rank.h"

#include "scenarios/jobs/ranktrain/finish.h"
#include "scenarios/jobs/ranktrain/meet.h"
#include "scenarios/jobs/ranktrain/net/bootstrap.h"

#undef RANKQUAKE_VERSION
#define RANKQUAKE_VERSION "a version" /* it is part of what ranks compare */

/* ---- what it meets by ---- */

static struct bootstrap *met;
static int lacks; /* 1: it lacks what was decided on, 2: and gets all of it for that */

static int fails_so(const char *what, struct err *err) {
    return fails("  %s", what) ? err_say(err, -played.code, "could not %s", what) : 0;
}

static void say_wait(const struct link_wait *w) {
    note("  until %lld, wake %s", (long long)w->deadline_ns,
         w->wake_fd == scene.t.asked.told_fd  ? "told"
         : w->wake_fd == scene.t.asked.end_fd ? "end"
                                              : "nobody");
}

static int played_join(struct bootstrap *b, const struct bootstrap_request *q, struct err *err) {
    met = b;
    note("join as %d of %d at %s:%d, run %s, round %lld, job %08x", q->rank, q->world,
         q->master_addr, q->master_port, q->run_id, (long long)q->round,
         sum_of(q->job, sizeof(q->job)));
    say_wait(&q->wait);
    b->request = *q;
    return fails_so("join", err);
}

static int played_share(struct bootstrap *b, void *data, size_t n, struct err *err) {
    assert_true(b == met && data == b->group.token);
    note("share %zu bytes%s", n, scene.o.rank == 0 ? " of its own" : "");
    if (scene.o.rank)
        memset(data, draw(256), n);
    return fails_so("share", err);
}

static int played_meet(struct bootstrap *b, struct err *err) {
    assert_ptr_equal(b, met);
    return fails_so("meet", err);
}

static void played_end(struct bootstrap *b) {
    assert_ptr_equal(b, met);
    note("bootstrap ends");
}

static int played_agree(struct bootstrap *b, const struct resume_request *q, struct state *s,
                        struct state *ret_lacking, struct resume *ret, struct err *err) {
    assert_true(b == met && q->place == &scene.t.place && s == &scene.t.state);
    note("agree: seed %llu, last step %llu%s%s", (unsigned long long)q->seed,
         (unsigned long long)q->last_step, q->fresh ? ", fresh" : "",
         q->in_memory ? ", in memory" : "");
    int r = fails_so("agree", err);
    if (r < 0)
        return r;
    s->step = (uint64_t)draw(9);
    *ret = (struct resume){.lacks = lacks, .took_ns = INT64_C(1260000), .places.n = draw(4)};
    if (draw(2))
        strcpy(ret->path, "d/step-00000007");
    if (lacks == 2) {
        state_init(ret_lacking, scene.t.model, scene.t.optimizer.kind);
        ret_lacking->step = 77;
    }
    return 0;
}

static int played_save(const struct checkpoint_place *p, const struct state *s, struct rankquake *q,
                       struct err *err) {
    assert_true(p == &scene.t.place && q == &scene.t.q);
    note("save%s", s == &scene.t.state ? " its own" : "");
    rank_say_state(s);
    return fails_so("save", err);
}

#define deadline_in_ns(after) (7 + (after))
#define bootstrap_join        played_join
#define bootstrap_share       played_share
#define bootstrap_meet        played_meet
#define bootstrap_end         played_end
#define resume_agree          played_agree
#define checkpoint_save       played_save
#include "scenarios/jobs/ranktrain/meet.c"
#undef deadline_in_ns
#include "scenarios/jobs/ranktrain/finish.c"

static int token(unsigned char ret[GROUP_TOKEN], struct err *err) {
    int r = fails_so("draw a token", err);
    if (r == 0)
        memset(ret, 0x5a, GROUP_TOKEN);
    return r;
}

static int open_ring(void **ret, struct peer_group *g, const struct link_wait *w, struct err *err) {
    assert_ptr_equal(g, &met->group);
    note("open%s, token %08x", g->pairs ? " by pairs" : "", sum_of(g->token, sizeof(g->token)));
    say_wait(w);
    int r = fails_so("open", err);
    if (r == 0)
        *ret = &scene;
    return r;
}

static void device(void *c, struct compute_device *ret) {
    assert_ptr_equal(c, scene.t.c);
    *ret = (struct compute_device){"GPU-0123", draw(8)};
}

static int hash(struct trainer *t, char ret[65], struct err *err) {
    snprintf(ret, 65, "%064llx", (unsigned long long)t->state.step);
    return fails_so("hash", err);
}

static int classify_all(struct trainer *t, const uint8_t *const *images, uint8_t *ret_classes,
                        struct err *err) {
    note("classify %s", images ? "some" : "none");
    for (int i = 0; images && i < RANK_BATCH; i++)
        ret_classes[i] = t->data.test.labels[images[i] - rank_pixels];
    return fails_so("classify", err);
}

/* ---- plays ---- */

static const struct mode kinds[] = {
    {.name = "first", .pairs = true},
    {.name = "second", .hash = hash, .classify = classify_all},
    {.name = "third", .serves = true},
};
static struct collective collective;
static struct compute compute;

static void set_scene(void) {
    struct trainer *t = &scene.t;
    int world = 1 + draw(4), end_fd = eventfd(0, EFD_CLOEXEC);
    rank_begin_as("manual", draw(world), world, 4 + 4 * draw(2));
    t->asked.end_fd = end_fd;
    t->mode = &kinds[draw(3)];
    compute = *t->compute;
    compute.device = draw(2) ? device : NULL;
    collective = *t->collective;
    collective.open = open_ring;
    collective.token = draw(2) ? token : NULL;
    t->compute = &compute;
    t->collective = &collective;
    scene.o.collective_ns = INT64_C(1000000000) * (1 + draw(60));
    scene.o.master_addr = draw(2) ? "n0" : "n1";
    scene.o.master_port = 29500 + draw(2);
    strcpy(scene.o.run_id, draw(2) ? "run" : "");
    scene.o.round = draw(5);
    scene.o.seed = draw(5);
    scene.o.fresh = draw(2);
    t->in_memory = draw(2);
    t->optimizer.lr = draw(2) ? 0.5f : 0.25f;
    t->optimizer.momentum = draw(2) ? 0.5f : 0.125f;
    t->last_step = (uint64_t)draw(12);
    t->data.train.parts = (uint32_t)draw(3);
    t->data.train.tail = (uint32_t)draw(3);
    strcpy(t->label, draw(2) ? "played" : "as played");
    state_init(&t->state, t->model, t->optimizer.kind);
    rank_draw_floats(t->state.weights, RANK_VALUES);
    scene.computes_n = 1; /* what computes is there */
    scene.computes[0].open = true;
    t->c = &scene.computes[0];
}

static void end_scene(void) {
    struct trainer *t = &scene.t;
    t->compute->close(t->c, NULL);
    state_fini(&t->state);
    close(t->asked.end_fd);
    rank_end();
}

static void begin_one(uint64_t seed) {
    (void)seed;
    set_scene();
    lacks = draw(3);
    scene.t.ring = NULL;
    rank_listen();
    int r = meet(&scene.t, &scene.err);
    rank_heard();
    rank_say("meet", r);
    note("saved %llu, durable %llu, ring %d, pairs", (unsigned long long)scene.t.saved_step,
         (unsigned long long)scene.t.durable_step, scene.t.ring != NULL);
    rank_say_state(&scene.t.state);
    end_scene();
}

static void finish_one(uint64_t seed) {
    (void)seed;
    set_scene();
    struct trainer *t = &scene.t;
    static const uint8_t none[RANK_IMAGES * 4];
    t->data.test.count = 2 + (uint32_t)draw(RANK_IMAGES - 2);
    t->last_step = (uint64_t)draw(3);
    t->broken_up = draw(6) == 0;
    if (draw(8) == 0) {
        t->data.test.checksums = none;
        t->data.test.map = rank_pixels;
    }
    scene.begun_ns = deadline_now_ns();
    rank_listen();
    int r = finish(t, &scene.err);
    rank_heard();
    rank_say("finish", r);
    end_scene();
}

static const struct play plays[] = {
    {"tests/scenarios/jobs/ranktrain/record/meet.txt", begin_one, 96, true, {ECONNRESET, EPIPE}},
    {"tests/scenarios/jobs/ranktrain/record/finish.txt", finish_one, 96, true, {ECANCELED, EPIPE}}};

static void test_how_a_group_begins_and_ends_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
    played_check(&plays[1]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_a_group_begins_and_ends_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
