/* Clocks: what another host has stamped happened within the time that is told, whatever its clock did. */
#include "harness/history/clocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/rand.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const int64_t ms = 1000000, s = 1000000000;

static const struct record *put(struct history *h, const struct history_stamp *at, const char *kind,
                                const char *node) {
    json_put_string(history_begin_at(h, at, SOURCE_KERNEL, kind), "node", node);
    return history_end(h);
}

static void put_clock(struct history *h, int64_t t_ns, int64_t ahead_ns, int64_t bound_ns) {
    struct json_writer *w = history_begin(h, t_ns, SOURCE_HARNESS, "clock");
    json_put_string(w, "node", "n1");
    json_put_string(w, "host", "far");
    json_put_i64(w, "ahead_ns", ahead_ns);
    json_put_i64(w, "bound_ns", bound_ns);
    json_put_i64(w, "samples", 3);
    history_end(h);
}

static void put_step(struct history *h, int64_t t_ns, int64_t was_ns, int64_t ahead_ns) {
    struct json_writer *w = history_begin(h, t_ns, SOURCE_HARNESS, "clock-step");
    json_put_string(w, "node", "n1");
    json_put_string(w, "host", "far");
    json_put_i64(w, "was_ns", was_ns);
    json_put_i64(w, "ahead_ns", ahead_ns);
    json_put_i64(w, "bound_ns", 1000);
    history_end(h);
}

static void test_a_history_of_one_clock_tells_of_none(void **state) {
    (void)state;
    struct history h = {0};
    struct clocks c;
    put(&h, &(struct history_stamp){.t_ns = s}, "worker-exit", "n1");
    clocks_load(&c, &h);
    assert_int_equal(c.n, 0);
    assert_int_equal(clocks_most_ns(&c), 0);
    assert_null(clocks_find(&c, "n1"));
    assert_int_equal(clocks_moment(&c, &h, 0, 1), s);
    assert_null(strstr(buf_str(&h.line), "bound"));
    history_fini(&h);
    clocks_fini(&c);
}

/* A clock that drifts, stamps whose bounds differ, and the truth somewhere within each of them. */
static void test_the_truth_lies_within_what_is_told_and_that_is_never_wider(void **state) {
    (void)state;
    struct rand r;
    rand_init(&r, 7);
    for (int turn = 0; turn < 300; turn++) {
        struct history h = {0};
        struct clocks c;
        int64_t truth[100], ahead = (int64_t)rand_below(&r, 20) * s - 10 * s, now = 100 * s;
        int64_t ppm = (int64_t)rand_below(&r, 199) - 99;
        for (int i = 0; i < 100; i++) {
            now += (int64_t)rand_below(&r, 100) * ms;
            truth[i] = now;
            int64_t bound = (int64_t)rand_below(&r, 10 * (uint64_t)ms) + 1;
            int64_t error = (int64_t)rand_below(&r, 2 * (uint64_t)bound + 1) - bound;
            put(&h, &(struct history_stamp){now + error, bound, now + ahead + now / 1000000 * ppm},
                "worker-exit", "n1");
        }
        clocks_load(&c, &h);
        assert_int_equal(c.n, 1);
        assert_int_equal(c.v[0].stamped, 100);
        for (size_t i = 0; i < 100; i++) {
            const struct record *one = h.records[i];
            assert_true(c.earliest_ns[i] <= truth[i] && truth[i] <= c.latest_ns[i]);
            assert_true(c.earliest_ns[i] >= one->t_ns - one->bound_ns);
            assert_true(c.latest_ns[i] <= one->t_ns + one->bound_ns);
            for (int share = 0; share <= 4 && i; share++) /* two of one host keep their order */
                assert_true(clocks_moment(&c, &h, i - 1, share / 4.0) <=
                            clocks_moment(&c, &h, i, share / 4.0) + 2);
        }
        assert_true(c.v[0].most_ns < 2 * ms); /* the best of a hundred helps all others */
        history_fini(&h);
        clocks_fini(&c);
    }
}

