/* What clients may make the store hold and keep: requests without an end, answers that nobody
 * takes, writes without measure. */
#include "agent/store/answer.h"
#include "base/buf.h"
#include "tests/agent/store/serving.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MB = 1 << 20 };

static char big[MB];

static int set_up(void **state) {
    serving_begin(state, NULL);
    memset(big, 'x', sizeof(big));
    return 0;
}

static void limit(size_t held, size_t kept, int64_t request_ms) {
    server_limit(server, &(struct server_limits){held, kept, kept, kept, request_ms * 1000000, 0});
}

static int raw_connect(void) {
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(server_port(server)),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int small = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    connect(fd, (struct sockaddr *)&a, sizeof(a));
    return fd;
}

/* A client by hand: has `left` bytes to send; ended when the store hangs up. */
struct hand {
    struct loop *loop;
    struct loop_source *source, *pulse;
    int fd;
    size_t left, got;
    bool ended, reads;
    struct buf head, in;
};

static void hand_send(struct hand *h, size_t most) {
    size_t n = h->left < most ? h->left : most;
    ssize_t sent = n ? send(h->fd, big, n, MSG_NOSIGNAL) : 0;
    if (sent > 0)
        h->left -= (size_t)sent;
}

static void on_hand(void *arg, int fd, int what) {
    struct hand *h = arg;
    char piece[65536];
    if (what & LOOP_WRITE && h->head.len) {
        assert_int_equal(send(fd, h->head.data, h->head.len, MSG_NOSIGNAL), h->head.len);
        buf_clear(&h->head);
    } else if (what & LOOP_WRITE) {
        hand_send(h, sizeof(big));
    }
    if (what & LOOP_READ && h->reads) {
        ssize_t n = recv(fd, piece, sizeof(piece), 0);
        h->ended = n <= 0;
        h->got += n > 0 ? (size_t)n : 0;
        if (n > 0)
            buf_put(&h->in, piece, (size_t)n);
    }
    loop_fd_set(h->source, h->ended ? 0
                                    : (h->reads ? LOOP_READ : 0) |
                                          (h->head.len || (h->left && !h->pulse) ? LOOP_WRITE : 0));
    loop_stop(h->loop);
}

/* Says that a body of `length` comes, and sends `sends` of it. */
static void hand_begin(struct hand *h, struct contract *c, const char *path, const char *body,
                       size_t length, size_t sends) {
    *h = (struct hand){.loop = c->loop, .fd = raw_connect(), .left = sends, .reads = true};
    buf_printf(&h->head, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s", path,
               length, body);
    h->source = loop_fd(c->loop, h->fd, LOOP_READ | LOOP_WRITE, on_hand, h);
}

static void hand_end(struct hand *h) {
    loop_source_free(h->source);
    loop_source_free(h->pulse);
    close(h->fd);
    buf_fini(&h->head);
    buf_fini(&h->in);
}

static void on_pulse(void *arg, int64_t now_ns) {
    struct hand *h = arg;
    hand_send(h, 1);
    loop_timer_at(h->pulse, now_ns + 5000000);
}

static void test_a_request_that_comes_too_slowly_is_ended_be_it_ever_so_busy(void **state) {
    struct contract *c = *state;
    struct hand slow, whole;
    limit(64 * MB, 64 * MB, 100);
    hand_begin(&slow, c, "/v3/kv/put", "", 100000, 100000);
    slow.pulse = loop_timer(c->loop, on_pulse, &slow);
    loop_timer_at(slow.pulse, 0);
    while (!slow.ended)
        contract_run(c);
    assert_true(slow.left < 100000 &&
                slow.left > 0); /* how busy it was is the machine's business */
    assert_int_equal(slow.got, 0);
    hand_end(&slow);
    /* Who has asked and says nothing more is left alone. */
    hand_begin(&whole, c, "/v3/kv/range", "{\"key\":\"eA==\"}", 14, 0);
    while (!whole.got)
        contract_run(c);
    hand_begin(&slow, c, "/v3/kv/put", "", 100, 50);
    while (!slow.ended)
        contract_run(c);
    assert_false(whole.ended);
    hand_end(&slow);
    hand_end(&whole);
    assert_int_equal(server_held(server), 0);
}

static void test_of_requests_that_are_not_whole_the_largest_goes_first(void **state) {
    struct contract *c = *state;
    struct hand small, large;
    limit(2 * MB, 64 * MB, 60000); /* half of it is for those who are no agents */
    hand_begin(&small, c, "/v3/kv/put", "", 400000, 300000);
    while (small.left)
        contract_run(c);
    hand_begin(&large, c, "/v3/kv/put", "", 2000000, 1000000);
    while (!large.ended)
        contract_run(c);
    assert_false(small.ended);
    put(c, "a", "1");
    small.left = 100000;
    loop_fd_set(small.source, LOOP_READ | LOOP_WRITE);
    while (!small.got)
        contract_run(c);
    assert_non_null(strstr(buf_str(&small.in), " 400 "));
    hand_end(&small);
    hand_end(&large);
}

