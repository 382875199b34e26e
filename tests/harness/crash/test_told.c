/* What jobs tell on a stage, by a socket of the events' kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/descriptors.h"
#include "base/sys/file.h"
#include "harness/crash/told.h"
#include "scenarios/jobs/rankquake.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[108];
static struct heard {
    char kind[64], text[64];
    int64_t step, t_ns;
    int pid, rank, n;
} heard;
static int connected;

static void hear(void *arg, const struct told_event *e) {
    (void)arg;
    connected += !*e->kind && e->pid == getpid();
    if (!*e->kind)
        return;
    str_copy(heard.kind, sizeof(heard.kind), e->kind);
    str_copy(heard.text, sizeof(heard.text), e->text);
    heard.step = e->step;
    heard.t_ns = e->t_ns;
    heard.pid = e->pid;
    heard.rank = e->rank;
    heard.n++;
}

static struct told_events *open_told(void) {
    struct err err = {0};
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof(path), "%s/told", tmp ? tmp : "/tmp");
    unlink(path);
    heard = (struct heard){0};
    connected = 0;
    struct told_events *t = told_new(path, hear, NULL, &err);
    assert_non_null(t);
    return t;
}

/* As every client does it waits for its page: who closes what he has not read resets it. */
static int client(struct told_events *t, int *ret_page) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    str_copy(at.sun_path, sizeof(at.sun_path), path);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    told_take(t);
    size_t n = 1;
    char p = 0;
    assert_int_equal(descriptors_receive(fd, &p, 1, ret_page, &n), 1);
    assert_int_equal(p, 'P');
    return fd;
}

static void say(int fd, const char *text) {
    assert_int_equal(send(fd, text, strlen(text), MSG_DONTWAIT), strlen(text));
}

static void test_whoever_connects_gets_a_page_that_asks_for_nothing(void **state) {
    struct told_events *t = open_told();
    int page = -1, fd = client(t, &page);
    struct rankquake_page is;
    assert_int_equal(pread(page, &is, sizeof(is), 0), sizeof(is));
    assert_int_equal(is.version, RANKQUAKE_VERSION_OF_PAGE);
    assert_int_equal(is.kinds, 0);
    close(page);
    close(fd);
    told_free(t);
}

static void test_an_event_is_told_with_what_it_says_who_and_when(void **state) {
    struct told_events *t = open_told();
    int page, fd = client(t, &page);
    int64_t before_ns = clock_monotonic_ns();
    say(fd, "{\"kind\":\"checkpoint-commit\",\"step\":20,\"path\":\"ckpt/step-20\"}");
    struct pollfd p = {.fd = told_fd(t), .events = POLLIN};
    assert_int_equal(poll(&p, 1, 10000), 1);
    told_take(t);
    assert_int_equal(heard.n, 1);
    assert_string_equal(heard.kind, "checkpoint-commit");
    assert_string_equal(heard.text, "ckpt/step-20");
    assert_int_equal(heard.step, 20);
    assert_int_equal(heard.pid, getpid());
    /* two clocks are read one after the other: a moment may be between them */
    assert_true(heard.t_ns > before_ns - 100000000 && heard.t_ns <= clock_monotonic_ns());
    assert_int_equal(heard.rank, -1);
    assert_int_equal(connected, 1);
    say(fd, "{\"kind\":\"rank\",\"env\":{\"RANK\":\"3\",\"WORLD_SIZE\":\"4\"}}");
    told_take(t);
    assert_int_equal(heard.rank, 3);
    say(fd, "{\"kind\":\"done\",\"model\":\"abc\",\"path\":\"x\"}");
    told_take(t);
    assert_string_equal(heard.text, "abc");
    assert_int_equal(heard.step, -1);
    close(page);
    close(fd);
    told_free(t);
}

