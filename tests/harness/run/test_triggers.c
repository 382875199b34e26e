/* Rounds and phases as triggers, and what counts as evidence that a fault was felt. */
#include "harness/run/timeline.h"
#include "tests/harness/run/stage.h"

static void test_each_round_fires_anew_in_every_round(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    at_step(a, 5);
    a->times = TIMES_EACH_ROUND;
    stage_begin(s);
    for (int round = 1; round <= 3; round++) {
        start_round(s, round, 3);
        assert_int_equal(say_step(s, 100 * round, 5), 1);
        timeline_answer(&s->engine, NULL, injected_token, NULL);
        assert_int_equal(say_step(s, 100 * round + 1, 5), 0); /* once is enough */
    }
    stage_end(s);
    assert_int_equal(count_records(s, "fault-in-force", "k"), 3);
    assert_int_equal(count_records(s, "fault-not-fired", "k"), 0);
    stage_free(s);
}

static void test_a_round_that_begins_before_the_fault_is_known_to_be_in_force_counts(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    at_step(a, 5);
    a->times = TIMES_EACH_ROUND;
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 100, 5);
    start_round(s, 2, 3);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    assert_int_equal(say_step(s, 200, 5), 1);
    assert_int_equal(injected_n, 2);
    stage_free(s);
}

static void test_each_round_that_never_came_is_noted(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    at_step(a, 500);
    a->times = TIMES_EACH_ROUND;
    stage_begin(s);
    start_round(s, 1, 3);
    stage_end(s);
    assert_int_equal(count_records(s, "fault-not-fired", "k"), 1);
    stage_free(s);
}

static void test_a_phase_of_a_round_is_the_target_agents_own(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_node);
    in_phase(a, "ack", 2);
    aim_at_node(a, "n1");
    stage_begin(s);
    assert_int_equal(say_claim(s, "n1", "ack"), 0); /* of round 1 */
    start_round(s, 1, 3);
    assert_int_equal(s->observer.kinds, 1u << RANKQUAKE_LAUNCHER);
    assert_int_equal(say_claim(s, "n1", "stop"), 0);
    assert_int_equal(say_claim(s, "n0", "ack"), 0);
    assert_int_equal(killed_nodes, 0);
    assert_int_equal(say_claim(s, "n1", "ack"), 1);
    assert_int_equal(killed_nodes, 1);
    stage_free(s);
}

static bool ask_store(struct stage *s, const char *node, enum store_operation what, uint64_t id) {
    const struct store_request r = {.from = cluster_node(&s->cluster, node),
                                    .to = cluster_node(&s->cluster, "n0"),
                                    .operation = what,
                                    .waits = id};
    return timeline_asked(&s->engine, &r);
}

static void test_the_nth_request_of_its_kind_by_the_target_waits_for_the_fault(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    a->when.store = "txn";
    a->when.operation = STORE_TXN;
    a->when.nth = 2;
    a->when.hold = true;
    aim_at(a, "n1", 0);
    stage_begin(s);
    start_round(s, 1, 3);
    requests_passed_n = 0;
    assert_int_equal(requests_told, 1U << STORE_TXN);
    assert_int_equal(requests_held, 1U << STORE_TXN);
    assert_false(ask_store(s, "n1", STORE_TXN, 1));
    assert_false(ask_store(s, "n1", STORE_PUT, 2)); /* something else */
    assert_false(ask_store(s, "n2", STORE_TXN, 3)); /* somebody else */
    assert_int_equal(count_records(s, "fault-fired", "k"), 0);
    assert_true(ask_store(s, "n1", STORE_TXN, 4));
    assert_int_equal(count_records(s, "store-request", "k"), 1);
    assert_int_equal(count_records(s, "fault-fired", "k"), 1);
    assert_false(ask_store(s, "n1", STORE_TXN, 5));
    assert_int_equal(requests_passed_n, 0);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    assert_int_equal(requests_passed_n, 1);
    assert_int_equal(requests_passed[0], 4);
    assert_int_equal(requests_told, 0);
    stage_free(s);
}

/* The first is in force at once, the second when its node has answered. */
static struct stage *two_at_once(const char *word) {
    struct stage *s = stage_new();
    const struct fault *both[] = {&cut, &kill_worker};
    for (int i = 0; i < 2; i++) {
        struct timeline_entry *a = stage_add(s, i ? "late" : "early", both[i]);
        a->when = (struct trigger){.after = -1, .hold = true, .nth = 1};
        a->when.store = str_eq(word, "store") ? "txn" : NULL;
        a->when.operation = STORE_TXN;
        a->when.syscall = str_eq(word, "syscall") ? "fsync" : NULL;
        a->when.syscall_number = 74;
        aim_at(a, "n1", i ? 0 : -1);
        a->on.what = i ? TARGET_WORKERS : TARGET_NODES;
        if (str_eq(word, "step"))
            at_step(a, 5);
    }
    stage_begin(s);
    start_round(s, 1, 3);
    requests_passed_n = calls_passed_n = 0;
    return s;
}

