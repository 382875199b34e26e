/* How whole jobs save and go on: on disks that each node has to itself, beside the training, in
 * parts; and what they say where they cannot. */
#include "tests/scenarios/jobs/ranktrain/whole_jobs.h"

/* ---- each node its own disk ---- */

static void test_every_node_keeps_a_copy_of_its_own(void **state) {
    (void)state;
    run(&(struct job){.world = 3, .round = 1},
        "--steps=8 --checkpoint-every=4 --checkpoint-dir=d%%r");
    assert_said("checkpoints in 3 directories");
    assert_int_equal(
        shell("test -e d0/step-00000008/manifest.json -a -e d1/step-00000008/manifest.json "
              "-a -e d2/step-00000008/manifest.json"),
        0);
    assert_int_equal(shell("! ls -A d0 d1 d2 | grep '^[.]'"), 0);
}

/* The node that carried rank 0 is gone for ever, disk and all, and a new one has its rank. */
static void test_a_newcomer_that_is_rank_0_is_given_the_newest(void **state) {
    (void)state;
    run(&(struct job){.world = 3, .round = 1, .signo = SIGKILL, .rank = 0, .step = 9},
        "--steps=%d --checkpoint-every=4 --checkpoint-dir=d%%r", STEPS);
    assert_said("rank 0 signal 9");
    assert_int_equal(shell("rm -rf d0"), 0);
    run(&(struct job){.world = 2, .round = 2},
        "--steps=%d --checkpoint-every=4 --checkpoint-dir=d%%r", STEPS);
    assert_said("resumed step 8 from d1/step-00000008");
    assert_right();
    assert_int_equal(shell("test -e d0/step-00000008/manifest.json"), 0);
}

/* Of two that have some the newer one's is taken, wherever it is, and a damaged one is none. */
static void test_the_newest_whole_one_of_all_wins(void **state) {
    (void)state;
    run(&(struct job){.world = 3, .round = 1},
        "--steps=8 --checkpoint-every=2 --checkpoint-dir=d%%r");
    assert_int_equal(
        shell("rm -rf d0/step-00000008 d0/step-00000006 && "
              "truncate -s 100 d1/step-00000008/weights.f32 && rm -rf d2/step-00000008"),
        0);
    run(&(struct job){.world = 3, .round = 2},
        "--steps=%d --checkpoint-every=50 --checkpoint-dir=d%%r", STEPS);
    assert_said("rank 1: ignored d1/step-00000008: weights.f32 has 100 bytes");
    assert_said("resumed step 6 from d1/step-00000006");
    assert_right();
}

static void test_a_shared_directory_has_one_writer(void **state) {
    (void)state;
    run(&(struct job){.world = 3, .round = 1}, "--steps=%d --checkpoint-every=4 --checkpoint-dir=d",
        STEPS);
    assert_null(strstr(output, "directories"));
    assert_right();
    assert_int_equal(shell("! ls -A d | grep -v '^step-'"), 0);
}

/* ---- beside the training and in parts ---- */

static void test_saves_beside_the_training_cost_no_bit(void **state) {
    (void)state;
    run(&(struct job){.world = 2, .round = 1, .signo = SIGKILL, .rank = 1, .step = 9},
        "--steps=%d --checkpoint-every=2 --checkpoint-dir=d --checkpoint-async", STEPS);
    assert_said("rank 1 signal 9");
    run(&(struct job){.world = 3, .round = 2},
        "--steps=%d --checkpoint-every=2 --checkpoint-dir=d --checkpoint-async", STEPS);
    assert_said("resumed step ");
    assert_right();
    assert_int_equal(shell("test -e d/step-00000012/manifest.json"), 0);
}

static void test_parts_of_one_world_are_taken_by_another(void **state) {
    (void)state;
    static const char *const hows[] = {"", "--checkpoint-async"};
    for (size_t i = 0; i < 2; i++) {
        run(&(struct job){.world = 4, .round = 1, .signo = SIGKILL, .rank = 2, .step = 7},
            "--steps=%d --checkpoint-every=2 --checkpoint-dir=s%zu --checkpoint-sharded %s", STEPS,
            i, hows[i]);
        assert_int_equal(shell("ls s%zu/step-*/weights.003-of-004.f32 >/dev/null", i), 0);
        run(&(struct job){.world = 3, .round = 2},
            "--steps=%d --checkpoint-every=6 --checkpoint-dir=s%zu --checkpoint-sharded %s", STEPS,
            i, hows[i]);
        assert_said("resumed step ");
        assert_right();
        assert_int_equal(shell("test -e s%zu/step-00000012/velocity.002-of-003.f32", i), 0);
    }
}