static int put_big(struct contract *c, const char *name) {
    struct kv_op op = {.kind = KV_PUT, .key = key(c, name), .value = {big, sizeof(big) - 4096}};
    struct kv_txn txn = {.success = &op, .n_success = 1};
    ask(c, &txn);
    return c->reply.outcome;
}

/* The same without the way through the server. */
static void keep_big(struct contract *c, const char *name) {
    struct kv_op op = {.kind = KV_PUT, .key = key(c, name), .value = {big, sizeof(big) - 4096}};
    struct kv_txn txn = {.success = &op, .n_success = 1};
    struct kv_txn_result result;
    assert_int_equal(kv_txn(kv, &txn, &c->arena, &result, NULL), 0);
}

static const char all[] = "{\"key\":\"AA==\",\"range_end\":\"AA==\"}";

/* Some sixteen megabytes are asked for, again and again; the kernel takes a few. */
static void test_answers_that_nobody_takes_are_not_made(void **state) {
    enum { HANDS = 6 };
    struct contract *c = *state;
    struct hand hands[HANDS];
    limit(16 * MB, 64 * MB, 60000);
    for (int i = 0; i < 12; i++)
        keep_big(c, (char[]){'a' + (char)i, '\0'});
    for (int i = 0; i < HANDS; i++) {
        hand_begin(&hands[i], c, "/v3/kv/range", all, sizeof(all) - 1, 0);
        hands[i].reads = false;
        while (hands[i].head.len)
            contract_run(c);
        put(c, "z", "1");
        assert_true(server_held(server) <= 16 * MB / 2);
    }
    /* Who reads is given all of it, and as it was when it was asked for. */
    struct hand *last = &hands[HANDS - 1];
    last->reads = true;
    loop_fd_set(last->source, LOOP_READ);
    while (!last->ended &&
           (last->in.len < 5 || memcmp(last->in.data + last->in.len - 5, "0\r\n\r\n", 5)))
        contract_run(c);
    assert_false(last->ended);
    assert_true(last->got > 12 * MB);
    for (int i = 0; i < HANDS; i++)
        hand_end(&hands[i]);
}

static int count_unanswered(const struct hand *hands, int n) {
    int unanswered = 0;
    for (int i = 0; i < n; i++)
        unanswered += !hands[i].got;
    return unanswered;
}

/* Those who are in are served while nobody else can come in, and who waits comes in later. */
static void test_a_store_without_files_left_serves_those_who_are_in(void **state) {
    struct contract *c = *state;
    struct rlimit before, few;
    struct hand hands[24];
    put(c, "a", "1");
    int lowest = dup(0);
    close(lowest);
    getrlimit(RLIMIT_NOFILE, &before);
    for (int i = 0; i < 24; i++)
        hand_begin(&hands[i], c, "/v3/kv/range", "{\"key\":\"eA==\"}", 14, 0);
    few = (struct rlimit){(rlim_t)lowest + 24 + 6, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < 20; i++)
        put(c, "a", "2");
    assert_true(count_unanswered(hands, 24) > 0);
    setrlimit(RLIMIT_NOFILE, &before);
    for (int i = 0; i < 24; i++) {
        while (!hands[i].got)
            contract_run(c);
        hand_end(&hands[i]);
    }
}

/* Of sixteen places half are strangers'. Who asked about a run has one of the others. */
static void test_strangers_make_room_for_who_comes_and_an_agent_stays(void **state) {
    enum { STRANGERS = 40, PLACES = 16 };
    static const char cur[] = "{\"key\":\"L3JhbmtydW4vam9iL2N1cg==\"}";
    struct contract *c = *state;
    struct server_limits l;
    struct hand agent, strangers[STRANGERS], newcomer;
    int ended = 0;
    server_limits_of(&l, SERVER_MEMORY_MB, PLACES);
    server_limit(server, &l);
    hand_begin(&agent, c, "/v3/kv/put", cur, sizeof(cur) - 1, 0);
    while (!agent.got)
        contract_run(c);
    assert_int_equal(server_agents(server), 1);
    for (int i = 0; i < STRANGERS; i++) {
        hand_begin(&strangers[i], c, "/v3/kv/put", "", 0, 0);
        buf_clear(&strangers[i].head); /* it says nothing */
        loop_fd_set(strangers[i].source, LOOP_READ);
    }
    while (ended < STRANGERS - PLACES / 2) {
        contract_run(c);
        ended = 0;
        for (int i = 0; i < STRANGERS; i++)
            ended += strangers[i].ended;
    }
    hand_begin(&newcomer, c, "/v3/kv/range", cur, sizeof(cur) - 1, 0);
    while (!newcomer.got)
        contract_run(c);
    assert_false(agent.ended);
    assert_int_equal(server_agents(server), 2);
    for (int i = 0; i < STRANGERS; i++)
        hand_end(&strangers[i]);
    hand_end(&agent);
    hand_end(&newcomer);
}

