#include "tests/harness/invariants/world.h"

#include <signal.h>

/* --- what must be caught --- */

static void told_otherwise(struct world *w) {
    struct round_spec s = spec(2, 0);
    groups_end(w);
    start(w, 0, &s);
    s = spec(2, 1);
    s.world = 3;
    start(w, 1, &s);
}

static void plan_is_short(struct world *w) {
    sessions(w);
    plan(w, "p", "a", 0);
    head(w, "a", form(2));
}

static void too_few(struct world *w) {
    w->judge.job.min = 3;
    reform(w);
    acks(w);
    head(w, "a", run(1));
}

static void certified_with_a_worker(struct world *w) {
    sessions(w);
    put(w, "a", key_of(KEY_GONE, "b", 0), (union value){.gone = {GONE_SILENT}});
}

static void starts_with_a_certificate(struct world *w) {
    struct round_spec s = spec(2, 0);
    groups_end(w);
    put(w, "b", key_of(KEY_GONE, "a", 0), (union value){.gone = {GONE_SILENT}});
    start(w, 0, &s);
}

static void certified_again(struct world *w) {
    sessions(w);
    groups_end(w);
    put(w, "b", key_of(KEY_GONE, "b", 0), (union value){.gone = {GONE_LEFT}});
    put(w, "b", key_of(KEY_GONE, "b", 0), (union value){.gone = {GONE_SILENT}});
}

/* c waits as a spare, and is taken although nobody of two is missing. */
static void spare_makes_it_larger(struct world *w) {
    reform(w);
    put(w, "c", key_of(KEY_SESSION, "c", 0), (union value){.session = {0}});
    put(w, "c", key_of(KEY_MEMBER, "c", 0), (union value){.member = {.want = WANT_STANDBY}});
    plan(w, "p", "c", 2);
    w->judge.head.phase = HEAD_END;
    w->judge.head.round = 1;
    head(w, "a", form(3));
    acks(w);
    ack(w, "c", 1);
    head(w, "a", run(1));
}

static struct head_value failed_by_loss(void) {
    return (struct head_value){.phase = HEAD_CLOSED,
                               .round = 1,
                               .last_round = 1,
                               .outcome = OUTCOME_FAILED,
                               .failure = {.node = "n1", .rank = -1}};
}

static void gang_without_a_loss(struct world *w) {
    w->judge.job.gang = true;
    sessions(w);
    head(w, "a", failed_by_loss());
}

static void loss_that_was_to_be_replaced(struct world *w) {
    sessions(w);
    strcpy(w->last[1].uid, "x");
    head(w, "a", failed_by_loss());
}

static void acks_with_a_worker(struct world *w) {
    sessions(w);
    ack(w, "b", 1);
}

static void master_is_another(struct world *w) {
    struct round_spec s = spec(2, 0);
    groups_end(w);
    s.master_addr = "n1";
    start(w, 0, &s);
}

static void master_is_missing(struct world *w) {
    struct round_spec s = spec(2, 1);
    groups_end(w);
    s.master_addr = "";
    start(w, 1, &s);
}

static void acks_without_session(struct world *w) {
    groups_end(w);
    ack(w, "b", 1);
}

static void head_not_by_the_leader(struct world *w) {
    sessions(w);
    plans(w, 0, 1);
    head(w, "b", form(2));
}

static void head_goes_back(struct world *w) {
    reform(w);
    struct head_value h = form(2);
    h.round = 1;
    head(w, "a", h);
}

static void new_job_beside_the_old(struct world *w) {
    struct store_key key = key_of(KEY_LEAD, "", 0);
    strcpy(key.inc, "j");
    put(w, "b", key, (union value){.lead = {"b"}});
}

static void begins_anew_though_nothing_is_forgotten(struct world *w) {
    struct store_key key = key_of(KEY_HEAD, "", 0);
    groups_end(w);
    new_job_beside_the_old(w);
    strcpy(key.inc, "j");
    put(w, "b", key, (union value){.head = {.phase = HEAD_FORM, .round = 1}});
}

static void starts_beside_another(struct world *w) {
    struct round_spec s = spec(2, 1);
    start(w, 2, &s);
}

static void runs_without_an_ack(struct world *w) {
    reform(w);
    ack(w, "a", 1);
    w->last[1].said = true;
    head(w, "a", run(1));
}

