/* Whole jobs on loopback over the fake NCCL and the fake CUDA runtime (tests/fakes): the same model
 * at every world size and as over tcp; every way in which NCCL fails; nothing left. */
#include "scenarios/jobs/ranktrain/data/idx.h"

#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

enum { STEPS = 3 };

struct job {
    int world, round, signo, rank, step, steps;
    const char *dir;                  /* checkpoints every 2 steps; NULL: none */
    const char *cuda, *nccl, *before; /* overrides of the fakes, words before the program */
    const char *more;
};

/* Few images, for the kernels run on the CPU. */
static char data[] = "/tmp/test-nccl-data-XXXXXX";
static char here[PATH_MAX - 256], output[1 << 16];

/* Runs a job and keeps what it said in output. Returns the seconds that it took. */
static double run(const struct job *j) {
    char command[8 * PATH_MAX], dir[PATH_MAX] = "";
    struct timespec begin, end;
    if (j->dir)
        snprintf(dir, sizeof(dir), "--checkpoint-dir=%s --checkpoint-every=2", j->dir);
    snprintf(command, sizeof(command),
             "env RANKTRAIN_CUDA=%s/../../../../fakes/ranktrain_cuda.so "
             "NCCL_LIB=%s/../../../../fakes/libnccl.so.2 RANKTRAIN_FAKE_CUDA=%s "
             "RANKTRAIN_FAKE_NCCL=%s NCCL_SOCKET_IFNAME=lo "
             "%s/../spawn_world %d %d %d %d %d -- %s %s/../spawn_train --device=cuda "
             "--dist-backend=nccl --data-dir=%s --log-every=1 --steps=%d %s %s",
             here, here, j->cuda ? j->cuda : "devices=4", j->nccl ? j->nccl : "''", here, j->world,
             j->round, j->signo, j->rank, j->step, j->before ? j->before : "/usr/bin/env", here,
             data, j->steps ? j->steps : STEPS, dir, j->more ? j->more : "");
    clock_gettime(CLOCK_MONOTONIC, &begin);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t n = fread(output, 1, sizeof(output) - 1, f);
    output[n] = 0;
    pclose(f);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
}

static const char *model(void) {
    static char hash[2][65];
    static int turn;
    const char *at = strstr(output, "\nmodel ");
    if (!at)
        fail_msg("no model in:\n%s", output);
    turn = !turn;
    snprintf(hash[turn], 65, "%s", at + 7);
    return hash[turn];
}

static void assert_said(const char *text) {
    if (!strstr(output, text))
        fail_msg("'%s' not found in:\n%s", text, output);
}

static void assert_not_said(const char *text) {
    if (strstr(output, text))
        fail_msg("'%s' found in:\n%s", text, output);
}

enum { TRAIN = 960, TEST = 96 };

static void put_header(uint8_t *ret, int dimensions, uint32_t count) {
    uint32_t words[] = {0x800u + (uint32_t)dimensions, count, IDX_SIDE, IDX_SIDE};
    for (int i = 0; i < 4 * (1 + dimensions); i++)
        ret[i] = (uint8_t)(words[i / 4] >> (24 - 8 * (i % 4)));
}

enum { IDX_IMAGES_HEADER = 16, IDX_LABELS_HEADER = 8 };

