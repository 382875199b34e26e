/* Bootstrap, door and ring, each rank a thread of the test on loopback. */
#include "scenarios/jobs/ranktrain/net/bootstrap.h"
#include "scenarios/jobs/ranktrain/net/collective.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"
#include "scenarios/jobs/ranktrain/data/draw.h"
#include "tests/own_port.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { SUMS = 1001, ROUNDS = 3 };

struct member {
    pthread_t thread;
    struct bootstrap_request request;
    bool silent;   /* joins and opens, then takes no part in the collective */
    bool vanishes; /* the same, then ends */
    bool spoils;   /* a bit of what it sends changes when its checksum is made */
    bool intrudes; /* first knocks at rank 0's door with the session id of another round */
    int64_t limit_ns;
    int joined, summed;
    int64_t data[SUMS], shared;
    struct err err;
    pthread_barrier_t *finish;
};

static int64_t value(int rank, int i) {
    uint64_t state = (uint64_t)(rank * 100000 + i);
    return (int64_t)draw_u64(&state) / 64;
}

static int sum_once(struct member *m, void *ring) {
    for (int i = 0; i < SUMS; i++)
        m->data[i] = value(m->request.rank, i);
    struct collective_call call = {.op = COLLECTIVE_ALL_REDUCE,
                                   .data = m->data,
                                   .bytes = sizeof(m->data),
                                   .deadline_ns = deadline_in_ns(m->limit_ns)};
    int r = collective_tcp_ring.start(ring, &call, &m->err);
    if (m->spoils) /* of the chunk that goes out first */
        m->data[SUMS * m->request.rank / m->request.world] ^= INT64_MIN;
    while (r == 0)
        r = collective_tcp_ring.poll(ring, 50, &m->err);
    return r;
}

static int knock(const struct peer_group *g, const struct link_wait *w) {
    struct door_hello h = {
        .magic = DOOR_MAGIC, .purpose = DOOR_RING, .rank = g->rank, .world = g->world};
    int fd = link_connect(&g->peers[0], w);
    memset(h.session, 1, sizeof(h.session));
    assert_true(fd >= 0);
    assert_int_equal(link_send(fd, &h, sizeof(h), w), 0);
    return fd;
}

static void *member_run(void *arg) {
    struct member *m = arg;
    struct bootstrap b;
    void *ring = NULL;
    int stale = -1;
    m->joined = bootstrap_join(&b, &m->request, &m->err);
    if (m->joined == 0)
        m->joined = bootstrap_share(&b, &m->shared, sizeof(m->shared), &m->err);
    if (m->joined == 0 && m->intrudes)
        stale = knock(&b.group, &m->request.wait);
    if (m->joined == 0)
        m->joined = collective_tcp_ring.open(&ring, &b.group, &m->request.wait, &m->err);
    bootstrap_end(&b);
    for (int i = 0; ring && i < ROUNDS && !m->silent && m->summed >= 0; i++)
        m->summed = sum_once(m, ring);
    if (ring && m->summed < 0)
        collective_tcp_ring.abort(ring);
    if (m->finish && !m->vanishes)
        pthread_barrier_wait(m->finish);
    assert_int_equal(collective_tcp_ring.close(ring, NULL), 0);
    link_close(&stale);
    return NULL;
}

static void members_init(struct member *m, int world) {
    int port = own_port();
    for (int i = 0; i < world; i++) {
        m[i] = (struct member){.limit_ns = INT64_C(20000000000), .shared = i == 0 ? 4711 : 0};
        m[i].request = (struct bootstrap_request){
            .rank = i,
            .world = world,
            .master_addr = "127.0.0.1",
            .master_port = port,
            .run_id = "job",
            .round = 5,
            .wait = {.deadline_ns = deadline_in_ns(INT64_C(20000000000)), .wake_fd = -1}};
    }
}

static void members_run(struct member *m, int world) {
    for (int i = 0; i < world; i++)
        assert_int_equal(pthread_create(&m[i].thread, NULL, member_run, &m[i]), 0);
    for (int i = 0; i < world; i++)
        pthread_join(m[i].thread, NULL);
}

static void test_every_rank_gets_the_sum_at_every_world_size(void **state) {
    (void)state;
    static struct member m[BOOTSTRAP_MEMBERS];
    for (int world = 1; world <= 24; world += world < 12 ? 1 : 12) {
        members_init(m, world);
        members_run(m, world);
        for (int r = 0; r < world; r++) {
            assert_int_equal(m[r].joined, 0);
            assert_int_equal(m[r].summed, 1);
            assert_int_equal(m[r].shared, 4711);
        }
        for (int i = 0; i < SUMS; i++) {
            int64_t sum = 0;
            for (int r = 0; r < world; r++)
                sum += value(r, i);
            for (int r = 0; r < world; r++)
                assert_true(m[r].data[i] == sum);
        }
    }
}