static void runs_without_a_certificate(struct world *w) {
    reform(w);
    acks(w);
    w->last[1].said = false;
    head(w, "a", run(1));
}

static void done_though_not_all(struct world *w) {
    sessions(w);
    put(w, "b", key_of(KEY_DONE, "b", 1), (union value){.done = {1}});
}

static void closes_as_succeeded(struct world *w) {
    sessions(w);
    head(w, "a",
         (struct head_value){
             .phase = HEAD_CLOSED, .round = 1, .last_round = 1, .outcome = OUTCOME_SUCCEEDED});
}

static void ends_otherwise(struct world *w) {
    w->judge.outcome = OUTCOME_SUCCEEDED;
    judge_exit(&w->judge, 0, 1);
}

static void asks_for_ever(struct world *w) {
    w->judge.job.give_up_ns = 2000 * MS;
    w->nodes[2].wrote = true;
    for (w->judge.now_ns = 1000 * MS; w->judge.now_ns < 9000 * MS; w->judge.now_ns += 500 * MS)
        judge_answered(&w->judge, 2, true);
}

static void has_no_end(struct world *w) {
    judge_end(&w->judge, false, true);
}

static void proposes_again_and_again(struct world *w) {
    w->judge.job.proposals_max = 2;
    sessions(w);
    groups_end(w);
    plans(w, 0, 1);
    struct head_value h = form(2);
    for (h.round = 2; h.round <= 4; h.round++)
        head(w, "a", h);
}

static void survivors_change_places(struct world *w) {
    sessions(w);
    groups_end(w);
    plans(w, 1, 0);
    head(w, "a", form(2));
    acks(w);
    head(w, "a", run(0));
}

static void rank_twice(struct world *w) {
    struct round_spec s = spec(2, 1);
    groups_end(w);
    start(w, 0, &s);
    start(w, 1, &s);
}

static void failure_costs_nothing(struct world *w) {
    reform(w);
    acks(w);
    head(w, "a", run(0));
}

static void budget_is_passed(struct world *w) {
    w->judge.restarts = 1;
    reform(w);
    acks(w);
    head(w, "a", run(2));
}

static void takes_another_seat(struct world *w) {
    struct round_spec s = spec(2, 0);
    w->judge.job.seated = true;
    w->nodes[1].seat = 2;
    s.master_addr = "n1";
    groups_end(w);
    start(w, 1, &s);
}

static void joiner_is_left_out(struct world *w) {
    sessions(w);
    put(w, "c", key_of(KEY_SESSION, "c", 0), (union value){.session = {0}});
    put(w, "c", key_of(KEY_MEMBER, "c", 0), (union value){.member = {.want = WANT_MEMBER}});
    w->last[0].succeeded = true;
    w->judge.now_ns = 60000 * MS;
    put(w, "a", key_of(KEY_DONE, "a", 1), (union value){.done = {1}});
}

static void done_is_undone(struct world *w) {
    sessions(w);
    groups_end(w);
    w->last[0].said = true;
    plans(w, 0, 1);
    head(w, "a", form(2));
}

static void begins_with_min_at_once(struct world *w) {
    w->judge.has_head = false;
    memset(&w->judge.head, 0, sizeof(w->judge.head));
    groups_end(w);
    sessions(w);
    put(w, "a", key_of(KEY_MEMBER, "a", 0), (union value){.member = {.want = WANT_MEMBER}});
    put(w, "b", key_of(KEY_MEMBER, "b", 0), (union value){.member = {.want = WANT_MEMBER}});
    plans(w, 0, 1);
    struct head_value h = form(2);
    h.round = 1;
    h.last_round = 0;
    head(w, "a", h);
}

static void gives_up_on_too_few_at_once(struct world *w) {
    sessions(w);
    head(w, "a",
         (struct head_value){
             .phase = HEAD_CLOSED, .round = 1, .last_round = 1, .outcome = OUTCOME_FAILED});
}

static void group_rank_is_left_out(struct world *w) {
    sessions(w);
    groups_end(w);
    plans(w, 0, 2);
    head(w, "a", form(2));
}

static void ends_as_failed_though_none_has(struct world *w) {
    sessions(w);
    head(w, "b", failed_by("b"));
}