static void assert_both_hold(struct stage *s) {
    assert_int_equal(count_records(s, "fault-in-force", "early"), 1);
    assert_int_equal(count_records(s, "fault-in-force", "late"), 0);
    history_each(r, &s->history)
        assert_true(!record_is(r, "fault-fired") || json_get_bool(r->fields, "held", false));
}

static void test_a_request_that_two_wait_for_goes_on_when_both_are_in_force(void **state) {
    (void)state;
    struct stage *s = two_at_once("store");
    assert_true(ask_store(s, "n1", STORE_TXN, 7));
    assert_both_hold(s);
    assert_int_equal(requests_passed_n, 0);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    assert_int_equal(count_records(s, "fault-in-force", "late"), 1);
    assert_int_equal(requests_passed_n, 1);
    assert_int_equal(requests_passed[0], 7);
    assert_false(ask_store(s, "n1", STORE_TXN, 8));
    stage_free(s);
}

static void test_a_system_call_that_two_wait_for_goes_on_when_both_are_in_force(void **state) {
    (void)state;
    struct stage *s = two_at_once("syscall");
    const struct watched_call c = {.id = 9, .pid = 101, .thread = 101, .nr = 74};
    assert_true(timeline_called(&s->engine, cluster_node(&s->cluster, "n1"), &c));
    assert_both_hold(s);
    assert_int_equal(calls_passed_n, 0);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    assert_int_equal(calls_passed_n, 1);
    assert_int_equal(calls_passed[0], 9);
    assert_false(timeline_called(&s->engine, cluster_node(&s->cluster, "n1"), &c));
    stage_free(s);
}

/* Other hosts hold what is waited for, and nothing any more that has come. */
static void test_other_hosts_are_told_which_calls_are_waited_for(void **state) {
    (void)state;
    struct stage *s = stage_new();
    static const char *const files[] = {"ckpt/*.pt", "{shared}/**", NULL};
    for (int i = 0; i < 3; i++) {
        struct timeline_entry *a = stage_add(s, i ? "b" : "a", &kill_worker);
        a->when = (struct trigger){.after = -1, .hold = true, .nth = 1, .file = files[i]};
        a->when.op = FILE_OP_RENAME;
        a->when.syscall = i == 2 ? "fsync" : NULL;
        a->when.syscall_number = 74;
        aim_at(a, "n1", 0);
    }
    stage_begin(s);
    start_round(s, 1, 3);
    assert_int_equal(calls_wanted_n, 3);
    assert_int_equal(calls_wanted[0].kind, CALL_RENAME);
    assert_int_equal(calls_wanted[0].number, -1);
    assert_string_equal(calls_wanted[0].like, "*.pt");
    assert_string_equal(calls_wanted[1].like, "*");
    assert_int_equal(calls_wanted[2].number, 74);
    const struct watched_call c = {.id = 9, .pid = 101, .thread = 101, .nr = 74};
    assert_true(timeline_called(&s->engine, cluster_node(&s->cluster, "n1"), &c));
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    assert_int_equal(calls_wanted_n, 2);
    stage_free(s);
}

/* Twice a worker of n1 is to be killed when it is about to call. */
static struct stage *twice_at_a_call(void) {
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    a->when = (struct trigger){
        .after = -1, .hold = true, .nth = 1, .syscall = "fsync", .syscall_number = 74};
    a->times_n = 2;
    aim_at(a, "n1", 0);
    stage_begin(s);
    start_round(s, 1, 3);
    calls_passed_n = 0;
    return s;
}

/* The worker that follows a killed one calls before its node has said that the first is. */
static void test_a_call_that_comes_too_early_is_heard_when_its_entry_looks_again(void **state) {
    (void)state;
    struct stage *s = twice_at_a_call();
    struct node *n1 = cluster_node(&s->cluster, "n1");
    const struct watched_call first = {.id = 9, .pid = 101, .thread = 101, .nr = 74};
    const struct watched_call next = {.id = 10, .pid = 201, .thread = 201, .nr = 74};
    assert_true(timeline_called(&s->engine, n1, &first));
    end_worker(s, 101);
    start_round(s, 2, 3);
    assert_true(timeline_called(&s->engine, n1, &next));
    assert_int_equal(count_records(s, "fault-fired", "k"), 1);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    assert_int_equal(count_records(s, "fault-fired", "k"), 2);
    assert_int_equal(calls_passed_n, 1);
    assert_int_equal(calls_passed[0], 9);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    assert_int_equal(count_records(s, "fault-in-force", "k"), 2);
    assert_int_equal(calls_passed_n, 2);
    assert_int_equal(calls_passed[1], 10);
    stage_free(s);
}