/* On disks of their own the ranks of a node share the work; here each node has one. */
static void test_parts_lie_on_every_node(void **state) {
    (void)state;
    run(&(struct job){.world = 2, .round = 1},
        "--steps=8 --checkpoint-every=4 --checkpoint-dir=d%%r --checkpoint-sharded");
    assert_int_equal(shell("rm -rf d0"), 0);
    run(&(struct job){.world = 2, .round = 2}, "--steps=%d --checkpoint-dir=d%%r", STEPS);
    assert_said("resumed step 8 from d1");
    assert_right();
}

/* Nobody has all of the state, and every node has a whole copy of what all have. */
static void test_ranks_that_share_the_state_keep_it_on_every_node(void **state) {
    (void)state;
    static const char *const hows[] = {"--mode=zero", "--mode=fsdp --checkpoint-sharded",
                                       "--mode=fsdp --checkpoint-async", "--mode=ps"};
    for (size_t i = 0; i < sizeof(hows) / sizeof(*hows); i++) {
        run(&(struct job){.world = 4, .round = 1, .signo = SIGKILL, .rank = 0, .step = 9},
            "--steps=%d --checkpoint-every=2 --checkpoint-dir=d%%r %s", STEPS, hows[i]);
        assert_said("checkpoints in 4 directories");
        assert_int_equal(shell("rm -rf d0 d3"), 0);
        run(&(struct job){.world = 3, .round = 2},
            "--steps=%d --checkpoint-every=50 --checkpoint-dir=d%%r %s", STEPS, hows[i]);
        assert_said(strstr(hows[i], "async") ? "resumed step " : "resumed step 8 from d1/");
        assert_right();
        assert_int_equal(shell("cat d0/step-*12/*.f32 >x; cat d1/step-*12/*.f32 | cmp - x"), 0);
        assert_int_equal(shell("test $(ls d0 | wc -l) = 2"), 0);
        assert_int_equal(shell("rm -rf d?"), 0);
    }
}

/* Its workers are at steps of their own: each is sent all of the state now and then. */
static void test_an_asynchronous_server_has_copies_on_every_node(void **state) {
    (void)state;
    static const char *const hows[] = {"", "--checkpoint-async"};
    for (size_t i = 0; i < 2; i++) {
        run(&(struct job){.world = 3, .round = 1},
            "--mode=ps --ps-async --steps=%d --checkpoint-every=4 --checkpoint-dir=d%%r %s", STEPS,
            hows[i]);
        assert_int_equal(shell("for d in 1 2; do test $(ls d$d | wc -l) -ge 2 && cmp d0/step-*12/"
                               "velocity.f32 d$d/step-*12/velocity.f32 || exit 1; done; rm -rf d0"),
                         0);
        run(&(struct job){.world = 3, .round = 2},
            "--mode=ps --ps-async --steps=%d --checkpoint-dir=d%%r", STEPS + 2);
        assert_said("resumed step 12 from d1/step-00000012");
        assert_int_equal(shell("rm -rf d?"), 0);
    }
}

static void test_epochs_are_a_pace_too(void **state) {
    (void)state;
    run(&(struct job){.world = 2, .round = 1},
        "--epochs=2 --checkpoint-every=1ep --checkpoint-dir=d --checkpoint-keep=9");
    assert_int_equal(shell("test \"$(ls d | tr -d '\\n')\" = step-00000010step-00000020"), 0);
}

static void test_a_rate_for_so_many_workers_grows_with_them(void **state) {
    (void)state;
    char one[65];
    run(&(struct job){.world = 2}, "--steps=4 --lr=0.05 --scale-lr=1");
    snprintf(one, sizeof(one), "%s", model());
    run(&(struct job){.world = 1}, "--steps=4 --lr=0.1");
    assert_string_equal(model(), one);
}

/* ---- the evaluator ---- */

/* It is stopped while the training goes on that keeps one checkpoint alone, and then reads them all,
 * of a directory that was not there when it began. */
