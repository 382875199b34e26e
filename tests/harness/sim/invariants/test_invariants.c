#include "tests/harness/sim/invariants/world.h"

/* --- what must be caught --- */

static void told_otherwise(struct sim *c) {
    struct round_spec s = spec(2, 0);
    groups_end(c);
    sim_judge_start(c, 0, &s);
    s = spec(2, 1);
    s.world = 3;
    sim_judge_start(c, 1, &s);
}

static void plan_is_short(struct sim *c) {
    sessions(c);
    plan(c, "p", "a", 0);
    head(c, "a", form(2));
}

static void too_few(struct sim *c) {
    c->min = 3;
    reform(c);
    acks(c);
    head(c, "a", run(1));
}

static void certified_with_a_worker(struct sim *c) {
    sessions(c);
    put(c, "a", key_of(KEY_GONE, "b", 0), (union value){.gone = {GONE_SILENT}});
}

static void certified_again(struct sim *c) {
    sessions(c);
    groups_end(c);
    put(c, "b", key_of(KEY_GONE, "b", 0), (union value){.gone = {GONE_LEFT}});
    put(c, "b", key_of(KEY_GONE, "b", 0), (union value){.gone = {GONE_SILENT}});
}

/* c waits as a spare, and is taken although nobody of two is missing. */
static void spare_makes_it_larger(struct sim *c) {
    reform(c);
    put(c, "c", key_of(KEY_SESSION, "c", 0), (union value){.session = {0}});
    put(c, "c", key_of(KEY_MEMBER, "c", 0), (union value){.member = {.want = WANT_STANDBY}});
    plan(c, "p", "c", 2);
    c->judge.head.phase = HEAD_END;
    c->judge.head.round = 1;
    head(c, "a", form(3));
    acks(c);
    ack(c, "c", 1);
    head(c, "a", run(1));
}

static struct head_value failed_by_loss(void) {
    return (struct head_value){.phase = HEAD_CLOSED,
                               .round = 1,
                               .last_round = 1,
                               .outcome = OUTCOME_FAILED,
                               .failure = {.node = "n1", .rank = -1}};
}

static void gang_without_a_loss(struct sim *c) {
    static const struct sim_schedule gang = {.gang = true};
    c->schedule = &gang;
    sessions(c);
    head(c, "a", failed_by_loss());
}

static void loss_that_was_to_be_replaced(struct sim *c) {
    sessions(c);
    strcpy(c->judge.last[1].uid, "x");
    head(c, "a", failed_by_loss());
}

static void acks_with_a_worker(struct sim *c) {
    sessions(c);
    ack(c, "b", 1);
}

static void master_is_another(struct sim *c) {
    struct round_spec s = spec(2, 0);
    groups_end(c);
    s.master_addr = "n1";
    sim_judge_start(c, 0, &s);
}

static void master_is_missing(struct sim *c) {
    struct round_spec s = spec(2, 1);
    groups_end(c);
    s.master_addr = "";
    sim_judge_start(c, 1, &s);
}

static void acks_without_session(struct sim *c) {
    groups_end(c);
    ack(c, "b", 1);
}

static void head_not_by_the_leader(struct sim *c) {
    sessions(c);
    plans(c, 0, 1);
    head(c, "b", form(2));
}

static void head_goes_back(struct sim *c) {
    reform(c);
    struct head_value h = form(2);
    h.round = 1;
    head(c, "a", h);
}

static void new_job_beside_the_old(struct sim *c) {
    struct key key = key_of(KEY_LEAD, "", 0);
    strcpy(key.inc, "j");
    put(c, "b", key, (union value){.lead = {"b"}});
}

static void starts_beside_another(struct sim *c) {
    struct round_spec s = spec(2, 1);
    sim_judge_start(c, 2, &s);
}

static void runs_without_an_ack(struct sim *c) {
    reform(c);
    ack(c, "a", 1);
    c->judge.last[1].said = true;
    head(c, "a", run(1));
}

static void runs_without_a_certificate(struct sim *c) {
    reform(c);
    acks(c);
    c->judge.last[1].said = false;
    head(c, "a", run(1));
}