/* Nobody hears it any more when the job has ended by then. */
static void test_a_call_that_comes_too_early_goes_on_at_the_end(void **state) {
    (void)state;
    struct stage *s = twice_at_a_call();
    struct node *n1 = cluster_node(&s->cluster, "n1");
    assert_true(timeline_called(
        &s->engine, n1, &(struct watched_call){.id = 9, .pid = 101, .thread = 101, .nr = 74}));
    start_round(s, 2, 3);
    assert_true(timeline_called(
        &s->engine, n1, &(struct watched_call){.id = 10, .pid = 201, .thread = 201, .nr = 74}));
    stage_end(s);
    assert_int_equal(calls_passed_n, 2);
    stage_free(s);
}

static void test_a_step_that_two_wait_for_is_kept_by_both(void **state) {
    (void)state;
    struct stage *s = two_at_once("step");
    assert_int_equal(say_step(s, 101, 5), 2); /* the second; the first has let it go already */
    assert_both_hold(s);
    assert_int_equal(s->observer.released[1], 1);
    assert_int_equal(s->observer.released[2], 0);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    assert_int_equal(s->observer.released[2], 1);
    stage_free(s);
}

static void test_a_request_that_is_not_held_is_only_told(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    a->when.store = "watch";
    a->when.operation = STORE_WATCH;
    a->when.nth = 9;
    a->when.hold = false;
    aim_at(a, "n1", 0);
    stage_begin(s);
    start_round(s, 1, 3);
    assert_int_equal(requests_told, 1U << STORE_WATCH);
    assert_int_equal(requests_held, 0);
    assert_false(ask_store(s, "n1", STORE_WATCH, 0));
    stage_end(s);
    assert_int_equal(count_records(s, "fault-not-fired", "k"), 1);
    stage_free(s);
}

static struct timeline_entry *add_patient(struct stage *s, const char *id, const char *node) {
    struct timeline_entry *a = stage_add(s, id, &kill_worker);
    a->when.round = 1;
    a->when.has_round = true;
    a->when.patient = true;
    aim_at(a, node, 0);
    return a;
}

static void test_who_is_patient_waits_for_a_target_that_is_not_there(void **state) {
    (void)state;
    struct stage *s = stage_new();
    add_patient(s, "k", "n2");
    stage_begin(s);
    start_round(s, 1, 2); /* n0 and n1 */
    assert_int_equal(injected_n, 0);
    assert_int_equal(count_records(s, "fault-not-fired", "k"), 0);
    start_round(s, 2, 3);
    assert_int_equal(injected_n, 1);
    stage_free(s);
}

static void test_who_is_patient_does_not_hit_a_round_that_breaks_up(void **state) {
    (void)state;
    struct stage *s = stage_new();
    add_patient(s, "first", "n0");
    add_patient(s, "second", "n1"); /* its moment comes while the first is being done */
    stage_begin(s);
    start_round(s, 1, 3);
    assert_int_equal(injected_n, 1);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    for (int pid = 100; pid < 103; pid++)
        end_worker(s, pid);
    assert_int_equal(injected_n, 1);
    start_round(s, 2, 3);
    assert_int_equal(injected_n, 2);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    stage_end(s);
    assert_int_equal(count_records(s, "fault-not-fired", "second"), 0);
    stage_free(s);
}

static void test_a_target_that_never_came_is_told(void **state) {
    (void)state;
    struct stage *s = stage_new();
    add_patient(s, "k", "n2");
    stage_begin(s);
    start_round(s, 1, 2);
    stage_end(s);
    assert_int_equal(count_records(s, "fault-not-fired", "k"), 1);
    stage_free(s);
}

static void test_join_of_the_first_round_needs_no_worker(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_node);
    in_phase(a, "join", 0);
    a->when.nth = 2;
    stage_begin(s);
    aim_at_node(a, "n2");
    s->cluster.nodes[2].on = false; /* what is off says nothing: anybody's will do */
    assert_int_equal(say_claim(s, "n0", "join"), 0);
    assert_int_equal(say_claim(s, "n1", "join"), 1);
    stage_free(s);
}

