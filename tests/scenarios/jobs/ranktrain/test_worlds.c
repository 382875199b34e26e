/* Whole jobs on loopback: the same hash at every world size and after every interruption, another
 * one with each planted bug. */
#include "tests/scenarios/jobs/ranktrain/ends.h"

#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

enum { STEPS = 16 };

struct job {
    const char *program; /* "train", "train_dropped" ... */
    int world, round, signo, rank, step, steps;
    const char *dir; /* checkpoints every 5 steps; NULL: none */
    const char *more;
};

static char output[1 << 16];

/* Runs a job and keeps what it said in output. */
static void run(const struct job *j) {
    char here[PATH_MAX - 64] = {0}, command[4 * PATH_MAX], dir[PATH_MAX] = "";
    assert_true(readlink("/proc/self/exe", here, sizeof(here) - 1) > 0);
    *strrchr(here, '/') = 0;
    if (j->dir)
        snprintf(dir, sizeof(dir), "--checkpoint-dir=%s --checkpoint-every=5", j->dir);
    snprintf(command, sizeof(command),
             "%s/spawn_world %d %d %d %d %d -- %s/spawn_%s --steps=%d --log-every=1 %s %s", here,
             j->world, j->round, j->signo, j->rank, j->step, here, j->program,
             j->steps ? j->steps : STEPS, dir, j->more ? j->more : "");
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t n = fread(output, 1, sizeof(output) - 1, f);
    output[n] = 0;
    pclose(f);
}

/* The hash in what was said; fails the test where there is none. */
static const char *model(void) {
    static char hash[2][65];
    static int turn;
    const char *at = strstr(output, "\nmodel ");
    if (!at)
        fail_msg("no model in:\n%s", output);
    assert_ended_well(output);
    turn = !turn;
    snprintf(hash[turn], 65, "%s", at + 7);
    assert_int_equal(strlen(hash[turn]), 64);
    return hash[turn];
}

static void assert_said(const char *text) {
    if (!strstr(output, text))
        fail_msg("'%s' not found in:\n%s", text, output);
}

/* Of a run alone, made once. */
static const char *right_model(void) {
    static char hash[65];
    if (!*hash) {
        run(&(struct job){.program = "train", .world = 1});
        snprintf(hash, sizeof(hash), "%s", model());
    }
    return hash;
}

static int place_setup(void **state) {
    char *dir = strdup("/tmp/test-worlds-XXXXXX");
    *state = dir;
    return mkdtemp(dir) ? 0 : -1;
}

static int place_teardown(void **state) {
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", (char *)*state);
    free(*state);
    return system(command);
}

static void test_every_world_size_ends_with_the_same_model(void **state) {
    (void)state;
    static const int worlds[] = {2, 3, 4, 5, 6, 12};
    for (size_t i = 0; i < sizeof(worlds) / sizeof(*worlds); i++) {
        run(&(struct job){.program = "train", .world = worlds[i]});
        assert_string_equal(model(), right_model());
    }
}

/* Batch norm and the moments of Adam too: at every world size, and across a resume. */
static void test_other_networks_and_optimizers_end_with_the_same_model(void **state) {
    static const char *const trainings[] = {"--network=resnet18 --width=2",
                                            "--network=vgg11 --width=2",
                                            "--network=resnet18 --width=2 --optimizer=adam"};
    for (size_t i = 0; i < sizeof(trainings) / sizeof(*trainings); i++) {
        char want[65], seed[128];
        snprintf(seed, sizeof(seed), "%s --seed=%zu", trainings[i], i);
        run(&(struct job){.program = "train", .world = 1, .steps = 7, .more = seed});
        snprintf(want, sizeof(want), "%s", model());
        run(&(struct job){.program = "train", .world = 5, .steps = 7, .more = seed});
        assert_string_equal(model(), want);
        run(&(struct job){
            .program = "train", .world = 2, .round = 1, .steps = 5, .dir = *state, .more = seed});
        run(&(struct job){
            .program = "train", .world = 3, .round = 2, .steps = 7, .dir = *state, .more = seed});
        assert_said("resumed step 5 ");
        assert_string_equal(model(), want);
        assert_int_equal(place_teardown(state) | place_setup(state), 0);
    }
}

static void test_the_model_is_the_last_line_of_rank_0(void **state) {
    (void)state;
    run(&(struct job){.program = "train", .world = 2});
    assert_string_equal(strstr(output, model()) + 65, "rank 0 exit 0\nrank 1 exit 0\n");
}

static void test_a_killed_worker_costs_no_bit(void **state) {
    struct job j = {.program = "train",
                    .world = 3,
                    .round = 1,
                    .signo = SIGKILL,
                    .rank = 1,
                    .step = 8,
                    .dir = *state};
    run(&j);
    assert_said("rank 0 exit 1\nrank 1 signal 9\nrank 2 exit 1\n");
    assert_said("is gone");
    run(&(struct job){.program = "train", .world = 2, .round = 2, .dir = *state});
    assert_said("resumed step 5 ");
    assert_string_equal(model(), right_model());
}