static void done_though_not_all(struct sim *c) {
    sessions(c);
    put(c, "b", key_of(KEY_DONE, "b", 1), (union value){.done = {1}});
}

static void closes_as_succeeded(struct sim *c) {
    sessions(c);
    head(c, "a",
         (struct head_value){
             .phase = HEAD_CLOSED, .round = 1, .last_round = 1, .outcome = OUTCOME_SUCCEEDED});
}

static void ends_otherwise(struct sim *c) {
    c->result->outcome = SIM_SUCCEEDED;
    sim_judge_exit(c, 0, 1);
}

static void asks_for_ever(struct sim *c) {
    c->give_up_ns = 2000 * SIM_MS;
    c->nodes[2].wrote = true;
    for (c->now_ns = 1000 * SIM_MS; c->now_ns < 9000 * SIM_MS; c->now_ns += 500 * SIM_MS)
        sim_judge_answered(c, 2, true);
}

static void has_no_end(struct sim *c) {
    sim_judge_end(c, false);
}

static void survivors_change_places(struct sim *c) {
    sessions(c);
    groups_end(c);
    plans(c, 1, 0);
    head(c, "a", form(2));
    acks(c);
    head(c, "a", run(0));
}

static void rank_twice(struct sim *c) {
    struct round_spec s = spec(2, 1);
    groups_end(c);
    sim_judge_start(c, 0, &s);
    sim_judge_start(c, 1, &s);
}

static void failure_costs_nothing(struct sim *c) {
    reform(c);
    acks(c);
    head(c, "a", run(0));
}

static void budget_is_passed(struct sim *c) {
    c->judge.restarts = 1;
    reform(c);
    acks(c);
    head(c, "a", run(2));
}

static void takes_another_seat(struct sim *c) {
    static const struct sim_schedule seated = {.seated = true, .max = 2};
    struct round_spec s = spec(2, 0);
    c->schedule = &seated;
    s.master_addr = "n1";
    groups_end(c);
    sim_judge_start(c, 1, &s);
}

static void joiner_is_left_out(struct sim *c) {
    sessions(c);
    put(c, "c", key_of(KEY_SESSION, "c", 0), (union value){.session = {0}});
    put(c, "c", key_of(KEY_MEMBER, "c", 0), (union value){.member = {.want = WANT_MEMBER}});
    c->judge.last[0].succeeded = true;
    c->now_ns = 60000 * SIM_MS;
    put(c, "a", key_of(KEY_DONE, "a", 1), (union value){.done = {1}});
}

static void done_is_undone(struct sim *c) {
    sessions(c);
    groups_end(c);
    c->judge.last[0].said = true;
    plans(c, 0, 1);
    head(c, "a", form(2));
}

static void begins_with_min_at_once(struct sim *c) {
    c->judge.has_head = false;
    memset(&c->judge.head, 0, sizeof(c->judge.head));
    groups_end(c);
    sessions(c);
    put(c, "a", key_of(KEY_MEMBER, "a", 0), (union value){.member = {.want = WANT_MEMBER}});
    put(c, "b", key_of(KEY_MEMBER, "b", 0), (union value){.member = {.want = WANT_MEMBER}});
    plans(c, 0, 1);
    struct head_value h = form(2);
    h.round = 1;
    h.last_round = 0;
    head(c, "a", h);
}

static void gives_up_on_too_few_at_once(struct sim *c) {
    sessions(c);
    head(c, "a",
         (struct head_value){
             .phase = HEAD_CLOSED, .round = 1, .last_round = 1, .outcome = OUTCOME_FAILED});
}

static void group_rank_is_left_out(struct sim *c) {
    sessions(c);
    groups_end(c);
    plans(c, 0, 2);
    head(c, "a", form(2));
}

static void ends_as_failed_though_none_has(struct sim *c) {
    sessions(c);
    head(c, "b", failed_by("b"));
}

static void hides_that_it_was_fenced(struct sim *c) {
    sessions(c);
    groups_end(c);
    c->nodes[1].group.by_guard = true;
    ack(c, "b", 1);
}