static void test_what_is_no_event_is_passed_over(void **state) {
    struct told_events *t = open_told();
    int page, fd = client(t, &page);
    say(fd, "hello");
    say(fd, "{\"kind\":");
    say(fd, "{\"kind\":\"step\",\"step\":3}");
    told_take(t);
    assert_int_equal(heard.n, 1);
    assert_int_equal(heard.step, 3);
    assert_string_equal(heard.text, "");
    close(page);
    close(fd);
    told_free(t);
}

/* What somebody said before he died is heard, and his place is free again. */
static void test_who_has_gone_leaves_his_place(void **state) {
    struct told_events *t = open_told();
    for (int i = 0; i < 1100; i++) {
        int page, fd = client(t, &page);
        say(fd, "{\"kind\":\"step\",\"step\":1}");
        close(page);
        close(fd);
        told_take(t);
    }
    assert_int_equal(heard.n, 1100);
    told_free(t);
}

static void test_all_is_taken_that_one_has_sent_at_once(void **state) {
    struct told_events *t = open_told();
    int page, fd = client(t, &page), sent = 0;
    const char text[] = "{\"kind\":\"step\",\"step\":1}";
    while (sent < 600) {
        if (send(fd, text, sizeof(text) - 1, MSG_DONTWAIT) > 0)
            sent++;
        else
            told_take(t); /* no room for more */
    }
    told_take(t);
    assert_int_equal(heard.n, 600);
    close(page);
    close(fd);
    told_free(t);
}

static void test_the_socket_goes_and_a_path_that_is_too_long_is_named(void **state) {
    struct told_events *t = open_told();
    assert_true(file_exists(path));
    assert_null(told_free(t));
    assert_false(file_exists(path));
    assert_null(told_free(NULL));
    told_take(NULL);
    struct err err = {0};
    char long_path[300];
    memset(long_path, 'x', sizeof(long_path));
    long_path[0] = '@';
    long_path[299] = '\0';
    assert_null(told_new(long_path, hear, NULL, &err));
    assert_non_null(strstr(err.msg, "too long"));
    assert_null(told_new("/nowhere/at/all", hear, NULL, &err));
    assert_non_null(strstr(err.msg, "/nowhere/at/all"));
}

/* Whoever is to find it there sees its folder under a shorter name, or is told an abstract one. */
static void test_a_path_may_be_longer_than_an_address(void **state) {
    (void)state;
    struct err err = {0};
    char deep[300], at[320];
    const char *tmp = getenv("TMPDIR");
    snprintf(deep, sizeof(deep), "%s/%0150d", tmp ? tmp : "/tmp", 0);
    snprintf(at, sizeof(at), "%s/told", deep);
    assert_int_equal(mkdir(deep, 0700), 0);
    struct told_events *t = told_new(at, hear, NULL, &err);
    assert_non_null(t);
    assert_true(file_exists(at));
    told_free(t);
    assert_false(file_exists(at));
    rmdir(deep);

    struct rankquake q;
    char name[64];
    snprintf(name, sizeof(name), "@test-told-%d", (int)getpid());
    t = told_new(name, hear, NULL, &err);
    assert_non_null(t);
    pid_t pid = fork();
    if (pid == 0)
        _exit(rankquake_open_at(&q, name) == 1 ? 0 : 1);
    int status = 1;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        struct pollfd p = {told_fd(t), POLLIN, 0};
        poll(&p, 1, 10);
        told_take(t);
    }
    assert_int_equal(status, 0);
    told_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whoever_connects_gets_a_page_that_asks_for_nothing),
        cmocka_unit_test(test_an_event_is_told_with_what_it_says_who_and_when),
        cmocka_unit_test(test_what_is_no_event_is_passed_over),
        cmocka_unit_test(test_who_has_gone_leaves_his_place),
        cmocka_unit_test(test_all_is_taken_that_one_has_sent_at_once),
        cmocka_unit_test(test_the_socket_goes_and_a_path_that_is_too_long_is_named),
        cmocka_unit_test(test_a_path_may_be_longer_than_an_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