static void test_a_store_that_is_full_says_so_until_there_is_room(void **state) {
    struct contract *c = *state;
    int taken = 0;
    limit(64 * MB, 8 * MB, 60000);
    while (taken < 20 && put_big(c, (char[]){'a' + (char)taken, '\0'}) == STORE_ANSWERED)
        taken++;
    assert_true(taken >= 4 && taken < 9);
    assert_int_equal(c->reply.outcome, STORE_UNKNOWN);
    assert_non_null(strstr(c->why, "this store is full"));
    get(c, "a");
    ask_op(c,
           (struct kv_op){.kind = KV_DELETE, .key = kv_string(c->prefix), .range_end = key_end(c)});
    assert_int_equal(put_big(c, "a"), STORE_ANSWERED);
}

static void grant(struct contract *c, int64_t id) {
    store_grant(c->store, id, 600, CONTRACT_PATIENCE_MS, on_contract_reply, c);
    await_reply(c);
}

static void put_leased(const char *key, int64_t lease) {
    struct arena a = {0};
    struct kv_txn_result result;
    struct kv_op op = {
        .kind = KV_PUT, .key = kv_string(key), .value = kv_string("1"), .lease = lease};
    struct kv_txn txn = {.success = &op, .n_success = 1};
    assert_int_equal(kv_txn(kv, &txn, &a, &result, NULL), 0);
    arena_fini(&a);
}

static void test_there_are_only_so_many_leases_and_those_of_runs_stay(void **state) {
    struct contract *c = *state;
    int64_t id, now_ns = clock_monotonic_ns();
    for (int i = 1; i <= ANSWER_LEASES_MAX; i++)
        assert_int_equal(kv_lease_grant(kv, i, 600, now_ns + i, &id, NULL), 0);
    put_leased("/rankrun/job/cur", 1);
    put_leased("other", 2);
    grant(c, 1000001);
    assert_int_equal(c->reply.outcome, STORE_ANSWERED);
    assert_true(kv_lease_count(kv) < ANSWER_LEASES_MAX);
    assert_true(kv_lease_exists(kv, 1));
    assert_true(kv_lease_exists(kv, ANSWER_LEASES_MAX));
    assert_false(kv_lease_exists(kv, 2));
    assert_int_equal(kv_count(kv), 1);
}

static void test_where_all_leases_are_runs_no_more_are_granted(void **state) {
    struct contract *c = *state;
    int64_t id, now_ns = clock_monotonic_ns();
    for (int i = 1; i <= ANSWER_LEASES_MAX; i++) {
        char key[64];
        assert_int_equal(kv_lease_grant(kv, i, 600, now_ns, &id, NULL), 0);
        snprintf(key, sizeof(key), "/rankrun/job%d/cur", i);
        put_leased(key, i);
    }
    grant(c, 1000001);
    assert_int_equal(c->reply.outcome, STORE_UNKNOWN);
    assert_non_null(strstr(c->why, "leases"));
    grant(c, 7); /* one that is there is no more */
    assert_int_equal(c->reply.outcome, STORE_ANSWERED);
    assert_int_equal(kv_lease_revoke(kv, 7, NULL), 0);
    grant(c, 1000001);
    assert_int_equal(c->reply.outcome, STORE_ANSWERED);
}

static void test_history_is_forgotten_before_a_store_is_full(void **state) {
    struct contract *c = *state;
    limit(64 * MB, 4 * MB, 60000);
    for (int i = 0; i < 10; i++)
        assert_int_equal(put_big(c, "a"), STORE_ANSWERED);
    assert_true(kv_compact_revision(kv) > 4);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, serving_end)
    signal(SIGPIPE, SIG_IGN); /* as in every program that has a store */
    const struct CMUnitTest tests[] = {
        TEST(test_a_request_that_comes_too_slowly_is_ended_be_it_ever_so_busy),
        TEST(test_of_requests_that_are_not_whole_the_largest_goes_first),
        TEST(test_answers_that_nobody_takes_are_not_made),
        TEST(test_a_store_without_files_left_serves_those_who_are_in),
        TEST(test_strangers_make_room_for_who_comes_and_an_agent_stays),
        TEST(test_a_store_that_is_full_says_so_until_there_is_room),
        TEST(test_there_are_only_so_many_leases_and_those_of_runs_stay),
        TEST(test_where_all_leases_are_runs_no_more_are_granted),
        TEST(test_history_is_forgotten_before_a_store_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