static void hides_that_it_was_fenced(struct world *w) {
    sessions(w);
    groups_end(w);
    w->nodes[1].group.by_guard = true;
    ack(w, "b", 1);
}

static void hides_from_who_watches_that_it_was_fenced(struct world *w) {
    sessions(w);
    groups_end(w);
    w->nodes[1].group.by_guard = true;
    judge_claim(&w->judge, 1, CLAIM_FENCED, 0); /* of another round */
    put(w, "b", key_of(KEY_ACK, "b", 1), (union value){.ack = {.why = ACK_FENCED}});
}

static void names_a_failure_of_no_round(struct world *w) {
    w->judge.outcome = OUTCOME_FAILED;
    judge_failure(&w->judge, 0, 0);
}

static void ends_its_workers_for_nothing(struct world *w) {
    sessions(w);
    judge_stop(&w->judge, 1, &(struct judged_stop){.signo = SIGTERM, .grace_ns = 500 * MS});
}

/* n1 leads, and does not keep the lease. */
static void lease_is_not_kept(struct world *w) {
    struct store_key cur = {.kind = KEY_CUR};
    struct kv_txn_result r;
    struct arena a = {0};
    char text[KEY_SIZE], end[KEY_SIZE];
    int64_t lease;
    w->sessions[1] = "b";
    strcpy(w->times.lead.uid, "b");
    key_format(&cur, "job", text, end);
    kv_lease_grant(w->judge.kv, 0, 60, 0, &lease, NULL);
    struct kv_op op = {.kind = KV_PUT, .key = kv_string(text), .lease = lease};
    kv_txn(w->judge.kv, &(struct kv_txn){.success = &op, .n_success = 1}, &a, &r, NULL);
    arena_fini(&a);
    w->judge.now_ns = 60000 * MS;
    kv_lease_expire(w->judge.kv, w->judge.now_ns);
    judge_expired(&w->judge);
}

static void host_ends_first(struct world *w) {
    w->judge.job.hosted = true;
    w->times.healed_ns = 0;
    w->judge.now_ns = 60000 * MS;
    w->judge.outcome = OUTCOME_SUCCEEDED;
    w->sessions[1] = "x";
    put(w, "x", key_of(KEY_SESSION, "x", 0), (union value){.session = {0}});
    judge_exit(&w->judge, 0, 0);
}

/* --- who comes, and in which order --- */

static void joins(struct world *w, const char *uid, struct member_value v) {
    put(w, uid, key_of(KEY_SESSION, uid, 0), (union value){.session = {0}});
    put(w, uid, key_of(KEY_MEMBER, uid, 0), (union value){.member = v});
}

/* c and d came in this order after round 1, which a and b were in; b is lost. */
static void lose_b(struct world *w, struct member_value c, struct member_value d) {
    sessions(w);
    groups_end(w);
    joins(w, "c", c);
    joins(w, "d", d);
    w->last[1].node = 1;
    put(w, "a", key_of(KEY_GONE, "b", 0), (union value){.gone = {GONE_SILENT}});
    w->judge.now_ns = 1000 * MS;
}

static void form_with(struct world *w, const char *second, const char *third) {
    plan(w, "p", "a", 0);
    plan(w, "p", second, 1);
    if (third)
        plan(w, "p", third, 2);
    struct head_value h = form(third ? 3 : 2);
    h.cause = CAUSE_MEMBERSHIP;
    head(w, "a", h);
}

static void who_is_back_comes_after_a_new_one(struct world *w) {
    lose_b(w, (struct member_value){.node = "n2"}, (struct member_value){.node = "n1"});
    form_with(w, "c", "d");
}

static void spare_comes_before_a_new_one(struct world *w) {
    lose_b(w, (struct member_value){.node = "n2", .want = WANT_STANDBY},
           (struct member_value){.node = "n3"});
    form_with(w, "c", "d");
}

static void later_one_comes_first(struct world *w) {
    lose_b(w, (struct member_value){.node = "n2"}, (struct member_value){.node = "n3"});
    form_with(w, "d", "c");
}

static void later_one_is_taken_alone(struct world *w) {
    w->judge.job.max = 2;
    lose_b(w, (struct member_value){.node = "n2"}, (struct member_value){.node = "n3"});
    form_with(w, "d", NULL);
}

