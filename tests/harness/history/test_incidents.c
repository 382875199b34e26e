/* Incidents: which fault ended which round, and what it cost in time. */
#include "tests/harness/judge/checks/planted.h"

struct seen {
    struct history h;
    struct rounds rs;
    struct incidents is;
};

static void see(struct seen *s, const char *name, const struct edit *edits) {
    planted_load(&s->h, name, edits);
    rounds_load(&s->rs, true, &s->h);
    incidents_load(&s->is, &s->h, &s->rs);
}

static void forget(struct seen *s) {
    incidents_fini(&s->is);
    rounds_fini(&s->rs);
    history_fini(&s->h);
}

static int64_t us(int64_t ns) {
    return ns < 0 ? -1 : ns / 1000;
}

static void test_the_phases_add_up_from_the_fault_to_the_first_step(void **state) {
    (void)state;
    static const struct edit none[1];
    struct seen s;
    see(&s, "node-powered-off", none);
    assert_int_equal(s.is.n, 1);
    const struct incident *i = incidents_find(&s.is, "dark", 1);
    assert_true(i->fired && i->in_force && incident_has(i, EFFECTS_TAKE_AGENT) && i->ended_round &&
                i->by_signal);
    assert_int_equal(i->round->number, 1);
    assert_int_equal(i->next->number, 2);
    assert_int_equal(us(i->phase_ns[PHASE_DETECT]), 809000);
    assert_int_equal(us(i->phase_ns[PHASE_STOP]), 10);
    assert_int_equal(us(i->phase_ns[PHASE_RENDEZVOUS]), 29990);
    assert_int_equal(us(i->phase_ns[PHASE_START]), 20);
    assert_int_equal(us(i->phase_ns[PHASE_LOAD]), 5000);
    int64_t sum = 0;
    for (int p = 0; p < PHASE_N; p++)
        sum += i->phase_ns[p];
    assert_int_equal(sum, i->recover_ns);
    forget(&s);
}

static void test_a_job_that_does_not_tell_what_it_resumed_still_has_a_first_step(void **state) {
    (void)state;
    static const struct edit edits[] = {{"\"kind\":\"resume\"", NULL, "", NULL}, {0}};
    struct seen s;
    see(&s, "node-powered-off", edits);
    const struct incident *i = incidents_find(&s.is, "dark", 1);
    assert_int_equal(i->phase_ns[PHASE_LOAD], -1);
    int64_t sum = 1; /* of the load that is not known */
    for (int p = 0; p < PHASE_N; p++)
        sum += i->phase_ns[p];
    assert_true(i->phase_ns[PHASE_FIRST_STEP] > 0);
    assert_int_equal(sum, i->recover_ns);
    forget(&s);
}

static void test_on_one_node_another_worker_is_the_witness(void **state) {
    (void)state;
    static const struct edit none[1];
    struct seen s;
    see(&s, "worker-killed", none);
    const struct incident *i = incidents_find(&s.is, "kill", 1);
    assert_true(i->ended_round && !incident_has(i, EFFECTS_TAKE_AGENT));
    assert_int_equal(us(i->phase_ns[PHASE_DETECT]), 2000);
    forget(&s);
}

static void test_where_nobody_else_is_left_the_next_start_is_the_witness(void **state) {
    (void)state;
    static const struct edit edits[] = {{"\"pid\":110", NULL, "", NULL}, {0}};
    struct seen s;
    see(&s, "worker-killed", edits);
    assert_int_equal(us(incidents_find(&s.is, "kill", 1)->phase_ns[PHASE_DETECT]), 5000);
    forget(&s);
}