static void test_rank_0_may_be_killed_too(void **state) {
    struct job j = {.program = "train",
                    .world = 4,
                    .round = 1,
                    .signo = SIGKILL,
                    .rank = 0,
                    .step = 12,
                    .dir = *state};
    run(&j);
    assert_said("rank 0 signal 9\nrank 1 exit 1\n");
    run(&(struct job){.program = "train", .world = 6, .round = 2, .dir = *state});
    assert_said("resumed step 10 ");
    assert_string_equal(model(), right_model());
}

/* The step of the newest checkpoint there. */
static int newest(const char *dir) {
    char command[256], name[64] = "";
    snprintf(command, sizeof(command), "ls %s | tail -n 1", dir);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(name, sizeof(name), f));
    pclose(f);
    return atoi(name + strlen("step-"));
}

static void test_sigterm_saves_between_two_steps_and_ends_by_the_signal(void **state) {
    struct job j = {.program = "train", .world = 1, .round = 1, .signo = SIGTERM, .step = 7};
    char want[64], one[65];
    j.dir = *state;
    j.steps = 100000;
    run(&j);
    assert_said("rank 0 signal 15\n");
    int saved = newest(j.dir);
    assert_true(saved >= 7);
    run(&(struct job){
        .program = "train", .world = 2, .round = 2, .steps = saved + 1, .dir = *state});
    snprintf(want, sizeof(want), "resumed step %d ", saved);
    assert_said(want);
    snprintf(one, sizeof(one), "%s", model());
    run(&(struct job){.program = "train", .world = 3, .steps = saved + 1});
    assert_string_equal(model(), one);
}

static void test_sigterm_ends_a_worker_by_that_signal_and_its_peers_name_it(void **state) {
    (void)state;
    struct job j = {.program = "train", .world = 2, .signo = SIGTERM, .rank = 1, .step = 3};
    j.steps = 100000;
    j.more = "--compute-ms=20";
    run(&j);
    assert_said("rank 0 exit 1\nrank 1 signal 15\n");
    assert_said("rank 1 at 127.0.0.1:");
}

static void test_a_job_that_is_complete_is_only_tested_again(void **state) {
    run(&(struct job){.program = "train", .world = 2, .round = 1, .dir = *state});
    assert_string_equal(model(), right_model());
    run(&(struct job){.program = "train", .world = 3, .round = 2, .dir = *state});
    assert_said("resumed step 16 ");
    assert_string_equal(model(), right_model());
}

static void test_a_peer_that_hangs_is_named_at_the_deadline(void **state) {
    (void)state;
    struct job j = {.program = "train", .world = 2, .signo = SIGSTOP, .rank = 1, .step = 3};
    j.more = "--collective-timeout=1";
    j.steps = 100000;
    run(&j);
    assert_said("rank 1 at 127.0.0.1:");
    assert_said("within 1 s");
    assert_said("rank 0 exit 1\n");
}

static void test_a_dropped_contribution_shows(void **state) {
    (void)state;
    run(&(struct job){.program = "train_dropped", .world = 3});
    assert_string_not_equal(model(), right_model());
}

static void test_a_shard_computed_twice_shows(void **state) {
    (void)state;
    run(&(struct job){.program = "train_doubled", .world = 3});
    assert_string_not_equal(model(), right_model());
    run(&(struct job){.program = "train_doubled", .world = 1});
    assert_string_equal(model(), right_model());
}

static void test_a_byte_flipped_past_the_checksum_shows(void **state) {
    run(&(struct job){.program = "train", .world = 2, .round = 1, .dir = *state, .steps = 10});
    run(&(struct job){.program = "train_flipped", .world = 2, .round = 2, .dir = *state});
    assert_said("resumed step 10 ");
    assert_string_not_equal(model(), right_model());
}

static void test_generated_data_trains_to_the_same_model_too(void **state) {
    (void)state;
    char one[65];
    struct job j = {.program = "train", .world = 1, .more = "--dataset=generated"};
    run(&j);
    assert_said("data generated,");
    snprintf(one, sizeof(one), "%s", model());
    j.world = 4;
    run(&j);
    assert_string_equal(model(), one);
    assert_string_not_equal(one, right_model());
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_world_size_ends_with_the_same_model, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(test_other_networks_and_optimizers_end_with_the_same_model,
                                        place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(test_the_model_is_the_last_line_of_rank_0, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(test_a_killed_worker_costs_no_bit, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(test_rank_0_may_be_killed_too, place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(test_sigterm_saves_between_two_steps_and_ends_by_the_signal,
                                        place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(
            test_sigterm_ends_a_worker_by_that_signal_and_its_peers_name_it, place_setup,
            place_teardown),
        cmocka_unit_test_setup_teardown(test_a_job_that_is_complete_is_only_tested_again,
                                        place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(test_a_peer_that_hangs_is_named_at_the_deadline,
                                        place_setup, place_teardown),
        cmocka_unit_test_setup_teardown(test_a_dropped_contribution_shows, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(test_a_shard_computed_twice_shows, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(test_a_byte_flipped_past_the_checksum_shows, place_setup,
                                        place_teardown),
        cmocka_unit_test_setup_teardown(test_generated_data_trains_to_the_same_model_too,
                                        place_setup, place_teardown),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
