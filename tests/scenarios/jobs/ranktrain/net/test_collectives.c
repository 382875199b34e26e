/* Every exchange over TCP at small world sizes, each rank a thread of the test on loopback. */
#include "scenarios/jobs/ranktrain/net/bootstrap.h"
#include "scenarios/jobs/ranktrain/net/collective.h"
#include "scenarios/jobs/ranktrain/net/deadline.h"
#include "scenarios/jobs/ranktrain/net/ring_plan.h"
#include "tests/own_port.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { WORLD_MAX = 5, NUMBERS_MAX = 40000 };

/* What a rank does when its turn has come to do something else than the others. */
enum manner { TAKES_PART, IS_SILENT, GOES_AWAY };

struct play {
    enum collective_op op;
    int world, root;
    size_t numbers;
    size_t bounds[WORLD_MAX + 1]; /* in bytes */
    int64_t limit_ns;
    pthread_barrier_t opened, ended;
};

struct actor {
    struct play *p;
    pthread_t thread;
    struct bootstrap_request request;
    enum manner manner;
    int r, peer;
    int64_t *data;
    struct err err;
};

static int64_t value(int rank, size_t i) {
    return (int64_t)(rank + 1) * 1000003 + (int64_t)i * 7;
}

/* All send to the one below, and rank 0 to the last: a ring of pairs. */
static int peer_of(const struct actor *a) {
    int world = a->p->world, rank = a->request.rank;
    return (rank + (a->p->op == COLLECTIVE_SEND ? world - 1 : 1)) % world;
}

static int exchange(struct actor *a, void *ring, enum collective_op op, int peer) {
    struct collective_call c = {.op = op,
                                .data = a->data,
                                .bytes = a->p->numbers * sizeof(*a->data),
                                .bounds = a->p->bounds,
                                .peer = peer,
                                .deadline_ns = deadline_in_ns(a->p->limit_ns)};
    int r = collective_tcp_ring.start(ring, &c, &a->err);
    while (r == 0)
        r = collective_tcp_ring.poll(ring, 20, &a->err);
    a->peer = c.peer;
    return r;
}

static void *actor_run(void *arg) {
    struct actor *a = arg;
    struct bootstrap b;
    void *ring = NULL;
    assert_int_equal(bootstrap_join(&b, &a->request, &a->err), 0);
    b.group.pairs = a->p->op == COLLECTIVE_SEND || a->p->op == COLLECTIVE_RECEIVE;
    assert_int_equal(collective_tcp_ring.open(&ring, &b.group, &a->request.wait, &a->err), 0);
    pthread_barrier_wait(&a->p->opened);
    bootstrap_end(&b);
    if (a->manner == GOES_AWAY)
        collective_tcp_ring.abort(ring);
    else if (a->manner == TAKES_PART && a->p->op != COLLECTIVE_RECEIVE)
        a->r = exchange(a, ring, a->p->op, b.group.pairs ? peer_of(a) : a->p->root);
    else if (a->manner == TAKES_PART)
        a->r = a->request.rank == a->p->root ? 1 : exchange(a, ring, a->p->op, a->p->root);
    if (a->r < 0)
        collective_tcp_ring.abort(ring);
    pthread_barrier_wait(&a->p->ended);
    collective_tcp_ring.close(ring, NULL);
    return NULL;
}

/* Uneven parts, one of them empty. */
static void cut(struct play *p) {
    for (int r = 0; r <= p->world; r++)
        p->bounds[r] = p->numbers * (size_t)(r * r) / (size_t)(p->world * p->world) * 8;
    if (p->world > 2)
        p->bounds[1] = p->bounds[2];
}

static void play_open(struct play *p, struct actor *a) {
    int port = own_port();
    cut(p);
    p->limit_ns = p->limit_ns ? p->limit_ns : INT64_C(20000000000);
    pthread_barrier_init(&p->opened, NULL, (unsigned)p->world);
    pthread_barrier_init(&p->ended, NULL, (unsigned)p->world);
    for (int i = 0; i < p->world; i++) {
        a[i] = (struct actor){.p = p, .data = calloc(p->numbers + 1, 8)};
        for (size_t k = 0; k < p->numbers; k++)
            a[i].data[k] = value(i, k);
        a[i].request = (struct bootstrap_request){
            .rank = i,
            .world = p->world,
            .master_addr = "127.0.0.1",
            .master_port = port,
            .run_id = "job",
            .wait = {.deadline_ns = deadline_in_ns(INT64_C(20000000000)), .wake_fd = -1}};
    }
}

static void play_run(struct play *p, struct actor *a) {
    for (int i = 0; i < p->world; i++)
        assert_int_equal(pthread_create(&a[i].thread, NULL, actor_run, &a[i]), 0);
    for (int i = 0; i < p->world; i++)
        pthread_join(a[i].thread, NULL);
}