static void test_start_is_before_the_worker_of_that_round_runs(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    in_phase(a, "start", 2);
    a->on = (struct target_spec){.what = TARGET_WORKERS, .pick = PICK_RANK, .rank = 1};
    stage_begin(s);
    start_round(s, 1, 3);
    assert_int_equal(injected_n, 0);
    assert_int_equal(s->observer.kinds, 1u << RANKQUAKE_WORKER_START);
    for (int rank = 0; rank < 3; rank++)
        end_worker(s, 100 + rank);
    start_round(s, 2, 3);
    assert_int_equal(injected_n, 1);
    assert_int_equal(stage_acts(s)[0].bound[0].target.pid, 201);
    stage_free(s);
}

static void test_a_cut_is_felt_when_frames_were_dropped_both_ways_since(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "c", &cut);
    at_step(a, 5);
    aim_at_node(a, "n2");
    counts_asked = 0;
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 102, 5);
    assert_int_equal(count_records(s, "fault-in-force", "c"), 1);
    assert_int_equal(counts_asked, 2); /* before it was in force, and once it was */
    say_dropped(s, "n0", "n2", 7);
    say_dropped(s, "n1", "n2", 0);
    say_dropped(s, "n2", "n0", 3);
    stage_end(s);
    assert_int_equal(counts_asked, 3);
    say_dropped(s, "n0", "n2", 7); /* of an earlier cut */
    say_dropped(s, "n2", "n0", 9);
    assert_int_equal(count_records(s, "fault-evidence", "c"), 0);
    say_dropped(s, "n1", "n2", 1);
    assert_int_equal(count_records(s, "fault-evidence", "c"), 1);
    stage_free(s);
}

/* n2 asks, the others answer: once its questions are dropped there is nothing to answer. Three
 * counts: before the cut was in force, once it was, and when it is over. */
static void test_a_cut_is_felt_where_one_side_has_nothing_to_say(void **state) {
    static const struct {
        int asked, answered[3];
        bool felt;
    } rows[] = {{5, {40, 44, 44}, true},  /* answers were on their way before it was in force */
                {5, {40, 44, 45}, false}, /* one has come through */
                {0, {40, 40, 40}, false}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct stage *s = stage_new();
        struct timeline_entry *a = stage_add(s, "c", &cut);
        at_step(a, 5);
        aim_at_node(a, "n2");
        stage_begin(s);
        start_round(s, 1, 3);
        say_step(s, 102, 5);
        for (int count = 0; count < 3; count++) {
            int asked = count == 2 ? rows[i].asked : 0;
            say_frames(s, "n2", "n0", asked, 10);
            say_frames(s, "n0", "n2", 0, rows[i].answered[count]);
            say_frames(s, "n1", "n2", 0, 7);
            assert_int_equal(count_records(s, "fault-evidence", "c"), count == 2 && rows[i].felt);
        }
        stage_free(s);
    }
}

/* Cut off from all that ask it, a store has nothing to say; a node has. */
static void test_a_cut_from_the_store_is_felt_when_the_questions_were_dropped(void **state) {
    (void)state;
    for (int store = 1; store >= 0; store--) {
        struct stage *s = stage_new();
        struct timeline_entry *a = stage_add(s, "c", &cut);
        s->cluster.nodes[2].plan.is_store = store;
        at_step(a, 5);
        aim_at_node(a, "n0");
        stage_begin(s);
        start_round(s, 1, 3);
        say_step(s, 100, 5);
        say_dropped(s, "n0", "n2", 0);
        say_dropped(s, "n2", "n0", 0);
        stage_end(s);
        say_dropped(s, "n2", "n0", 0);
        assert_int_equal(count_records(s, "fault-evidence", "c"), 0);
        say_dropped(s, "n0", "n2", 4);
        assert_int_equal(count_records(s, "fault-evidence", "c"), store);
        stage_free(s);
    }
}

/* That it speaks does not show that those who ask it are cut off. */
static void test_what_a_store_says_is_no_evidence_that_it_was_asked(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "c", &cut);
    s->cluster.nodes[2].plan.is_store = true;
    at_step(a, 5);
    aim_at_node(a, "n0");
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 100, 5);
    say_dropped(s, "n0", "n2", 0);
    say_dropped(s, "n2", "n0", 0);
    stage_end(s);
    say_dropped(s, "n2", "n0", 9);
    assert_int_equal(count_records(s, "fault-evidence", "c"), 0);
    stage_free(s);
}

