/* A thread that saves: what it was given is what lies on disk, one save after another, and an error is told once. */
#include "scenarios/jobs/ranktrain/checkpoints/writer.h"
#include "scenarios/jobs/ranktrain/checkpoint_dir.h"

#include "base/sys/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { VALUES = 11, TRAINED = 7 };

static char place[64];
static const struct model model = {
    .name = "tiny", .width = 1, .values = VALUES, .trained = TRAINED};
static struct rankquake q = {.fd = -1};
static struct checkpoint_place at;
static struct state s, loaded;
static struct checkpoint_writer *w;

static int setup(void **state) {
    (void)state;
    struct err err;
    strcpy(place, "/tmp/test-writer-XXXXXX");
    if (!mkdtemp(place))
        return -1;
    at = (struct checkpoint_place){.dir = place,
                                   .run_id = "job",
                                   .model = &model,
                                   .optimizer = optimizer_find("sgd", &err),
                                   .seed = 1,
                                   .keep = 9};
    state_init(&s, &model, at.optimizer);
    state_init(&loaded, &model, at.optimizer);
    return writer_new(&w, &at, &q, &err);
}

static int teardown(void **state) {
    (void)state;
    w = writer_free(w);
    state_fini(&s);
    state_fini(&loaded);
    return w || file_remove_tree(place, NULL) < 0;
}

static void fill(int step) {
    s.step = (uint64_t)step;
    for (size_t i = 0; i < state_bytes(&s) / sizeof(float); i++)
        s.weights[i] = (float)(step * 100 + (int)i);
}

static void ignore(void *arg, int code, const char *sentence) {
    (void)arg;
    fail_msg("%d: %s", code, sentence);
}

static void assert_newest_is(int step) {
    char path[PATH_MAX];
    struct err err;
    assert_int_equal(checkpoint_load(&at, 1000, &loaded, path, ignore, NULL, &err), 1);
    fill(step);
    assert_true(state_is_equal(&loaded, &s));
}

/* What is changed while it is saved is not saved. */
static void test_what_it_was_given_is_saved(void **state) {
    (void)state;
    struct err err = {0};
    for (int step = 1; step <= 3; step++) {
        fill(step);
        writer_save(w, &s);
        fill(99);
        assert_int_equal(writer_wait(w, &err), 0);
        assert_int_equal(writer_poll(w, &err), 1);
        fill(step);
        assert_true(state_is_equal(writer_state(w), &s));
        assert_newest_is(step);
    }
    assert_int_equal(writer_wait(w, &err), 0); /* though nothing is saved */
    assert_int_equal(writer_poll(w, NULL), 1);
    assert_int_equal(err.code, 0);
}

/* The last one is on disk when it is freed. */
static void test_who_frees_it_waits(void **state) {
    (void)state;
    fill(7);
    writer_save(w, &s);
    w = writer_free(w);
    assert_null(w);
    assert_null(writer_free(NULL));
    assert_newest_is(7);
}

static void test_parts_are_saved_of_states_that_hold_more_or_less(void **state) {
    (void)state;
    struct err err = {0};
    for (int world = 1; world <= 3; world++)
        for (int part = 0; part < world; part++) {
            struct state slice;
            assert_int_equal(
                part ? 0 : checkpoint_parts_begin(&at, (uint64_t)world, world, &q, &err), 0);
            checkpoint_slice_init(&at, part, world, &slice);
            fill(world);
            slice.step = (uint64_t)world;
            memcpy(slice.weights, s.weights + slice.held.lo,
                   state_range_length(slice.held) * sizeof(float));
            writer_save_part(w, &slice, part, world);
            assert_int_equal(writer_wait(w, &err), 0);
            assert_true(state_is_alike(writer_state(w), &slice));
            assert_int_equal(writer_part(w)->first[0], slice.held.lo);
            assert_int_equal(writer_part(w)->bytes[0],
                             state_range_length(slice.held) * sizeof(float));
            assert_int_equal(writer_part(w)->first[1], slice.held_moments.lo);
            assert_int_equal(strlen(writer_part(w)->sha256[1]), 64);
            state_fini(&slice);
        }
    fill(9);
    writer_save(w, &s); /* the whole again */
    assert_int_equal(writer_wait(w, &err), 0);
    assert_newest_is(9);
}

static void test_an_error_is_told_once_to_whoever_asks_first(void **state) {
    (void)state;
    struct err err = {0};
    char dir[128], wanted[256];
    snprintf(dir, sizeof(dir), "%s/file/ck", place);
    snprintf(wanted, sizeof(wanted), "%s/file", place);
    assert_int_equal(file_write(wanted, "x", 1, &err), 0);
    snprintf(wanted, sizeof(wanted), "--checkpoint-dir %s: Not a directory", dir);
    for (int polls = 0; polls < 2; polls++) {
        at.dir = dir;
        fill(1);
        writer_save(w, &s);
        int r = 0;
        if (polls)
            while ((r = writer_poll(w, &err)) == 0)
                continue;
        else
            r = writer_wait(w, &err);
        assert_int_equal(r, -ENOTDIR);
        assert_string_equal(err.msg, wanted);
        err = (struct err){0};
        assert_int_equal(writer_wait(w, &err), 0);
        assert_int_equal(writer_poll(w, &err), 1);
        assert_int_equal(err.code, 0);
        writer_save(w, &s);
        assert_int_equal(writer_wait(w, NULL), -ENOTDIR);
        at.dir = place;
        writer_save(w, &s);
        assert_int_equal(writer_wait(w, &err), 0);
    }
    assert_newest_is(1);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_it_was_given_is_saved),
        TEST(who_frees_it_waits),
        TEST(parts_are_saved_of_states_that_hold_more_or_less),
        TEST(an_error_is_told_once_to_whoever_asks_first),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
