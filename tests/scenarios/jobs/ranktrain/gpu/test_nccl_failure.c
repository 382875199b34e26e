#include "scenarios/jobs/ranktrain/gpu/nccl_failure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Ranks at 10.0.0.1, 10.0.0.2 ... */
static struct nccl_peers peers(int rank, int world) {
    struct nccl_peers p = {.rank = rank, .world = world};
    for (int r = 0; r < world; r++) {
        struct sockaddr_in *v4 = (void *)&p.at[r].addr;
        v4->sin_family = AF_INET;
        v4->sin_port = htons(4000);
        v4->sin_addr.s_addr = htonl(0x0a000001u + (unsigned)r);
        p.at[r].length = sizeof(*v4);
    }
    return p;
}

static void test_the_rank_whose_address_nccl_writes_is_named(void **state) {
    (void)state;
    struct nccl_peers p = peers(0, 12);
    struct err err = {0};
    int r = nccl_fail(&p, NCCL_REMOTE_ERROR,
                      "socketProgress: Connection closed by remote peer 10.0.0.11<40911>\nmore",
                      "all-reduce 7", &err);
    assert_int_equal(r, -ECONNRESET);
    assert_string_equal(err.msg, "rank 10 at 10.0.0.11 is gone: all-reduce 7: ncclRemoteError "
                                 "(NCCL: socketProgress: Connection closed by remote peer "
                                 "10.0.0.11<40911>)");
}

/* NCCL writes names where it can have them. */
static void test_a_name_of_etc_hosts_leads_to_its_rank(void **state) {
    (void)state;
    struct nccl_peers p = peers(0, 3);
    struct err err = {0};
    struct sockaddr_in *v4 = (void *)&p.at[2].addr;
    v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (system("grep -qE '^127\\.0\\.0\\.1[[:space:]]+([^#]*[[:space:]])?localhost([[:space:]]|$)' "
               "/etc/hosts") != 0)
        skip();
    nccl_fail(&p, NCCL_REMOTE_ERROR, "closed by remote peer localhost<40911>", "x", &err);
    assert_non_null(strstr(err.msg, "rank 2 at 127.0.0.1 is gone"));
    nccl_fail(&p, NCCL_REMOTE_ERROR, "closed by remote peer a-localhost<40911>", "x", &err);
    assert_int_equal(strncmp(err.msg, "a peer is gone", 14), 0);
}

static void test_a_part_of_an_address_names_nobody(void **state) {
    (void)state;
    struct nccl_peers p = peers(0, 3);
    struct err err = {0};
    nccl_fail(&p, NCCL_REMOTE_ERROR, "closed by remote peer 110.0.0.2<1>", "x", &err);
    assert_int_equal(strncmp(err.msg, "a peer is gone", 14), 0);
    nccl_fail(&p, NCCL_REMOTE_ERROR, "closed by remote peer 10.0.0.21<1>", "x", &err);
    assert_int_equal(strncmp(err.msg, "a peer is gone", 14), 0);
}

static void test_without_an_address_the_neighbours_are_named(void **state) {
    (void)state;
    struct nccl_peers p = peers(1, 4);
    struct err err = {0};
    nccl_fail(&p, NCCL_REMOTE_ERROR, "", "all-reduce 7", &err);
    assert_string_equal(err.msg, "a peer is gone: all-reduce 7: ncclRemoteError; its neighbours in "
                                 "the ring are rank 0 at 10.0.0.1 and rank 2 at 10.0.0.3");
    p = peers(1, 2);
    nccl_fail(&p, NCCL_REMOTE_ERROR, NULL, "all-reduce 7", &err);
    assert_non_null(strstr(err.msg, "its only peer is rank 0 at 10.0.0.1"));
}

static void test_one_address_of_several_ranks_names_nobody(void **state) {
    (void)state;
    struct nccl_peers p = peers(0, 4);
    struct err err = {0};
    p.at[2] = p.at[1];
    nccl_fail(&p, NCCL_REMOTE_ERROR, "closed by remote peer 10.0.0.2<40911>", "x", &err);
    assert_int_equal(strncmp(err.msg, "a peer is gone", 14), 0);
}

static void test_other_results_are_told_by_name_and_number(void **state) {
    (void)state;
    struct nccl_peers p = peers(0, 1);
    struct err err = {0};
    assert_int_equal(nccl_fail(&p, NCCL_SYSTEM_ERROR, "Call to bind failed", "forming", &err),
                     -EIO);
    assert_string_equal(err.msg, "forming: ncclSystemError (2) (NCCL: Call to bind failed)");
    assert_int_equal(nccl_fail(&p, 99, NULL, "forming", &err), -EIO);
    assert_string_equal(err.msg, "forming: an unknown result (99)");
}

static void test_two_ranks_on_one_device_are_called_by_their_name(void **state) {
    (void)state;
    struct nccl_peers p = peers(0, 2);
    struct err err = {0};
    int r = nccl_fail(&p, NCCL_INVALID_USAGE,
                      "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000",
                      "forming the communicator", &err);
    assert_int_equal(r, -EINVAL);
    assert_non_null(strstr(err.msg, "more ranks than devices"));
    assert_non_null(strstr(err.msg, "rank 0 and rank 1"));
}

static void test_at_the_deadline_the_neighbours_are_named(void **state) {
    (void)state;
    struct nccl_peers p = peers(0, 3);
    struct err err = {0};
    assert_int_equal(nccl_late(&p, 2, "all-reduce 7", &err), -ETIMEDOUT);
    assert_string_equal(err.msg,
                        "all-reduce 7 has not ended within 2 s, and NCCL names nobody; its "
                        "neighbours in the ring are rank 2 at 10.0.0.3 and rank 1 at "
                        "10.0.0.2");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_rank_whose_address_nccl_writes_is_named),
        cmocka_unit_test(test_a_name_of_etc_hosts_leads_to_its_rank),
        cmocka_unit_test(test_a_part_of_an_address_names_nobody),
        cmocka_unit_test(test_without_an_address_the_neighbours_are_named),
        cmocka_unit_test(test_one_address_of_several_ranks_names_nobody),
        cmocka_unit_test(test_other_results_are_told_by_name_and_number),
        cmocka_unit_test(test_two_ranks_on_one_device_are_called_by_their_name),
        cmocka_unit_test(test_at_the_deadline_the_neighbours_are_named),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