static void test_a_worker_that_runs_on_is_no_evidence_of_a_hang(void **state) {
    (void)state;
    static const struct fault stop = {.name = "stop",
                                      .targets = TARGET_WORKER,
                                      .where = FAULT_IN_NODE,
                                      .evidence = EVIDENCE(target_stopped),
                                      .effects = EFFECT_LASTING};
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "h", &stop);
    at_step(a, 5);
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 100, 5);
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    say_step(s, 101, 5);
    stage_end(s);
    assert_int_equal(recovered_n, 1);
    assert_int_equal(count_records(s, "fault-evidence", "h"), 0);
    assert_int_equal(count_records(s, "fault-unfelt", "h"), 0);
    stage_down(s);
    assert_int_equal(count_records(s, "fault-unfelt", "h"), 1);
    stage_free(s);
}

static int done(const struct target *t, const struct fault_args *a, struct err *err) {
    (void)t, (void)a, (void)err;
    return 0;
}

static void say_node_dropped(struct stage *s, const char *node, int in, int out) {
    struct json_writer *w = engine_record(&s->engine, SOURCE_WIRE, "wire");
    json_put_string(w, "node", node);
    json_put_i64(w, "dropped_in", in);
    json_put_i64(w, "dropped_out", out);
    engine_recorded(&s->engine);
}

static void test_frames_that_an_earlier_silence_dropped_are_no_evidence(void **state) {
    (void)state;
    static const struct fault dark = {.name = "dark",
                                      .targets = TARGET_NODE,
                                      .where = FAULT_IN_HARNESS,
                                      .evidence = EVIDENCE(frames_dropped),
                                      .inject = done};
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "d", &dark);
    at_step(a, 5);
    aim_at_node(a, "n1");
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 101, 5);
    say_node_dropped(s, "n1", 7, 9);
    say_node_dropped(s, "n1", 8, 9);
    assert_int_equal(count_records(s, "fault-evidence", "d"), 0);
    say_node_dropped(s, "n1", 0, 1); /* on again, and counted anew */
    assert_int_equal(count_records(s, "fault-evidence", "d"), 1);
    stage_down(s);
    stage_free(s);
}

static struct clock_told told_ahead(int64_t ns) {
    const struct clock_reading r = {.real_ns = 1000, .said_ns = 1000 + ns};
    return (struct clock_told){.any = true, .first = r, .last = r, .least = r, .most = r};
}

/* Whoever sets it may say so and not do it, and what was told before is another fault's doing. */
static void test_a_clock_that_was_set_is_no_evidence_that_anybody_was_told(void **state) {
    (void)state;
    static const struct fault jump = {.name = "jump",
                                      .targets = TARGET_NODE,
                                      .where = FAULT_IN_HARNESS,
                                      .evidence = EVIDENCE(clock_ahead),
                                      .inject = done};
    static const int64_t hour_ns = 3600000000000;
    const struct {
        uint32_t before, then; /* generations */
        struct clock_told told;
        bool felt;
    } rows[] = {{0, 0, {0}, false},
                {0, 1, {0}, false},
                {0, 1, told_ahead(hour_ns), true},
                {0, 1, told_ahead(hour_ns / 12), false},
                {1, 1, told_ahead(hour_ns), false},
                {2, 3, told_ahead(hour_ns), true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct stage *s = stage_new();
        struct timeline_entry *a = stage_add(s, "j", &jump);
        at_step(a, 5);
        aim_at_node(a, "n1");
        stage_begin(s);
        start_round(s, 1, 3);
        clock_set_to = (struct clock_setting){.version = CLOCK_PAGE_VERSION,
                                              .generation = rows[i].before,
                                              .shift = {.by_ns = hour_ns}};
        clock_told = rows[i].before == rows[i].then ? rows[i].told : (struct clock_told){0};
        say_step(s, 101, 5);
        clock_set_to.generation = rows[i].then;
        clock_told = rows[i].told;
        say_step(s, 102, 5);
        stage_down(s);
        assert_int_equal(count_records(s, "fault-evidence", "j"), rows[i].felt);
        assert_int_equal(count_records(s, "fault-unfelt", "j"), !rows[i].felt);
        clock_set_to.version = 0;
        stage_free(s);
    }
}

/* What is switched on there is in force when its host's kernel says so. */
static void test_a_host_that_says_the_uptime_is_its_own_has_moved_none(void **state) {
    (void)state;
    static const struct fault wake = {.name = "wake",
                                      .targets = TARGET_NODE,
                                      .where = FAULT_IN_HARNESS,
                                      .evidence = EVIDENCE(uptime_moved),
                                      .inject = done};
    const struct node_uptime rows[] = {{0, 0}, {0, 28800000000000}, {-5000000000, -5000000000}};
    uptime_is_told = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct stage *s = stage_new();
        struct timeline_entry *a = stage_add(s, "w", &wake);
        at_step(a, 5);
        aim_at_node(a, "n1");
        stage_begin(s);
        start_round(s, 1, 3);
        say_step(s, 101, 5);
        uptime_told = rows[i];
        struct json_writer *w = engine_record(&s->engine, SOURCE_HARNESS, "agent-start");
        json_put_string(w, "node", "n1");
        json_put_i64(w, "pid", getpid());
        engine_recorded(&s->engine);
        assert_int_equal(count_records(s, "fault-evidence", "w"), i > 0);
        assert_int_equal(count_records(s, "fault-in-force", "w"), i > 0);
        stage_down(s);
        stage_free(s);
    }
    uptime_is_told = false;
}