static void spare_waits_while_one_is_missing(struct world *w) {
    w->judge.job.min = 1;
    lose_b(w, (struct member_value){.node = "n2", .want = WANT_STANDBY},
           (struct member_value){.node = "n3", .want = WANT_STANDBY});
    w->judge.head.revision = kv_revision(w->judge.kv);
    plan(w, "p", "a", 0);
    struct head_value h = form(1);
    h.cause = CAUSE_MEMBERSHIP;
    head(w, "a", h);
}

static void newcomer_ends_the_round_at_once(struct world *w) {
    sessions(w);
    groups_end(w);
    w->judge.now_ns = 1000 * MS;
    joins(w, "c", (struct member_value){.node = "n2"});
    w->judge.now_ns += 10 * MS;
    form_with(w, "b", "c");
}

/* --- heads --- */

static void brief_round_follows_at_once(struct world *w) {
    w->judge.job.max_free_rounds = 500;
    w->judge.failed = false;
    lose_b(w, (struct member_value){.node = "n2"}, (struct member_value){.node = "n3"});
    form_with(w, "c", "d");
    w->judge.head.brief_rounds = 10;
    ack(w, "a", 1), ack(w, "c", 1), ack(w, "d", 1);
    w->judge.now_ns = w->judge.run_ns + 300 * MS;
    struct head_value h = run(0);
    h.brief_rounds = 11;
    head(w, "a", h);
}

static void brief_rounds_are_counted_twice(struct world *w) {
    w->judge.job.max_free_rounds = 500;
    lose_b(w, (struct member_value){.node = "n2"}, (struct member_value){.node = "n3"});
    form_with(w, "c", "d");
    ack(w, "a", 1), ack(w, "c", 1), ack(w, "d", 1);
    struct head_value h = run(0);
    h.brief_rounds = 2;
    head(w, "a", h);
}

static void round_has_no_token(struct world *w) {
    reform(w);
    acks(w);
    struct head_value h = run(1);
    h.token[0] = 0;
    head(w, "a", h);
}

static void round_has_the_last_token(struct world *w) {
    reform(w);
    acks(w);
    strcpy(w->judge.wiped.last_token, "t");
    head(w, "a", run(1));
}

static void master_is_not_what_rank_0_has_told(struct world *w) {
    reform(w);
    acks(w);
    struct head_value h = run(1);
    h.master_port = 7;
    head(w, "a", h);
}

static void ends_at_no_cost_for_nothing(struct world *w) {
    struct head_value h = failed_by("");
    sessions(w);
    h.cause = CAUSE_MEMBERSHIP;
    head(w, "b", h);
}

static void ends_as_failed_after_a_stop(struct world *w) {
    sessions(w);
    w->nodes[1].group.failed = true; /* by the signal that it was sent */
    head(w, "b", failed_by("b"));
}

static void acks_as_failed_after_a_stop(struct world *w) {
    sessions(w);
    groups_end(w);
    w->nodes[1].group.failed = true;
    put(w, "b", key_of(KEY_ACK, "b", 1), (union value){.ack = {.why = ACK_FAILED}});
}

static void guard_that_was_killed_is_a_fence(struct world *w) {
    sessions(w);
    w->nodes[1].group.unasked = true;
    judge_claim(&w->judge, 1, CLAIM_FENCED, 1);
}

/* --- roles --- */

static void second_of(struct world *w, struct round_spec second) {
    struct round_spec first = spec(2, 0);
    groups_end(w);
    w->judge.job.kept = true;
    start(w, 0, &first);
    w->nodes[0].group = (struct judged_group){
        .alive = true, .round = 2, .place = {"default", "t", .slots = 1, .role_world = 2}};
    start(w, 1, &second);
}

static void role_is_of_another_size(struct world *w) {
    struct round_spec s = spec(2, 1);
    s.role_world = 3;
    second_of(w, s);
}

static void rank_of_a_role_twice(struct world *w) {
    struct round_spec s = spec(2, 1);
    s.role_rank_base = 0;
    second_of(w, s);
}

static void role_is_too_large(struct world *w) {
    struct round_spec s = spec(2, 1);
    s.role = "other";
    s.role_rank_base = 0;
    second_of(w, s);
}

