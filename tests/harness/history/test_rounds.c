/* Rounds: workers are grouped by what they were given, exactly by the rule of rounds.h. */
#include "harness/history/rounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

/* The history in which a test lets workers start and end; t is a clock that ticks by itself. */
struct story {
    struct history h;
    int64_t t;
};

static void start_on(struct story *s, const char *node, int pid, const char *rank,
                     const char *world, const char *port, const char *restarts) {
    struct json_writer *w = history_begin(&s->h, ++s->t, SOURCE_PROBE, "worker-start");
    json_put_string(w, "node", node);
    json_put_i64(w, "pid", pid);
    json_object(w, "env");
    if (rank)
        json_put_string(w, "RANK", rank);
    json_put_string(w, "WORLD_SIZE", world);
    json_put_string(w, "MASTER_ADDR", "n0");
    json_put_string(w, "MASTER_PORT", port);
    json_put_string(w, "TORCHELASTIC_RUN_ID", "job");
    json_put_string(w, "TORCHELASTIC_RESTART_COUNT", restarts);
    json_end_object(w);
    history_end(&s->h);
}

static void start(struct story *s, int pid, const char *rank, const char *world, const char *port,
                  const char *restarts) {
    start_on(s, "n0", pid, rank, world, port, restarts);
}

static void start_agent(struct story *s, const char *node) {
    struct json_writer *w = history_begin(&s->h, ++s->t, SOURCE_KERNEL, "agent-start");
    json_put_string(w, "node", node);
    json_put_i64(w, "pid", 1000 + s->t);
    history_end(&s->h);
}

static void say(struct story *s, enum source source, int pid, const char *kind, const char *key,
                int64_t value) {
    struct json_writer *w = history_begin(&s->h, ++s->t, source, kind);
    json_put_i64(w, "pid", pid);
    if (key)
        json_put_i64(w, key, value);
    history_end(&s->h);
}

static void test_a_round_is_complete_when_all_its_workers_have_started(void **state) {
    (void)state;
    struct story s = {0};
    struct rounds rs;
    start(&s, 10, "0", "2", "1", "0");
    rounds_load(&rs, true, &s.h);
    assert_int_equal(rs.n, 1);
    assert_false(rs.v[0]->complete);
    assert_null(rounds_last_complete(&rs));
    rounds_fini(&rs);
    start(&s, 11, "1", "2", "1", "0");
    rounds_load(&rs, true, &s.h);
    assert_int_equal(rs.n, 1);
    assert_true(rs.v[0]->complete);
    assert_int_equal(rs.v[0]->first_start_ns, 1);
    assert_int_equal(rs.v[0]->last_start_ns, 2);
    assert_int_equal(round_rank(rs.v[0], 1)->pid, 11);
    assert_null(round_rank(rs.v[0], 2));
    rounds_fini(&rs);
    history_fini(&s.h);
}

static void test_a_rank_that_starts_again_opens_the_next_round(void **state) {
    (void)state;
    struct story s = {0};
    struct rounds rs;
    start(&s, 10, "0", "1", "1", "0");
    start(&s, 20, "0", "1", "1", "0");
    rounds_load(&rs, true, &s.h);
    assert_int_equal(rs.n, 2);
    assert_int_equal(rounds_last_complete(&rs)->number, 2);
    rounds_fini(&rs);
    history_fini(&s.h);
}

static void test_each_part_of_the_identity_separates_rounds(void **state) {
    (void)state;
    static const struct {
        const char *world, *port, *restarts;
        size_t strict, lenient;
    } given[] = {
        {"3", "1", "0", 1, 1}, {"4", "1", "0", 2, 2}, {"3", "2", "0", 2, 2}, {"3", "1", "1", 2, 1}};
    for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++) {
        struct story s = {0};
        struct rounds rs;
        start(&s, 10, "0", "3", "1", "0");
        start(&s, 11, "1", given[i].world, given[i].port, given[i].restarts);
        rounds_load(&rs, true, &s.h);
        assert_int_equal(rs.n, given[i].strict);
        rounds_fini(&rs);
        rounds_load(&rs, false, &s.h);
        assert_int_equal(rs.n, given[i].lenient);
        rounds_fini(&rs);
        history_fini(&s.h);
    }
}