static void test_every_kind_of_evidence_that_a_fault_names_must_come(void **state) {
    (void)state;
    static const struct fault dark = {.name = "dark",
                                      .targets = TARGET_NODE,
                                      .where = FAULT_IN_HARNESS,
                                      .evidence = EVIDENCE(frames_dropped) | EVIDENCE(target_exit),
                                      .inject = done};
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "d", &dark);
    at_step(a, 5);
    aim_at_node(a, "n1");
    stage_begin(s);
    start_round(s, 1, 3);
    say_step(s, 101, 5);
    say_node_dropped(s, "n1", 7, 9); /* of an earlier silence */
    say_node_dropped(s, "n1", 10, 9);
    say_node_dropped(s, "n1", 10, 11);
    assert_int_equal(count_records(s, "fault-evidence", "d"), 0);
    struct json_writer *w = engine_record(&s->engine, SOURCE_HARNESS, "node-down");
    json_put_string(w, "node", "n1");
    engine_recorded(&s->engine);
    assert_int_equal(count_records(s, "fault-evidence", "d"), 1);
    stage_down(s);
    assert_int_equal(count_records(s, "fault-unfelt", "d"), 0);
    stage_free(s);
}

static void test_frames_that_were_dropped_are_no_evidence_of_a_delay(void **state) {
    (void)state;
    static const struct fault slow = {.name = "slow",
                                      .targets = TARGET_NODE,
                                      .where = FAULT_IN_HARNESS,
                                      .evidence = EVIDENCE(frames_delayed),
                                      .inject = done};
    static const char *const names[] = {"n0", "n1", "n2"};
    for (int late = 0; late < 2; late++) {
        struct stage *s = stage_new();
        struct timeline_entry *a = stage_add(s, "w", &slow);
        at_step(a, 5);
        aim_at_node(a, "n2");
        stage_begin(s);
        start_round(s, 1, 3);
        say_step(s, 102, 5);
        for (int count = 0; count < 2; count++)
            for (int i = 0; i < 3; i++) {
                struct json_writer *w = engine_record(&s->engine, SOURCE_WIRE, "wire");
                json_put_string(w, "node", names[i]);
                json_object(w, late ? "delayed_to" : "cut_to");
                json_put_i64(w, names[i == 2 ? 0 : 2], 4 + count);
                json_end_object(w);
                engine_recorded(&s->engine);
            }
        assert_int_equal(count_records(s, "fault-evidence", "w"), late);
        stage_free(s);
    }
}

static int by_signal_9(const struct fault_args *a) {
    (void)a;
    return 9;
}

static int by_code_3(const struct fault_args *a) {
    (void)a;
    return 3 << 8;
}

static void test_an_end_of_another_kind_is_no_evidence(void **state) {
    (void)state;
    const struct fault kill_9 = {.name = "kill",
                                 .targets = TARGET_WORKER,
                                 .where = FAULT_IN_NODE,
                                 .evidence = EVIDENCE(target_exit),
                                 .status = by_signal_9};
    struct fault exit_3 = kill_9;
    exit_3.status = by_code_3;
    for (int i = 0; i < 2; i++) {
        struct stage *s = stage_new();
        struct timeline_entry *a = stage_add(s, "k", i ? &exit_3 : &kill_9);
        at_step(a, 5);
        aim_at(a, "n1", 0);
        stage_begin(s);
        start_round(s, 1, 3);
        say_step(s, 101, 5);
        timeline_answer(&s->engine, NULL, injected_token, NULL);
        end_worker(s, 101); /* by signal 9 */
        assert_int_equal(count_records(s, "fault-evidence", "k"), i ? 0 : 1);
        stage_free(s);
    }
}