static void group_ranks_are_not_in_the_order_of_ranks(struct world *w) {
    struct round_spec s = spec(2, 1);
    s.group_rank = 0;
    second_of(w, s);
}

/* --- times --- */

static void stops(struct world *w, struct judged_stop s) {
    sessions(w);
    w->nodes[1].signaled = 1;
    judge_stop(&w->judge, 1, &s);
}

static void kills_at_once(struct world *w) {
    stops(w, (struct judged_stop){.kill = true});
}

static void gives_a_short_time(struct world *w) {
    stops(w, (struct judged_stop){.signo = SIGTERM, .grace_ns = 200 * MS});
}

static void ends_them_with_another_signal(struct world *w) {
    stops(w, (struct judged_stop){.signo = SIGINT, .grace_ns = 500 * MS});
}

static void lets_them_live_on(struct world *w) {
    sessions(w);
    w->nodes[1].group.unasked = true;
    w->nodes[1].group.failed_ns = 1000 * MS;
    w->judge.now_ns = 3000 * MS;
    judge_ended(&w->judge, 1);
}

static void lets_them_live_on_after_their_round(struct world *w) {
    sessions(w);
    w->nodes[1].group.over_ns = 1000 * MS;
    w->judge.now_ns = 4000 * MS;
    judge_ended(&w->judge, 1);
}

static void takes_the_lead_of_the_living(struct world *w) {
    sessions(w);
    put(w, "b", key_of(KEY_LEAD, "", 0), (union value){.lead = {"b"}});
}

static void nobody_takes_the_lead(struct world *w) {
    sessions(w);
    joins(w, "c", (struct member_value){.node = "n2"});
    w->sessions[2] = "c";
    w->judge.now_ns = 1000 * MS;
    strcpy(w->times.lead.uid, "gone");
    w->times.lead.absent_ns = 2000 * MS;
    w->judge.now_ns = 9000 * MS;
    put(w, "c", key_of(KEY_LEAD, "", 0), (union value){.lead = {"c"}});
}

static void waits_for_nothing(struct world *w) {
    w->sessions[0] = "a";
    w->judge.now_ns = 1000 * MS;
    reform(w);
    acks(w);
    w->judge.now_ns = 9000 * MS;
    head(w, "a", run(1));
}

/* Local rank 1 of n1, which is rank 3, has exited with 1. */
static struct head_value failed_worker(struct world *w) {
    struct judged_group *g = &w->nodes[1].group;
    struct head_value h = failed_by("b");
    sessions(w);
    w->judge.now_ns = g->failed_ns = 1000 * MS;
    g->unasked = g->failed = true;
    g->failed_rank = 1;
    g->failed_status = 1 << 8;
    g->place.rank_base = 2;
    h.failure.error[0] = '\0';
    h.failure.rank = 3;
    h.failure.local_rank = 1;
    h.failure.wait_status = 1 << 8;
    strcpy(h.failure.node, "n1");
    return h;
}

static void tells_a_failure_late(struct world *w) {
    struct head_value h = failed_worker(w);
    w->judge.now_ns = 9000 * MS;
    head(w, "b", h);
}

static void is_done_late(struct world *w) {
    sessions(w);
    groups_end(w);
    w->last[1].succeeded = true;
    w->nodes[1].group.ended_ns = 2000 * MS;
    w->judge.now_ns = 9000 * MS;
    put(w, "b", key_of(KEY_DONE, "b", 1), (union value){.done = {1}});
}

static void starts_late(struct world *w) {
    struct round_spec s = spec(2, 0);
    reform(w);
    acks(w);
    head(w, "a", run(1));
    w->judge.now_ns = 9000 * MS;
    start(w, 0, &s);
}

static union value times_of(int64_t hb_ms, int64_t fence_ms, int64_t hard_ms, int64_t suspect_ms) {
    return (union value){
        .cur = {.timing = {hb_ms * MS, fence_ms * MS, hard_ms * MS, suspect_ms * MS}}};
}

static void begins_with(struct world *w, int max, union value v) {
    w->judge.job.hb_ns = 150 * MS;
    w->judge.job.max = max;
    put(w, "a", (struct store_key){.kind = KEY_CUR}, v);
}

static void beats_too_seldom(struct world *w) {
    begins_with(w, 100, times_of(200, 800, 906, 1066));
}