static void test_a_worker_that_has_finished_has_noticed_nothing(void **state) {
    (void)state;
    static const struct edit one[] = {{"worker-exit", "\"pid\":110", "\"signal\":15", "\"code\":0"},
                                      {0}};
    static const struct edit both[] = {{"worker-exit", "\"pid\":11", "\"signal\":15", "\"code\":0"},
                                       {0}};
    static const struct edit the_end[] = {
        {"worker-exit", "\"pid\":11", "\"signal\":15", "\"code\":0"},
        {"worker-start", "\"pid\":12", "", NULL},
        {"worker-exit", "\"pid\":12", "", NULL},
        {"\"source\":\"job\"", "\"pid\":12", "", NULL},
        {0}};
    struct seen s;
    see(&s, "node-powered-off", one); /* n1's worker was ended by its launcher */
    assert_int_equal(us(incidents_find(&s.is, "dark", 1)->phase_ns[PHASE_DETECT]), 809010);
    forget(&s);
    see(&s, "node-powered-off", both); /* nothing but the next start is left */
    assert_int_equal(us(incidents_find(&s.is, "dark", 1)->phase_ns[PHASE_DETECT]), 839000);
    forget(&s);
    see(&s, "node-powered-off", the_end);
    assert_true(incidents_find(&s.is, "dark", 1)->ended_round);
    assert_int_equal(incidents_find(&s.is, "dark", 1)->phase_ns[PHASE_DETECT], -1);
    forget(&s);
}

/* It ends the survivors when nobody has noticed the fault for too long. */
static void test_who_is_ended_by_the_harness_has_noticed_nothing(void **state) {
    (void)state;
    static const char *const kinds[] = {"limit", "interrupted", "job-end"};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        struct seen s = {0};
        planted_load(&s.h, "node-powered-off", (const struct edit[]){{0}});
        rounds_load(&s.rs, true, &s.h);
        incidents_load(&s.is, &s.h, &s.rs);
        int64_t t0_ns = incidents_find(&s.is, "dark", 1)->t0_ns;
        incidents_fini(&s.is);
        struct json_writer *w = history_begin(&s.h, t0_ns + 1000000, SOURCE_HARNESS, kinds[k]);
        json_put_string(w, "why", "limit");
        history_end(&s.h);
        incidents_load(&s.is, &s.h, &s.rs);
        const struct incident *i = incidents_find(&s.is, "dark", 1);
        assert_int_equal(i->phase_ns[PHASE_DETECT], -1);
        assert_false(i->by_signal);
        forget(&s);
    }
}

static void test_without_steps_recovery_ends_with_the_last_start(void **state) {
    (void)state;
    static const struct edit edits[] = {{"\"source\":\"job\"", NULL, "", NULL}, {0}};
    struct seen s;
    see(&s, "worker-killed", edits);
    const struct incident *i = incidents_find(&s.is, "kill", 1);
    assert_int_equal(us(i->recover_ns), 5020);
    assert_int_equal(i->phase_ns[PHASE_INIT], -1);
    forget(&s);
}

static void test_a_fault_on_a_spare_ends_no_round(void **state) {
    (void)state;
    static const struct edit edits[] = {
        {"\"steady\"", NULL, NULL,
         "{\"t\":1055000000,\"source\":\"harness\",\"kind\":\"fault-in-force\",\"id\":\"spare\","
         "\"n\":1,\"fault\":\"node-kill\",\"t0\":1055000000,\"targets\":[{\"what\":\"node\","
         "\"name\":\"n3\",\"node\":\"n3\"}]}"},
        {0}};
    struct seen s;
    see(&s, "node-powered-off", edits);
    const struct incident *spare = incidents_find(&s.is, "spare", 1);
    assert_true(spare->in_force && incident_has(spare, EFFECTS_TAKE_AGENT) && !spare->ended_round);
    assert_int_equal(spare->recover_ns, -1);
    assert_true(incidents_find(&s.is, "dark", 1)->ended_round);
    forget(&s);
}

