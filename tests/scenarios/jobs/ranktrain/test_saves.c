/* How whole jobs save and go on: on disks that each node has to itself, beside the training, in
 * parts; and what they say where they cannot. */
#include "tests/own_port.h"
#include "tests/scenarios/jobs/ranktrain/breakpoint.h"

#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

enum { STEPS = 12 };

static char output[1 << 16], place[PATH_MAX / 4];

/* A world that is struck at a step of rank 0's; before: what the shell does first. */
struct job {
    int world, round, signo, rank, step;
    const char *before;
};

static void vrun(const struct job *j, const char *arguments, va_list ap) {
    char here[PATH_MAX / 4] = {0}, command[2 * PATH_MAX];
    assert_true(readlink("/proc/self/exe", here, sizeof(here) - 1) > 0);
    *strrchr(here, '/') = 0;
    int n = snprintf(command, sizeof(command),
                     "cd %s; %s exec %s/spawn_world %d %d %d %d %d -- %s/spawn_train "
                     "--samples=960 --log-every=1 --width=2 ",
                     place, j->before ? j->before : "", here, j->world, j->round, j->signo, j->rank,
                     j->step, here);
    vsnprintf(command + n, sizeof(command) - (size_t)n, arguments, ap);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t got = fread(output, 1, sizeof(output) - 1, f);
    output[got] = 0;
    pclose(f);
}

__attribute__((format(printf, 2, 3))) static void run(const struct job *j, const char *arguments,
                                                      ...) {
    va_list ap;
    va_start(ap, arguments);
    vrun(j, arguments, ap);
    va_end(ap);
}

static void assert_said(const char *text) {
    if (!strstr(output, text))
        fail_msg("'%s' not found in:\n%s", text, output);
}

static const char *model(void) {
    static char hash[65];
    const char *at = strstr(output, "\nmodel ");
    if (!at)
        fail_msg("no model in:\n%s", output);
    snprintf(hash, sizeof(hash), "%s", at + 7);
    return hash;
}

/* Of a run alone and undisturbed, made once. */
static const char *right_model(void) {
    static char hash[65];
    char kept[sizeof(output)];
    if (*hash)
        return hash;
    memcpy(kept, output, sizeof(output));
    run(&(struct job){.world = 1}, "--steps=%d", STEPS);
    snprintf(hash, sizeof(hash), "%s", model());
    memcpy(output, kept, sizeof(output));
    return hash;
}

static void assert_right(void) {
    char ended[65];
    snprintf(ended, sizeof(ended), "%s", model());
    assert_string_equal(ended, right_model());
}

__attribute__((format(printf, 1, 2))) static int shell(const char *command, ...) {
    char text[PATH_MAX * 2];
    va_list ap;
    int n = snprintf(text, sizeof(text), "cd %s && ", place);
    va_start(ap, command);
    vsnprintf(text + n, sizeof(text) - (size_t)n, command, ap);
    va_end(ap);
    return system(text);
}

static int place_setup(void **state) {
    (void)state;
    snprintf(place, sizeof(place), "/tmp/test-saves-XXXXXX");
    return mkdtemp(place) ? 0 : -1;
}

static int place_teardown(void **state) {
    (void)state;
    return shell("rm -rf %s", place);
}

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
        assert_said("resumed step ");
        assert_right();
        assert_int_equal(shell("cat d0/step-*12/*.f32 >x; cat d1/step-*12/*.f32 | cmp - x"), 0);
        assert_int_equal(shell("test $(ls d0 | wc -l) = 2"), 0);
        assert_int_equal(shell("rm -rf d?"), 0);
    }
}

static void test_epochs_are_a_pace_too(void **state) {
    (void)state;
    run(&(struct job){.world = 2, .round = 1},
        "--epochs=2 --checkpoint-every=1ep --checkpoint-dir=d --checkpoint-keep=9");
    assert_int_equal(shell("test \"$(ls d | tr -d '\\n')\" = step-00000010step-00000020"), 0);
}

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
    static const char *const why[] = {"rank 2 at ", "the --grace is over"};
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
    static const char *const hows[] = {"", "--checkpoint-dir=r --checkpoint-every=3",
                                       "--mode=zero"};
    for (int rank = 0; rank < 3; rank++) {
        run(&(struct job){.world = 3,
                          .round = 1,
                          .signo = SIGKILL,
                          .rank = rank,
                          .step = 5,
                          .before = "export SPAWN_AGAIN=1;"},
            "--steps=%d --recover=in-process --compute-ms=20 %s", STEPS, hows[rank]);
        assert_said("is started again");
        assert_said("meets its peers again");
        if (rank < 2)
            assert_said("from memory of rank ");
        assert_right();
        assert_said("rank 0 exit 0\nrank 1 exit 0\nrank 2 exit 0\n");
        assert_int_equal(shell("rm -rf r"), 0);
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

/* ---- what cannot be done ---- */

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
        TEST(epochs_are_a_pace_too),
        TEST(sigterm_within_a_step_saves_the_one_before),
        TEST(ranks_that_share_the_state_save_it_together_when_asked),
        TEST(a_part_that_nobody_has_is_said_when_asked),
        TEST(survivors_go_on_without_ending),
        TEST(a_parent_starts_the_lost_rank_again_alone),
        TEST(a_rate_for_so_many_workers_grows_with_them),
        TEST(a_slow_evaluator_reads_all),
        TEST(none_that_can_be_used_stops_the_job),
        TEST(a_full_disk_ends_the_job_and_the_one_before_stays),
        TEST(a_directory_that_cannot_be_made_is_named),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