static void test_a_start_joins_the_newest_round_that_lacks_its_rank(void **state) {
    (void)state;
    struct story s = {0};
    struct rounds rs;
    start(&s, 10, "0", "2", "1", "0");
    start(&s, 20, "0", "2", "1", "0");
    start(&s, 99, "0", "9", "1", "0");
    start_on(&s, "n1", 21, "1", "2", "1", "0");
    start_on(&s, "n2", 11, "1", "2", "1", "0");
    rounds_load(&rs, true, &s.h);
    assert_int_equal(rs.n, 3);
    assert_int_equal(round_rank(rs.v[1], 1)->pid, 21);
    assert_int_equal(round_rank(rs.v[0], 1)->pid, 11);
    rounds_fini(&rs);
    history_fini(&s.h);
}

/* Port, count and all are the same in every round, as torchrun's are since 2.3. */
static void test_a_node_goes_to_no_round_before_its_newest(void **state) {
    (void)state;
    struct story s = {0};
    struct rounds rs;
    start_on(&s, "n0", 10, "0", "2", "1", "0"); /* n1 is lost before its worker starts */
    start_on(&s, "n0", 20, "0", "2", "1", "0");
    start_on(&s, "n1", 21, "1", "2", "1", "0");
    start_on(&s, "n1", 31, "1", "2", "1", "0"); /* the first of the third round */
    start_on(&s, "n0", 30, "0", "2", "1", "0");
    for (int strict = 0; strict < 2; strict++) {
        rounds_load(&rs, strict, &s.h);
        assert_int_equal(rs.n, 3);
        assert_false(rs.v[0]->complete);
        assert_int_equal(round_rank(rs.v[2], 1)->pid, 31);
        assert_int_equal(round_rank(rs.v[2], 0)->pid, 30);
        rounds_fini(&rs);
    }
    history_fini(&s.h);
}

static void test_an_agent_has_no_part_in_what_was_before_it(void **state) {
    (void)state;
    static const struct {
        bool alone; /* nobody of its node was in the first round */
        int strict, lenient;
    } rows[] = {{false, 2, 2}, {true, 1, 2}};
    for (size_t i = 0; i < 2; i++) {
        struct story s = {0};
        struct rounds rs;
        start_agent(&s, "n0");
        start_agent(&s, "n1");
        start_on(&s, "n0", 10, "0", "3", "1", "0");
        if (!rows[i].alone)
            start_on(&s, "n1", 11, "1", "3", "1", "0");
        start_agent(&s, "n1");
        start_on(&s, "n1", 22, "2", "3", "1", "0");
        rounds_load(&rs, true, &s.h);
        assert_int_equal(rs.n, rows[i].strict);
        rounds_fini(&rs);
        rounds_load(&rs, false, &s.h);
        assert_int_equal(rs.n, rows[i].lenient);
        rounds_fini(&rs);
        history_fini(&s.h);
    }
}

/* Who tells of an agent's start may be slower than the agent's first worker. */
static void test_an_agent_began_when_its_stamp_says_so(void **state) {
    (void)state;
    static const struct {
        int64_t agent_ns;
        size_t rounds;
    } rows[] = {{9, 1}, {11, 2}};
    for (size_t i = 0; i < 2; i++) {
        struct story s = {.t = 9};
        struct rounds rs;
        start(&s, 11, "1", "2", "1", "0");
        s.t = rows[i].agent_ns - 1;
        start_agent(&s, "n0");
        s.t = 19;
        start(&s, 10, "0", "2", "1", "0");
        rounds_load(&rs, true, &s.h);
        assert_int_equal(rs.n, rows[i].rounds);
        assert_int_equal(rs.v[0]->complete, rows[i].rounds == 1);
        rounds_fini(&rs);
        history_fini(&s.h);
    }
}

