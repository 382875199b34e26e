/* When and what a rank saves, in a world that is drawn: modes that hold all, a part or serve, directories that some share,
 * whole or in parts, beside the training or not. What it asks of checkpoints and of their writer, what it tells its peers, and
 * what it knows afterwards is on record, also where one of them fails. */
#include "tests/scenarios/jobs/ranktrain/played_rank.h"

#include "scenarios/jobs/ranktrain/save.h"

#include "base/mem.h"

/* ---- checkpoints and their writer ---- */

static struct {
    bool open, busy, of_part;
    struct state copy;
    struct checkpoint_part part;
} writer;

static void draw_part(struct checkpoint_part *ret) {
    memset(ret, 0, sizeof(*ret));
    for (int i = 0; i < MANIFEST_TENSORS; i++) {
        ret->first[i] = draw(1000);
        ret->bytes[i] = draw(1000);
        for (int k = 0; k < 4; k++)
            snprintf(ret->sha256[i] + (size_t)k * 16, 17, "%08x%08x",
                     (unsigned)draw(1 << 30) * 4 + 3, (unsigned)draw(1 << 30));
    }
}

static void say_place(const struct checkpoint_place *p, const struct rankquake *q) {
    assert_true(p == &scene.t.place && (!q || q == &scene.t.q));
}

static int fails_so(const char *what, struct err *err) {
    return fails("  %s", what) ? err_say(err, -played.code, "could not %s", what) : 0;
}

static int played_save(const struct checkpoint_place *p, const struct state *s, struct rankquake *q,
                       struct err *err) {
    say_place(p, q);
    note("checkpoint: save");
    rank_say_state(s);
    return fails_so("save", err);
}

static int played_parts_begin(const struct checkpoint_place *p, uint64_t step, int parts,
                              struct rankquake *q, struct err *err) {
    say_place(p, q);
    note("checkpoint: begin %d parts of step %llu", parts, (unsigned long long)step);
    return fails_so("begin", err);
}

static int played_part_write(const struct checkpoint_place *p, const struct state *s, int part,
                             int parts, struct checkpoint_part *ret, struct err *err) {
    say_place(p, NULL);
    note("checkpoint: write part %d of %d", part, parts);
    rank_say_state(s);
    draw_part(ret);
    return fails_so("write", err);
}

static int played_parts_commit(const struct checkpoint_place *p, const struct state *s, int parts,
                               const struct checkpoint_part *written, struct rankquake *q,
                               struct err *err) {
    say_place(p, q);
    note("checkpoint: commit %d parts", parts);
    rank_say_state(s);
    for (int i = 0; i < parts; i++)
        for (int k = 0; k <= s->moments; k++)
            note("  %lld %lld %s", (long long)written[i].first[k], (long long)written[i].bytes[k],
                 written[i].sha256[k]);
    return fails_so("commit", err);
}

static void played_slice(const struct checkpoint_place *p, int part, int parts, struct state *ret) {
    say_place(p, NULL);
    note("checkpoint: slice %d of %d", part, parts);
    state_init_part(ret, p->model, p->optimizer,
                    (struct state_range){(size_t)part, (size_t)part + (size_t)parts},
                    (struct state_range){(size_t)part, (size_t)part + 1});
}

static int played_writer_new(struct checkpoint_writer **ret, const struct checkpoint_place *p,
                             struct rankquake *q, struct err *err) {
    say_place(p, q);
    assert_false(writer.open);
    note("writer: new");
    int r = fails_so("start the writer", err);
    if (r < 0)
        return r;
    writer.open = true;
    *ret = (struct checkpoint_writer *)&writer;
    return 0;
}

static struct checkpoint_writer *played_writer_free(struct checkpoint_writer *w) {
    note("writer: free %d", w != NULL);
    assert_int_equal(w != NULL, writer.open);
    state_fini(&writer.copy);
    writer.open = false;
    return NULL;
}

static void begin_save(struct checkpoint_writer *w, const struct state *s) {
    assert_true(w == (void *)&writer && writer.open && !writer.busy);
    rank_say_state(s);
    state_fini(&writer.copy);
    state_init_part(&writer.copy, scene.t.model, scene.t.optimizer.kind, s->held, s->held_moments);
    state_copy(&writer.copy, s);
    writer.busy = true;
}

