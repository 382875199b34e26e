/* What the timeline fires, when, at whom, and who is held meanwhile. */
#include "tests/harness/run/stage.h"

#include <sys/eventfd.h>

static void test_step_fires_at_the_target_and_holds_its_sender(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    at_step(a, 5);
    aim_at(a, "n1", 0);
    stage_begin(s);
    start_round(s, 1, 3);
    assert_int_equal(s->observer.kinds, 1u << RANKQUAKE_STEP);
    assert_int_equal(s->observer.next_step, 5);
    assert_int_equal(say_step(s, 100, 5), 0); /* a peer is first: not its business */
    assert_int_equal(say_step(s, 101, 4), 0);
    assert_int_equal(injected_n, 0);
    assert_int_equal(say_step(s, 101, 5), 1);
    assert_int_equal(injected_n, 1);
    assert_string_equal(injected[0], "n1/0 (rank 1)");
    assert_int_equal(s->observer.released[1], 0);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    assert_int_equal(s->observer.released[1], 1);
    assert_int_equal(count_records(s, "fault-in-force", "k"), 1);
    assert_int_equal(s->observer.kinds, 0);
    stage_free(s);
}

static int lowest_free_fd(void) {
    int fd = dup(STDIN_FILENO);
    close(fd);
    return fd;
}

/* Between choosing and injecting, and until it is undone, the pidfd that was chosen stays open. */
static void test_whom_it_strikes_is_kept_open_until_that_is_over(void **state) {
    (void)state;
    const struct fault *both[] = {&kill_worker, &hang_worker};
    for (int lasts = 0; lasts < 2; lasts++) {
        struct stage *s = stage_new();
        struct timeline_entry *a = stage_add(s, "k", both[lasts]);
        at_step(a, 5);
        aim_at(a, "n1", 0);
        stage_begin(s);
        start_round(s, 1, 3);
        int before = lowest_free_fd();
        say_step(s, 101, 5);
        int pidfd = stage_acts(s)[0].bound[0].target.pidfd;
        assert_true(pidfd >= 0 && pidfd != s->observer.alive_fd);
        assert_true(lowest_free_fd() != before);
        timeline_answer(&s->engine, NULL, injected_token, NULL);
        assert_int_equal(lowest_free_fd() == before, !lasts);
        stage_end(s);
        if (lasts)
            timeline_answer(&s->engine, recovered_node, recovered_token, NULL);
        assert_int_equal(lowest_free_fd(), before);
        assert_int_equal(stage_acts(s)[0].bound[0].target.pidfd, -1);
        stage_free(s);
    }
}

static void test_evidence_is_the_exit_of_the_target_and_nothing_else(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    at_step(a, 5);
    aim_at(a, "n1", 0);
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 101, 5);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    end_worker(s, 102);
    assert_int_equal(count_records(s, "fault-evidence", "k"), 0);
    end_worker(s, 101);
    assert_int_equal(count_records(s, "fault-evidence", "k"), 1);
    stage_free(s);
}

static void test_time_in_force_is_the_death_when_it_was_seen_before_the_answer(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    at_step(a, 5);
    aim_at(a, "n1", 0);
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 101, 5);
    end_worker(s, 101);
    int64_t died = s->history.records[s->history.n - 1]->t_ns;
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    int64_t t0 = -1;
    history_each(r, &s->history) if (record_is(r, "fault-in-force")) t0 =
        json_get_i64(r->fields, "t0", -1);
    assert_true(t0 > 0 && t0 <= died);
    assert_int_equal(count_records(s, "fault-evidence", "k"), 1);
    stage_free(s);
}

static void test_after_waits_until_the_other_is_in_force(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *first = stage_add(s, "first", &kill_worker);
    at_step(first, 5);
    struct timeline_entry *second = stage_add(s, "second", &kill_node);
    second->on = (struct target_spec){
        .what = TARGET_NODES, .pick = PICK_NAMED, .node = "n2", .local_rank = -1};
    second->when.after = 0;
    stage_begin(s);
    start_round(s, 1, 3);
    assert_int_equal(killed_nodes, 0);
    say_step(s, 100, 5);
    assert_int_equal(killed_nodes, 0);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    assert_int_equal(killed_nodes, 1);
    stage_free(s);
}

static void test_round_opens_the_gate_and_earlier_steps_do_not_count(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    at_step(a, 5);
    a->when.has_round = true;
    a->when.round = 2;
    stage_begin(s);
    start_round(s, 1, 3);
    assert_int_equal(say_step(s, 100, 5), 0);
    assert_int_equal(s->observer.kinds, 0);
    start_round(s, 2, 3);
    assert_int_equal(s->observer.kinds, 1u << RANKQUAKE_STEP);
    assert_int_equal(say_step(s, 200, 5), 1);
    assert_int_equal(injected_n, 1);
    stage_free(s);
}

