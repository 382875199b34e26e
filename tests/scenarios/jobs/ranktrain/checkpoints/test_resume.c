/* Where a group goes on, each rank a thread of the test: whoever has what, on which disk, the newest wins and comes to all. */
#include "scenarios/jobs/ranktrain/checkpoints/resume.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"
#include "tests/own_port.h"

#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { RANKS = 4, VALUES = 11, TRAINED = 7 };

static char place[64];
static const struct model model = {
    .name = "tiny", .width = 1, .values = VALUES, .trained = TRAINED};

struct actor {
    pthread_t thread;
    struct bootstrap_request join;
    struct checkpoint_place place;
    struct resume_request q;
    char dir[128];
    bool has_dir, is_part;
    int64_t in_memory; /* the step; -1: none */

    int r;
    struct resume ret;
    struct state s, lacking;
    struct err err;
};

static int setup(void **state) {
    (void)state;
    strcpy(place, "/tmp/test-resume-XXXXXX");
    return mkdtemp(place) ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    return file_remove_tree(place, NULL) < 0;
}

/* What a number of a state of a step is, by its place in the whole. */
static float number(int64_t step, size_t i) {
    return (float)(step * 1000 + (int64_t)i);
}

static void fill(struct state *s, int64_t step) {
    s->step = (uint64_t)step;
    for (size_t i = s->held.lo; i < s->held.hi; i++)
        s->weights[i - s->held.lo] = number(step, i);
    for (size_t i = s->held_moments.lo; i < s->held_moments.hi; i++)
        s->moment[0][i - s->held_moments.lo] = -number(step, i);
}

static bool is_of(const struct state *s, int64_t step) {
    bool is = (int64_t)s->step == step;
    for (size_t i = s->held.lo; i < s->held.hi; i++)
        is &= s->weights[i - s->held.lo] == (step > 0 ? number(step, i) : 0);
    for (size_t i = s->held_moments.lo; i < s->held_moments.hi; i++)
        is &= s->moment[0][i - s->held_moments.lo] == (step > 0 ? -number(step, i) : 0);
    return is;
}

static const struct optimizer_kind *sgd(void) {
    struct err err;
    return optimizer_find("sgd", &err);
}

static void *act(void *arg) {
    struct actor *a = arg;
    struct bootstrap b;
    a->r = bootstrap_join(&b, &a->join, &a->err);
    if (a->r == 0)
        a->r = resume_agree(&b, &a->q, &a->s, &a->lacking, &a->ret, &a->err);
    bootstrap_end(&b);
    return NULL;
}

/* Rank r holds all, or the r-th part of world. */
static void actor_init(struct actor *a, int rank, int world, int port) {
    size_t w = (size_t)world, r = (size_t)rank;
    struct state_range held = {0, VALUES}, moments = {0, TRAINED};
    if (a->is_part) {
        held = (struct state_range){VALUES * r / w, VALUES * (r + 1) / w};
        moments = (struct state_range){TRAINED * r / w, TRAINED * (r + 1) / w};
    }
    a->place = (struct checkpoint_place){.dir = a->has_dir ? a->dir : NULL,
                                         .run_id = "job",
                                         .model = &model,
                                         .optimizer = sgd(),
                                         .round = 1,
                                         .seed = 1,
                                         .world = world,
                                         .keep = 9};
    a->q.place = &a->place;
    a->q.seed = 1;
    a->q.last_step = a->q.last_step ? a->q.last_step : 100;
    a->q.in_memory = a->in_memory >= 0;
    a->join = (struct bootstrap_request){
        .rank = rank,
        .world = world,
        .master_addr = "127.0.0.1",
        .master_port = port,
        .run_id = "job",
        .round = 1,
        .wait = {.deadline_ns = deadline_in_ns(INT64_C(60000000000)), .wake_fd = -1}};
    state_init_part(&a->s, &model, sgd(), held, moments);
    for (size_t i = 0; i < state_bytes(&a->s) / sizeof(float); i++)
        a->s.weights[i] = -7; /* of no step */
    if (a->in_memory >= 0)
        fill(&a->s, a->in_memory);
}

static void play(struct actor *a, int world) {
    int port = own_port();
    for (int i = 0; i < world; i++) {
        actor_init(&a[i], i, world, port);
        assert_int_equal(pthread_create(&a[i].thread, NULL, act, &a[i]), 0);
    }
    for (int i = 0; i < world; i++)
        pthread_join(a[i].thread, NULL);
}

