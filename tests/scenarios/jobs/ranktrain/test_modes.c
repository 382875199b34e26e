/* Ways to share the work, as whole jobs on loopback: sums that begin before the backward pass is
 * over, a server that goes on without the last, and as many ranks as a batch has shards. */
#include "tests/scenarios/jobs/ranktrain/ends.h"

#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

struct job {
    const char *program; /* "train", "train_late" ... */
    int world, signo, rank, step;
    const char *options;
};

static char output[1 << 16], here[PATH_MAX - 64];

/* Runs a job and keeps what it said in output. */
static void run(const struct job *j) {
    char command[4 * PATH_MAX];
    snprintf(command, sizeof(command),
             "%s/spawn_world %d 0 %d %d %d -- %s/spawn_%s --log-every=1 %s", here, j->world,
             j->signo, j->rank, j->step, here, j->program ? j->program : "train", j->options);
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
    return hash[turn];
}

static int count(const char *text) {
    int n = 0;
    for (const char *at = output; (at = strstr(at, text)); at++)
        n++;
    return n;
}

static void assert_said(const char *text) {
    if (!count(text))
        fail_msg("'%s' not found in:\n%s", text, output);
}

/* The backward passes of the planted program end only when a sum has begun: by what has happened,
 * not by the clock. */
static void test_sums_begin_before_the_backward_pass_is_over(void **state) {
    (void)state;
    char want[65];
    run(&(struct job){.world = 1, .options = "--steps=2 --samples=192"});
    snprintf(want, sizeof(want), "%s", model());
    run(&(struct job){
        .program = "train_overlapped", .world = 2, .options = "--steps=2 --samples=192 --overlap"});
    assert_string_equal(model(), want);
    assert_int_equal(count("a sum has begun before the backward pass was over"), 4);
    run(&(struct job){
        .program = "train_overlapped", .world = 2, .options = "--steps=2 --samples=192"});
    assert_string_equal(model(), want);
    assert_int_equal(count("before the backward pass was over"), 0);
}

#define ASYNC "--steps=8 --samples=960 --mode=ps --ps-async --backup-workers=1 "

/* The third worker computes its second step until the server has come to its sixth: had that waited
 * for it, neither would ever have gone on. */
static void test_a_slow_worker_is_not_waited_for_and_its_gradient_is_dropped(void **state) {
    (void)state;
    char dir[] = "/tmp/test-modes-XXXXXX", fifo[64], command[96];
    assert_non_null(mkdtemp(dir));
    snprintf(fifo, sizeof(fifo), "%s/late", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    setenv("LATE", fifo, 1);
    run(&(struct job){.program = "train_late", .world = 4, .options = ASYNC});
    snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
    assert_said("step 8 loss");
    assert_true(strlen(model()) == 64);
    assert_said("rank 0 exit 0\nrank 1 exit 0\nrank 2 exit 0\nrank 3 exit 0\n");
    const char *dropped = strstr(output, "dropped ");
    assert_non_null(dropped);
    assert_true(atoi(dropped + strlen("dropped ")) > 0);
}

static void test_a_worker_that_dies_is_gone_on_without(void **state) {
    (void)state;
    struct job j = {.world = 4, .signo = SIGKILL, .rank = 3, .step = 2, .options = ASYNC};
    run(&j);
    assert_said("goes on without it, as without 1 of 1 backup workers");
    assert_said("step 8 loss");
    assert_said("rank 0 exit 0\nrank 1 exit 0\nrank 2 exit 0\nrank 3 signal 9\n");
    assert_true(strlen(model()) == 64);
}

/* And where none is spare the job ends, with its name. */
static void test_a_worker_that_dies_ends_a_server_without_backups(void **state) {
    (void)state;
    struct job j = {.world = 3, .signo = SIGKILL, .rank = 2, .step = 2};
    j.options = "--steps=100000 --samples=960 --mode=ps --ps-async";
    run(&j);
    assert_said("rank 0 exit 1\n");
    assert_said("rank 2 at 127.0.0.1:");
}

/* A shard for each rank and more; all worlds in all modes: tests/soak/worlds.sh. */
static void test_worlds_of_up_to_24_end_with_one_model(void **state) {
    (void)state;
    static const struct {
        int world;
        const char *mode;
    } rows[] = {{13, "zero"}, {24, "fsdp"}, {25, "ps"}, {1, "dp --devices=24"}};
    char want[65], options[256];
    snprintf(options, sizeof(options),
             "--network=lenet --width=1 --shards=24 --batch-size=24 "
             "--steps=2 --samples=48 --mode=");
    char *mode = options + strlen(options);
    strcpy(mode, "manual");
    run(&(struct job){.world = 1, .options = options});
    snprintf(want, sizeof(want), "%s", model());
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        strcpy(mode, rows[i].mode);
        run(&(struct job){.world = rows[i].world, .options = options});
        if (strcmp(model(), want) != 0)
            fail_msg("%s at world %d: not %s in:\n%s", mode, rows[i].world, want, output);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_begin_before_the_backward_pass_is_over),
        cmocka_unit_test(test_a_slow_worker_is_not_waited_for_and_its_gradient_is_dropped),
        cmocka_unit_test(test_a_worker_that_dies_is_gone_on_without),
        cmocka_unit_test(test_a_worker_that_dies_ends_a_server_without_backups),
        cmocka_unit_test(test_worlds_of_up_to_24_end_with_one_model),
    };
    if (readlink("/proc/self/exe", here, sizeof(here) - 1) <= 0)
        return 1;
    *strrchr(here, '/') = 0;
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
