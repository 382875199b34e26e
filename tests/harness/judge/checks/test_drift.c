/* Drift: a made-up run of many rounds, each ended by the same fault, that goes on more and more
 * slowly, or does not. */
#include "base/str.h"
#include "harness/judge/verdict.h"
#include "tests/harness/judge/checks/planted.h"

static const int64_t MS = 1000000;

static struct json_writer *put(struct history *h, int64_t t_ns, enum source s, const char *kind) {
    return history_begin(h, t_ns, s, kind);
}

static void put_worker(struct history *h, int64_t t_ns, int round) {
    struct json_writer *w = put(h, t_ns, SOURCE_PROBE, "worker-start");
    char count[12];
    snprintf(count, sizeof(count), "%d", round - 1);
    json_put_string(w, "node", "n0");
    json_put_i64(w, "pid", 100 + round);
    json_object(w, "env");
    json_put_string(w, "RANK", "0");
    json_put_string(w, "WORLD_SIZE", "1");
    json_put_string(w, "TORCHELASTIC_RESTART_COUNT", count);
    json_end_object(w);
    history_end(h);
    w = put(h, t_ns, SOURCE_JOB, "step");
    json_put_i64(w, "pid", 100 + round);
    json_put_i64(w, "step", round);
    history_end(h);
}

static void put_fault(struct history *h, int64_t t_ns, int round) {
    struct json_writer *w = put(h, t_ns, SOURCE_HARNESS, "fault-fired");
    json_put_string(w, "id", "kill");
    json_put_i64(w, "n", round);
    json_put_string(w, "fault", "worker-kill");
    history_end(h);
    w = put(h, t_ns, SOURCE_KERNEL, "worker-exit");
    json_put_i64(w, "pid", 100 + round);
    json_put_i64(w, "signal", 9);
    history_end(h);
    w = put(h, t_ns, SOURCE_HARNESS, "fault-in-force");
    json_put_string(w, "id", "kill");
    json_put_i64(w, "n", round);
    json_put_string(w, "fault", "worker-kill");
    json_put_i64(w, "t0", t_ns);
    json_array(w, "targets");
    json_object(w, NULL);
    json_put_string(w, "what", "worker");
    json_put_string(w, "name", "n0/0");
    json_put_string(w, "node", "n0");
    json_put_i64(w, "pid", 100 + round);
    json_end_object(w);
    json_end_array(w);
    history_end(h);
}

/* The n-th recovery takes first + n * more. */
static struct finding judge(int rounds, int64_t first_ns, int64_t more_ns, int64_t lag_ns) {
    struct history h;
    struct verdict v;
    struct scenario s = planted_scenario("worker-killed");
    struct trial t = {.scenario = &s, .history = &h};
    int64_t at = 1000 * MS;
    history_create(&h, NULL, NULL);
    for (int round = 1; round <= rounds; round++) {
        put_worker(&h, at, round);
        if (round < rounds)
            put_fault(&h, at + 10 * MS, round);
        at += 10 * MS + first_ns + round * more_ns;
    }
    struct json_writer *w = put(&h, at, SOURCE_HARNESS, "lag");
    json_put_i64(w, "max_ns", lag_ns);
    json_put_i64(w, "window_ns", at / 2);
    history_end(&h);
    verdict_judge(&v, &t);
    struct finding f = *verdict_find(&v, "drift");
    history_fini(&h);
    return f;
}

static void test_recovery_that_takes_longer_each_time_is_a_failure(void **state) {
    (void)state;
    struct finding f = judge(13, 100 * MS, 300 * MS, MS);
    assert_int_equal(f.status, FINDING_FAIL);
    assert_non_null(strstr(f.seen, "recovery from kill took 1300 ms at most the first 4 times and "
                                   "2800 ms at least the last 4"));
}

static void test_recovery_that_stays_as_it_was_passes(void **state) {
    (void)state;
    assert_int_equal(judge(13, 3000 * MS, 0, MS).status, FINDING_PASS);
    assert_int_equal(judge(13, 5000 * MS, 100 * MS, MS).status, FINDING_PASS);
}

static void test_it_is_not_known_where_the_harness_was_late_itself(void **state) {
    (void)state;
    assert_int_equal(judge(13, 100 * MS, 300 * MS, 900 * MS).status, FINDING_UNKNOWN);
}

static void test_a_few_times_are_no_trend(void **state) {
    (void)state;
    assert_int_equal(judge(6, 100 * MS, 3000 * MS, MS).status, FINDING_SKIP);
}

/* The thirds of twelve recoveries: the highest of the first four, the lowest of the last four, which is
 * eight times `more` above it. */
static void test_a_trend_is_one_from_its_bounds_on(void **state) {
    (void)state;
    static const struct {
        int rounds;
        int64_t first_ns, more_ns, lag_ns;
        enum finding_status is;
    } rows[] = {
        {13, 0, 200000000, 0, FINDING_FAIL},         /* 800 ms, and 1800 */
        {13, 0, 199999999, 0, FINDING_PASS},         /* a nanosecond less than a second more */
        {13, 200000000, 200000000, 0, FINDING_FAIL}, /* 1 s, and twice that */
        {13, 200000001, 200000000, 0, FINDING_PASS},
        {13, 0, 200000000, 200000000, FINDING_FAIL}, /* a fifth of what it was more */
        {13, 0, 200000000, 200000001, FINDING_UNKNOWN},
        {7, 0, 500000000, 0, FINDING_FAIL}, /* six recoveries */
        {6, 0, 500000000, 0, FINDING_SKIP},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct finding f = judge(rows[i].rounds, rows[i].first_ns, rows[i].more_ns, rows[i].lag_ns);
        if (f.status != rows[i].is)
            fail_msg("row %zu: %s, %s", i, finding_status_name(f.status), f.seen);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recovery_that_takes_longer_each_time_is_a_failure),
        cmocka_unit_test(test_recovery_that_stays_as_it_was_passes),
        cmocka_unit_test(test_it_is_not_known_where_the_harness_was_late_itself),
        cmocka_unit_test(test_a_trend_is_one_from_its_bounds_on),
        cmocka_unit_test(test_a_few_times_are_no_trend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