/* What was stamped since the clock was last asked may be of either life, and nothing else is wider. */
static void test_a_clock_that_is_set_leaves_open_only_what_was_stamped_meanwhile(void **state) {
    (void)state;
    struct history h = {0};
    struct clocks c;
    put_clock(&h, 10 * s, 7 * s, 1000);
    put(&h, &(struct history_stamp){10 * s + 1, 1000, 17 * s + 1}, "worker-exit", "n1");
    put_clock(&h, 11 * s, 7 * s, 1000);
    put(&h, &(struct history_stamp){11 * s + ms, 1000, 18 * s + ms}, "worker-exit", "n1");
    put_step(&h, 12 * s, 7 * s, 10 * s);
    put(&h, &(struct history_stamp){12 * s + 1, 1000, 22 * s + 1}, "worker-exit", "n1");
    put_clock(&h, 13 * s, 10 * s, 1000);
    clocks_load(&c, &h);
    const struct node_clock *k = clocks_find(&c, "n1");
    assert_non_null(k);
    assert_string_equal(k->host, "far");
    assert_int_equal(k->steps, 1);
    assert_int_equal(k->ahead_ns, 10 * s);
    assert_int_equal(k->stamped, 3);
    assert_in_range(k->least_ns, 1, 1001);
    assert_true(c.latest_ns[1] <= 10 * s + 1001 && c.earliest_ns[5] >= 12 * s - 999);
    assert_true(c.earliest_ns[3] <= 8 * s + ms); /* it may have been three seconds earlier .. */
    assert_true(c.latest_ns[3] >= 14 * s + ms);  /* .. or later */
    history_fini(&h);
    clocks_fini(&c);
}

/* Its clock begins anew with it: nobody has set it, and what was stamped before does not move. */
static void test_a_host_that_was_off_has_another_clock(void **state) {
    (void)state;
    struct history h = {0};
    struct clocks c;
    put_clock(&h, 9 * s, 7 * s, ms);
    put(&h, &(struct history_stamp){10 * s, ms, 17 * s, 0}, "worker-exit", "n1");
    struct json_writer *w = history_begin(&h, 15 * s, SOURCE_HARNESS, "power");
    json_put_string(w, "node", "n1");
    json_put_string(w, "host", "far");
    json_put_string(w, "do", "on");
    history_end(&h);
    put_clock(&h, 19 * s, -18 * s, ms);
    put(&h, &(struct history_stamp){20 * s, ms, 2 * s, 0}, "worker-start", "n1");
    clocks_load(&c, &h);
    assert_int_equal(clocks_find(&c, "n1")->steps, 0);
    assert_true(c.earliest_ns[1] >= 10 * s - ms && c.latest_ns[1] <= 10 * s + ms);
    assert_true(c.earliest_ns[4] >= 20 * s - ms && c.latest_ns[4] <= 20 * s + ms);
    history_fini(&h);
    clocks_fini(&c);
}

/* Who was late to stamp it may have stamped it long after it had happened; others of its host do not move
 * with it. */
static void test_what_was_stamped_late_may_have_happened_before(void **state) {
    (void)state;
    struct history h = {0};
    struct clocks c;
    put(&h, &(struct history_stamp){10 * s, ms, 17 * s, 0}, "worker-start", "n1");
    put(&h, &(struct history_stamp){11 * s - 20 * ms, 21 * ms, 18 * s, 40 * ms}, "worker-exit",
        "n1");
    put(&h, &(struct history_stamp){12 * s, ms, 19 * s, 0}, "worker-start", "n1");
    clocks_load(&c, &h);
    assert_true(c.earliest_ns[1] <= 11 * s - 40 * ms && c.latest_ns[1] >= 11 * s);
    assert_true(c.latest_ns[1] <= 11 * s + 2 * ms);
    assert_true(c.earliest_ns[0] >= 10 * s - ms && c.latest_ns[2] <= 12 * s + ms);
    assert_int_equal(record_late_ns(h.records[1]), 40 * ms);
    history_fini(&h);
    clocks_fini(&c);
}