static void actors_fini(struct actor *a, int world) {
    for (int i = 0; i < world; i++) {
        state_fini(&a[i].s);
        state_fini(&a[i].lacking);
    }
}

/* A directory with the checkpoint of a step; 0: with none. */
static void make_dir(char ret[128], int rank, int64_t step) {
    struct state s;
    struct rankquake q = {.fd = -1};
    struct err err;
    snprintf(ret, 128, "%s/disk%d-%d", place, rank, (int)step);
    if (mkdir(ret, 0700) < 0 || !step)
        return;
    const struct checkpoint_place p = {
        .dir = ret, .run_id = "job", .model = &model, .optimizer = sgd(), .seed = 1, .keep = 9};
    state_init(&s, &model, sgd());
    fill(&s, step);
    assert_int_equal(checkpoint_save(&p, &s, &q, &err), 0);
    state_fini(&s);
}

static void judge(const struct actor *a, int world, int best, int64_t step, const char *path) {
    for (int r = 0; r < world; r++) {
        const struct actor *one = &a[r];
        if (one->r < 0)
            fail_msg("rank %d: %s", r, one->err.msg);
        assert_int_equal(one->ret.holder, best);
        assert_string_equal(one->ret.path, path);
        assert_true(is_of(&one->s, step));
        assert_int_equal(one->ret.keeps, one->has_dir);
    }
}

/* Every way in which three ranks may have a checkpoint of step 2, of step 4 or none, each on its own disk. */
static void test_the_newest_on_any_disk_comes_to_all(void **state) {
    (void)state;
    for (int way = 0; way < 27 * 2; way++) {
        struct actor a[RANKS] = {{.in_memory = -1}, {.in_memory = -1}, {.in_memory = -1}};
        int64_t steps[3] = {way % 3 * 2, way / 3 % 3 * 2, way / 9 % 3 * 2}, step = 0;
        int best = -1;
        char path[192] = "";
        for (int r = 0; r < 3; r++) {
            a[r].has_dir = true;
            a[r].is_part = way >= 27;
            make_dir(a[r].dir, r, steps[r]);
            if (steps[r] > step) {
                step = steps[r];
                best = r;
                snprintf(path, sizeof(path), "%s/step-%08d", a[r].dir, (int)step);
            }
        }
        play(a, 3);
        judge(a, 3, best, step, path);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(a[r].ret.lacks, step > 0 && steps[r] != step);
            assert_int_equal(a[r].ret.places.n, 3);
            bool gets_all = a[r].ret.lacks && a[r].is_part;
            assert_int_equal(a[r].lacking.weights != NULL, gets_all);
            if (gets_all)
                assert_true(state_is_whole(&a[r].lacking) && is_of(&a[r].lacking, step));
        }
        actors_fini(a, 3);
    }
}

/* Who has outlived a group offers what it has, and reads no disk; who is new reads its own. */
static void test_what_is_in_memory_is_offered_too(void **state) {
    (void)state;
    static const int64_t of_memory[] = {-1, 3, 4, 5};
    for (int way = 0; way < 16; way++) {
        struct actor a[RANKS] = {{.in_memory = of_memory[way % 4]},
                                 {.in_memory = of_memory[way / 4]}};
        int64_t has[2], step = 0;
        int best = -1;
        char path[192] = "";
        for (int r = 0; r < 2; r++) {
            bool in_memory = a[r].in_memory >= 0;
            a[r].has_dir = true;
            make_dir(a[r].dir, r, 4);
            has[r] = in_memory ? a[r].in_memory : 4;
            if (has[r] <= step)
                continue;
            step = has[r];
            best = r;
            if (in_memory)
                snprintf(path, sizeof(path), "memory of rank %d", r);
            else
                snprintf(path, sizeof(path), "%s/step-%08d", a[r].dir, 4);
        }
        play(a, 2);
        judge(a, 2, best, step, path);
        for (int r = 0; r < 2; r++)
            assert_int_equal(a[r].ret.lacks, a[best].in_memory < 0 && has[r] != step);
        actors_fini(a, 2);
    }
}

