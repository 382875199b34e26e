/* What whole jobs keep when they are asked to end, and how those go on that have lost a peer. */
#include "tests/own_port.h"
#include "tests/scenarios/jobs/ranktrain/breakpoint.h"
#include "tests/scenarios/jobs/ranktrain/whole_jobs.h"

/* ---- asked to end ---- */

/* The step of the newest in a directory. */
static int newest(const char *dir) {
    char command[PATH_MAX], name[64] = "";
    snprintf(command, sizeof(command), "ls %s/%s | tail -n 1", place, dir);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    assert_non_null(fgets(name, sizeof(name), f));
    pclose(f);
    return atoi(name + strlen("step-"));
}

/* Rank 0 waits for a peer or computes when the signal comes, and nothing else saves before step 100. */
static void test_sigterm_within_a_step_saves_the_one_before(void **state) {
    (void)state;
    static const char *const hows[] = {"--checkpoint-async", "--checkpoint-sharded"};
    for (size_t i = 0; i < 2; i++) {
        char dir[8], one[65];
        snprintf(dir, sizeof(dir), "t%zu", i);
        run(&(struct job){.world = 2, .round = 1, .signo = SIGTERM, .rank = 0, .step = 3},
            "--steps=99 --compute-ms=100 --checkpoint-dir=%s %s", dir, hows[i]);
        assert_said("rank 0 signal 15");
        int saved = newest(dir);
        assert_true(saved >= 3 && saved < 99);
        run(&(struct job){.world = 1, .round = 2}, "--steps=%d --checkpoint-dir=%s", saved + 1,
            dir);
        assert_said("resumed step ");
        snprintf(one, sizeof(one), "%s", model());
        run(&(struct job){.world = 1}, "--steps=%d", saved + 1);
        assert_string_equal(model(), one);
    }
}

static void assert_goes_on_from(const char *dir, const char *how) {
    char one[65];
    int saved = newest(dir);
    assert_true(saved >= 3 && saved < 99);
    run(&(struct job){.world = 3, .round = 2}, "--steps=%d --checkpoint-dir=%s %s", saved + 1, dir,
        how);
    assert_said("resumed step ");
    snprintf(one, sizeof(one), "%s", model());
    run(&(struct job){.world = 1}, "--steps=%d", saved + 1);
    assert_string_equal(model(), one);
}