/* In the format of IDX; pixels and labels follow from their place. */
static void write_images(const char *name, uint32_t n) {
    char path[PATH_MAX];
    uint8_t head[IDX_IMAGES_HEADER];
    snprintf(path, sizeof(path), "%s/%s", data, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    put_header(head, 3, n);
    fwrite(head, 1, IDX_IMAGES_HEADER, f);
    for (uint32_t i = 0; i < n * IDX_PIXELS; i++)
        fputc((int)(i * 2654435761u >> 24), f);
    assert_int_equal(fclose(f), 0);
}

static void write_labels(const char *name, uint32_t n) {
    char path[PATH_MAX];
    uint8_t head[IDX_IMAGES_HEADER];
    snprintf(path, sizeof(path), "%s/%s", data, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    put_header(head, 1, n);
    fwrite(head, 1, IDX_LABELS_HEADER, f);
    for (uint32_t i = 0; i < n; i++)
        fputc((int)(i * 2654435761u >> 8) & 7, f);
    assert_int_equal(fclose(f), 0);
}

/* Of a run over tcp. */
static char right_model[65];

static int group_setup(void **state) {
    (void)state;
    if (!mkdtemp(data))
        return -1;
    write_images("train-images-idx3-ubyte", TRAIN);
    write_labels("train-labels-idx1-ubyte", TRAIN);
    write_images("t10k-images-idx3-ubyte", TEST);
    write_labels("t10k-labels-idx1-ubyte", TEST);
    run(&(struct job){.world = 2, .more = "--dist-backend=tcp"});
    snprintf(right_model, sizeof(right_model), "%s", model());
    return 0;
}

static int place_setup(void **state) {
    char *dir = strdup("/tmp/test-nccl-XXXXXX");
    *state = dir;
    return mkdtemp(dir) ? 0 : -1;
}

static int group_teardown(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", data);
    return system(command);
}

static int place_teardown(void **state) {
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", (char *)*state);
    free(*state);
    return system(command);
}

static void test_every_world_size_ends_with_the_model_of_tcp(void **state) {
    (void)state;
    for (int world = 1; world <= 4; world++) {
        run(&(struct job){.world = world});
        assert_string_equal(model(), right_model);
    }
}

/* Scattered, gathered, broadcast, summed layer by layer, and sent from one to one. */
static void test_every_mode_ends_with_the_model_of_tcp(void **state) {
    (void)state;
    static const char *const modes[] = {"--mode=manual", "--mode=zero", "--mode=ps", "--mode=fsdp",
                                        "--overlap"};
    for (int i = 0; i < 5; i++) {
        run(&(struct job){.world = 3, .more = modes[i]});
        assert_string_equal(model(), right_model);
    }
}

/* The kernel before the last of a step, of the first layer's gradient, goes on only when NCCL has been
 * given a sum: of the layers behind it. Without --overlap it would stand until the device is given
 * up. */
static void test_sums_go_round_while_layers_are_computed(void **state) {
    (void)state;
    struct job j = {.world = 2, .cuda = "devices=2,wait@launch:33", .more = "--overlap"};
    run(&j);
    assert_string_equal(model(), right_model);
    j.more = "--device-timeout=300ms";
    run(&j);
    assert_said("has not answered within 0.3 s");
}

/* A server that goes on without the last of its two workers. */
static void test_a_server_takes_what_comes_first(void **state) {
    (void)state;
    run(&(struct job){.world = 3, .more = "--mode=ps --ps-async --backup-workers=1", .steps = 5});
    assert_said("step 5 loss");
    assert_said(" gradients that came too late");
    assert_said("rank 0 exit 0\nrank 1 exit 0\nrank 2 exit 0\n");
}

static void test_a_contribution_that_is_not_added_shows(void **state) {
    (void)state;
    run(&(struct job){.world = 2, .nccl = "drop@collective:2,rank=1"});
    assert_string_not_equal(model(), right_model);
}

static void test_a_killed_worker_costs_no_bit(void **state) {
    struct job j = {.world = 3, .round = 1, .signo = SIGKILL, .rank = 1, .step = 3, .dir = *state};
    j.steps = 100000;
    run(&j);
    assert_said("rank 0 exit 1\nrank 1 signal 9\nrank 2 exit 1\n");
    assert_said("a peer is gone");
    assert_said("ncclRemoteError");
    run(&(struct job){.world = 2, .round = 2, .dir = *state});
    assert_said("resumed step 2 ");
    assert_string_equal(model(), right_model);
}

static void test_a_peer_that_hangs_is_given_up_at_the_deadline(void **state) {
    (void)state;
    struct job j = {.world = 2, .signo = SIGSTOP, .rank = 1, .step = 2, .steps = 100000};
    j.more = "--collective-timeout=1";
    run(&j);
    assert_said("has not ended within 1 s, and NCCL names nobody; its only peer is rank 1");
    assert_said("rank 0 exit 1\n");
}

static void test_sigterm_ends_a_worker_by_that_signal(void **state) {
    (void)state;
    struct job j = {.world = 2, .signo = SIGTERM, .rank = 1, .step = 2, .steps = 100000};
    run(&j);
    assert_said("rank 0 exit 1\nrank 1 signal 15\n");
    assert_said("rank 1 at 127.0.0.1 is gone");
}

static void test_an_error_of_the_progress_thread_ends_the_round_on_all_ranks(void **state) {
    (void)state;
    run(&(struct job){.world = 3, .nccl = "error=6@collective:2,rank=2", .steps = 100000});
    assert_said("all-reduce 2: ncclRemoteError (NCCL: planted in collective 2)");
    assert_said("rank 0 exit 1\nrank 1 exit 1\nrank 2 exit 1\n");
    run(&(struct job){.world = 2, .nccl = "error=3@collective:1,rank=0", .steps = 100000});
    assert_said("all-reduce 1: ncclInternalError (3)");
    assert_said("rank 0 exit 1\nrank 1 exit 1\n");
}

static void test_a_collective_that_hangs_ends_at_the_deadline(void **state) {
    (void)state;
    struct job j = {
        .world = 2, .nccl = "hang@collective:2,rank=0", .more = "--collective-timeout=1"};
    run(&j);
    assert_said("all-reduce 2 has not ended within 1 s");
    assert_said("rank 0 exit 1\nrank 1 exit 1\n");
    assert_not_said("did not let go");
}

static void test_an_abort_that_never_returns_holds_nobody(void **state) {
    (void)state;
    struct job j = {.world = 2, .more = "--collective-timeout=1"};
    j.nccl = "hang@collective:2,hang@abort,rank=1";
    double s = run(&j);
    assert_said("NCCL did not let go of the communicator");
    assert_said("rank 0 exit 1\nrank 1 exit 1\n");
    assert_true(s < 60);
}

static void test_a_communicator_that_does_not_end_costs_no_model(void **state) {
    (void)state;
    run(&(struct job){.world = 2, .nccl = "hang@finalize"});
    assert_string_equal(model(), right_model);
    assert_said("rank 0 exit 0\nrank 1 exit 0\n");
}

/* NCCL itself would wait for ever. */
static void test_a_rank_that_is_killed_while_the_communicator_forms_is_named_at_once(void **state) {
    (void)state;
    run(&(struct job){.world = 3, .nccl = "kill@init,rank=1", .steps = 100000});
    assert_said("rank 1 at 127.0.0.1 left while the communicator was forming");
    assert_said("rank 0 exit 1\nrank 1 signal 9\nrank 2 exit 1\n");
    assert_not_said("has not ended within"); /* as the group's deadline would say */
}

static void assert_reported(const char *dir, int ranks, const char *rank_0, const char *others) {
    char path[PATH_MAX], line[128], want[128];
    int n = 0;
    snprintf(path, sizeof(path), "%s/report", dir);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        int rank = atoi(line + strlen("rank "));
        snprintf(want, sizeof(want), "rank %d %s\n", rank, rank == 0 ? rank_0 : others);
        assert_string_equal(line, want);
        n++;
    }
    fclose(f);
    remove(path);
    assert_int_equal(n, ranks);
}

static void run_reported(struct job *j, const char *dir, const char *wish) {
    char overrides[PATH_MAX];
    snprintf(overrides, sizeof(overrides), "%sreport=%s/report", wish, dir);
    j->nccl = overrides;
    run(j);
}

static void test_rank_0_draws_one_id_and_nothing_is_left_of_it(void **state) {
    struct job j = {.world = 3, .steps = 1};
    run_reported(&j, *state, "");
    assert_reported(*state, 3, "ids 1 communicators 0 roots 0 listeners 0",
                    "ids 0 communicators 0 roots 0 listeners 0");
}

static void test_a_round_that_fails_leaves_nothing_either(void **state) {
    struct job j = {.world = 2, .steps = 100000};
    run_reported(&j, *state, "error=6@collective:2,rank=1,");
    assert_reported(*state, 2, "ids 1 communicators 0 roots 0 listeners 0",
                    "ids 0 communicators 0 roots 0 listeners 0");
}

static void test_a_root_that_goes_on_listening_is_found(void **state) {
    struct job j = {.world = 2, .steps = 1};
    run_reported(&j, *state, "leak,");
    assert_reported(*state, 2, "ids 1 communicators 0 roots 1 listeners 1",
                    "ids 0 communicators 0 roots 0 listeners 0");
}

static void test_a_group_that_does_not_form_draws_no_id(void **state) {
    struct job j = {.world = 2, .steps = 1};
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t length = sizeof(a);
    char before[256], said[64];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &length), 0);
    snprintf(before, sizeof(before),
             "/bin/sh -c 'test $RANK = 1 && exit 3; MASTER_PORT=%d exec \"$@\"' sh",
             ntohs(a.sin_port));
    j.before = before;
    run_reported(&j, *state, "");
    snprintf(said, sizeof(said), "MASTER_PORT %d is in use", ntohs(a.sin_port));
    assert_said(said);
    assert_said("rank 0 exit 1\n");
    assert_reported(*state, 1, "ids 0 communicators 0 roots 0 listeners 0", "");
    close(fd);
}