static void beats_too_often(struct world *w) {
    begins_with(w, 400, times_of(150, 600, 680, 800));
}

static void suspects_too_soon(struct world *w) {
    begins_with(w, 100, times_of(150, 600, 680, 790));
}

/* n1 has seen it at 2 s. */
static void is_set_back(struct world *w) {
    w->judge.job.shutdown_grace_ns = 500 * MS;
    judge_set_back(&w->judge);
    w->judge.now_ns = 2000 * MS;
    judge_strange(&w->judge, 1, 5, 9);
}

static void starts_in_a_store_that_was_set_back(struct world *w) {
    struct round_spec s = spec(2, 1);
    groups_end(w);
    is_set_back(w);
    start(w, 1, &s);
}

static void has_an_outcome_of_a_store_that_was_set_back(struct world *w) {
    is_set_back(w);
    judge_exit(&w->judge, 1, 1);
}

static void stays_in_a_store_that_was_set_back(struct world *w) {
    is_set_back(w);
    w->judge.now_ns = 4000 * MS;
    judge_exit(&w->judge, 1, 69);
}

static void names_another_rank(struct world *w) {
    struct head_value h = failed_worker(w);
    h.failure.rank = 1;
    head(w, "b", h);
}

static void names_another_worker(struct world *w) {
    struct head_value h = failed_worker(w);
    h.failure.local_rank = 0;
    h.failure.rank = 2;
    head(w, "b", h);
}

static void names_another_end(struct world *w) {
    struct head_value h = failed_worker(w);
    h.failure.wait_status = SIGSEGV;
    head(w, "b", h);
}

static void names_another_node(struct world *w) {
    struct head_value h = failed_worker(w);
    strcpy(h.failure.node, "n0");
    head(w, "b", h);
}

static void names_a_worker_though_it_was_the_guard(struct world *w) {
    struct head_value h = failed_worker(w);
    w->nodes[1].group.failed_ns = 0;
    head(w, "b", h);
}

static void says_nothing_of_how_it_ended(struct world *w) {
    w->times.failure = failed_worker(w).failure;
    w->judge.outcome = OUTCOME_FAILED;
    judge_said(&w->judge, 1, "run failed: rank 3 (local rank 1 on node n1) (null)");
}

static const struct row {
    const char *invariant;
    void (*plant)(struct world *w);
} rows[] = {
    {"admission", joiner_is_left_out},
    {"admission", newcomer_ends_the_round_at_once},
    {"agreement", plan_is_short},
    {"agreement", told_otherwise},
    {"bounds", too_few},
    {"certified_once", certified_again},
    {"contract", acks_with_a_worker},
    {"contract", certified_with_a_worker},
    {"contract", starts_with_a_certificate},
    {"fencing", acks_without_session},
    {"fencing", begins_anew_though_nothing_is_forgotten},
    {"fencing", head_goes_back},
    {"fencing", head_not_by_the_leader},
    {"finished", done_is_undone},
    {"last_call", begins_with_min_at_once},
    {"master", master_is_another},
    {"master", master_is_missing},
    {"master", master_is_not_what_rank_0_has_told},
    {"named", names_a_worker_though_it_was_the_guard},
    {"named", names_another_end},
    {"named", names_another_node},
    {"named", names_another_rank},
    {"named", names_another_worker},
    {"named", says_nothing_of_how_it_ended},
    {"newcomers", later_one_comes_first},
    {"newcomers", later_one_is_taken_alone},
    {"newcomers", spare_comes_before_a_new_one},
    {"newcomers", spare_waits_while_one_is_missing},
    {"newcomers", who_is_back_comes_after_a_new_one},
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
    {"pauses", brief_round_follows_at_once},
    {"pauses", brief_rounds_are_counted_twice},
    {"progress", has_no_end},
    {"progress", proposes_again_and_again},
    {"prompt", is_done_late},
    {"prompt", starts_late},
    {"prompt", tells_a_failure_late},
    {"prompt", waits_for_nothing},
    {"rank_order", survivors_change_places},
    {"ranks", group_rank_is_left_out},
    {"ranks", rank_twice},
    {"remembered", lease_is_not_kept},
    {"restarts", acks_as_failed_after_a_stop},
    {"restarts", budget_is_passed},
    {"restarts", ends_as_failed_after_a_stop},
    {"restarts", ends_at_no_cost_for_nothing},
    {"restarts", guard_that_was_killed_is_a_fence},
    {"restarts", ends_as_failed_though_none_has},
    {"restarts", failure_costs_nothing},
    {"restarts", hides_from_who_watches_that_it_was_fenced},
    {"restarts", hides_that_it_was_fenced},
    {"roles", group_ranks_are_not_in_the_order_of_ranks},
    {"roles", rank_of_a_role_twice},
    {"roles", role_is_of_another_size},
    {"roles", role_is_too_large},
    {"seats", takes_another_seat},
    {"set_back", has_an_outcome_of_a_store_that_was_set_back},
    {"set_back", starts_in_a_store_that_was_set_back},
    {"set_back", stays_in_a_store_that_was_set_back},
    {"spares", spare_makes_it_larger},
    {"stops", ends_them_with_another_signal},
    {"stops", gives_a_short_time},
    {"stops", kills_at_once},
    {"stops", lets_them_live_on},
    {"stops", lets_them_live_on_after_their_round},
    {"takeover", nobody_takes_the_lead},
    {"takeover", takes_the_lead_of_the_living},
    {"timing", beats_too_often},
    {"timing", beats_too_seldom},
    {"timing", suspects_too_soon},
    {"tokens", round_has_no_token},
    {"tokens", round_has_the_last_token},
    {"undisturbed", ends_its_workers_for_nothing},
};