/* All are asked, or one alone: then the others go on until they miss it. */
static void test_ranks_that_share_the_state_save_it_together_when_asked(void **state) {
    (void)state;
    static const struct {
        const char *how;
        int rank;
    } cases[] = {{"--mode=zero", -1},
                 {"--mode=fsdp --checkpoint-sharded", -1},
                 {"--mode=fsdp --checkpoint-sharded --checkpoint-async", 2},
                 {"--mode=ps", -1},
                 {"--mode=ps --ps-async", 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char dir[8];
        snprintf(dir, sizeof(dir), "a%zu", i);
        run(
            &(struct job){
                .world = 3, .round = 1, .signo = SIGTERM, .rank = cases[i].rank, .step = 3},
            "--steps=99 --compute-ms=60 --checkpoint-dir=%s %s", dir, cases[i].how);
        assert_said(cases[i].rank == 2 ? "rank 2 signal 15" : "rank 0 signal 15");
        if (cases[i].rank < 0)
            assert_said("rank 0 signal 15\nrank 1 signal 15\nrank 2 signal 15\n");
        assert_null(strstr(output, "cannot be saved"));
        if (!strstr(cases[i].how, "async"))
            assert_goes_on_from(dir, cases[i].how);
        else
            assert_true(newest(dir) >= 3);
    }
}

/* Who has the third part is dead, or silent: they say so, and end within the grace. */
static void test_a_part_that_nobody_has_is_said_when_asked(void **state) {
    (void)state;
    static const char *const lost[] = {"9 2", "19 2"};
    static const char *const why[] = {" is gone: ",
                                      "the --grace is over"}; /* 2, or 1 for its sake */
    for (size_t i = 0; i < 2; i++) {
        char before[64];
        snprintf(before, sizeof(before), "export SPAWN_LOST='%s';", lost[i]);
        run(
            &(struct job){
                .world = 3, .round = 1, .signo = SIGTERM, .rank = -1, .step = 7, .before = before},
            "--steps=99 --compute-ms=40 --grace=1 --mode=fsdp --checkpoint-every=2 "
            "--checkpoint-dir=b%zu",
            i);
        assert_said("asked to end, and step 7 cannot be saved: ");
        assert_said(why[i]);
        assert_said("the checkpoint before stays");
        assert_said("rank 0 signal 15\nrank 1 signal 15\nrank 2 signal 9\n");
        char dir[8];
        snprintf(dir, sizeof(dir), "b%zu", i);
        assert_int_equal(newest(dir), 6);
    }
}

/* ---- recovery in the process ---- */

/* Any one is killed and started again alone; the others stay, and end well. */
static void test_survivors_go_on_without_ending(void **state) {
    (void)state;
    static const struct {
        int rank;
        bool in_memory; /* nothing is lost */
        const char *how;
    } cases[] = {{0, true, ""},
                 {1, true, "--checkpoint-dir=r --checkpoint-every=3 --checkpoint-sharded"},
                 {2, true, "--overlap --checkpoint-dir=r --checkpoint-every=3 --checkpoint-async"},
                 {0, true, "--mode=manual"},
                 {2, false, "--mode=zero"},
                 {1, false, "--mode=zero --checkpoint-dir=d%r --checkpoint-every=3"},
                 {0, false, "--mode=fsdp --checkpoint-dir=r --checkpoint-every=3"},
                 {1, true, "--mode=ps"},
                 {0, false, "--mode=ps --checkpoint-dir=d%r --checkpoint-every=3"},
                 {2, true, "--mode=ps --ps-async"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        run(&(struct job){.world = 3,
                          .round = 1,
                          .signo = SIGKILL,
                          .rank = cases[i].rank,
                          .step = 5,
                          .before = "export SPAWN_AGAIN=1;"},
            "--steps=%d --recover=in-process --compute-ms=20 %s", STEPS, cases[i].how);
        assert_said("is started again");
        assert_said("meets its peers again");
        if (cases[i].in_memory)
            assert_said("from memory of rank ");
        else if (strstr(cases[i].how, "-dir"))
            assert_said("resumed step ");
        if (!strstr(cases[i].how, "ps-async"))
            assert_right();
        assert_said("rank 0 exit 0\nrank 1 exit 0\nrank 2 exit 0\n");
        assert_int_equal(shell("rm -rf r d?"), 0);
    }
}

/* Which rank a process was started as. */
static int rank_of(pid_t pid) {
    char path[64], name[256];
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    FILE *f = fopen(path, "r");
    int rank = -1;
    assert_non_null(f);
    for (int c = 0; c != EOF;) {
        size_t n = 0;
        while ((c = fgetc(f)) != EOF && c != 0)
            if (n + 1 < sizeof(name))
                name[n++] = (char)c;
        name[n] = 0;
        if (sscanf(name, "RANK=%d", &rank) == 1)
            break;
    }
    fclose(f);
    return rank;
}

/* Waits until all three are held at a step; the connection of each rank. */
static void held(struct breakpoint *b, int fd[3], pid_t pid[3]) {
    char event[RANKQUAKE_MESSAGE_MAX + 1];
    for (int i = 0; i < 3; i++) {
        pid_t who = 0;
        int one = breakpoint_accept(b, &who), rank = rank_of(who);
        assert_in_range(rank, 0, 2);
        fd[rank] = one;
        pid[rank] = who;
    }
    for (int i = 0; i < 3; i++)
        assert_true(breakpoint_wait(fd[i], "\"armed\":", event));
}

/* Their parent starts the one that was killed again, alone; the others keep their processes, which
 * their connections show. */
static void test_a_parent_starts_the_lost_rank_again_alone(void **state) {
    (void)state;
    char here[PATH_MAX / 4] = {0}, command[2 * PATH_MAX], events[100];
    char last[RANKQUAKE_MESSAGE_MAX + 1];
    struct breakpoint b = {0};
    pid_t pid[3], again = 0;
    int fd[3];
    assert_true(readlink("/proc/self/exe", here, sizeof(here) - 1) > 0);
    *strrchr(here, '/') = 0;
    snprintf(events, sizeof(events), "%.80s/events", place);
    assert_int_equal(breakpoint_open(&b, events, 4), 0);
    snprintf(command, sizeof(command),
             "MASTER_PORT=%d RANKQUAKE_EVENTS=%s %s/spawn_train --spawn 3 --recover in-process "
             "--samples=960 --log-every=1 --width=2 --steps=%d 2>&1",
             own_port(), events, here, STEPS);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    held(&b, fd, pid);
    breakpoint_clear(&b);
    assert_int_equal(kill(pid[1], SIGKILL), 0);
    breakpoint_go(fd[0]);
    breakpoint_go(fd[2]);
    close(fd[1]);
    fd[1] = breakpoint_accept(&b, &again);
    assert_int_not_equal(again, pid[1]);
    for (int i = 0; i < 3; i++) {
        assert_true(breakpoint_wait(fd[i], "\"kind\":\"step\",\"step\":12", last));
        close(fd[i]);
    }
    output[fread(output, 1, sizeof(output) - 1, f)] = 0;
    assert_int_equal(pclose(f), 0);
    breakpoint_close(&b);
    assert_said("was killed by signal 9; it is started again");
    assert_right();
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, place_setup, place_teardown)
    const struct CMUnitTest tests[] = {
        TEST(sigterm_within_a_step_saves_the_one_before),
        TEST(ranks_that_share_the_state_save_it_together_when_asked),
        TEST(a_part_that_nobody_has_is_said_when_asked),
        TEST(survivors_go_on_without_ending),
        TEST(a_parent_starts_the_lost_rank_again_alone),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