/* Its end may have been stamped late, and yet was the fault's doing. Another's may have come before. */
static void test_whom_a_fault_has_struck_has_not_ended_before(void **state) {
    (void)state;
    struct history h = {0};
    struct clocks c;
    history_begin(&h, 9 * s, SOURCE_HARNESS, "run");
    history_end(&h);
    for (int k = 0; k < 2; k++) {
        struct json_writer *w = history_begin(&h, 10 * s + k * ms, SOURCE_HARNESS,
                                              k ? "fault-in-force" : "fault-fired");
        json_put_string(w, "id", "kill");
        json_put_i64(w, "n", 1);
        if (k) {
            json_array(w, "targets");
            json_object(w, NULL);
            json_put_i64(w, "pid", 7);
            json_end_object(w);
            json_end_array(w);
        }
        history_end(&h);
    }
    for (int pid = 7; pid < 9; pid++) {
        const struct history_stamp at = {10 * s, 20 * ms, 17 * s + pid, 0};
        struct json_writer *w = history_begin_at(&h, &at, SOURCE_KERNEL, "worker-exit");
        json_put_string(w, "node", pid == 7 ? "n1" : "n2");
        json_put_i64(w, "pid", pid);
        history_end(&h);
    }
    clocks_load(&c, &h);
    assert_int_equal(c.earliest_ns[3], 10 * s);
    assert_true(c.earliest_ns[4] < 10 * s - 19 * ms);
    assert_true(c.latest_ns[3] > 10 * s + 19 * ms);
    history_fini(&h);
    clocks_fini(&c);
}

/* What was counted when it was stamped was not so before. */
static void test_what_a_helper_has_counted_was_so_when_it_was_stamped(void **state) {
    (void)state;
    struct history h = {0};
    struct clocks c;
    put(&h, &(struct history_stamp){10 * s - 20 * ms, 21 * ms, 17 * s, 40 * ms}, "agent-exit",
        "n1");
    put(&h, &(struct history_stamp){10 * s - 18 * ms, 21 * ms, 17 * s + 2 * ms, 40 * ms},
        "leftovers", "n1");
    clocks_load(&c, &h);
    assert_true(c.earliest_ns[0] <= 10 * s - 38 * ms);
    assert_true(c.earliest_ns[1] > 10 * s - 2 * ms);
    history_fini(&h);
    clocks_fini(&c);
}

static void put_told(struct history *h, int64_t t_ns, const char *node, int pid, int step) {
    struct json_writer *w = history_begin_at(
        h, &(struct history_stamp){t_ns, 20 * ms, 7 * s + t_ns, 0}, SOURCE_JOB, "step");
    json_put_string(w, "node", node);
    json_put_i64(w, "pid", pid);
    json_put_i64(w, "step", step);
    history_end(h);
}

/* A node is struck while a worker of it is held: that one lived. */
static void check_struck_node(bool held, int step, bool has_floor) {
    struct history h = {0};
    struct clocks c;
    put_told(&h, 9 * s, "n1", 7, step);
    struct json_writer *w = history_begin(&h, 10 * s, SOURCE_HARNESS, "fault-fired");
    json_put_string(w, "id", "kill");
    json_put_i64(w, "n", 1);
    json_put_i64(w, "step", 37);
    json_put_bool(w, "held", held);
    history_end(&h);
    w = history_begin(&h, 10 * s + ms, SOURCE_HARNESS, "fault-in-force");
    json_put_string(w, "id", "kill");
    json_put_i64(w, "n", 1);
    json_array(w, "targets");
    json_object(w, NULL);
    json_put_string(w, "what", "node");
    json_put_string(w, "node", "n1");
    json_put_i64(w, "pid", 1);
    json_end_object(w);
    json_end_array(w);
    history_end(&h);
    for (int pid = 7; pid < 9; pid++) {
        const struct history_stamp at = {10 * s, 20 * ms, 17 * s + pid, 0};
        w = history_begin_at(&h, &at, SOURCE_KERNEL, "worker-exit");
        json_put_string(w, "node", "n1");
        json_put_i64(w, "pid", pid);
        history_end(&h);
    }
    clocks_load(&c, &h);
    assert_int_equal(c.earliest_ns[3] == 10 * s, has_floor);
    assert_true(c.earliest_ns[4] < 10 * s - 19 * ms || has_floor);
    history_fini(&h);
    clocks_fini(&c);
}