static void hides_from_who_watches_that_it_was_fenced(struct sim *c) {
    sessions(c);
    groups_end(c);
    c->nodes[1].group.by_guard = true;
    sim_judge_claim(c, 1, CLAIM_FENCED, 0); /* of another round */
    put(c, "b", key_of(KEY_ACK, "b", 1), (union value){.ack = {.why = ACK_FENCED}});
}

static void names_a_failure_of_no_round(struct sim *c) {
    c->result->outcome = SIM_FAILED;
    sim_judge_failure(c, 0, 0);
}

static void ends_its_workers_for_nothing(struct sim *c) {
    sessions(c);
    c->nodes[1].rate = 1;
    c->nodes[1].fence_ns = INT64_MAX;
    sim_judge_stop(c, 1);
}

/* On n1, in no run yet. */
static void agent_comes(struct sim *c) {
    static const struct rendezvous_config config = {
        .run_id = "job",
        .node = "n1",
        .addr = "n1",
        .role = "r",
        .slots = 1,
        .min = 1,
        .max = 2,
        .attempt = "",
        .timing = {150 * SIM_MS, 600 * SIM_MS, 680 * SIM_MS, 800 * SIM_MS}};
    struct now now = {0, 0};
    size_t n;
    c->nodes[1].core = rendezvous_new(&config, 1, NULL);
    rendezvous_step(c->nodes[1].core, &(struct event){.kind = EVENT_START}, now, &n);
}

/* n1 leads, and does not keep the lease. */
static void lease_is_not_kept(struct sim *c) {
    struct key cur = {.kind = KEY_CUR};
    struct kv_txn_result r;
    struct arena a = {0};
    char text[KEY_SIZE], end[KEY_SIZE];
    int64_t lease;
    agent_comes(c);
    snprintf(c->lead.uid, sizeof(c->lead.uid), "%s", rendezvous_uid(c->nodes[1].core));
    key_format(&cur, "job", text, end);
    kv_lease_grant(c->kv, 0, 60, 0, &lease, NULL);
    struct kv_op op = {.kind = KV_PUT, .key = kv_string(text), .lease = lease};
    kv_txn(c->kv, &(struct kv_txn){.success = &op, .n_success = 1}, &a, &r, NULL);
    arena_fini(&a);
    c->now_ns = 60000 * SIM_MS;
    sim_leases_expire(c);
    rendezvous_free(c->nodes[1].core);
}

static void host_ends_first(struct sim *c) {
    static const struct sim_schedule hosted = {.hosted = true};
    c->schedule = &hosted;
    c->calm_now = true;
    c->now_ns = 60000 * SIM_MS;
    agent_comes(c);
    c->result->outcome = SIM_SUCCEEDED;
    put(c, "x", key_of(KEY_SESSION, rendezvous_uid(c->nodes[1].core), 0),
        (union value){.session = {0}});
    sim_judge_exit(c, 0, 0);
    rendezvous_free(c->nodes[1].core);
}

static const struct row {
    const char *invariant;
    void (*plant)(struct sim *c);
} rows[] = {
    {"admission", joiner_is_left_out},
    {"agreement", plan_is_short},
    {"agreement", told_otherwise},
    {"bounds", too_few},
    {"certified_once", certified_again},
    {"contract", acks_with_a_worker},
    {"contract", certified_with_a_worker},
    {"fencing", acks_without_session},
    {"fencing", head_goes_back},
    {"fencing", head_not_by_the_leader},
    {"finished", done_is_undone},
    {"last_call", begins_with_min_at_once},
    {"master", master_is_another},
    {"master", master_is_missing},
    {"host_last", host_ends_first},
    {"one_round", runs_without_a_certificate},
    {"one_round", runs_without_an_ack},
    {"one_round", starts_beside_another},
    {"outcome", closes_as_succeeded},
    {"outcome", done_though_not_all},
    {"outcome", ends_otherwise},
    {"outcome", gang_without_a_loss},
    {"outcome", loss_that_was_to_be_replaced},
    {"outcome", gives_up_on_too_few_at_once},
    {"outcome", names_a_failure_of_no_round},
    {"patience", asks_for_ever},
    {"progress", has_no_end},
    {"rank_order", survivors_change_places},
    {"ranks", group_rank_is_left_out},
    {"ranks", rank_twice},
    {"remembered", lease_is_not_kept},
    {"restarts", budget_is_passed},
    {"restarts", ends_as_failed_though_none_has},
    {"restarts", failure_costs_nothing},
    {"restarts", hides_from_who_watches_that_it_was_fenced},
    {"restarts", hides_that_it_was_fenced},
    {"seats", takes_another_seat},
    {"spares", spare_makes_it_larger},
    {"undisturbed", ends_its_workers_for_nothing},
};

