#include "harness/sim/invariants/judging.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Three nodes, a and b were the last round (1) and have a worker each; a leads. All is well until a
 * row does something to it. */
static struct sim *world_new(void) {
    struct sim *c = calloc(1, sizeof(*c));
    assert_non_null(c);
    c->result = calloc(1, sizeof(*c->result));
    assert_non_null(c->result);
    static const struct sim_schedule schedule;
    c->schedule = &schedule;
    c->kv = kv_new(1, 0);
    sim_nodes_init(c, 3);
    for (int i = 0; i < c->n_nodes; i++)
        snprintf(c->nodes[i].name, sizeof(c->nodes[i].name), "n%d", i);
    c->min = 2;
    c->max = 3;
    c->max_restarts = 1;
    struct judge *j = &c->judge;
    strcpy(j->inc, "i");
    j->has_head = true;
    j->head = (struct head_value){.round = 1, .phase = HEAD_RUN, .last_round = 1, .n = 2};
    j->facts.round = 1;
    j->n_last = 2;
    for (int i = 0; i < 2; i++) {
        strcpy(j->last[i].uid, i ? "b" : "a");
        j->last[i].rank = i;
        struct group_model *g = &c->nodes[i].group;
        *g = (struct group_model){.alive = true, .round = 1};
        strcpy(g->uid, j->last[i].uid);
    }
    return c;
}

static void world_free(struct sim *c) {
    kv_free(c->kv);
    sim_nodes_fini(c);
    free(c->result);
    free(c);
}

static struct key key_of(enum key_kind kind, const char *uid, int64_t round) {
    struct key k = {.kind = kind, .round = round};
    strcpy(k.inc, "i");
    strcpy(k.uid, uid);
    return k;
}

/* As a transaction by `by` puts it. */
static void put(struct sim *c, const char *by, struct key key, union value v) {
    char text[KEY_SIZE], end[KEY_SIZE];
    struct arena a = {0};
    struct kv_txn_result r = {0};
    struct op op = {.key = key, .put = true, .value = &v};
    key_format(&key, "job", text, end);
    struct kv_op put_op = {.kind = KV_PUT, .key = kv_string(text)};
    put_op.value = (struct kv_bytes){(const char *)&v, value_size(key.kind)};
    assert_int_equal(
        kv_txn(c->kv, &(struct kv_txn){.success = &put_op, .n_success = 1}, &a, &r, NULL), 0);
    arena_fini(&a);
    sim_judge_txn(c, by, &op, 1);
}

static void sessions(struct sim *c) {
    union value v = {.session = {0}};
    put(c, "a", key_of(KEY_SESSION, "a", 0), v);
    put(c, "b", key_of(KEY_SESSION, "b", 0), v);
    strcpy(v.lead.uid, "a");
    put(c, "a", key_of(KEY_LEAD, "", 0), v);
}

static void plan(struct sim *c, const char *pid, const char *uid, int rank) {
    struct key key = key_of(KEY_PLAN, uid, 0);
    strcpy(key.pid, pid);
    put(c, "a", key, (union value){.plan = {.group_rank = rank}});
}

static void head(struct sim *c, const char *by, struct head_value h) {
    put(c, by, key_of(KEY_HEAD, "", 0), (union value){.head = h});
}

static void ack(struct sim *c, const char *uid, int64_t round) {
    put(c, uid, key_of(KEY_ACK, uid, round), (union value){.ack = {0}});
}

static void groups_end(struct sim *c) {
    for (int i = 0; i < c->n_nodes; i++)
        c->nodes[i].group.alive = false;
}

static struct head_value form(int n) {
    return (struct head_value){.phase = HEAD_FORM,
                               .round = 2,
                               .last_round = 1,
                               .pid = "p",
                               .n = n,
                               .cause = CAUSE_FAILURE};
}

static struct head_value run(int restarts) {
    return (struct head_value){
        .phase = HEAD_RUN, .round = 2, .last_round = 2, .restarts = restarts};
}

/* Round 1 fails, round 2 is formed of a and b, whose workers are gone. */
static void reform(struct sim *c) {
    sessions(c);
    head(c, "b",
         (struct head_value){
             .phase = HEAD_END, .round = 1, .last_round = 1, .cause = CAUSE_FAILURE});
    groups_end(c);
    plan(c, "p", "a", 0);
    plan(c, "p", "b", 1);
    head(c, "a", form(2));
}

static struct round_spec spec(int64_t round, int rank_base) {
    return (struct round_spec){.round = round,
                               .group_world = 2,
                               .local_world = 1,
                               .world = 2,
                               .rank_base = rank_base,
                               .master_addr = "n0",
                               .master_port = 1,
                               .token = "t"};
}

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
    ack(c, "a", 1);
    ack(c, "b", 1);
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
    ack(c, "a", 1);
    ack(c, "b", 1);
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
    plan(c, "p", "a", 0);
    plan(c, "p", "b", 1);
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
    ack(c, "a", 1);
    ack(c, "b", 1);
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

static void has_no_end(struct sim *c) {
    sim_judge_end(c, false);
}

static void survivors_change_places(struct sim *c) {
    sessions(c);
    groups_end(c);
    plan(c, "p", "a", 1);
    plan(c, "p", "b", 0);
    head(c, "a", form(2));
    ack(c, "a", 1);
    ack(c, "b", 1);
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
    ack(c, "a", 1);
    ack(c, "b", 1);
    head(c, "a", run(0));
}

static void budget_is_passed(struct sim *c) {
    c->judge.restarts = 1;
    reform(c);
    ack(c, "a", 1);
    ack(c, "b", 1);
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

static const struct row {
    const char *invariant;
    void (*plant)(struct sim *c);
} rows[] = {
    {"agreement", plan_is_short},
    {"agreement", told_otherwise},
    {"bounds", too_few},
    {"certified_once", certified_again},
    {"contract", acks_with_a_worker},
    {"contract", certified_with_a_worker},
    {"fencing", acks_without_session},
    {"fencing", head_goes_back},
    {"fencing", head_not_by_the_leader},
    {"master", master_is_another},
    {"master", master_is_missing},
    {"one_round", runs_without_a_certificate},
    {"one_round", runs_without_an_ack},
    {"one_round", starts_beside_another},
    {"outcome", closes_as_succeeded},
    {"outcome", done_though_not_all},
    {"outcome", ends_otherwise},
    {"outcome", gang_without_a_loss},
    {"outcome", loss_that_was_to_be_replaced},
    {"progress", has_no_end},
    {"rank_order", survivors_change_places},
    {"ranks", rank_twice},
    {"restarts", budget_is_passed},
    {"restarts", failure_costs_nothing},
    {"seats", takes_another_seat},
    {"spares", spare_makes_it_larger},
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
    ack(c, "a", 1);
    ack(c, "b", 1);
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
        cmocka_unit_test(test_a_new_job_begins_only_when_the_old_ones_workers_are_gone),
        cmocka_unit_test(test_a_round_that_fails_and_is_formed_again_breaks_nothing),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