static void play_close(struct play *p, struct actor *a) {
    for (int i = 0; i < p->world; i++)
        free(a[i].data);
    pthread_barrier_destroy(&p->opened);
    pthread_barrier_destroy(&p->ended);
}

static int64_t sum_of(int world, size_t i) {
    int64_t sum = 0;
    for (int r = 0; r < world; r++)
        sum += value(r, i);
    return sum;
}

static int owner_of(const struct play *p, size_t i) {
    int r = 0;
    while (i * 8 >= p->bounds[r + 1])
        r++;
    return r;
}

static int64_t wanted(const struct play *p, size_t i) {
    switch (p->op) {
    case COLLECTIVE_ALL_REDUCE:
    case COLLECTIVE_REDUCE_SCATTER:
        return sum_of(p->world, i);
    case COLLECTIVE_ALL_GATHER:
        return value(owner_of(p, i), i);
    case COLLECTIVE_BROADCAST:
        return value(p->root, i);
    case COLLECTIVE_SEND:
    case COLLECTIVE_RECEIVE:
        break;
    }
    abort();
}

static void judge(const struct play *p, const struct actor *a, int rank) {
    assert_int_equal(a[rank].r, 1);
    for (size_t i = 0; i < p->numbers; i++)
        if (p->op != COLLECTIVE_REDUCE_SCATTER || owner_of(p, i) == rank)
            assert_true(a[rank].data[i] == wanted(p, i));
}

static void ask(enum collective_op op) {
    static const size_t sizes[] = {0, 1, 1001, NUMBERS_MAX};
    for (int world = 1; world <= WORLD_MAX; world++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
            struct play p = {.op = op, .world = world, .root = (int)s % world, .numbers = sizes[s]};
            struct actor a[WORLD_MAX];
            play_open(&p, a);
            play_run(&p, a);
            for (int r = 0; r < world; r++)
                judge(&p, a, r);
            play_close(&p, a);
        }
}

static void test_all_get_the_sum_of_all(void **state) {
    (void)state;
    ask(COLLECTIVE_ALL_REDUCE);
}

static void test_each_gets_its_part_of_the_sum(void **state) {
    (void)state;
    ask(COLLECTIVE_REDUCE_SCATTER);
}

static void test_the_parts_of_each_come_to_all(void **state) {
    (void)state;
    ask(COLLECTIVE_ALL_GATHER);
}

static void test_what_one_has_comes_to_all(void **state) {
    (void)state;
    ask(COLLECTIVE_BROADCAST);
}

/* A rank that is away or says nothing is noticed by all, and named by a neighbour. */
static void miss(enum collective_op op, enum manner manner) {
    for (int world = 2; world <= WORLD_MAX; world++) {
        bool silent = manner == IS_SILENT;
        struct play p = {.op = op,
                         .world = world,
                         .numbers = NUMBERS_MAX,
                         .limit_ns = silent ? INT64_C(50000000) : 0};
        struct actor a[WORLD_MAX];
        play_open(&p, a);
        a[0].manner = manner;
        play_run(&p, a);
        int named = 0, late = 0;
        for (int r = 1; r < world; r++) { /* the rest: their neighbour has given up */
            assert_true(a[r].r == -ECONNRESET || (silent && a[r].r == -ETIMEDOUT));
            named += strstr(a[r].err.msg, "rank 0 at 127.0.0.1:") != NULL;
            late += a[r].r == -ETIMEDOUT;
        }
        assert_true(silent ? late > 0 : named > 0);
        play_close(&p, a);
    }
}

static void test_a_peer_that_goes_is_named_in_every_exchange(void **state) {
    (void)state;
    for (enum collective_op op = COLLECTIVE_ALL_REDUCE; op <= COLLECTIVE_BROADCAST; op++)
        miss(op, GOES_AWAY);
}

static void test_a_deadline_ends_every_exchange(void **state) {
    (void)state;
    for (enum collective_op op = COLLECTIVE_ALL_REDUCE; op <= COLLECTIVE_BROADCAST; op++)
        miss(op, IS_SILENT);
}

/* What is sent fits into no socket's buffer and nobody takes it; what is asked for never comes. */
static void test_a_deadline_ends_a_send_and_a_receive(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct play p = {.op = k ? COLLECTIVE_RECEIVE : COLLECTIVE_SEND,
                         .world = 2,
                         .numbers = 4 * 1000 * 1000,
                         .limit_ns = INT64_C(50000000)};
        struct actor a[WORLD_MAX];
        play_open(&p, a);
        a[0].manner = IS_SILENT;
        play_run(&p, a);
        assert_int_equal(a[1].r, -ETIMEDOUT);
        assert_non_null(strstr(a[1].err.msg, "rank 0 at 127.0.0.1:"));
        assert_non_null(strstr(a[1].err.msg, k ? "sent nothing more" : "took nothing more"));
        play_close(&p, a);
    }
}

