/* Who is let into a group and who is not: each flaw of a hello, each answer of rank 0, word for word; and what a door makes of callers. */
#include "scenarios/jobs/ranktrain/net/bootstrap.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"
#include "tests/own_port.h"

#include "base/sha256.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const int64_t late_ns = INT64_C(60000000000);

/* As the other side has it: the answer of rank 0. */
struct answer {
    uint64_t magic;
    uint32_t code;
    int32_t world;
    int64_t round;
};

static struct link_wait within(int64_t span_ns) {
    return (struct link_wait){.deadline_ns = deadline_in_ns(span_ns), .wake_fd = -1};
}

static struct bootstrap_request request_of(int rank, int port) {
    return (struct bootstrap_request){.rank = rank,
                                      .world = 3,
                                      .master_addr = "127.0.0.1",
                                      .master_port = port,
                                      .run_id = "job",
                                      .round = 5,
                                      .job = {1, 2, 3},
                                      .wait = within(late_ns)};
}

/* ---- rank 0 ---- */

static void run_digest(const char *text, unsigned char ret[DOOR_DIGEST]) {
    char hex[65];
    sha256_of(text, strlen(text), hex);
    memcpy(ret, hex, DOOR_DIGEST);
}

static struct door_hello hello_of(int rank) {
    struct door_hello h = {.magic = DOOR_MAGIC,
                           .purpose = DOOR_JOIN,
                           .rank = rank,
                           .world = 3,
                           .port = 4000 + rank,
                           .round = 5,
                           .job = {1, 2, 3}};
    run_digest("job", h.run);
    return h;
}

static int dial(int port) {
    struct link_wait w = within(late_ns);
    struct link_address to;
    struct err err;
    int fd = -ECONNREFUSED;
    assert_int_equal(link_resolve("127.0.0.1", port, &to, &err), 0);
    while ((fd = link_connect(&to, &w)) == -ECONNREFUSED) { /* until rank 0 listens */
        struct pollfd none = {.fd = -1};
        poll(&none, 1, 1);
    }
    assert_true(fd >= 0);
    return fd;
}

static struct answer ask(int port, const struct door_hello *h, int *ret_fd) {
    struct link_wait w = within(late_ns);
    struct answer a = {0};
    *ret_fd = dial(port);
    assert_int_equal(link_send(*ret_fd, h, sizeof(*h), &w), 0);
    assert_int_equal(link_receive(*ret_fd, &a, sizeof(a), &w), 0);
    return a;
}

struct leader {
    pthread_t thread;
    struct bootstrap_request q;
    struct bootstrap b;
    int r;
    struct err err;
};

static void *lead(void *arg) {
    struct leader *l = arg;
    l->r = bootstrap_join(&l->b, &l->q, &l->err);
    return NULL;
}

enum { RUN = 2, OLDER, NEWER, WORLD, JOB, RANK };

static void assert_turned_away(int port, const struct door_hello *h, uint32_t code) {
    struct link_wait w = within(late_ns);
    char byte;
    int fd;
    struct answer a = ask(port, h, &fd);
    assert_true(a.magic == DOOR_MAGIC);
    assert_int_equal(a.code, code);
    assert_int_equal(a.world, 3);
    assert_int_equal(a.round, 5);
    assert_int_equal(link_receive(fd, &byte, 1, &w), -ECONNRESET);
    close(fd);
}

static void test_each_flaw_of_a_hello_has_its_answer(void **state) {
    (void)state;
    static struct leader l;
    int port = own_port(), fd[3];
    l.q = request_of(0, port);
    assert_int_equal(pthread_create(&l.thread, NULL, lead, &l), 0);
    struct door_hello h = hello_of(1);
    h.purpose = DOOR_RING;
    assert_turned_away(port, &h, RUN);
    h = hello_of(1);
    h.run[DOOR_DIGEST - 1] ^= 1;
    assert_turned_away(port, &h, RUN);
    h = hello_of(1);
    h.round = 4;
    assert_turned_away(port, &h, OLDER);
    h.round = 6;
    assert_turned_away(port, &h, NEWER);
    h = hello_of(1);
    h.world = 2;
    assert_turned_away(port, &h, WORLD);
    h.world = 4;
    assert_turned_away(port, &h, WORLD);
    h = hello_of(1);
    h.job[DOOR_DIGEST - 1] ^= 1;
    assert_turned_away(port, &h, JOB);
    static const int none[] = {-1, 0, 3, 4, 1000000};
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
        h = hello_of(none[i]);
        assert_turned_away(port, &h, RANK);
    }
    h = hello_of(1);
    assert_int_equal(ask(port, &h, &fd[1]).code, 1);
    assert_turned_away(port, &h, RANK); /* it has it already */
    h = hello_of(2);
    assert_int_equal(ask(port, &h, &fd[2]).code, 1);
    pthread_join(l.thread, NULL);
    assert_int_equal(l.r, 0);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(link_port_of(&l.b.group.peers[i]), 4000 + i);
        close(fd[i]);
    }
    bootstrap_end(&l.b);
}