static void test_without_checkpoints_all_begin_anew(void **state) {
    (void)state;
    struct actor a[RANKS] = {{.in_memory = -1}, {.in_memory = -1}};
    play(a, 2);
    judge(a, 2, -1, 0, "");
    for (int r = 0; r < 2; r++)
        assert_true(!a[r].ret.keeps && !a[r].ret.lacks && a[r].ret.places.n == 0);
    actors_fini(a, 2);
}

/* What none can go on from is no reason to begin anew, unless that is asked for. */
static void test_where_none_can_be_used_that_is_said_by_all(void **state) {
    (void)state;
    static const struct {
        bool other_seed[2], fresh;
        int r;
        const char *said; /* behind the directory of the rank */
    } rows[] = {{{true, true}, false, -EXDEV, " holds 2 checkpoints and none"},
                {{true, false}, false, -ENODATA, " holds 2 checkpoints and none"},
                {{true, true}, true, 0, NULL}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct actor a[RANKS] = {{.in_memory = -1}, {.in_memory = -1}};
        for (int r = 0; r < 2; r++) {
            char command[256];
            a[r].has_dir = true;
            a[r].q.fresh = rows[i].fresh;
            make_dir(a[r].dir, r, 2 + (int)i * 2);
            snprintf(command, sizeof(command), "%s %s/*/%s",
                     rows[i].other_seed[r] ? "sed -i 's/\"seed\":1/\"seed\":2/'" : "truncate -s 3",
                     a[r].dir, rows[i].other_seed[r] ? "manifest.json" : "weights.f32");
            assert_int_equal(system(command), 0);
        }
        play(a, 2);
        for (int r = 0; r < 2; r++) {
            char wanted[512];
            assert_int_equal(a[r].r, rows[i].r);
            snprintf(wanted, sizeof(wanted),
                     "%s holds 2 checkpoints and none of them can be used, for the reasons above: "
                     "put a good one there, use another --checkpoint-dir, or begin anew with "
                     "--fresh",
                     a[r].dir);
            assert_string_equal(a[r].err.msg, rows[i].said ? wanted : "");
        }
        actors_fini(a, 2);
    }
    struct actor one = {.in_memory = -1, .has_dir = true, .q = {.last_step = 3}};
    make_dir(one.dir, 9, 4); /* beyond the last step */
    play(&one, 1);
    assert_int_equal(one.r, -ENODATA);
    assert_non_null(strstr(one.err.msg, " holds 1 checkpoint and none of them"));
    actors_fini(&one, 1);
}

/* Each way in which four ranks may share disks: the lowest rank of a disk keeps it, and no token stays. */
static void test_the_lowest_rank_of_each_disk_keeps_it(void **state) {
    (void)state;
    int ways = 0;
    for (int way = 0; way < 24; way++) {
        int disk[RANKS] = {0, way % 2, way / 2 % 3, way / 6 % 4}, disks = 0, files = 0;
        bool in_order =
            disk[2] <= disk[1] + 1 && disk[3] <= (disk[2] > disk[1] ? disk[2] : disk[1]) + 1;
        if (!in_order)
            continue; /* the same as another */
        ways++;
        struct actor a[RANKS];
        for (int r = 0; r < RANKS; r++) {
            a[r] = (struct actor){.in_memory = -1, .has_dir = true};
            make_dir(a[r].dir, disk[r], 0);
        }
        play(a, RANKS);
        for (int r = 0; r < RANKS; r++) {
            int keeper = 0;
            while (disk[keeper] != disk[r])
                keeper++;
            disks += keeper == r;
            assert_int_equal(a[r].r, 0);
            assert_int_equal(a[r].ret.keeps, keeper == r);
            for (int k = 0; k < RANKS; k++)
                assert_int_equal(a[k].ret.places.keeper[r], keeper);
        }
        for (int r = 0; r < RANKS; r++) {
            char command[256];
            assert_int_equal(a[r].ret.places.n, disks);
            snprintf(command, sizeof(command), "test -z \"$(ls -A %s)\"", a[r].dir);
            files += system(command) != 0;
        }
        assert_int_equal(files, 0);
        actors_fini(a, RANKS);
    }
    assert_int_equal(ways, 15);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_newest_on_any_disk_comes_to_all),
        TEST(what_is_in_memory_is_offered_too),
        TEST(without_checkpoints_all_begin_anew),
        TEST(where_none_can_be_used_that_is_said_by_all),
        TEST(the_lowest_rank_of_each_disk_keeps_it),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