static void test_a_peer_that_says_nothing_is_named_at_the_deadline(void **state) {
    (void)state;
    static struct member m[3];
    pthread_barrier_t finish;
    pthread_barrier_init(&finish, NULL, 3);
    members_init(m, 3);
    m[1].silent = true;
    m[2].limit_ns = INT64_C(300000000);
    for (int i = 0; i < 3; i++)
        m[i].finish = &finish;
    members_run(m, 3);
    assert_int_equal(m[2].summed, -ETIMEDOUT);
    assert_non_null(strstr(m[2].err.msg, "rank 1 at 127.0.0.1:"));
    assert_int_equal(m[0].summed, -ECONNRESET); /* rank 2 has given up */
    pthread_barrier_destroy(&finish);
}

static void test_bytes_that_change_on_the_way_are_noticed(void **state) {
    (void)state;
    static struct member m[3];
    members_init(m, 3);
    m[1].spoils = true;
    members_run(m, 3);
    assert_int_equal(m[2].summed, -EBADMSG);
    assert_non_null(strstr(m[2].err.msg, "what came from rank 1 at 127.0.0.1:"));
    assert_non_null(strstr(m[2].err.msg, "checksum in collective 1, phase 0"));
    for (int i = 0; i < 2; i++) /* nobody goes on with them; who is slow does not even begin */
        assert_true((m[i].joined ? m[i].joined : m[i].summed) < 0);
}

static void test_a_peer_that_goes_is_named_at_once(void **state) {
    (void)state;
    static struct member m[2];
    members_init(m, 2);
    m[1].silent = m[1].vanishes = true;
    members_run(m, 2);
    /* It may have gone before rank 0 was through with connecting. */
    assert_int_equal(m[0].joined ? m[0].joined : m[0].summed, -ECONNRESET);
    assert_non_null(strstr(m[0].err.msg, "rank 1 at 127.0.0.1:"));
}

struct caller {
    pthread_t thread;
    struct bootstrap_request request;
    bool leaves;
    int *met; /* how many have called bootstrap_meet */
    int seen, r;
    struct err err;
};

static void *caller_run(void *arg) {
    struct caller *c = arg;
    struct bootstrap b;
    c->r = bootstrap_join(&b, &c->request, &c->err);
    if (c->r == 0 && !c->leaves) {
        __atomic_add_fetch(c->met, 1, __ATOMIC_SEQ_CST);
        c->r = bootstrap_meet(&b, &c->err);
        c->seen = __atomic_load_n(c->met, __ATOMIC_SEQ_CST);
    }
    bootstrap_end(&b);
    return NULL;
}

static void callers_run(struct caller *c, int n, int *met) {
    static struct member m[BOOTSTRAP_MEMBERS];
    members_init(m, n);
    for (int i = 0; i < n; i++) {
        c[i].request = m[i].request;
        c[i].met = met;
        assert_int_equal(pthread_create(&c[i].thread, NULL, caller_run, &c[i]), 0);
    }
    for (int i = 0; i < n; i++)
        pthread_join(c[i].thread, NULL);
}

static void test_a_meeting_ends_when_all_have_come(void **state) {
    (void)state;
    struct caller c[5] = {{0}};
    int met = 0;
    callers_run(c, 5, &met);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(c[i].r, 0);
        assert_int_equal(c[i].seen, 5);
    }
}

static void test_who_leaves_before_the_meeting_is_named(void **state) {
    (void)state;
    struct caller c[3] = {{0}, {.leaves = true}, {0}};
    int met = 0;
    callers_run(c, 3, &met);
    assert_int_equal(c[0].r, -ECONNRESET);
    assert_non_null(strstr(c[0].err.msg, "rank 1 at 127.0.0.1:"));
    assert_int_equal(c[2].r, -ECONNRESET); /* rank 0 has given up */
}

static void test_a_connection_of_another_round_does_not_get_into_the_ring(void **state) {
    (void)state;
    static struct member m[2];
    members_init(m, 2);
    m[1].intrudes = true;
    members_run(m, 2);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(m[r].summed, 1);
        for (int i = 0; i < SUMS; i++)
            assert_true(m[r].data[i] == value(0, i) + value(1, i));
    }
}