/* n2 is new, and no round that was left before it came is waiting for it. */
static void test_a_new_node_fills_no_round_that_others_have_left(void **state) {
    (void)state;
    struct story s = {0};
    struct rounds rs;
    start_agent(&s, "n0");
    start_on(&s, "n0", 10, "0", "2", "1", "0");
    start_on(&s, "n0", 20, "0", "2", "1", "0");
    start_on(&s, "n1", 21, "1", "2", "1", "0");
    start_agent(&s, "n2");
    start_on(&s, "n2", 31, "1", "2", "1", "0");
    rounds_load(&rs, true, &s.h);
    assert_int_equal(rounds_worker(&rs, 31)->round, 3);
    rounds_fini(&rs);
    history_fini(&s.h);
}

static void test_events_and_ends_belong_to_the_worker_with_that_pid(void **state) {
    (void)state;
    struct story s = {0};
    struct rounds rs;
    start(&s, 10, "0", "1", "1", "0");
    say(&s, SOURCE_PROBE, 10, "worker-exec", NULL, 0);
    say(&s, SOURCE_JOB, 10, "ready", NULL, 0);
    say(&s, SOURCE_JOB, 10, "resume", "step", 40);
    say(&s, SOURCE_JOB, 10, "step", "step", 41);
    say(&s, SOURCE_JOB, 10, "step", "step", 42);
    say(&s, SOURCE_JOB, 10, "step", "lost", 3);
    say(&s, SOURCE_JOB, 77, "step", "step", 99);
    say(&s, SOURCE_KERNEL, 10, "worker-exit", "signal", 9);
    say(&s, SOURCE_KERNEL, 10, "worker-exit", "code", 1);
    rounds_load(&rs, true, &s.h);
    const struct worker *w = rounds_worker(&rs, 10);
    assert_int_equal(w->exec_ns, 2);
    assert_int_equal(w->ready_ns, 3);
    assert_int_equal(w->resume_step, 40);
    assert_int_equal(w->first_step_ns, 5);
    assert_int_equal(w->last_step_ns, 7);
    assert_int_equal(w->last_step, 42);
    assert_int_equal(w->lost_events, 3);
    assert_int_equal(w->exit_ns, 9);
    assert_true(w->exit_known);
    assert_int_equal(w->exit_signal, 9);
    assert_int_equal(w->exit_code, 0);
    assert_null(rounds_worker(&rs, 77));
    rounds_fini(&rs);
    history_fini(&s.h);
}

static void test_a_pid_that_comes_again_means_the_newest_worker(void **state) {
    (void)state;
    struct story s = {0};
    struct rounds rs;
    start(&s, 10, "0", "1", "1", "0");
    say(&s, SOURCE_KERNEL, 10, "worker-exit", "unknown", 1);
    start(&s, 10, "0", "1", "2", "1");
    rounds_load(&rs, true, &s.h);
    assert_int_equal(rounds_worker(&rs, 10)->round, 2);
    assert_int_equal(rs.v[0]->workers[0]->exit_ns, 2);
    assert_false(rs.v[0]->workers[0]->exit_known);
    assert_int_equal(rs.v[1]->workers[0]->exit_ns, 0);
    rounds_fini(&rs);
    history_fini(&s.h);
}