/* What a worker has printed; nobody waits for an answer. */
static void print_step(struct stage *s, int pid, int64_t step) {
    struct json_writer *w = engine_record(&s->engine, SOURCE_JOB, "step");
    json_put_i64(w, "pid", pid);
    json_put_string(w, "from", "output");
    json_put_i64(w, "step", step);
    recorder_end(&s->engine.rec, NULL);
}

static void
test_a_printed_step_fires_with_the_first_line_that_tells_it_or_a_later_one(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    at_step(a, 15);
    a->when.hold = false;
    aim_at(a, "n1", 0);
    stage_begin(s);
    start_round(s, 1, 3);
    assert_int_equal(s->observer.kinds, 0); /* nobody has to wait */
    print_step(s, 101, 10);
    print_step(s, 100, 20); /* another worker, while its own steps are told */
    assert_int_equal(injected_n, 0);
    print_step(s, 101, 20);
    assert_int_equal(injected_n, 1);
    assert_string_equal(injected[0], "n1/0 (rank 1)");
    assert_int_equal(count_records(s, "fault-fired", "k"), 1);
    stage_free(s);
}

static void test_what_one_worker_prints_is_told_of_those_that_never_print(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    at_step(a, 15);
    aim_at(a, "n1", 0);
    stage_begin(s);
    start_round(s, 1, 3);
    print_step(s, 100, 14);
    assert_int_equal(injected_n, 0);
    print_step(s, 100, 15);
    assert_int_equal(injected_n, 1);
    stage_free(s);
}

/* By the worker itself, or by one that prints for all. */
static void test_what_was_printed_before_a_kill_does_not_kill_once_more(void **state) {
    (void)state;
    for (int by = 0; by < 2; by++) {
        struct stage *s = stage_new();
        struct timeline_entry *a = stage_add(s, "k", &kill_worker);
        at_step(a, 5);
        a->when.hold = false;
        a->times_n = 2;
        aim_at(a, "n1", 0);
        stage_begin(s);
        start_round(s, 1, 3);
        print_step(s, 100 + by, 5);
        timeline_answer(&s->engine, NULL, injected_token, NULL);
        s->observer.dead[101] = true; /* the kernel says so; the observer has not told yet */
        print_step(s, 100 + by, 6);
        assert_int_equal(count_records(s, "fault-not-fired", "k"), 0);
        assert_int_equal(count_records(s, "fault-fired", "k"), 1);
        start_round(s, 2, 3);
        if (by)
            print_step(s, 101, 7); /* of the first, read late */
        assert_int_equal(count_records(s, "fault-fired", "k"), 1);
        print_step(s, 200 + by, 5);
        assert_int_equal(count_records(s, "fault-fired", "k"), 2);
        stage_free(s);
    }
}

static void wait_for_line(struct timeline_entry *a, const char *pattern, int nth) {
    a->when.log = pattern;
    a->when.nth = nth;
    a->when.hold = false;
}

static void test_a_line_of_a_killed_worker_does_not_kill_once_more(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    wait_for_line(a, "saved (\\d+)", 1);
    a->times_n = 2;
    aim_at(a, "n1", 0);
    stage_begin(s);
    start_round(s, 1, 3);
    timeline_heard(&s->engine, "n1", 101, "saved 1");
    timeline_answer(&s->engine, NULL, injected_token, NULL);
    s->observer.dead[101] = true;
    timeline_heard(&s->engine, "n1", 101, "saved 2");
    assert_int_equal(count_records(s, "fault-not-fired", "k"), 0);
    start_round(s, 2, 3);
    timeline_heard(&s->engine, "n1", 201, "saved 1");
    assert_int_equal(count_records(s, "fault-fired", "k"), 2);
    stage_free(s);
}

static void test_a_line_counts_when_the_target_has_printed_it(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker), *b = stage_add(s, "n", &kill_node);
    wait_for_line(a, "saved (\\d+)", 2);
    aim_at(a, "n1", 0);
    wait_for_line(b, "rankrun: round [0-9]+", 1);
    aim_at_node(b, "n2");
    stage_begin(s);
    start_round(s, 1, 3);
    struct engine *e = &s->engine;
    timeline_heard(e, "n1", 101, "saved 1");
    timeline_heard(e, "n0", 100, "saved 2");
    timeline_heard(e, "n1", 0, "saved 3"); /* its agent is not it */
    timeline_heard(e, "n1", 101, "saving");
    assert_int_equal(injected_n, 0);
    timeline_heard(e, "n1", 101, "saved 4");
    assert_int_equal(injected_n, 1);
    timeline_heard(e, "n1", 0, "rankrun: round 1, local rank 0: SIGKILL");
    assert_int_equal(killed_nodes, 0);
    timeline_heard(e, "n2", 0, "rankrun: round 1, local rank 0: SIGKILL");
    assert_int_equal(killed_nodes, 1);
    assert_int_equal(count_records(s, "log", "k"), 1);
    assert_int_equal(count_records(s, "log", "n"), 1);
    stage_free(s);
}