static void test_a_peer_that_goes_is_named_by_who_sends_and_who_receives(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct play p = {
            .op = k ? COLLECTIVE_RECEIVE : COLLECTIVE_SEND, .world = 2, .numbers = 4 * 1000 * 1000};
        struct actor a[WORLD_MAX];
        play_open(&p, a);
        a[0].manner = GOES_AWAY;
        play_run(&p, a);
        assert_int_equal(a[1].r, -ECONNRESET);
        assert_non_null(strstr(a[1].err.msg, "rank 0 at 127.0.0.1:"));
        play_close(&p, a);
    }
}

/* Rank 0 takes from whoever comes first, as often as there are others, and answers each. */
static void *serve(void *arg) {
    struct actor *a = arg;
    struct bootstrap b;
    void *ring = NULL;
    int rank = a->request.rank, world = a->p->world, seen = 0;
    assert_int_equal(bootstrap_join(&b, &a->request, &a->err), 0);
    b.group.pairs = true;
    assert_int_equal(collective_tcp_ring.open(&ring, &b.group, &a->request.wait, &a->err), 0);
    bootstrap_end(&b);
    for (int i = 1; rank == 0 && i < world; i++) {
        assert_int_equal(exchange(a, ring, COLLECTIVE_RECEIVE, COLLECTIVE_ANY), 1);
        assert_true(a->data[0] == value(a->peer, 0) && a->data[1000] == value(a->peer, 1000));
        seen |= 1 << a->peer;
        assert_int_equal(exchange(a, ring, COLLECTIVE_SEND, a->peer), 1);
    }
    if (rank == 0)
        assert_int_equal(seen, (1 << world) - 2);
    for (int i = 0; rank > 0 && i < 2; i++)
        assert_int_equal(exchange(a, ring, i ? COLLECTIVE_RECEIVE : COLLECTIVE_SEND, 0), 1);
    a->r = 1;
    pthread_barrier_wait(&a->p->ended);
    collective_tcp_ring.close(ring, NULL);
    return NULL;
}

static void test_a_server_takes_from_whoever_comes_first(void **state) {
    (void)state;
    for (int world = 2; world <= WORLD_MAX; world++) {
        struct play p = {.world = world, .numbers = 1001};
        struct actor a[WORLD_MAX];
        play_open(&p, a);
        for (int i = 0; i < world; i++)
            assert_int_equal(pthread_create(&a[i].thread, NULL, serve, &a[i]), 0);
        for (int i = 0; i < world; i++)
            pthread_join(a[i].thread, NULL);
        for (int i = 0; i < world; i++) {
            assert_int_equal(a[i].r, 1);
            assert_true(a[i].data[1000] == value(i ? i : a[0].peer, 1000));
        }
        play_close(&p, a);
    }
}

static void test_without_pairs_nothing_is_sent_to_one(void **state) {
    (void)state;
    struct bootstrap b;
    struct err err;
    void *ring = NULL;
    struct bootstrap_request q = {.world = 1, .run_id = "job", .wait = {.wake_fd = -1}};
    struct collective_call c = {.op = COLLECTIVE_SEND, .peer = 1};
    assert_int_equal(bootstrap_join(&b, &q, &err), 0);
    assert_int_equal(collective_tcp_ring.open(&ring, &b.group, &q.wait, &err), 0);
    assert_int_equal(collective_tcp_ring.start(ring, &c, &err), -EINVAL);
    collective_tcp_ring.close(ring, NULL);
    bootstrap_end(&b);
}

/* Nobody sends more than it must. */
static void test_a_sum_costs_each_rank_twice_its_data_less_a_share(void **state) {
    (void)state;
    struct collective_call c = {.op = COLLECTIVE_ALL_REDUCE, .bytes = 8 * 60};
    for (int rank = 0; rank < WORLD_MAX; rank++) {
        struct ring_plan p = {.rank = rank, .world = WORLD_MAX, .call = &c};
        size_t sent = 0;
        for (int i = 0; i < ring_plan_phases(&p); i++)
            sent += ring_plan_move(&p, i).out_bytes;
        assert_int_equal(sent, 2 * c.bytes * (WORLD_MAX - 1) / WORLD_MAX);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_get_the_sum_of_all),
        cmocka_unit_test(test_each_gets_its_part_of_the_sum),
        cmocka_unit_test(test_the_parts_of_each_come_to_all),
        cmocka_unit_test(test_what_one_has_comes_to_all),
        cmocka_unit_test(test_a_peer_that_goes_is_named_in_every_exchange),
        cmocka_unit_test(test_a_deadline_ends_every_exchange),
        cmocka_unit_test(test_a_deadline_ends_a_send_and_a_receive),
        cmocka_unit_test(test_a_peer_that_goes_is_named_by_who_sends_and_who_receives),
        cmocka_unit_test(test_a_server_takes_from_whoever_comes_first),
        cmocka_unit_test(test_without_pairs_nothing_is_sent_to_one),
        cmocka_unit_test(test_a_sum_costs_each_rank_twice_its_data_less_a_share),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