static void test_who_had_a_pid_is_asked_of_a_moment(void **state) {
    (void)state;
    struct story s = {0};
    struct rounds rs;
    assert_null(rounds_worker_at(&(struct rounds){0}, 10, 1));
    start(&s, 10, "0", "1", "1", "0"); /* at 1 */
    start(&s, 11, "0", "1", "2", "0"); /* at 2 */
    start(&s, 10, "0", "1", "3", "0"); /* at 3 */
    start(&s, 10, "0", "1", "4", "0"); /* at 4 */
    rounds_load(&rs, true, &s.h);
    static const int rounds[] = {1, 1, 1, 3, 4, 4};
    for (int64_t t = 0; t < 6; t++)
        assert_int_equal(rounds_worker_at(&rs, 10, t)->round, rounds[t]);
    assert_int_equal(rounds_worker_at(&rs, 11, 1)->round, 2);
    assert_null(rounds_worker_at(&rs, 12, 9));
    for (size_t i = 0; i < rs.workers_n; i++)
        assert_int_equal(rs.workers[i]->index, i);
    rounds_fini(&rs);
    history_fini(&s.h);
}

/* In many rounds pids come again; each is found, and the newest of it. */
static void test_of_a_thousand_workers_each_is_found_by_its_pid(void **state) {
    (void)state;
    struct story s = {0};
    struct rounds rs;
    assert_null(rounds_worker(&(struct rounds){0}, 10));
    for (int i = 0; i < 1000; i++) {
        char port[16];
        snprintf(port, sizeof(port), "%d", i);
        start(&s, 1 + i % 600 * 4096, "0", "1", port, "0");
    }
    rounds_load(&rs, true, &s.h);
    assert_int_equal(rs.workers_n, 1000);
    for (int i = 400; i < 1000; i++)
        assert_ptr_equal(rounds_worker(&rs, 1 + i % 600 * 4096), rs.workers[i]);
    assert_null(rounds_worker(&rs, 2));
    rounds_fini(&rs);
    history_fini(&s.h);
}

static void test_a_worker_without_numbers_is_kept_with_none(void **state) {
    (void)state;
    struct story s = {0};
    struct rounds rs;
    start(&s, 10, NULL, "two", "1", "-1");
    rounds_load(&rs, true, &s.h);
    const struct worker *w = rs.workers[0];
    assert_int_equal(w->rank, -1);
    assert_int_equal(w->world_size, -1);
    assert_int_equal(w->restart_count, -1);
    assert_string_equal(w->role, "");
    assert_false(rs.v[0]->complete);
    rounds_fini(&rs);
    history_fini(&s.h);
}

static void test_a_round_that_outlives_the_next_is_named(void **state) {
    (void)state;
    struct story s = {0};
    struct rounds rs;
    start(&s, 10, "0", "1", "1", "0");
    start(&s, 20, "0", "1", "2", "1");
    say(&s, SOURCE_KERNEL, 10, "worker-exit", "code", 1);
    start(&s, 30, "0", "1", "3", "2");
    rounds_load(&rs, true, &s.h);
    assert_int_equal(round_outlives(rs.v[0], rs.v[1])->pid, 10);
    assert_null(round_outlives(rs.v[0], rs.v[2]));
    assert_int_equal(round_outlives(rs.v[1], rs.v[2])->pid, 20);
    rounds_fini(&rs);
    history_fini(&s.h);
}

/* The rule of rounds.h word by word: the newest round of that port that lacks the rank, if neither
 * node nor agent shows that it is over. */
static int expected_round(const struct rounds *rs, int rank, const char *port, const char *node,
                          int64_t agent_ns) {
    bool in_newer = false, newer_before_agent = false;
    for (size_t i = rs->n; i-- > 0;) {
        const struct round *r = rs->v[i];
        bool in_it = false, by_former = false;
        if (strcmp(r->workers[0]->master_port, port) != 0)
            continue;
        for (size_t k = 0; k < r->n; k++)
            if (strcmp(r->workers[k]->node, node) == 0) {
                in_it = true;
                by_former = r->workers[k]->start_ns < agent_ns;
            }
        if (!round_rank(r, rank)) {
            bool over = in_newer || by_former || newer_before_agent ||
                        (!rs->strict && r->first_start_ns < agent_ns);
            return over ? (int)rs->n + 1 : r->number;
        }
        in_newer |= in_it;
        newer_before_agent |= r->first_start_ns < agent_ns;
    }
    return (int)rs->n + 1;
}