/* The worker that is deaf is ended by force, because another fault has ended the round. */
static void test_what_only_hinders_a_worker_did_not_end_what_a_later_fault_ended(void **state) {
    (void)state;
    static const struct edit edits[] = {
        {"\"steady\"", NULL, NULL,
         "{\"t\":1045000000,\"source\":\"harness\",\"kind\":\"fault-in-force\",\"id\":\"deaf\","
         "\"n\":1,\"fault\":\"x\",\"t0\":1045000000,\"effects\":[\"hinders-worker\"],"
         "\"targets\":[{\"what\":\"worker\",\"name\":\"n0/0 (rank "
         "0)\",\"node\":\"n0\",\"pid\":110}]}"},
        {0}};
    struct seen s;
    see(&s, "worker-killed", edits);
    const struct incident *deaf = incidents_find(&s.is, "deaf", 1);
    assert_true(deaf->in_force && incident_has(deaf, EFFECT_HINDERS_WORKER));
    assert_false(deaf->ended_round);
    assert_int_equal(deaf->phase_ns[PHASE_DETECT], -1);
    assert_int_equal(deaf->recover_ns, -1);
    assert_true(incidents_find(&s.is, "kill", 1)->ended_round);
    forget(&s);
}

static void test_the_normal_end_is_nobodys_fault(void **state) {
    (void)state;
    static const struct edit edits[] = {
        {"\"done\"", "\"pid\":121", NULL,
         "{\"t\":1151000000,\"source\":\"harness\",\"kind\":\"fault-in-force\",\"id\":\"late\","
         "\"n\":1,\"fault\":\"net-delay\",\"t0\":1151000000,\"targets\":[{\"what\":\"node\","
         "\"name\":\"n0\",\"node\":\"n0\"}]}"},
        {0}};
    struct seen s;
    see(&s, "worker-killed", edits);
    const struct incident *late = incidents_find(&s.is, "late", 1);
    assert_int_equal(late->round->number, 2);
    assert_false(late->ended_round);
    forget(&s);
}

static void test_what_did_not_come_in_force_struck_nothing(void **state) {
    (void)state;
    static const struct edit edits[] = {{"fault-in-force", NULL, "", NULL}, {0}};
    struct seen s;
    see(&s, "worker-killed", edits);
    const struct incident *i = incidents_find(&s.is, "kill", 1);
    assert_true(i->fired && !i->in_force && !i->round && !i->ended_round);
    assert_null(incidents_find(&s.is, "kill", 2));
    forget(&s);
}

/* Of the two workers that had the pid, the one that had it then. */
static void test_a_fault_strikes_only_who_had_the_pid_then(void **state) {
    (void)state;
    static const struct edit edits[] = {{"\"pid\":121", NULL, "\"pid\":121", "\"pid\":111"}, {0}};
    struct seen s;
    see(&s, "worker-killed", edits);
    const struct incident *i = incidents_find(&s.is, "kill", 1);
    const struct worker *before = round_rank(s.rs.v[0], 1), *after = round_rank(s.rs.v[1], 1);
    assert_int_equal(before->pid, after->pid);
    assert_true(incident_hits(i, before) && incident_hits_worker(i, before));
    assert_false(incident_hits(i, after) || incident_hits_worker(i, after));
    forget(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_phases_add_up_from_the_fault_to_the_first_step),
        cmocka_unit_test(test_a_job_that_does_not_tell_what_it_resumed_still_has_a_first_step),
        cmocka_unit_test(test_on_one_node_another_worker_is_the_witness),
        cmocka_unit_test(test_where_nobody_else_is_left_the_next_start_is_the_witness),
        cmocka_unit_test(test_a_worker_that_has_finished_has_noticed_nothing),
        cmocka_unit_test(test_who_is_ended_by_the_harness_has_noticed_nothing),
        cmocka_unit_test(test_without_steps_recovery_ends_with_the_last_start),
        cmocka_unit_test(test_a_fault_on_a_spare_ends_no_round),
        cmocka_unit_test(test_a_fault_strikes_only_who_had_the_pid_then),
        cmocka_unit_test(test_what_only_hinders_a_worker_did_not_end_what_a_later_fault_ended),
        cmocka_unit_test(test_the_normal_end_is_nobodys_fault),
        cmocka_unit_test(test_what_did_not_come_in_force_struck_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
