/* Every exchange over the fake NCCL: all-reduce, reduce-scatter, all-gather, broadcast, and what one
 * rank sends to another; and what those are told whose peer goes or says nothing. */
#include "scenarios/jobs/ranktrain/net/collective.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

static char here[PATH_MAX - 256], output[1 << 15];

static void run(int world, const char *nccl, const char *play) {
    char command[6 * PATH_MAX];
    snprintf(command, sizeof(command),
             "env RANKTRAIN_CUDA=%s/../../../../fakes/ranktrain_cuda.so "
             "NCCL_LIB=%s/../../../../fakes/libnccl.so.2 RANKTRAIN_FAKE_CUDA=devices=16 "
             "RANKTRAIN_FAKE_NCCL=%s NCCL_SOCKET_IFNAME=lo LOCAL_WORLD_SIZE=%d "
             "%s/../spawn_world %d 0 0 0 0 -- %s/spawn_exchange %s",
             here, here, nccl, world, here, world, here, play);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t n = fread(output, 1, sizeof(output) - 1, f);
    output[n] = 0;
    pclose(f);
}

static void assert_said(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void assert_said(const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (!strstr(output, text))
        fail_msg("'%s' not found in:\n%s", text, output);
}

static void test_every_exchange_ends_with_what_it_promises(void **state) {
    (void)state;
    for (int world = 1; world <= 4; world += world < 2 ? 1 : 2) {
        run(world, "''", "all");
        for (int rank = 0; rank < world; rank++)
            assert_said("rank %d: %d exchanges are right", rank,
                        5 * 12 + (rank ? 2 : 2 * (world - 1)));
    }
}

/* The comparison itself: what one rank has not added, not taken or not passed on, of each kind. The
 * groups without any bytes count, too. */
static void test_what_is_lost_of_an_exchange_shows(void **state) {
    (void)state;
    for (int op = COLLECTIVE_ALL_REDUCE; op <= COLLECTIVE_BROADCAST; op++) {
        char drop[64];
        snprintf(drop, sizeof(drop), "drop@collective:%d,rank=1", op * 9 + 5);
        run(2, drop, "all");
        assert_said(": exchange %d of", op);
    }
}

static void miss(const char *how, enum collective_op op) {
    char play[32];
    snprintf(play, sizeof(play), "%s %d", how, (int)op);
    run(2, "''", play);
}

static void test_a_peer_that_goes_is_named_in_every_exchange(void **state) {
    (void)state;
    for (enum collective_op op = COLLECTIVE_ALL_REDUCE; op <= COLLECTIVE_RECEIVE; op++) {
        miss("goes", op);
        assert_said("rank 1: -104: ");
        if (!strstr(output, "rank 0 at 127.0.0.1"))
            fail_msg("rank 0 is not named in %d:\n%s", (int)op, output);
    }
}

/* What goes round, what is sent and what is waited for. */
static void test_a_deadline_ends_an_exchange_of_each_kind(void **state) {
    (void)state;
    for (enum collective_op op = COLLECTIVE_BROADCAST; op <= COLLECTIVE_RECEIVE; op++) {
        miss("silent", op);
        assert_said("rank 1: -110: ");
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_exchange_ends_with_what_it_promises),
        cmocka_unit_test(test_what_is_lost_of_an_exchange_shows),
        cmocka_unit_test(test_a_peer_that_goes_is_named_in_every_exchange),
        cmocka_unit_test(test_a_deadline_ends_an_exchange_of_each_kind),
    };
    if (readlink("/proc/self/exe", here, sizeof(here) - 1) <= 0)
        return 1;
    *strrchr(here, '/') = 0;
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