/* A rank that the worker with that pid has started, or one of its own below another. */
static void start_below(struct story *s, int pid, const char *rank, const char *world,
                        const char *restarts, int below) {
    struct json_writer *w = history_begin(&s->h, ++s->t, SOURCE_PROBE, "worker-start");
    json_put_string(w, "node", "n0");
    json_put_i64(w, "pid", pid);
    json_object(w, "env");
    json_put_string(w, "RANK", rank);
    json_put_string(w, "LOCAL_RANK", "0");
    json_put_string(w, "LOCAL_WORLD_SIZE", "1");
    json_put_string(w, "WORLD_SIZE", world);
    json_put_string(w, "MASTER_PORT", "29500");
    json_put_string(w, "TORCHELASTIC_RESTART_COUNT", restarts);
    json_end_object(w);
    json_put_i64(w, "below", below);
    history_end(&s->h);
}

static void test_who_starts_ranks_is_their_host_and_in_no_round(void **state) {
    (void)state;
    struct story s = {0};
    struct rounds rs;
    start_below(&s, 10, "0", "1", "0", 0);
    start_below(&s, 21, "1", "2", "0", 10);
    start_below(&s, 20, "0", "2", "0", 10);
    say(&s, SOURCE_JOB, 20, "step", "step", 1);
    say(&s, SOURCE_KERNEL, 20, "worker-exit", "signal", 9);
    start_below(&s, 11, "0", "1", "1", 0); /* the launcher starts it again */
    start_below(&s, 30, "0", "2", "1", 11);
    start_below(&s, 31, "1", "2", "1", 11);
    rounds_load(&rs, true, &s.h);
    assert_int_equal(rs.n, 2);
    assert_int_equal(rs.workers_n, 4);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rs.v[i]->number, i + 1);
        assert_true(rs.v[i]->complete);
        assert_int_equal(rs.v[i]->world_size, 2);
        assert_int_equal(round_rank(rs.v[i], 0)->round, i + 1);
        assert_true(round_rank(rs.v[i], 0)->spawned);
    }
    for (size_t i = 0; i < rs.workers_n; i++)
        assert_int_equal(rs.workers[i]->index, i);
    assert_int_equal(rounds_worker(&rs, 20)->exit_signal, 9);
    assert_null(rounds_worker(&rs, 10));
    assert_null(rounds_worker_at(&rs, 11, s.t));
    /* what its host has, too, says nothing of a rank's place on the node */
    assert_int_equal(round_rank(rs.v[0], 1)->local_rank + round_rank(rs.v[0], 0)->local_rank, 1);
    rounds_fini(&rs);
    history_fini(&s.h);
}

static void test_of_two_hosts_the_round_goes_with_the_second(void **state) {
    (void)state;
    struct story s = {0};
    struct rounds rs;
    start(&s, 10, "0", "2", "1", "0");
    start(&s, 11, "1", "2", "1", "0");
    start_below(&s, 20, "0", "4", "0", 10);
    rounds_load(&rs, true, &s.h);
    assert_int_equal(rs.n, 2);
    assert_false(rs.v[0]->complete);
    rounds_fini(&rs);
    start_below(&s, 21, "1", "4", "0", 10);
    start_below(&s, 22, "2", "4", "0", 11);
    start_below(&s, 23, "3", "4", "0", 11);
    rounds_load(&rs, true, &s.h);
    assert_int_equal(rs.n, 1);
    assert_true(rs.v[0]->complete);
    for (int rank = 0; rank < 4; rank++)
        assert_int_equal(round_rank(rs.v[0], rank)->round, 1);
    rounds_fini(&rs);
    history_fini(&s.h);
}