static void played_writer_save(struct checkpoint_writer *w, const struct state *s) {
    note("writer: save");
    begin_save(w, s);
}

static void played_writer_save_part(struct checkpoint_writer *w, const struct state *s, int part,
                                    int parts) {
    note("writer: save part %d of %d", part, parts);
    begin_save(w, s);
    draw_part(&writer.part);
}

static int played_writer_poll(struct checkpoint_writer *w, struct err *err) {
    assert_true(w == (void *)&writer && writer.open);
    int r = fails_so("poll the writer", err);
    bool over = !writer.busy || draw(2) || r < 0;
    writer.busy = !over;
    return r < 0 ? r : over;
}

static int played_writer_wait(struct checkpoint_writer *w, struct err *err) {
    assert_true(w == (void *)&writer && writer.open);
    writer.busy = false;
    return fails_so("wait for the writer", err);
}

static const struct state *played_writer_state(const struct checkpoint_writer *w) {
    assert_true(w == (void *)&writer && writer.open);
    return &writer.copy;
}

static const struct checkpoint_part *played_writer_part(const struct checkpoint_writer *w) {
    assert_true(w == (void *)&writer && writer.open);
    return &writer.part;
}

#define checkpoint_save         played_save
#define checkpoint_parts_begin  played_parts_begin
#define checkpoint_part_write   played_part_write
#define checkpoint_parts_commit played_parts_commit
#define checkpoint_slice_init   played_slice
#define writer_new              played_writer_new
#define writer_free             played_writer_free
#define writer_save             played_writer_save
#define writer_save_part        played_writer_save_part
#define writer_poll             played_writer_poll
#define writer_wait             played_writer_wait
#define writer_state            played_writer_state
#define writer_part             played_writer_part
#include "scenarios/jobs/ranktrain/save.c"

/* ---- peers ---- */

/* Rows of the others: done mostly, with what they have written. */
static void bring_rows(struct collective_call *call) {
    int64_t *rows = call->data;
    assert_int_equal(call->op, COLLECTIVE_ALL_REDUCE);
    assert_int_equal(call->bytes, (size_t)scene.o.world * ROW * sizeof(*rows));
    for (int i = 0; i < scene.o.world; i++) {
        struct checkpoint_part part;
        bool done = draw(4);
        draw_part(&part);
        if (i != scene.o.rank)
            put_row(rows + (ptrdiff_t)i * ROW,
                    done      ? DONE
                    : draw(3) ? BUSY
                              : FAILED,
                    &part, scene.t.state.moments);
    }
}

static int gather(struct trainer *t, struct state *ret, struct err *err) {
    assert_ptr_equal(t, &scene.t);
    note("gather: %s", ret ? "" : "nothing");
    if (ret) {
        ret->step = t->state.step;
        rank_draw_floats(ret->weights, state_range_length(ret->held));
        rank_say_state(ret);
    }
    return fails_so("gather", err);
}

/* ---- plays ---- */

static const struct mode kinds[] = {{.name = "all"},
                                    {.name = "parts", .gather = gather},
                                    {.name = "server", .serves = true, .gather = gather}};

static void say(const char *what, int r) {
    const struct trainer *t = &scene.t;
    rank_hear();
    rank_say(what, r);
    note("  at %llu: saved %llu, durable %llu%s%s%s%s", (unsigned long long)t->state.step,
         (unsigned long long)t->saved_step, (unsigned long long)t->durable_step,
         t->parts_pending ? ", parts pending" : "", t->writer ? ", a writer" : "",
         writer.busy ? ", busy" : "", save_has_all(t) ? ", has all" : "");
}

static void hold_state(struct trainer *t) {
    bool part = t->mode->gather && (!t->mode->serves || scene.o.rank);
    size_t n = (size_t)scene.o.rank;
    struct state_range all = {0, RANK_VALUES}, trained = {0, RANK_TRAINED};
    if (part && t->mode->serves)
        trained.lo = RANK_TRAINED;
    else if (part)
        all = trained = (struct state_range){n * 3, n * 3 + 3};
    state_init_part(&t->state, t->model, t->optimizer.kind, all, trained);
    rank_draw_floats(t->state.weights, state_range_length(all));
}