static void test_a_worker_of_an_older_round_is_told_so(void **state) {
    (void)state;
    static struct member m[2];
    members_init(m, 2);
    m[1].request.round = 4;
    m[0].request.wait.deadline_ns = deadline_in_ns(INT64_C(500000000));
    members_run(m, 2);
    assert_int_equal(m[1].joined, -ESTALE);
    assert_non_null(strstr(m[1].err.msg, "round 4 is over"));
    assert_int_equal(m[0].joined, -ETIMEDOUT);
    assert_non_null(strstr(m[0].err.msg, "for rank 1"));
}

static void test_a_worker_with_other_options_is_refused(void **state) {
    (void)state;
    static struct member m[2];
    members_init(m, 2);
    m[1].request.job[0] = 1;
    m[0].request.wait.deadline_ns = deadline_in_ns(INT64_C(500000000));
    members_run(m, 2);
    assert_int_equal(m[1].joined, -EINVAL);
    assert_non_null(strstr(m[1].err.msg, "other options"));
}

static void test_a_worker_of_another_job_waits_for_its_own(void **state) {
    (void)state;
    static struct member m[2];
    members_init(m, 2);
    m[1].request.run_id = "another";
    m[0].request.wait.deadline_ns = deadline_in_ns(INT64_C(1000000000));
    m[1].request.wait.deadline_ns = deadline_in_ns(INT64_C(500000000));
    members_run(m, 2);
    assert_int_equal(m[1].joined, -ETIMEDOUT);
    assert_non_null(strstr(m[1].err.msg, "another job"));
    assert_int_equal(m[0].joined, -ETIMEDOUT);
}

static void test_a_wait_can_be_called_off(void **state) {
    (void)state;
    static struct member m[2];
    int pipe_fd[2];
    assert_int_equal(pipe(pipe_fd), 0);
    assert_int_equal(write(pipe_fd[1], "x", 1), 1);
    members_init(m, 2);
    for (int i = 0; i < 2; i++)
        m[i].request.wait.wake_fd = pipe_fd[0];
    members_run(m, 2);
    assert_int_equal(m[0].joined, -ECANCELED);
    assert_int_equal(m[1].joined, -ECANCELED);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
}

static void test_strangers_at_the_door_keep_nobody_waiting(void **state) {
    (void)state;
    struct door d;
    struct err err;
    struct link_wait w = {.deadline_ns = deadline_in_ns(INT64_C(5000000000)), .wake_fd = -1};
    struct link_address to;
    struct door_hello hello = {.magic = DOOR_MAGIC, .rank = 3}, heard;
    int callers[3], gone;
    assert_int_equal(door_open(&d, 0, &err), 0);
    assert_int_equal(link_resolve("127.0.0.1", link_port(d.listener), &to, &err), 0);
    for (int i = 0; i < 3; i++)
        callers[i] = link_connect(&to, &w);
    assert_int_equal(link_send(callers[1], "GET / HTTP/1.1\r\n", 16, &w), 0);
    assert_int_equal(link_send(callers[2], &hello, sizeof(hello), &w), 0);
    int fd = door_wait(&d, &w, NULL, 0, &heard, &gone);
    assert_true(fd >= 0);
    assert_int_equal(heard.rank, 3);
    assert_int_equal(d.n, 1); /* the silent one */
    char byte;
    assert_int_equal(link_receive(callers[1], &byte, 1, &w), -ECONNRESET);
    close(fd);
    for (int i = 0; i < 3; i++)
        close(callers[i]);
    door_close(&d);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rank_gets_the_sum_at_every_world_size),
        cmocka_unit_test(test_a_peer_that_says_nothing_is_named_at_the_deadline),
        cmocka_unit_test(test_bytes_that_change_on_the_way_are_noticed),
        cmocka_unit_test(test_a_peer_that_goes_is_named_at_once),
        cmocka_unit_test(test_a_meeting_ends_when_all_have_come),
        cmocka_unit_test(test_who_leaves_before_the_meeting_is_named),
        cmocka_unit_test(test_a_connection_of_another_round_does_not_get_into_the_ring),
        cmocka_unit_test(test_a_worker_of_an_older_round_is_told_so),
        cmocka_unit_test(test_a_worker_with_other_options_is_refused),
        cmocka_unit_test(test_a_worker_of_another_job_waits_for_its_own),
        cmocka_unit_test(test_a_wait_can_be_called_off),
        cmocka_unit_test(test_strangers_at_the_door_keep_nobody_waiting),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