static void test_who_trains_itself_hosts_nobody(void **state) {
    (void)state;
    struct story s = {0};
    struct rounds rs;
    start(&s, 10, "0", "1", "1", "0");
    rounds_load(&rs, true, &s.h);
    assert_true(rounds_may_host(&rs, 10));
    assert_true(rounds_hosts(&rs, 10, 0, 2));
    assert_false(rounds_hosts(&rs, 10, 0, 1)); /* the same place: it speaks for it */
    assert_false(rounds_may_host(&rs, 11));
    rounds_fini(&rs);
    say(&s, SOURCE_JOB, 10, "step", "step", 1);
    rounds_load(&rs, true, &s.h);
    assert_false(rounds_may_host(&rs, 10));
    rounds_fini(&rs);
    history_fini(&s.h);
}

static unsigned throw(unsigned *dice, unsigned sides) {
    *dice = *dice * 1103515245 + 12345;
    return (*dice >> 16) % sides;
}

static void group_any_order(bool strict, unsigned agents_in) {
    static const char *const ranks[] = {"0", "1", "2", "3", "4"};
    static const char *const ports[] = {"1", "2", "3"};
    static const char *const nodes[] = {"n0", "n1", "n2", "n3", "n4", "n5"};
    int64_t agent_ns[6] = {0};
    struct story s = {0};
    struct rounds rs;
    unsigned dice = 1;
    rounds_init(&rs, strict);
    for (int pid = 1; pid <= 3000; pid++) {
        unsigned rank = throw(&dice, 5), port = throw(&dice, 3), node = throw(&dice, 6);
        if (agents_in && throw(&dice, agents_in) == 0) {
            start_agent(&s, nodes[node]);
            agent_ns[node] = s.t;
            rounds_feed(&rs, s.h.records[s.h.n - 1]);
        }
        int expected = expected_round(&rs, (int)rank, ports[port], nodes[node], agent_ns[node]);
        start_on(&s, nodes[node], pid, ranks[rank], "5", ports[port], "0");
        rounds_feed(&rs, s.h.records[s.h.n - 1]);
        assert_int_equal(rounds_worker(&rs, pid)->round, expected);
    }
    assert_true(rs.n > 200);
    rounds_fini(&rs);
    history_fini(&s.h);
}

static void test_any_order_of_starts_is_grouped_by_the_rule(void **state) {
    (void)state;
    for (int strict = 0; strict < 2; strict++) {
        group_any_order(strict, 0);
        group_any_order(strict, 20);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order_of_starts_is_grouped_by_the_rule),
        cmocka_unit_test(test_a_round_is_complete_when_all_its_workers_have_started),
        cmocka_unit_test(test_a_rank_that_starts_again_opens_the_next_round),
        cmocka_unit_test(test_each_part_of_the_identity_separates_rounds),
        cmocka_unit_test(test_a_start_joins_the_newest_round_that_lacks_its_rank),
        cmocka_unit_test(test_a_node_goes_to_no_round_before_its_newest),
        cmocka_unit_test(test_an_agent_has_no_part_in_what_was_before_it),
        cmocka_unit_test(test_an_agent_began_when_its_stamp_says_so),
        cmocka_unit_test(test_a_new_node_fills_no_round_that_others_have_left),
        cmocka_unit_test(test_events_and_ends_belong_to_the_worker_with_that_pid),
        cmocka_unit_test(test_a_pid_that_comes_again_means_the_newest_worker),
        cmocka_unit_test(test_who_had_a_pid_is_asked_of_a_moment),
        cmocka_unit_test(test_of_a_thousand_workers_each_is_found_by_its_pid),
        cmocka_unit_test(test_a_worker_without_numbers_is_kept_with_none),
        cmocka_unit_test(test_a_round_that_outlives_the_next_is_named),
        cmocka_unit_test(test_who_starts_ranks_is_their_host_and_in_no_round),
        cmocka_unit_test(test_of_two_hosts_the_round_goes_with_the_second),
        cmocka_unit_test(test_who_trains_itself_hosts_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