static void test_a_slow_evaluator_reads_all(void **state) {
    (void)state;
    char here[PATH_MAX / 4] = {0}, command[2 * PATH_MAX], line[256];
    assert_true(readlink("/proc/self/exe", here, sizeof(here) - 1) > 0);
    *strrchr(here, '/') = 0;
    snprintf(command, sizeof(command),
             "cd %s; echo $$; exec %s/spawn_train evaluate --model-dir=e/f --eval-freq=2 "
             "--max-steps=%d --eval-batch-size=60",
             place, here, STEPS);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof(line), f));
    pid_t pid = atoi(line);
    const struct job one = {.world = 1, .round = 1};
    run(&one, "--steps=2 --checkpoint-every=1 --checkpoint-keep=1 --checkpoint-dir=e/f");
    assert_non_null(fgets(line, sizeof(line), f));
    assert_memory_equal(line, "step 2 loss 2.", strlen("step 2 loss 2."));
    assert_int_equal(kill(pid, SIGSTOP), 0);
    run(&one, "--steps=%d --checkpoint-every=1 --checkpoint-keep=1 --checkpoint-dir=e/f", STEPS);
    assert_int_equal(shell("test $(ls e/f | grep -c '^step-') -ge 5"), 0);
    assert_int_equal(kill(pid, SIGCONT), 0);
    for (int step = 4; step <= STEPS; step += 2) {
        char want[32];
        snprintf(want, sizeof(want), "step %d loss ", step);
        assert_non_null(fgets(line, sizeof(line), f));
        assert_memory_equal(line, want, strlen(want));
        assert_non_null(strstr(line, " accuracy 0."));
    }
    assert_int_equal(pclose(f), 0);
    assert_int_equal(shell("! ls e/f | grep -q lease"), 0);
    run(&one, "--steps=%d --checkpoint-keep=1 --checkpoint-dir=e/f", STEPS + 1);
    assert_int_equal(shell("test $(ls e/f | grep -c '^step-') = 1"), 0);
}

/* Begins to evaluate a directory up to a step; returns the process. */
static pid_t evaluate(const char *dir, int last, FILE **ret) {
    char here[PATH_MAX / 4] = {0}, command[2 * PATH_MAX], line[64];
    assert_true(readlink("/proc/self/exe", here, sizeof(here) - 1) > 0);
    *strrchr(here, '/') = 0;
    snprintf(command, sizeof(command),
             "cd %s; echo $$; exec %s/spawn_train evaluate --model-dir=%s --eval-freq=2 "
             "--max-steps=%d --eval-batch-size=64 --network=LeNet --dataset=fashion-mnist 2>&1",
             place, here, dir, last);
    assert_non_null(*ret = popen(command, "r"));
    assert_non_null(fgets(line, sizeof(line), *ret));
    return atoi(line);
}

/* It reads what ranks have saved that hold a part each as what one has that holds all. */
static void test_an_evaluator_says_the_same_of_parts(void **state) {
    (void)state;
    static const char *const hows[] = {"--mode=ddp", "--mode=fsdp --checkpoint-sharded"};
    char said[2][1024] = {{0}};
    for (size_t i = 0; i < 2; i++) {
        char dir[8];
        FILE *f;
        snprintf(dir, sizeof(dir), "p%zu", i);
        run(&(struct job){.world = 2}, "--steps=4 --checkpoint-every=2 --checkpoint-dir=%s %s", dir,
            hows[i]);
        evaluate(dir, 4, &f);
        assert_true(fread(said[i], 1, sizeof(said[i]) - 1, f) > 0);
        assert_int_equal(pclose(f), 0);
    }
    assert_non_null(strstr(said[1], "step 2 loss 2."));
    assert_non_null(strstr(said[1], "\nstep 4 loss 2."));
    assert_string_equal(said[0], said[1]);
}

/* What one held that was killed is not kept, and the next one begins with what is there. */
static void test_an_evaluator_that_was_killed_is_followed_by_another(void **state) {
    (void)state;
    const struct job one = {.world = 1, .round = 1};
    char line[256];
    FILE *f;
    run(&one, "--steps=2 --checkpoint-dir=k");
    pid_t pid = evaluate("k", 99, &f);
    assert_non_null(fgets(line, sizeof(line), f));
    assert_memory_equal(line, "step 2 loss ", 12);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_not_equal(pclose(f), 0);
    assert_int_equal(shell("touch -d '2 minutes ago' k/evaluator-*.lease"), 0);
    run(&one, "--steps=8 --checkpoint-every=2 --checkpoint-keep=1 --checkpoint-dir=k");
    assert_int_equal(shell("test \"$(ls k)\" = step-00000008"), 0);
    evaluate("k", STEPS, &f);
    assert_non_null(fgets(line, sizeof(line), f));
    assert_memory_equal(line, "step 8 loss ", 12);
    run(&one, "--steps=%d --checkpoint-every=1 --checkpoint-keep=1 --checkpoint-dir=k", STEPS);
    for (int step = 10; step <= STEPS; step += 2) {
        assert_non_null(fgets(line, sizeof(line), f));
        assert_int_equal(atoi(line + strlen("step ")), step);
    }
    assert_int_equal(pclose(f), 0);
}

/* ---- what cannot be done ---- */