static void test_times_two_fires_twice_and_then_is_done(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    at_step(a, 5);
    a->times_n = 2;
    stage_begin(s);
    start_round(s, 1, 3);
    for (int i = 0; i < 3; i++) {
        say_step(s, 100, 5);
        timeline_answer(&s->engine, NULL, injected_token, NULL);
    }
    assert_int_equal(count_records(s, "fault-in-force", "k"), 2);
    stage_end(s);
    assert_int_equal(count_records(s, "fault-not-fired", "k"), 0);
    stage_free(s);
}

static void test_what_never_came_true_is_noted_as_not_fired(void **state) {
    (void)state;
    struct stage *s = stage_new();
    at_step(stage_add(s, "k", &kill_worker), 500);
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 100, 5);
    stage_end(s);
    assert_int_equal(count_records(s, "fault-not-fired", "k"), 1);
    assert_int_equal(count_records(s, "fault-fired", "k"), 0);
    stage_free(s);
}

/* All workers are to be killed, and one fails because another is gone, before its turn comes. */
static void test_who_has_ended_because_others_were_struck_is_no_target(void **state) {
    (void)state;
    struct fault kill = kill_worker;
    kill.effects = EFFECT_ENDS_WORKER;
    for (int ended = 0; ended < 2; ended++) {
        struct stage *s = stage_new();
        struct timeline_entry *a = stage_add(s, "k", &kill);
        at_step(a, 5);
        a->on = (struct target_spec){.what = TARGET_WORKERS, .pick = PICK_ALL, .local_rank = -1};
        stage_begin(s);
        start_round(s, 1, 3);
        say_step(s, 100, 5);
        struct run_entry *e = stage_acts(s);
        assert_int_equal(e->bound_n, 3);
        if (ended)
            assert_int_equal(eventfd_write(s->observer.alive_fd, 1), 0);
        timeline_answer(&s->engine, NULL, injected_token, NULL);
        timeline_answer(&s->engine, NULL, injected_token, "it has ended already");
        timeline_answer(&s->engine, NULL, injected_token, NULL);
        assert_int_equal(count_records(s, "fault-in-force", "k"), ended);
        assert_int_equal(count_records(s, "fault-failed", "k"), !ended);
        assert_int_equal(e->bound_n, ended ? 2 : 3);
        stage_free(s);
    }
}

/* The answer that comes too late changes nothing: what lasts has been undone. */
static void test_what_is_in_flight_at_the_end_is_withdrawn(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &hang_worker);
    at_step(a, 5);
    aim_at(a, "n1", 0);
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 101, 5);
    assert_int_equal(injected_n, 1);
    stage_end(s);
    assert_int_equal(count_records(s, "fault-not-fired", "k"), 1);
    assert_int_equal(recovered_n, 1);
    assert_true(s->observer.released[1] > 0);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    assert_int_equal(count_records(s, "fault-in-force", "k"), 0);
    assert_int_equal(recovered_n, 1);
    stage_free(s);
}

static void test_a_target_that_is_dead_by_then_is_no_firing(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_agent);
    a->on = (struct target_spec){.what = TARGET_AGENTS, .pick = PICK_NAMED, .node = "n1"};
    at_step(a, 5);
    stage_begin(s);
    start_round(s, 1, 3);
    s->cluster.nodes[1].agent = false;
    assert_int_not_equal(say_step(s, 100, 5), 0); /* an agent has no steps: any worker's counts */
    assert_int_equal(count_records(s, "fault-not-fired", "k"), 1);
    assert_int_equal(s->observer.released[1], 1);
    stage_free(s);
}

static void test_a_failed_injection_is_recorded_and_its_sender_released(void **state) {
    (void)state;
    struct stage *s = stage_new();
    at_step(stage_add(s, "k", &kill_worker), 5);
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 100, 5);
    timeline_answer(&s->engine, NULL, injected_token, "n0: Operation not permitted");
    assert_int_equal(count_records(s, "fault-failed", "k"), 1);
    assert_int_equal(count_records(s, "fault-in-force", "k"), 0);
    assert_int_equal(s->observer.released[1], 1);
    stage_free(s);
}

static void test_what_lasts_is_recovered_in_finally_once(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "h", &hang_worker);
    at_step(a, 5);
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 100, 5);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    assert_int_equal(recovered_n, 0);
    stage_end(s);
    stage_end(s);
    assert_int_equal(recovered_n, 1);
    assert_int_equal(count_records(s, "fault-recovered", "h"), 0);
    timeline_answer(&s->engine, recovered_node, recovered_token, NULL);
    assert_int_equal(count_records(s, "fault-recovered", "h"), 1);
    stage_free(s);
}

/* Where a fault lasts, in force by now. */
static struct stage *stage_with_hang(void) {
    struct stage *s = stage_new();
    at_step(stage_add(s, "h", &hang_worker), 5);
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 100, 5);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    return s;
}