static void test_bad_input_is_refused_with_a_sentence(void **state) {
    (void)state;
    static const struct {
        const char *cuda, *nccl, *before, *said;
    } rows[] = {
        {NULL, "version=30100", NULL, "is NCCL 3.1.0: ranktrain speaks version 2"},
        {NULL, "version=21304", NULL, "is NCCL 2.13.4: before 2.14"},
        {NULL, NULL, "/usr/bin/env NCCL_LIB=/nonexistent.so",
         "NCCL_LIB=/nonexistent.so cannot be loaded"},
        {NULL, NULL, "/usr/bin/env NCCL_SOCKET_IFNAME=chaos9",
         "NCCL_SOCKET_IFNAME=chaos9 names no network interface"},
        {NULL, NULL, "/usr/bin/env NCCL_COMM_BLOCKING=1", "NCCL_COMM_BLOCKING=1: with it a peer"},
        {"devices=1", NULL, "/usr/bin/env WORLD_SIZE=3 LOCAL_WORLD_SIZE=3",
         "more ranks than devices: 3 workers on this node and 1 GPU"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        run(&(struct job){
            .world = 1, .cuda = rows[i].cuda, .nccl = rows[i].nccl, .before = rows[i].before});
        assert_said(rows[i].said);
        assert_said("rank 0 exit 1\n");
    }
}

/* Not known to any of them before they meet: NCCL sees it. */
static void test_two_ranks_on_one_device_are_refused(void **state) {
    (void)state;
    struct job j = {.world = 2, .cuda = "devices=1"};
    j.before = "/usr/bin/env LOCAL_WORLD_SIZE=1 LOCAL_RANK=0";
    run(&j);
    assert_said("more ranks than devices: forming the communicator");
    assert_said("Duplicate GPU detected");
    assert_said("rank 0 exit 1\nrank 1 exit 1\n");
}

static void test_ranks_of_several_hosts_may_share_a_device(void **state) {
    (void)state;
    struct job j = {.world = 2, .cuda = "devices=1"};
    j.before = "/bin/sh -c 'NCCL_HOSTID=n$RANK LOCAL_WORLD_SIZE=1 LOCAL_RANK=0 exec \"$@\"' sh";
    run(&j);
    assert_string_equal(model(), right_model);
}

static void test_nccl_without_a_gpu_is_refused(void **state) {
    (void)state;
    run(&(struct job){.world = 1, .more = "--device=cpu"});
    assert_said("--dist-backend=nccl sums on GPUs");
    assert_said("rank 0 exit 64\n");
    run(&(struct job){.world = 1, .more = "--device=auto", .cuda = "driver=0"});
    assert_said("--dist-backend=nccl sums on GPUs");
    assert_said("rank 0 exit 1\n");
}

static void test_a_device_that_is_lost_ends_the_round_on_all_ranks(void **state) {
    (void)state;
    run(&(struct job){
        .world = 2, .cuda = "devices=2,sticky=700@launch:40,rank=1", .steps = 100000});
    assert_said("cudaErrorIllegalAddress (700)");
    assert_said("rank 1 at 127.0.0.1 is gone");
    assert_said("rank 0 exit 1\nrank 1 exit 1\n");
}

/* Its path, or "" where there is none. */
static void find_real(char ret[PATH_MAX]) {
    char command[PATH_MAX];
    int r = -1, version;
    snprintf(command, sizeof(command), "env -u NCCL_LIB %s/spawn_nccl_load", here);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    *ret = 0;
    if (fscanf(f, "%d %d %4095s", &r, &version, ret) != 3 || r != 0)
        *ret = 0;
    pclose(f);
}

/* NVIDIA's own library goes as far as a machine without a driver lets it: through the id and its
 * root to the first call of CUDA. */
static void test_the_real_nccl_fails_in_its_own_words_without_a_driver(void **state) {
    char real[PATH_MAX], before[PATH_MAX + 64];
    struct job j = {.world = 2, .steps = 1, .before = before};
    find_real(real);
    if (!*real || access("/dev/nvidiactl", F_OK) == 0) /* what the fake runtime has is no GPU's */
        skip();
    snprintf(before, sizeof(before), "/usr/bin/env NCCL_LIB=%s", real);
    (void)state;
    double s = run(&j);
    assert_said("forming the communicator");
    assert_said("rank 0 exit 1\nrank 1 exit 1\n");
    assert_true(s < 25); /* the group's own deadline is 30 s */
}

#define IN_PLACE(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_world_size_ends_with_the_model_of_tcp),
        cmocka_unit_test(test_every_mode_ends_with_the_model_of_tcp),
        cmocka_unit_test(test_sums_go_round_while_layers_are_computed),
        cmocka_unit_test(test_a_server_takes_what_comes_first),
        cmocka_unit_test(test_a_contribution_that_is_not_added_shows),
        IN_PLACE(test_a_killed_worker_costs_no_bit),
        cmocka_unit_test(test_a_peer_that_hangs_is_given_up_at_the_deadline),
        cmocka_unit_test(test_sigterm_ends_a_worker_by_that_signal),
        cmocka_unit_test(test_an_error_of_the_progress_thread_ends_the_round_on_all_ranks),
        cmocka_unit_test(test_a_collective_that_hangs_ends_at_the_deadline),
        cmocka_unit_test(test_an_abort_that_never_returns_holds_nobody),
        cmocka_unit_test(test_a_communicator_that_does_not_end_costs_no_model),
        cmocka_unit_test(test_a_rank_that_is_killed_while_the_communicator_forms_is_named_at_once),
        IN_PLACE(test_rank_0_draws_one_id_and_nothing_is_left_of_it),
        IN_PLACE(test_a_round_that_fails_leaves_nothing_either),
        IN_PLACE(test_a_root_that_goes_on_listening_is_found),
        IN_PLACE(test_a_group_that_does_not_form_draws_no_id),
        cmocka_unit_test(test_bad_input_is_refused_with_a_sentence),
        cmocka_unit_test(test_two_ranks_on_one_device_are_refused),
        cmocka_unit_test(test_ranks_of_several_hosts_may_share_a_device),
        cmocka_unit_test(test_nccl_without_a_gpu_is_refused),
        cmocka_unit_test(test_the_real_nccl_fails_in_its_own_words_without_a_driver),
        cmocka_unit_test(test_a_device_that_is_lost_ends_the_round_on_all_ranks),
    };
    if (readlink("/proc/self/exe", here, sizeof(here) - 1) <= 0)
        return 1;
    *strrchr(here, '/') = 0;
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