static void test_a_line_that_never_came_is_told_with_the_closest(void **state) {
    (void)state;
    struct stage *s = stage_new();
    struct timeline_entry *a = stage_add(s, "k", &kill_worker);
    wait_for_line(a, "saved step", 1);
    stage_begin(s);
    start_round(s, 1, 3);
    timeline_heard(&s->engine, "n0", 100, "loading");
    timeline_heard(&s->engine, "n0", 100, "saved snapshot");
    stage_end(s);
    const struct record *r = history_newest(&s->history, SOURCE_HARNESS, "fault-not-fired");
    assert_string_equal(record_text(r, "why"),
                        "none of 2 lines matched /saved step/; the closest: saved snapshot");
    stage_free(s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_round_fires_anew_in_every_round),
        cmocka_unit_test(test_a_round_that_begins_before_the_fault_is_known_to_be_in_force_counts),
        cmocka_unit_test(test_each_round_that_never_came_is_noted),
        cmocka_unit_test(test_a_phase_of_a_round_is_the_target_agents_own),
        cmocka_unit_test(test_the_nth_request_of_its_kind_by_the_target_waits_for_the_fault),
        cmocka_unit_test(test_a_request_that_two_wait_for_goes_on_when_both_are_in_force),
        cmocka_unit_test(test_a_system_call_that_two_wait_for_goes_on_when_both_are_in_force),
        cmocka_unit_test(test_other_hosts_are_told_which_calls_are_waited_for),
        cmocka_unit_test(test_a_call_that_comes_too_early_is_heard_when_its_entry_looks_again),
        cmocka_unit_test(test_a_call_that_comes_too_early_goes_on_at_the_end),
        cmocka_unit_test(test_a_step_that_two_wait_for_is_kept_by_both),
        cmocka_unit_test(test_a_request_that_is_not_held_is_only_told),
        cmocka_unit_test(test_who_is_patient_waits_for_a_target_that_is_not_there),
        cmocka_unit_test(test_who_is_patient_does_not_hit_a_round_that_breaks_up),
        cmocka_unit_test(test_a_target_that_never_came_is_told),
        cmocka_unit_test(test_join_of_the_first_round_needs_no_worker),
        cmocka_unit_test(test_start_is_before_the_worker_of_that_round_runs),
        cmocka_unit_test(test_a_cut_is_felt_when_frames_were_dropped_both_ways_since),
        cmocka_unit_test(test_a_cut_is_felt_where_one_side_has_nothing_to_say),
        cmocka_unit_test(test_a_cut_from_the_store_is_felt_when_the_questions_were_dropped),
        cmocka_unit_test(test_what_a_store_says_is_no_evidence_that_it_was_asked),
        cmocka_unit_test(test_a_worker_that_runs_on_is_no_evidence_of_a_hang),
        cmocka_unit_test(test_a_host_that_says_the_uptime_is_its_own_has_moved_none),
        cmocka_unit_test(test_a_clock_that_was_set_is_no_evidence_that_anybody_was_told),
        cmocka_unit_test(test_frames_that_an_earlier_silence_dropped_are_no_evidence),
        cmocka_unit_test(test_every_kind_of_evidence_that_a_fault_names_must_come),
        cmocka_unit_test(test_frames_that_were_dropped_are_no_evidence_of_a_delay),
        cmocka_unit_test(test_an_end_of_another_kind_is_no_evidence),
        cmocka_unit_test(
            test_a_printed_step_fires_with_the_first_line_that_tells_it_or_a_later_one),
        cmocka_unit_test(test_what_one_worker_prints_is_told_of_those_that_never_print),
        cmocka_unit_test(test_what_was_printed_before_a_kill_does_not_kill_once_more),
        cmocka_unit_test(test_a_line_counts_when_the_target_has_printed_it),
        cmocka_unit_test(test_a_line_of_a_killed_worker_does_not_kill_once_more),
        cmocka_unit_test(test_a_line_that_never_came_is_told_with_the_closest),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