static void test_who_was_held_on_a_node_that_was_struck_has_not_ended_before(void **state) {
    (void)state;
    check_struck_node(true, 37, true);
    check_struck_node(false, 37, false);
    check_struck_node(true, 36, false);
}

/* Somebody else's history: nobody noticed that a clock was set. */
static void test_stamps_that_contradict_one_another_are_taken_each_for_itself(void **state) {
    (void)state;
    struct history h = {0};
    struct clocks c;
    put(&h, &(struct history_stamp){10 * s, ms, 10 * s}, "worker-exit", "n1");
    put(&h, &(struct history_stamp){11 * s, ms, 50 * s}, "worker-exit", "n1");
    put(&h, &(struct history_stamp){12 * s, ms, 12 * s}, "worker-exit", "n2");
    clocks_load(&c, &h);
    assert_int_equal(c.n, 2);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(c.earliest_ns[i], h.records[i]->t_ns - ms);
        assert_int_equal(c.latest_ns[i], h.records[i]->t_ns + ms);
    }
    assert_int_equal(clocks_most_ns(&c), 2 * ms);
    history_fini(&h);
    clocks_fini(&c);
}

static void test_a_bound_is_written_and_read_and_what_is_none_is_refused(void **state) {
    (void)state;
    static const char head[] =
        "{\"seq\":1,\"t\":0,\"source\":\"harness\",\"kind\":\"run\",\"v\":1}\n";
    static const char *const bad[] = {"-1", "9223372036854775807", "\"x\""};
    struct history h = {0}, back = {0};
    const struct record *r =
        put(&h, &(struct history_stamp){5 * s, 400, 12 * s}, "worker-exit", "n1");
    assert_int_equal(r->bound_ns, 400);
    assert_int_equal(record_there_ns(r), 12 * s);
    struct buf text = {0};
    struct json_writer w = {.out = &text};
    record_put(r, &w);
    assert_non_null(strstr(buf_str(&text), "\"t\":5000000000,\"bound\":400,"));
    assert_non_null(strstr(buf_str(&text), "\"there\":12000000000"));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char line[200];
        struct err err = {0};
        int n = snprintf(line, sizeof(line),
                         "{\"seq\":2,\"t\":1,\"bound\":%s,\"source\":\"job\",\"kind\":\"ready\"}",
                         bad[i]);
        back = (struct history){0};
        assert_int_equal(history_take(&back, head, sizeof(head) - 1, &err), 0);
        int rc = history_take(&back, line, (size_t)n, &err);
        if (i < 2)
            assert_int_equal(rc, -EBADMSG);
        else /* no number: of a claim anything may be written */
            assert_int_equal(rc == 0 ? back.records[1]->bound_ns : 0, 0);
        history_fini(&back);
    }
    buf_fini(&text);
    history_fini(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_history_of_one_clock_tells_of_none),
        cmocka_unit_test(test_the_truth_lies_within_what_is_told_and_that_is_never_wider),
        cmocka_unit_test(test_a_clock_that_is_set_leaves_open_only_what_was_stamped_meanwhile),
        cmocka_unit_test(test_a_host_that_was_off_has_another_clock),
        cmocka_unit_test(test_what_was_stamped_late_may_have_happened_before),
        cmocka_unit_test(test_whom_a_fault_has_struck_has_not_ended_before),
        cmocka_unit_test(test_what_a_helper_has_counted_was_so_when_it_was_stamped),
        cmocka_unit_test(test_who_was_held_on_a_node_that_was_struck_has_not_ended_before),
        cmocka_unit_test(test_stamps_that_contradict_one_another_are_taken_each_for_itself),
        cmocka_unit_test(test_a_bound_is_written_and_read_and_what_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