static void test_rank_0_says_for_whom_it_waits(void **state) {
    (void)state;
    static struct leader l;
    int port = own_port(), fd;
    char wanted[128];
    l.q = request_of(0, port);
    l.q.world = 4;
    l.q.wait = within(INT64_C(300000000));
    assert_int_equal(pthread_create(&l.thread, NULL, lead, &l), 0);
    struct door_hello h = hello_of(2);
    h.world = 4;
    assert_int_equal(ask(port, &h, &fd).code, 1);
    pthread_join(l.thread, NULL);
    assert_int_equal(l.r, -ETIMEDOUT);
    snprintf(wanted, sizeof(wanted), "waiting on port %d for rank 1, 3: Connection timed out",
             port);
    assert_string_equal(l.err.msg, wanted);
    bootstrap_end(&l.b);
    close(fd);
}

static void test_rank_0_names_who_left_while_the_group_formed(void **state) {
    (void)state;
    static struct leader l;
    int port = own_port(), fd;
    char wanted[128];
    l.q = request_of(0, port);
    assert_int_equal(pthread_create(&l.thread, NULL, lead, &l), 0);
    struct door_hello h = hello_of(2);
    assert_int_equal(ask(port, &h, &fd).code, 1);
    close(fd);
    pthread_join(l.thread, NULL);
    assert_int_equal(l.r, -ECONNRESET);
    snprintf(wanted, sizeof(wanted), "rank 2 at 127.0.0.1:%d left while the group was forming",
             4002);
    assert_string_equal(l.err.msg, wanted);
    bootstrap_end(&l.b);
}

static void test_a_port_that_is_taken_is_named(void **state) {
    (void)state;
    static struct leader l;
    struct door d;
    struct err err;
    char wanted[256];
    assert_int_equal(door_open(&d, 0, &err), 0);
    int port = link_port(d.listener);
    l.q = request_of(0, port);
    lead(&l);
    assert_int_equal(l.r, -EADDRINUSE);
    snprintf(wanted, sizeof(wanted),
             "MASTER_PORT %d is in use: another job, or torchrun's own store (then set "
             "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1)",
             port);
    assert_string_equal(l.err.msg, wanted);
    bootstrap_end(&l.b);
    struct door other;
    assert_int_equal(door_open(&other, port, &err), -EADDRINUSE);
    snprintf(wanted, sizeof(wanted), "listen on port %d: Address already in use", port);
    assert_string_equal(err.msg, wanted);
    assert_int_equal(other.listener, -1);
    door_close(&d);
    assert_int_equal(d.listener, -1);
}

/* ---- the others ---- */

struct oracle {
    pthread_t thread;
    struct door door;
    struct answer answer;
    size_t bytes; /* of the answer */
    struct door_hello heard;
};

/* Answers the first caller and hangs up, and says no more to any other. */
static void *answer_once(void *arg) {
    struct oracle *o = arg;
    struct link_wait w = within(late_ns);
    int gone, fd = door_wait(&o->door, &w, NULL, 0, &o->heard, &gone);
    assert_true(fd >= 0);
    assert_int_equal(link_send(fd, &o->answer, o->bytes, &w), 0);
    close(fd);
    return NULL;
}