/* Exit status 64, and the option by its name. */
static void test_checkpoints_of_another_training_are_not_gone_on_from(void **state) {
    (void)state;
    static const struct {
        const char *other, *said;
    } cases[] = {{"--batch-size=48 --shards=12", "trained with --batch-size=96, not 48"},
                 {"--samples=480", "trained on 960 images, not 480 (--samples, --data-dir)"}};
    run(&(struct job){.world = 2, .round = 1}, "--steps=4 --checkpoint-dir=o --lr=0.05");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        run(&(struct job){.world = 2, .round = 2}, "--steps=6 --checkpoint-dir=o %s",
            cases[i].other);
        assert_said(cases[i].said);
        assert_said("holds 1 checkpoint and none of them can be used");
        assert_said("rank 0 exit 64\nrank 1 exit 64\n");
    }
    run(&(struct job){.world = 3, .round = 2}, "--steps=6 --mode=zero --checkpoint-dir=o --lr=0.1");
    assert_said("o/step-00000004 is gone on from with --lr=0.1 and not 0.05: the model will be");
    assert_said("resumed step 4 ");
}

static void test_none_that_can_be_used_stops_the_job(void **state) {
    (void)state;
    static const char *const hows[] = {"", "--checkpoint-sharded"};
    for (size_t i = 0; i < 2; i++) {
        run(&(struct job){.world = 2, .round = 1},
            "--steps=8 --checkpoint-every=8 --checkpoint-dir=n%zu %s", i, hows[i]);
        assert_int_equal(shell("truncate -s 9 n%zu/step-00000008/velocity*", i), 0);
        run(&(struct job){.world = 2, .round = 2}, "--steps=%d --checkpoint-dir=n%zu", STEPS, i);
        assert_said("rank 0: ignored n");
        assert_said("holds 1 checkpoint and none of them can be used");
        assert_said("begin anew with --fresh");
        assert_said("rank 0 exit 1\nrank 1 exit 1\n");
        run(&(struct job){.world = 2, .round = 2}, "--steps=%d --checkpoint-dir=n%zu --fresh",
            STEPS, i);
        assert_right();
        run(&(struct job){.world = 2, .round = 2}, "--steps=%d --checkpoint-dir=n%zu --fresh",
            STEPS, i);
        assert_said("resumed step 12");
    }
}

/* A disk that takes no file as long as the weights; what was saved before stays. */
static void test_a_full_disk_ends_the_job_and_the_one_before_stays(void **state) {
    (void)state;
    static const char *const hows[] = {"--checkpoint-async",
                                       "--checkpoint-sharded --checkpoint-async"};
    for (size_t i = 0; i < 2; i++) {
        run(&(struct job){.world = 2, .round = 1}, "--steps=4 --checkpoint-dir=f%zu", i);
        run(&(struct job){.world = 2, .round = 2, .before = "trap '' XFSZ; ulimit -f 8;"},
            "--steps=%d --checkpoint-every=4 --checkpoint-dir=f%zu %s", STEPS, i, hows[i]);
        assert_said("checkpoint of step 8 in f");
        assert_said("File too large");
        assert_null(strstr(output, "\nmodel "));
        assert_said("rank 0 exit 1");
        assert_int_equal(shell("test \"$(ls f%zu)\" = step-00000004", i), 0);
        run(&(struct job){.world = 1, .round = 3}, "--steps=%d --checkpoint-dir=f%zu", STEPS, i);
        assert_right();
    }
}

static void test_a_directory_that_cannot_be_made_is_named(void **state) {
    (void)state;
    assert_int_equal(shell("touch file"), 0);
    run(&(struct job){.world = 2, .round = 1}, "--steps=4 --checkpoint-dir=file/d");
    assert_said("--checkpoint-dir file/d: Not a directory");
    assert_said("rank 0 exit 1");
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, place_setup, place_teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_node_keeps_a_copy_of_its_own),
        TEST(a_newcomer_that_is_rank_0_is_given_the_newest),
        TEST(the_newest_whole_one_of_all_wins),
        TEST(a_shared_directory_has_one_writer),
        TEST(saves_beside_the_training_cost_no_bit),
        TEST(parts_of_one_world_are_taken_by_another),
        TEST(parts_lie_on_every_node),
        TEST(ranks_that_share_the_state_keep_it_on_every_node),
        TEST(an_asynchronous_server_has_copies_on_every_node),
        TEST(epochs_are_a_pace_too),
        TEST(a_rate_for_so_many_workers_grows_with_them),
        TEST(a_slow_evaluator_reads_all),
        TEST(an_evaluator_says_the_same_of_parts),
        TEST(an_evaluator_that_was_killed_is_followed_by_another),
        TEST(checkpoints_of_another_training_are_not_gone_on_from),
        TEST(none_that_can_be_used_stops_the_job),
        TEST(a_full_disk_ends_the_job_and_the_one_before_stays),
        TEST(a_directory_that_cannot_be_made_is_named),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