static void test_each_invariant_catches_what_breaks_it(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct invariant *inv = invariant_find(rows[i].invariant);
        char begins[64];
        struct world *w = world_new();
        rows[i].plant(w);
        snprintf(begins, sizeof(begins), "%s %s: ", inv->number, inv->name);
        if (strncmp(w->text, begins, strlen(begins)) != 0)
            fail_msg("row %zu: not \"%s\" but \"%s\"", i, begins, w->text);
        world_free(w);
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
    struct world *w = world_new();
    sessions(w);
    groups_end(w);
    judge_claim(&w->judge, 1, CLAIM_FENCED, 1);
    put(w, "b", key_of(KEY_ACK, "b", 1), (union value){.ack = {.why = ACK_FENCED}});
    assert_string_equal(w->text, "");
    world_free(w);
}

/* Of such a store nothing else is promised: what it says does not follow from what it said. */
static void test_a_store_that_was_set_back_is_judged_by_who_has_seen_it_alone(void **state) {
    (void)state;
    struct world *w = world_new();
    reform(w);
    is_set_back(w);
    acks(w);
    head(w, "b", run(0));
    w->judge.now_ns = 2600 * MS;
    judge_exit(&w->judge, 1, 69);
    assert_string_equal(w->text, "");
    judge_end(&w->judge, false, true);
    assert_non_null(strstr(w->text, "I5 progress: "));
    world_free(w);
}

static void test_what_a_session_has_heard_is_not_what_the_next_one_knows(void **state) {
    (void)state;
    struct world *w = world_new();
    judge_heard(&w->judge, 1, "b", 9);
    judge_heard(&w->judge, 1, "b", 7);
    assert_int_equal(judge_known(&w->judge, 1, "b"), 9);
    assert_int_equal(judge_known(&w->judge, 1, "c"), 0);
    judge_heard(&w->judge, 1, "c", 3);
    assert_int_equal(judge_known(&w->judge, 1, "c"), 3);
    world_free(w);
}

static void test_a_failure_that_is_named_as_it_was_breaks_nothing(void **state) {
    (void)state;
    struct world *w = world_new();
    struct head_value h = failed_worker(w);
    head(w, "b", h);
    w->times.failure = h.failure;
    w->judge.outcome = OUTCOME_FAILED;
    judge_said(&w->judge, 1, "run failed: rank 3 (local rank 1 on node n1) exited with code 1");
    assert_string_equal(w->text, "");
    world_free(w);
}

static void test_times_that_fit_break_nothing(void **state) {
    (void)state;
    struct world *w = world_new();
    begins_with(w, 100, times_of(150, 600, 680, 800));
    begins_with(w, 400, times_of(200, 800, 906, 1066));
    assert_string_equal(w->text, "");
    world_free(w);
}