static void test_what_a_node_could_not_undo_is_recorded(void **state) {
    (void)state;
    struct stage *s = stage_with_hang();
    timeline_heal_all(&s->engine);
    timeline_answer(&s->engine, recovered_node, recovered_token, "n0: Operation not permitted");
    assert_int_equal(count_records(s, "fault-recovered", "h"), 1);
    const struct record *r =
        history_newest(s->engine.rec.history, SOURCE_HARNESS, "fault-recovered");
    assert_string_equal(record_text(r, "error"), "n0: Operation not permitted");
    /* Answered twice, as by a node that is late: there is nothing more to say. */
    timeline_answer(&s->engine, recovered_node, recovered_token, NULL);
    timeline_heal_all(&s->engine);
    stage_end(s);
    assert_int_equal(recovered_n, 1);
    assert_int_equal(count_records(s, "fault-recovered", "h"), 1);
    stage_free(s);
}

static void test_what_a_node_never_answers_is_over_with_it(void **state) {
    (void)state;
    struct stage *s = stage_with_hang();
    timeline_heal_all(&s->engine);
    assert_int_equal(count_records(s, "fault-recovered", "h"), 0);
    struct json_writer *w = engine_record(&s->engine, SOURCE_HARNESS, "node-down");
    json_put_string(w, "node", node_plan(recovered_node)->name);
    engine_recorded(&s->engine);
    assert_int_equal(count_records(s, "fault-recovered", "h"), 1);
    assert_null(record_get(history_newest(s->engine.rec.history, SOURCE_HARNESS, "fault-recovered"),
                           "error"));
    stage_free(s);
}

static void stop_loop(void *arg, int64_t now) {
    (void)now;
    loop_stop(arg);
}

static void test_time_counts_from_steady_state(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    a->when.has_time = true;
    a->when.time_ns = 20000000;
    stage_begin(s);
    start_round(s, 1, 3);
    struct loop_source *end = loop_timer(s->engine.loop, stop_loop, s->engine.loop);
    loop_timer_at(end, clock_monotonic_ns() + 40000000);
    loop_run(s->engine.loop, NULL);
    assert_int_equal(injected_n, 0); /* not steady yet */
    int64_t steady_ns = clock_monotonic_ns();
    engine_record(&s->engine, SOURCE_HARNESS, "steady");
    engine_recorded(&s->engine);
    loop_timer_at(end, clock_monotonic_ns() + 2000000000);
    while (!injected_n && clock_monotonic_ns() < steady_ns + 30000000000) {
        struct loop_source *turn = loop_timer(s->engine.loop, stop_loop, s->engine.loop);
        loop_timer_at(turn, clock_monotonic_ns() + 5000000);
        loop_run(s->engine.loop, NULL);
        loop_source_free(turn);
    }
    assert_int_equal(injected_n, 1);
    assert_true(clock_monotonic_ns() >= steady_ns + 20000000);
    loop_source_free(end);
    stage_free(s);
}

static void test_the_same_seed_draws_the_same_target(void **state) {
    (void)state;
    char first[64] = "";
    for (int i = 0; i < 2; i++) {
        struct stage *s = stage_new();
        at_step(stage_add(s, "k", &kill_worker), 5);
        stage_begin(s);
        start_round(s, 1, 3);
        say_step(s, 100, 5);
        if (!first[0])
            str_copy(first, sizeof(first), injected[0]);
        assert_string_equal(injected[0], first);
        stage_free(s);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step_fires_at_the_target_and_holds_its_sender),
        cmocka_unit_test(test_whom_it_strikes_is_kept_open_until_that_is_over),
        cmocka_unit_test(test_evidence_is_the_exit_of_the_target_and_nothing_else),
        cmocka_unit_test(test_time_in_force_is_the_death_when_it_was_seen_before_the_answer),
        cmocka_unit_test(test_after_waits_until_the_other_is_in_force),
        cmocka_unit_test(test_round_opens_the_gate_and_earlier_steps_do_not_count),
        cmocka_unit_test(test_times_two_fires_twice_and_then_is_done),
        cmocka_unit_test(test_what_never_came_true_is_noted_as_not_fired),
        cmocka_unit_test(test_who_has_ended_because_others_were_struck_is_no_target),
        cmocka_unit_test(test_what_is_in_flight_at_the_end_is_withdrawn),
        cmocka_unit_test(test_a_target_that_is_dead_by_then_is_no_firing),
        cmocka_unit_test(test_a_failed_injection_is_recorded_and_its_sender_released),
        cmocka_unit_test(test_what_lasts_is_recovered_in_finally_once),
        cmocka_unit_test(test_what_a_node_could_not_undo_is_recorded),
        cmocka_unit_test(test_what_a_node_never_answers_is_over_with_it),
        cmocka_unit_test(test_time_counts_from_steady_state),
        cmocka_unit_test(test_the_same_seed_draws_the_same_target),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