static void set_scene(void) {
    struct trainer *t = &scene.t;
    int world = 1 + draw(4);
    memset(&writer, 0, sizeof(writer));
    rank_begin_as("manual", draw(world), world, 4);
    t->mode = &kinds[draw(3)];
    scene.deliver = bring_rows;
    scene.o.checkpoint_dir = draw(8) ? "d" : NULL;
    scene.o.checkpoint_async = draw(2);
    scene.o.checkpoint_sharded = draw(2);
    scene.o.ps_async = t->mode->serves && draw(2);
    t->save_every = 1 + (uint64_t)draw(3);
    t->last_step = 3 + (uint64_t)draw(4);
    t->place = (struct checkpoint_place){.model = t->model, .optimizer = t->optimizer.kind};
    t->resume.places.n = 0;
    for (int i = 0; i < world; i++) {
        int keeper = i && draw(2) ? t->resume.places.keeper[i - 1] : i;
        t->resume.places.keeper[i] = keeper;
        t->resume.places.n += keeper == i;
    }
    if (draw(8) == 0) { /* rank 0 can save nothing there */
        t->resume.places.n = 1;
        for (int i = 0; i < world; i++)
            t->resume.places.keeper[i] = world - 1;
    }
    t->resume.keeps = t->resume.places.keeper[scene.o.rank] == scene.o.rank;
    hold_state(t);
    t->state.step = t->saved_step = t->durable_step = draw(3) ? 0 : 2;
}

static int act(void) {
    struct trainer *t = &scene.t;
    struct err *err = &scene.err;
    int what = draw(8), r;
    scene.begun_ns = deadline_now_ns();
    if (what == 0) {
        r = save_last(t, err);
        say("last", r);
        return r;
    }
    if (what == 1) {
        r = save_copy(t, &t->state, err);
        say("copy", r);
        return r;
    }
    t->state.step += what > 2;
    t->leaves = t->mode->gather && draw(10) == 0;
    t->ends = draw(12) == 0;
    r = save_step(t, err);
    say("step", r);
    return r;
}

static void save(uint64_t seed) {
    (void)seed;
    set_scene();
    struct trainer *t = &scene.t;
    int r = save_open(t, &scene.err);
    say("open", r);
    for (int i = 0; i < 10 && r == 0 && t->state.step <= t->last_step; i++)
        r = act();
    if (draw(2)) { /* another group */
        r = save_open(t, &scene.err);
        say("open again", r);
    }
    r = save_last(t, &scene.err);
    say("last", r);
    save_close(t);
    note("closed: %d", t->writer != NULL);
    state_fini(&t->state);
    rank_end();
}

static const struct play plays[] = {
    {"tests/scenarios/jobs/ranktrain/record/save.txt", save, 160, true, {ENOSPC, ESTALE}}};

static void test_what_is_saved_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

/* What is said of a part comes through as it was, whatever it is. */
static void test_a_row_holds_all_of_a_part(void **state) {
    (void)state;
    static const char *const words[] = {
        "0000000000000000000000000000000000000000000000000000000000000000",
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "8000000000000000000000000000000100000000000000ff7fffffffffffffff",
        "0123456789abcdeffedcba98765432100f1e2d3c4b5a69788796a5b4c3d2e1f0"};
    for (int moments = 0; moments < MANIFEST_TENSORS; moments++) {
        struct checkpoint_part part = {0}, back = {0};
        int64_t row[ROW + 1] = {0};
        for (int i = 0; i < MANIFEST_TENSORS; i++) {
            strcpy(part.sha256[i], words[(i + moments) % 4]);
            part.first[i] = INT64_C(1) << (40 + i);
            part.bytes[i] = 1000 + i;
        }
        row[ROW] = 99;
        put_row(row, DONE, &part, moments);
        assert_int_equal(row[0], DONE);
        assert_int_equal(row[ROW], 99);
        take_row(row, moments, &back);
        for (int i = 0; i < MANIFEST_TENSORS; i++) {
            assert_string_equal(back.sha256[i], i <= moments ? part.sha256[i] : "");
            assert_int_equal(back.first[i], i <= moments ? part.first[i] : 0);
            assert_int_equal(back.bytes[i], i <= moments ? part.bytes[i] : 0);
        }
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_saved_is_on_record),
        cmocka_unit_test(test_a_row_holds_all_of_a_part),
    };
    return played_main(argc, argv, plays, tests);
}