static void test_a_new_job_begins_only_when_the_old_ones_workers_are_gone(void **state) {
    (void)state;
    for (int gone = 0; gone < 2; gone++) {
        struct world *w = world_new();
        struct store_key session = key_of(KEY_SESSION, "b", 0), key = key_of(KEY_HEAD, "", 0);
        strcpy(session.inc, "j");
        strcpy(key.inc, "j");
        put(w, "b", session, (union value){.session = {0}});
        new_job_beside_the_old(w);
        assert_string_equal(w->text, "");
        w->judge.others = true;
        if (gone)
            groups_end(w);
        put(w, "b", key, (union value){.head = {.phase = HEAD_FORM, .round = 1}});
        assert_int_equal(*w->text != 0, !gone);
        world_free(w);
    }
}

static void test_a_round_that_fails_and_is_formed_again_breaks_nothing(void **state) {
    (void)state;
    struct world *w = world_new();
    struct round_spec first = spec(2, 0), second = spec(2, 1);
    reform(w);
    acks(w);
    head(w, "a", run(1));
    start(w, 0, &first);
    start(w, 1, &second);
    judge_success(&w->judge, "a", 2);
    judge_success(&w->judge, "b", 2);
    put(w, "a", key_of(KEY_DONE, "a", 2), (union value){.done = {2}});
    put(w, "b", key_of(KEY_DONE, "b", 2), (union value){.done = {2}});
    head(w, "a",
         (struct head_value){.phase = HEAD_CLOSED,
                             .round = 2,
                             .last_round = 2,
                             .restarts = 1,
                             .outcome = OUTCOME_SUCCEEDED});
    judge_exit(&w->judge, 0, 0);
    judge_end(&w->judge, true, false);
    assert_string_equal(w->text, "");
    world_free(w);
}

/* As the explorer: its times are steps, and it forgets workers that are dead. */
static void test_a_world_without_times_is_not_judged_by_them(void **state) {
    (void)state;
    static void (*const plants[])(struct world * w) = {joiner_is_left_out, begins_with_min_at_once,
                                                       gives_up_on_too_few_at_once,
                                                       ends_as_failed_though_none_has};
    for (size_t i = 0; i < sizeof(plants) / sizeof(*plants); i++) {
        struct world *w = world_new();
        w->judge.times = NULL;
        w->judge.job.kept = false;
        if (plants[i] == ends_as_failed_though_none_has)
            memset(&w->nodes[1].group, 0, sizeof(w->nodes[1].group));
        plants[i](w);
        assert_string_equal(w->text, "");
        world_free(w);
    }
}

static uint64_t looks(void (*happens)(struct world *w)) {
    struct world *w = world_new();
    struct canonical c = {0};
    happens(w);
    judge_canonical(&w->judge, &c);
    world_free(w);
    return c.hash;
}

static void b_acks(struct world *w) {
    sessions(w);
    groups_end(w);
    ack(w, "b", 1);
}

static void test_what_is_counted_makes_states_differ(void **state) {
    (void)state;
    static void (*const happens[])(struct world * w) = {
        sessions,   b_acks,        certified_again, reform, failure_costs_nothing,
        rank_twice, told_otherwise};
    size_t n = sizeof(happens) / sizeof(*happens);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            assert_int_equal(looks(happens[i]) == looks(happens[k]), i == k);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_invariant_catches_what_breaks_it),
        cmocka_unit_test(test_every_invariant_has_a_wrong_that_it_catches),
        cmocka_unit_test(test_a_store_that_was_set_back_is_judged_by_who_has_seen_it_alone),
        cmocka_unit_test(test_what_a_session_has_heard_is_not_what_the_next_one_knows),
        cmocka_unit_test(test_a_failure_that_is_named_as_it_was_breaks_nothing),
        cmocka_unit_test(test_times_that_fit_break_nothing),
        cmocka_unit_test(test_who_was_fenced_and_says_so_breaks_nothing),
        cmocka_unit_test(test_a_new_job_begins_only_when_the_old_ones_workers_are_gone),
        cmocka_unit_test(test_a_round_that_fails_and_is_formed_again_breaks_nothing),
        cmocka_unit_test(test_a_world_without_times_is_not_judged_by_them),
        cmocka_unit_test(test_what_is_counted_makes_states_differ),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
