/* What each mode opens it closes, threads too, as far as it has come: of a device with memory for all, for a part, or for nothing. */
#include "scenarios/jobs/ranktrain/mode/mode.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { SHARDS_HERE = 4, BATCH = 2 };

struct scene {
    struct ranktrain_options o;
    struct trainer t;
    struct err err;
};

static int threads(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* A rank of `world` that has what setup gives it. */
static void begin(struct scene *s, const char *mode, int rank, int world, size_t limit) {
    static const struct model_data data = {.channels = 1,
                                           .side = 28,
                                           .classes = 10,
                                           .batch = BATCH,
                                           .mean = {0.5f},
                                           .deviation = {0.5f}};
    struct trainer *t = &s->t;
    *s = (struct scene){.o = {.rank = rank,
                              .world = world,
                              .devices = 3,
                              .overlap = true,
                              .ps_async = true,
                              .batch_size = SHARDS_HERE * BATCH,
                              .shards = SHARDS_HERE}};
    t->o = &s->o;
    t->mode = mode_find(mode, &s->err);
    t->asked = ASKED_CLOSED;
    t->model = model_new("lenet", 1, &data, &s->err);
    t->optimizer.kind = optimizer_find("adam", &s->err);
    t->compute = &compute_cpu;
    t->collective = &collective_tcp_ring;
    t->read = mem_array(uint64_t, SHARDS_HERE * BATCH);
    t->ration.limit = limit;
    t->n_shards = shards_of(rank - t->mode->serves < 0 ? 0 : rank - t->mode->serves,
                            world - t->mode->serves, SHARDS_HERE, t->shards);
    const struct compute_place at = {.model = t->model,
                                     .batches = t->mode->alone ? 1 : t->n_shards,
                                     .layered = t->mode->layered,
                                     .wake_fd = -1};
    assert_int_equal(t->compute->open(&at, &t->c, t->label, &s->err), 0);
}

static void end(struct scene *s) {
    struct trainer *t = &s->t;
    t->mode->close(t);
    assert_int_equal(t->compute->close(t->c, NULL), 0);
    model_free(t->model);
    free(t->read);
}

static size_t held(const struct trainer *t) {
    size_t sum = 0;
    for (int i = 0; i < RATION_COUNT; i++)
        sum += t->ration.held[i];
    return sum;
}

/* Opens with so much memory; what it said must be that there is too little, or nothing. */
static int try(const char *mode, int rank, int world, size_t limit, size_t *ret_held) {
    struct scene s;
    int before = threads();
    begin(&s, mode, rank, world, limit);
    int r = s.t.mode->open(&s.t, &s.err);
    if (r == 0) {
        assert_int_equal(state_is_whole(&s.t.state), world == 1 || strcmp(mode, "ddp") == 0 ||
                                                         strcmp(mode, "manual") == 0 ||
                                                         (strcmp(mode, "ps") == 0 && rank == 0));
        *ret_held = held(&s.t);
    } else {
        assert_int_equal(r, -ENOMEM);
        assert_memory_equal(s.err.msg, "the device's memory is full: ", 29);
    }
    end(&s);
    assert_int_equal(threads(), before);
    return r;
}

static const struct {
    const char *mode;
    int worlds[2];
} modes[] = {{"ddp", {1, 3}}, {"dp", {1}}, {"fsdp", {1, 3}},
             {"manual", {1}}, {"ps", {3}}, {"zero", {1, 3}}};
enum { MODES_HERE = sizeof(modes) / sizeof(*modes) };

/* The least with which it opens, where its devices have memory of their own each. */
static size_t least(const char *mode, int rank, int world) {
    size_t taken, low = 1, high = (size_t)1 << 30;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (try(mode, rank, world, middle, &taken) == 0)
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

/* It opens with what it holds then, and not with a byte less; and of less, at every eighth, nothing stays. */
static void judge(const char *mode, int rank, int world) {
    size_t all = 0, taken = 0;
    assert_int_equal(try(mode, rank, world, 0, &all), 0);
    if (strcmp(mode, "dp") == 0)
        all = least(mode, rank, world);
    assert_int_equal(try(mode, rank, world, all, &taken), 0);
    assert_int_equal(try(mode, rank, world, all - 1, &taken), -ENOMEM);
    for (size_t k = 1; k < 8; k++)
        assert_int_equal(try(mode, rank, world, all * k / 8, &taken), -ENOMEM);
}

static void test_what_is_opened_is_closed_however_far_it_came(void **state) {
    (void)state;
    for (size_t i = 0; i < MODES_HERE; i++)
        for (int w = 0; w < 2 && modes[i].worlds[w]; w++)
            for (int rank = 0; rank < modes[i].worlds[w]; rank += 2)
                judge(modes[i].mode, rank, modes[i].worlds[w]);
}

/* Before it was opened at all, too. */
static void test_what_was_never_opened_is_closed_without_harm(void **state) {
    (void)state;
    for (size_t i = 0; i < MODES_HERE; i++) {
        struct scene s;
        begin(&s, modes[i].mode, 0, modes[i].worlds[0], 0);
        end(&s);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_opened_is_closed_however_far_it_came),
        cmocka_unit_test(test_what_was_never_opened_is_closed_without_harm),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