static void test_each_invariant_catches_what_breaks_it(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct invariant *inv = invariant_find(rows[i].invariant);
        char begins[64];
        struct sim *c = world_new();
        rows[i].plant(c);
        snprintf(begins, sizeof(begins), "%s %s: ", inv->number, inv->name);
        if (strncmp(c->result->text, begins, strlen(begins)) != 0)
            fail_msg("row %zu: not \"%s\" but \"%s\"", i, begins, c->result->text);
        world_free(c);
    }
}

static void test_every_invariant_has_a_wrong_that_it_catches(void **state) {
    (void)state;
    for (size_t i = 0; invariants[i]; i++) {
        size_t n = 0;
        for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++)
            n += strcmp(rows[k].invariant, invariants[i]->name) == 0;
        if (!n)
            fail_msg("%s: no row breaks it", invariants[i]->name);
    }
}

static void test_who_was_fenced_and_says_so_breaks_nothing(void **state) {
    (void)state;
    struct sim *c = world_new();
    sessions(c);
    groups_end(c);
    sim_judge_claim(c, 1, CLAIM_FENCED, 1);
    put(c, "b", key_of(KEY_ACK, "b", 1), (union value){.ack = {.why = ACK_FENCED}});
    assert_string_equal(c->result->text, "");
    world_free(c);
}

static void test_a_new_job_begins_only_when_the_old_ones_workers_are_gone(void **state) {
    (void)state;
    for (int gone = 0; gone < 2; gone++) {
        struct sim *c = world_new();
        struct key session = key_of(KEY_SESSION, "b", 0), key = key_of(KEY_HEAD, "", 0);
        strcpy(session.inc, "j");
        strcpy(key.inc, "j");
        put(c, "b", session, (union value){.session = {0}});
        new_job_beside_the_old(c);
        assert_string_equal(c->result->text, "");
        if (gone)
            groups_end(c);
        put(c, "b", key, (union value){.head = {.phase = HEAD_FORM, .round = 1}});
        assert_int_equal(c->result->violated, !gone);
        world_free(c);
    }
}

static void test_a_round_that_fails_and_is_formed_again_breaks_nothing(void **state) {
    (void)state;
    struct sim *c = world_new();
    struct round_spec first = spec(2, 0), second = spec(2, 1);
    reform(c);
    acks(c);
    head(c, "a", run(1));
    sim_judge_start(c, 0, &first);
    sim_judge_start(c, 1, &second);
    sim_judge_success(c, "a", 2);
    sim_judge_success(c, "b", 2);
    put(c, "a", key_of(KEY_DONE, "a", 2), (union value){.done = {2}});
    put(c, "b", key_of(KEY_DONE, "b", 2), (union value){.done = {2}});
    head(c, "a",
         (struct head_value){.phase = HEAD_CLOSED,
                             .round = 2,
                             .last_round = 2,
                             .restarts = 1,
                             .outcome = OUTCOME_SUCCEEDED});
    sim_judge_exit(c, 0, 0);
    sim_judge_end(c, true);
    assert_string_equal(c->result->text, "");
    world_free(c);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_invariant_catches_what_breaks_it),
        cmocka_unit_test(test_every_invariant_has_a_wrong_that_it_catches),
        cmocka_unit_test(test_who_was_fenced_and_says_so_breaks_nothing),
        cmocka_unit_test(test_a_new_job_begins_only_when_the_old_ones_workers_are_gone),
        cmocka_unit_test(test_a_round_that_fails_and_is_formed_again_breaks_nothing),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