static const struct {
    struct answer answer;
    size_t bytes;
    int r;
    const char *said; /* @: where rank 0 is */
} answers[] = {
    {{DOOR_MAGIC, OLDER, 3, 8},
     sizeof(struct answer),
     -ESTALE,
     "round 5 is over: rank 0 at @ is of round 8"},
    {{DOOR_MAGIC, JOB, 3, 5},
     sizeof(struct answer),
     -EINVAL,
     "rank 0 at @ refused rank 2: it has other options, another build or another device or "
     "OpenBLAS "
     "kernel; all ranks must compute alike"},
    {{DOOR_MAGIC, RANK, 3, 5},
     sizeof(struct answer),
     -EEXIST,
     "rank 0 at @ refused rank 2: it has that rank already"},
    {{DOOR_MAGIC, NEWER, 3, 4},
     sizeof(struct answer),
     -ETIMEDOUT,
     "no group within the deadline: rank 0 at @ is still of round 4"},
    {{DOOR_MAGIC, WORLD, 7, 5},
     sizeof(struct answer),
     -ETIMEDOUT,
     "no group within the deadline: rank 0 at @ has a world of 7"},
    {{DOOR_MAGIC, RUN, 3, 5},
     sizeof(struct answer),
     -ETIMEDOUT,
     "no group within the deadline: at @ listens another job"},
    {{DOOR_MAGIC ^ 1, 1, 3, 5},
     sizeof(struct answer),
     -ETIMEDOUT,
     "no group within the deadline: at @ listens something else"},
    {{DOOR_MAGIC, 1, 3, 5},
     3,
     -ETIMEDOUT,
     "no group within the deadline: rank 0 at @ does not answer: Connection reset by peer"},
};

static void test_each_answer_of_rank_0_is_a_sentence(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        struct oracle o = {.answer = answers[i].answer, .bytes = answers[i].bytes};
        struct bootstrap b;
        struct err err = {0};
        char wanted[256];
        assert_int_equal(door_open(&o.door, 0, &err), 0);
        int port = link_port(o.door.listener);
        struct bootstrap_request q = request_of(2, port);
        /* What may succeed later is tried until the time is up: a caller that nobody answers any more. */
        q.wait = within(answers[i].r == -ETIMEDOUT ? INT64_C(150000000) : late_ns);
        assert_int_equal(pthread_create(&o.thread, NULL, answer_once, &o), 0);
        assert_int_equal(bootstrap_join(&b, &q, &err), answers[i].r);
        pthread_join(o.thread, NULL);
        const char *at = strchr(answers[i].said, '@');
        snprintf(wanted, sizeof(wanted), "%.*s127.0.0.1:%d%s", (int)(at - answers[i].said),
                 answers[i].said, port, at + 1);
        assert_string_equal(err.msg, wanted);
        struct door_hello h = hello_of(2);
        h.port = o.heard.port;
        assert_true(h.port > 0 && h.port == link_port(b.group.door.listener));
        assert_memory_equal(&o.heard, &h, sizeof(h));
        bootstrap_end(&b);
        door_close(&o.door);
    }
}

static void test_a_rank_0_that_is_not_there_is_named_when_the_time_is_up(void **state) {
    (void)state;
    struct bootstrap b;
    struct err err = {0};
    char wanted[256];
    int port = own_port();
    struct bootstrap_request q = request_of(1, port);
    q.wait = within(INT64_C(50000000));
    assert_int_equal(bootstrap_join(&b, &q, &err), -ETIMEDOUT);
    snprintf(
        wanted, sizeof(wanted),
        "no group within the deadline: rank 0 at 127.0.0.1:%d does not answer: Connection refused",
        port);
    assert_string_equal(err.msg, wanted);
    bootstrap_end(&b);
    q.master_addr = "no.such.host.invalid";
    q.wait = within(INT64_C(50000000));
    assert_int_equal(bootstrap_join(&b, &q, &err), -ETIMEDOUT);
    assert_memory_equal(
        err.msg, "no group within the deadline: the name no.such.host.invalid is not known: ", 74);
    bootstrap_end(&b);
    q = request_of(1, port);
    q.wait.wake_fd = eventfd(1, EFD_CLOEXEC);
    err = (struct err){0};
    assert_int_equal(bootstrap_join(&b, &q, &err), -ECANCELED);
    assert_int_equal(err.code, 0);
    bootstrap_end(&b);
    close(q.wait.wake_fd);
}

/* ---- a door ---- */

