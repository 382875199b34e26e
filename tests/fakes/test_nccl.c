/* The fake NCCL itself: where it must fail as NCCL does. */
#include "tests/fakes/nccl/form.h"

#include <dlfcn.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

static struct {
    ncclResult_t (*GetUniqueId)(ncclUniqueId *id);
    ncclResult_t (*CommInitRankConfig)(ncclComm_t *comm, int world, ncclUniqueId id, int rank,
                                       ncclConfig_t *config);
    ncclResult_t (*CommGetAsyncError)(ncclComm_t comm, ncclResult_t *state);
    ncclResult_t (*CommAbort)(ncclComm_t comm);
    const char *(*GetLastError)(ncclComm_t comm);
} nccl;

static int load(void **state) {
    (void)state;
    char path[PATH_MAX] = {0};
    const struct {
        const char *name;
        void *at;
    } symbols[] = {{"ncclGetUniqueId", &nccl.GetUniqueId},
                   {"ncclCommInitRankConfig", &nccl.CommInitRankConfig},
                   {"ncclCommGetAsyncError", &nccl.CommGetAsyncError},
                   {"ncclCommAbort", &nccl.CommAbort},
                   {"ncclGetLastError", &nccl.GetLastError}};
    setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    setenv("NCCL_SOCKET_RETRY_CNT", "2", 1);
    setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "1", 1);
    unsetenv("RANKTRAIN_FAKE_NCCL");
    if (readlink("/proc/self/exe", path, sizeof(path) - 32) <= 0)
        return -1;
    strcpy(strrchr(path, '/'), "/libnccl.so.2");
    void *handle = dlopen(path, RTLD_NOW);
    for (size_t i = 0; handle && i < sizeof(symbols) / sizeof(*symbols); i++) {
        void *symbol = dlsym(handle, symbols[i].name);
        memcpy(symbols[i].at, &symbol, sizeof(symbol));
    }
    return handle ? 0 : -1;
}

static struct id new_id(void) {
    ncclUniqueId opaque;
    struct id id;
    assert_int_equal(nccl.GetUniqueId(&opaque), ncclSuccess);
    memcpy(&id, &opaque, sizeof(id));
    return id;
}

/* Returns a connection, or -1 when nobody listens. */
static int call(const struct id *id) {
    int fd = socket(id->root.addr.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (connect(fd, &id->root.addr.any, id->root.length) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Checks a rank in. Returns what it is called back at. */
static int check_in(const struct id *id, int rank, int world) {
    struct hello h;
    struct endpoint here = {.length = sizeof(here.addr)};
    memset(&h, 0, sizeof(h));
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(&here.addr, 0, sizeof(here.addr));
    here.addr.v4.sin_family = AF_INET;
    here.addr.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    here.length = sizeof(here.addr.v4);
    assert_int_equal(bind(listener, &here.addr.any, here.length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, &here.addr.any, &here.length), 0);
    h.magic = id->magic;
    h.world = world;
    h.place.rank = rank;
    h.place.root = here;
    int fd = call(id);
    assert_true(fd >= 0);
    assert_int_equal(send(fd, &h, sizeof(h), MSG_NOSIGNAL), sizeof(h));
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), 0); /* it has been heard */
    close(fd);
    return listener;
}

static void assert_called_back(int listener) {
    static struct rank_place places[RANKS];
    int fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    assert_int_equal(recv(fd, places, sizeof(places), MSG_WAITALL), sizeof(places));
    close(fd);
    close(listener);
}

static void test_a_root_answers_when_all_ranks_have_called(void **state) {
    (void)state;
    struct id id = new_id();
    int first = check_in(&id, 1, 2);
    struct pollfd p = {.fd = first, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0);
    int second = check_in(&id, 0, 2);
    assert_called_back(first);
    assert_called_back(second);
}

static void test_a_stray_caller_is_not_counted(void **state) {
    (void)state;
    struct id id = new_id();
    int stray = call(&id);
    assert_true(stray >= 0);
    assert_true(send(stray, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL) > 0);
    shutdown(stray, SHUT_WR);
    assert_called_back(check_in(&id, 0, 1));
    close(stray);
}

/* So one rank cannot be started again with the id of the others. */
static void test_a_rank_that_calls_twice_ends_the_root_and_nobody_is_told(void **state) {
    (void)state;
    struct id id = new_id();
    int first = check_in(&id, 1, 3), again = check_in(&id, 1, 3);
    int fd;
    while ((fd = call(&id)) >= 0) { /* until its thread has closed the port: a moment */
        struct pollfd gone = {.fd = fd, .events = POLLIN};
        assert_true(poll(&gone, 1, 30000) > 0);
        close(fd);
    }
    struct pollfd p[2] = {{.fd = first, .events = POLLIN}, {.fd = again, .events = POLLIN}};
    assert_int_equal(poll(p, 2, 0), 0);
    assert_non_null(strstr(nccl.GetLastError(NULL), "rank 1 of 3 ranks has already checked in"));
    close(first);
    close(again);
}

static ncclConfig_t unblocking(void) {
    return (ncclConfig_t){.size = sizeof(ncclConfig_t), .magic = 0xcafebeef, .version = 21400};
}

static void test_a_root_that_is_gone_is_an_error_after_the_retries(void **state) {
    (void)state;
    struct id id = new_id();
    ncclUniqueId opaque;
    ncclConfig_t config = unblocking();
    ncclComm_t comm;
    ncclResult_t r;
    assert_called_back(check_in(&id, 0, 1)); /* and the root has ended */
    for (int fd; (fd = call(&id)) >= 0; close(fd))
        continue;
    memset(&opaque, 0, sizeof(opaque));
    memcpy(&opaque, &id, sizeof(id));
    assert_int_equal(nccl.CommInitRankConfig(&comm, 1, opaque, 0, &config), ncclInProgress);
    do
        assert_int_equal(nccl.CommGetAsyncError(comm, &r), ncclSuccess);
    while (r == ncclInProgress && poll(NULL, 0, 1) == 0);
    assert_int_equal(r, ncclRemoteError);
    assert_non_null(strstr(nccl.GetLastError(comm), "Connection refused"));
    assert_int_equal(nccl.CommAbort(comm), ncclSuccess);
}

static void test_a_configuration_that_was_not_initialised_is_refused(void **state) {
    (void)state;
    ncclUniqueId opaque = {{0}};
    ncclConfig_t config = {.size = sizeof(config)};
    ncclComm_t comm;
    assert_int_equal(nccl.CommInitRankConfig(&comm, 1, opaque, 0, &config), ncclInvalidArgument);
    config = unblocking();
    assert_int_equal(nccl.CommInitRankConfig(&comm, 2, opaque, 2, &config), ncclInvalidArgument);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_root_answers_when_all_ranks_have_called),
        cmocka_unit_test(test_a_stray_caller_is_not_counted),
        cmocka_unit_test(test_a_rank_that_calls_twice_ends_the_root_and_nobody_is_told),
        cmocka_unit_test(test_a_root_that_is_gone_is_an_error_after_the_retries),
        cmocka_unit_test(test_a_configuration_that_was_not_initialised_is_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, load, NULL);
}