/* In pieces, and beside a caller that says nothing. */
static void test_a_hello_may_come_in_pieces(void **state) {
    (void)state;
    struct door d;
    struct err err;
    struct link_wait w = within(late_ns), now = within(INT64_C(30000000));
    struct door_hello h = hello_of(2), heard;
    int gone;
    assert_int_equal(door_open(&d, 0, &err), 0);
    int port = link_port(d.listener), silent = dial(port), slow = dial(port);
    assert_int_equal(door_wait(&d, &now, NULL, 0, &heard, &gone), -ETIMEDOUT);
    assert_int_equal(d.n, 2);
    for (size_t at = 0; at < sizeof(h); at += 10) {
        size_t n = sizeof(h) - at < 10 ? sizeof(h) - at : 10;
        assert_int_equal(link_send(slow, (char *)&h + at, n, &w), 0);
        now = within(at + n < sizeof(h) ? INT64_C(5000000) : late_ns);
        int fd = door_wait(&d, &now, NULL, 0, &heard, &gone);
        if (at + n < sizeof(h))
            assert_int_equal(fd, -ETIMEDOUT);
        else {
            assert_true(fd >= 0);
            assert_memory_equal(&heard, &h, sizeof(h));
            close(fd);
        }
    }
    assert_int_equal(d.n, 1);
    close(silent);
    now = within(INT64_C(5000000));
    assert_int_equal(door_wait(&d, &now, NULL, 0, &heard, &gone), -ETIMEDOUT);
    assert_int_equal(d.n, 0); /* who has hung up is forgotten */
    close(slow);
    door_close(&d);
}

/* The oldest makes room. */
static void test_of_too_many_silent_callers_the_oldest_is_sent_away(void **state) {
    (void)state;
    struct door d;
    struct err err;
    struct link_wait w = within(late_ns);
    struct door_hello h = hello_of(2), heard;
    int fd[DOOR_CALLERS + 2], gone;
    char byte;
    assert_int_equal(door_open(&d, 0, &err), 0);
    int port = link_port(d.listener);
    for (int i = 0; i < DOOR_CALLERS + 2; i++) {
        struct link_wait now = within(0);
        fd[i] = dial(port);
        assert_int_equal(door_wait(&d, &now, NULL, 0, &heard, &gone), -ETIMEDOUT);
        assert_int_equal(d.n, i + 1 < DOOR_CALLERS ? i + 1 : DOOR_CALLERS);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(link_receive(fd[i], &byte, 1, &w), -ECONNRESET);
    for (int i = 2; i < DOOR_CALLERS + 2; i += DOOR_CALLERS - 1) {
        h.rank = i;
        assert_int_equal(link_send(fd[i], &h, sizeof(h), &w), 0);
        int one = door_wait(&d, &w, NULL, 0, &heard, &gone);
        assert_true(one >= 0);
        assert_int_equal(heard.rank, i);
        close(one);
    }
    door_close(&d);
    for (int i = 0; i < DOOR_CALLERS + 2; i++)
        close(fd[i]);
}

static void test_who_is_watched_and_speaks_or_goes_is_told(void **state) {
    (void)state;
    struct door d;
    struct err err;
    struct link_wait w = within(late_ns);
    struct door_hello heard;
    int pairs[3][2], watched[3], gone;
    assert_int_equal(door_open(&d, 0, &err), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
        watched[i] = pairs[i][0];
    }
    for (int i = 2; i >= 0; i--) {
        gone = -1;
        close(pairs[i][1]);
        assert_int_equal(door_wait(&d, &w, watched, 3, &heard, &gone), -EPIPE);
        assert_int_equal(gone, i);
    }
    w.wake_fd = eventfd(1, EFD_CLOEXEC);
    assert_int_equal(door_wait(&d, &w, watched, 3, &heard, &gone), -ECANCELED);
    close(w.wake_fd);
    for (int i = 0; i < 3; i++)
        close(pairs[i][0]);
    door_close(&d);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_flaw_of_a_hello_has_its_answer),
        cmocka_unit_test(test_rank_0_says_for_whom_it_waits),
        cmocka_unit_test(test_rank_0_names_who_left_while_the_group_formed),
        cmocka_unit_test(test_a_port_that_is_taken_is_named),
        cmocka_unit_test(test_each_answer_of_rank_0_is_a_sentence),
        cmocka_unit_test(test_a_rank_0_that_is_not_there_is_named_when_the_time_is_up),
        cmocka_unit_test(test_a_hello_may_come_in_pieces),
        cmocka_unit_test(test_of_too_many_silent_callers_the_oldest_is_sent_away),
        cmocka_unit_test(test_who_is_watched_and_speaks_or_goes_is_told),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
