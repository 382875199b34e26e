/* One core, every event made by hand: its beginning, its beats, its end. */
#include "agent/core/state.h"
#include "tests/agent/core/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* --- beginnings --- */

static void test_the_first_agent_makes_the_incarnation_under_a_lease(void **state) {
    (void)state;
    struct rendezvous_config c = config_of();
    const union value *v = NULL;
    c.attempt = "one";
    c.max_free_rounds = 7;
    c.restart_mode = RESTART_COUNT_NODE;
    c.on_node_loss = NODE_LOSS_GANG;
    begin(&c);
    answer(need(ACTION_SNAPSHOT), NULL, 0, 10);
    const struct action *grant = need(ACTION_LEASE_GRANT);
    int64_t lease = grant->lease.lease;
    assert_int_equal(grant->lease.ttl_s, 60);
    done(grant->lease.id, true, true, 10);
    const struct action *put = find_put(KEY_CUR, &v);
    assert_int_equal(put->txn.txn.lease, lease);
    assert_int_equal(key_lease(v->cur.inc), lease);
    assert_int_equal(put->txn.txn.compares[0].number, 0);
    assert_int_equal(v->cur.min, c.min);
    assert_int_equal(v->cur.max, 2);
    assert_int_equal(v->cur.max_restarts, c.max_restarts);
    assert_int_equal(v->cur.max_free_rounds, 7);
    assert_int_equal(v->cur.restart_mode, RESTART_COUNT_NODE);
    assert_int_equal(v->cur.on_node_loss, NODE_LOSS_GANG);
    assert_memory_equal(&v->cur.timing, &c.timing, sizeof(c.timing));
    assert_string_equal(v->cur.attempt, "one"); /* what is of the job is the first agent's word */
    done(put->txn.id, false, false, 0);         /* its reply is never believed: cur is read again */
    tick(500 * MS);
    assert_int_equal(need(ACTION_SNAPSHOT)->snapshot.keys[0].kind, KEY_CUR);
}

static void test_a_closed_run_is_not_joined_but_answered(void **state) {
    (void)state;
    struct rendezvous_config c = config_of();
    union value head = head_of(HEAD_CLOSED, 2, 2);
    head.head.outcome = OUTCOME_SUCCEEDED;
    begin(&c);
    come_to_head("", &head);
    assert_int_equal(need(ACTION_EXIT)->exit.code, 0);
    assert_non_null(strstr(need(ACTION_EXIT)->exit.text, "it succeeded; no worker was started"));
    assert_non_null(strstr(need(ACTION_EXIT)->exit.text, "--rdzv-id, or wait"));
    rendezvous_free(r);
    head.head.outcome = OUTCOME_FAILED;
    head.head.failure = (struct failure){.uid = "a", .node = "n7", .rank = 3, .wait_status = 9};
    begin(&c);
    come_to_head("", &head);
    assert_int_equal(need(ACTION_EXIT)->exit.code, 1);
    assert_non_null(strstr(need(ACTION_EXIT)->exit.text, "rank 3"));
    assert_non_null(strstr(need(ACTION_EXIT)->exit.text, "signal 9"));
    assert_non_null(strstr(need(ACTION_EXIT)->exit.text, "already ended here: it failed"));
    assert_int_equal(need(ACTION_EXIT)->exit.failure->rank, 3);
    assert_int_equal(need(ACTION_EXIT)->exit.round, 2);
    assert_true(need(ACTION_EXIT)->exit.earlier);
}

/* The run closes while this agent is in it. */
static void closed_with(int max_restarts, int64_t round) {
    struct rendezvous_config c = config_of();
    union value cur = cur_of(""), head = head_of(HEAD_CLOSED, round, round);
    cur.cur.max_restarts = max_restarts;
    begin(&c);
    struct entry e = entry_of(KEY_CUR, 3, &cur);
    answer(need(ACTION_SNAPSHOT), &e, 1, 10);
    answer(need(ACTION_SNAPSHOT), NULL, 0, 10);
    done(find_put(KEY_MEMBER, NULL)->txn.id, true, true, 11);
    head.head.outcome = OUTCOME_FAILED;
    head.head.failure = (struct failure){.uid = "a", .node = "n7", .rank = 3, .wait_status = 9};
    changed(WATCH_HEAD, entry_of(KEY_HEAD, 32, &head));
    done(need(ACTION_TXN)->txn.id, true, true, 33);
    assert_int_equal(need(ACTION_EXIT)->exit.code, 1);
    assert_false(need(ACTION_EXIT)->exit.earlier);
}

/* Without restarts, too, there are several rounds where nodes come and go. */
static void test_a_failed_run_names_its_round_and_its_budget_where_there_is_one(void **state) {
    (void)state;
    closed_with(3, 4);
    assert_non_null(strstr(need(ACTION_EXIT)->exit.text, "max_restarts 3 is used up"));
    assert_int_equal(need(ACTION_EXIT)->exit.round, 4);
    rendezvous_free(r);
    closed_with(0, 2);
    assert_null(strstr(need(ACTION_EXIT)->exit.text, "max_restarts"));
    assert_non_null(strstr(need(ACTION_EXIT)->exit.text, "rank 3"));
    assert_int_equal(need(ACTION_EXIT)->exit.round, 2);
}

/* Another attempt has come to the run of "one", whose head and session it reads; all of "one" is
 * read once more, whole, with as many sessions. Leads to the transaction that replaces it. */
static const struct action *replacement(const union value *head, int sessions, int64_t wait_ns) {
    struct rendezvous_config c = config_of();
    union value session = {.session = {0}};
    struct entry e[2] = {entry_of(KEY_HEAD, 9, head), entry_of(KEY_SESSION, 8, &session)};
    c.attempt = "two";
    begin(&c);
    come_to_head("one", head);
    strcpy(e[1].key.uid, "other");
    assert_int_equal(need(ACTION_SNAPSHOT)->snapshot.keys[0].kind, KEY_INCARNATION);
    answer(need(ACTION_SNAPSHOT), e, (size_t)(1 + sessions), 10);
    done(need(ACTION_LEASE_GRANT)->lease.id, true, true, 10);
    if (wait_ns) {
        assert_null(find_put(KEY_CUR, NULL));
        tick(wait_ns - MS);
        assert_null(find_put(KEY_CUR, NULL));
        tick(MS);
    }
    assert_non_null(find_put(KEY_CUR, NULL));
    return find_put(KEY_CUR, NULL);
}

static union value closed_head(void) {
    union value head = head_of(HEAD_CLOSED, 2, 0);
    head.head.outcome = OUTCOME_FAILED;
    return head;
}

static void test_another_attempt_replaces_a_run_that_is_closed_and_settled_at_once(void **state) {
    (void)state;
    union value head = closed_head();
    const struct txn *t = &replacement(&head, 1, 0)->txn.txn;
    assert_int_equal(t->compares[0].target, COMPARE_LEASE); /* the cur that was read, no other */
    assert_int_equal(t->compares[0].number, key_lease(INC));
    assert_int_equal(t->n_ops, 1); /* its agents still have to learn of their outcome */
    assert_int_equal(t->ops[0].value->cur.rounds_before, 2);
    assert_string_equal(t->ops[0].value->cur.former, INC);
    assert_string_equal(t->ops[0].value->cur.attempt, "two");
}

static void test_another_attempt_waits_for_suspect_where_there_are_sessions(void **state) {
    (void)state;
    struct timing t;
    timing_profile("default", &t);
    union value head = head_of(HEAD_END, 2, 0);
    const struct txn *txn = &replacement(&head, 1, t.suspect_ns)->txn.txn;
    bool below = false, ends = false;
    for (size_t i = 0; i < txn->n_compares; i++)
        below |= txn->compares[i].key.kind == KEY_SESSION &&
                 txn->compares[i].relation == COMPARE_LESS && txn->compares[i].number == 11;
    for (size_t i = 0; i < txn->n_ops; i++)
        ends |= !txn->ops[i].put && txn->ops[i].key.kind == KEY_INCARNATION;
    assert_true(below && ends);
}

static void test_another_attempt_replaces_a_run_without_sessions_at_once(void **state) {
    (void)state;
    union value head = head_of(HEAD_END, 2, 0);
    replacement(&head, 0, 0);
}

static void test_a_round_of_a_run_without_sessions_still_needs_its_certificates(void **state) {
    (void)state;
    struct timing t;
    timing_profile("default", &t);
    union value head = head_of(HEAD_RUN, 2, 2); /* one member, of which nothing is there */
    replacement(&head, 0, t.suspect_ns);
}

static void test_another_attempt_is_refused_while_the_run_lives(void **state) {
    (void)state;
    struct timing t;
    timing_profile("default", &t);
    union value head = head_of(HEAD_END, 2, 0);
    done(replacement(&head, 1, t.suspect_ns)->txn.id, true, false, 12);
    come_to_head("one", &head);
    assert_int_equal(need(ACTION_EXIT)->exit.code, 64);
    assert_non_null(strstr(need(ACTION_EXIT)->exit.text, "in use by attempt \"one\""));
}

static void test_a_replacement_without_an_answer_is_looked_up(void **state) {
    (void)state;
    union value head = closed_head();
    done(replacement(&head, 0, 0)->txn.id, false, false, 0);
    tick(500 * MS);
    assert_int_equal(need(ACTION_SNAPSHOT)->snapshot.keys[0].kind, KEY_CUR);
}

static void test_a_join_without_a_reply_is_looked_up(void **state) {
    (void)state;
    struct rendezvous_config c = config_of();
    union value v = {0};
    begin(&c);
    come_to_head("", NULL);
    const struct action *join_txn = find_put(KEY_SESSION, NULL);
    struct store_key own = join_txn->txn.txn.ops[0].key;
    done(join_txn->txn.id, false, false, 0);
    tick(500 * MS);
    const struct action *look = need(ACTION_SNAPSHOT);
    assert_string_equal(look->snapshot.keys[0].uid, own.uid);
    struct entry e = entry_of(KEY_SESSION, 12, &v);
    e.key = own;
    answer(look, &e, 1, 13);
    assert_string_equal(uid, own.uid);
    assert_null(find(ACTION_DEADLINE)); /* nobody knows when it was applied */
    need(ACTION_BEAT);
}

/* --- beats and deadlines --- */

static void test_the_deadline_counts_from_the_sending_of_an_accepted_beat(void **state) {
    (void)state;
    join();
    int64_t joined_ns = now_ns;
    assert_int_equal(need(ACTION_DEADLINE)->deadline.fence_ns, joined_ns + 10400 * MS);
    tick(500 * MS);
    int64_t seq = need(ACTION_BEAT)->beat.seq, sent_ns = now_ns;
    tick(100 * MS);
    assert_null(find(ACTION_BEAT)); /* one at a time */
    beat(seq, BEAT_APPLIED);
    assert_int_equal(need(ACTION_DEADLINE)->deadline.fence_ns, sent_ns + 10400 * MS);
    assert_int_equal(need(ACTION_DEADLINE)->deadline.hard_ns, sent_ns + 10700 * MS);
}

static void test_a_beat_without_a_reply_extends_nothing(void **state) {
    (void)state;
    join();
    tick(500 * MS);
    int64_t seq = need(ACTION_BEAT)->beat.seq;
    tick(500 * MS);
    beat(seq, BEAT_FAILED);
    assert_null(find(ACTION_DEADLINE));
    int64_t next = need(ACTION_BEAT)->beat.seq;
    assert_true(next > seq);
    beat(seq, BEAT_APPLIED); /* the old one's reply after all */
    assert_null(find(ACTION_DEADLINE));
}

static void test_a_refused_beat_kills_and_begins_a_new_session(void **state) {
    (void)state;
    char old[UID_SIZE];
    work();
    memcpy(old, uid, sizeof(old));
    tick(500 * MS);
    beat(need(ACTION_BEAT)->beat.seq, BEAT_REFUSED);
    need(ACTION_KILL);
    assert_null(find(ACTION_STOP));
    assert_null(find(ACTION_SNAPSHOT)); /* not before the workers are dead */
    reaped();
    assert_int_equal(need(ACTION_SNAPSHOT)->snapshot.keys[0].kind, KEY_CUR);
    come_back(50);
    assert_string_not_equal(find_put(KEY_SESSION, NULL)->txn.txn.ops[0].key.uid, old);
}

static void test_without_an_accepted_beat_the_workers_die_and_the_round_ends_free(void **state) {
    (void)state;
    const union value *v = NULL;
    work();
    tick(500 * MS);
    int64_t seq = need(ACTION_BEAT)->beat.seq;
    tick(5000 * MS);
    need(ACTION_KILL);
    reaped();
    assert_null(find_put(KEY_HEAD, NULL)); /* not while it is not heard */
    beat(seq, BEAT_FAILED);
    beat(need(ACTION_BEAT)->beat.seq, BEAT_APPLIED);
    assert_non_null(find_put(KEY_HEAD, &v));
    assert_int_equal(v->head.phase, HEAD_END);
    assert_int_equal(v->head.cause, CAUSE_MEMBERSHIP);
    form(2, 1, 40);
    port();
    assert_non_null(find_put(KEY_ACK, &v));
    assert_int_equal(v->ack.why, ACK_FENCED);
}

static void test_a_job_of_one_node_with_its_own_store_has_no_deadline(void **state) {
    (void)state;
    struct rendezvous_config c = config_of();
    union value cur = cur_of("");
    c.store_in_process = true;
    cur.cur.max = c.max = 1;
    begin(&c);
    struct entry e = entry_of(KEY_CUR, 3, &cur);
    answer(need(ACTION_SNAPSHOT), &e, 1, 10);
    answer(need(ACTION_SNAPSHOT), NULL, 0, 10);
    done(find_put(KEY_MEMBER, NULL)->txn.id, true, true, 11);
    assert_null(find(ACTION_DEADLINE));
    form(1, 0, 20);
    port();
    done(find_put(KEY_ACK, NULL)->txn.id, true, true, 21);
    run(1, 22);
    assert_false(need(ACTION_START)->start->deadline_required);
    tick(100000 * MS);
    assert_null(find(ACTION_KILL));
}

/* --- ends --- */

static void test_a_signal_before_the_join_ends_at_once(void **state) {
    (void)state;
    struct rendezvous_config c = config_of();
    begin(&c);
    signaled(15);
    assert_int_equal(need(ACTION_EXIT)->exit.code, 143);
}

static void test_a_leaver_goes_after_its_workers_and_says_so(void **state) {
    (void)state;
    const union value *v = NULL;
    work();
    signaled(2);
    assert_int_equal(need(ACTION_STOP)->stop.signo, 2);
    assert_int_equal(need(ACTION_STOP)->stop.grace_ms, 30000);
    assert_null(find_put(KEY_GONE, NULL));
    signaled(2);
    need(ACTION_KILL); /* a second one means now */
    reaped();
    const struct action *txn = find_put(KEY_GONE, &v);
    assert_int_equal(v->gone.why, GONE_LEFT);
    done(txn->txn.id, true, true, 40);
    assert_int_equal(need(ACTION_EXIT)->exit.code, 130);
}

static void test_a_store_that_is_never_reached_is_given_up_after_the_join_timeout(void **state) {
    (void)state;
    struct rendezvous_config c = config_of();
    c.join_timeout_ns = 3000 * MS;
    begin(&c);
    for (int i = 0; i < 20 && !find(ACTION_EXIT); i++) {
        const struct action *a = find(ACTION_SNAPSHOT);
        struct event ev = {.kind = EVENT_SNAPSHOT};
        ev.snapshot.id = a ? a->snapshot.id : 0;
        if (a)
            step(ev);
        else
            tick(500 * MS);
    }
    assert_int_equal(need(ACTION_EXIT)->exit.code, 69);
    assert_true(now_ns <= 4500 * MS);
}

static void unanswered(const struct action *snapshot) {
    struct event ev = {.kind = EVENT_SNAPSHOT};
    ev.snapshot.id = snapshot->snapshot.id;
    step(ev);
}

static void test_a_store_that_is_not_up_yet_is_told_once_and_when_it_is(void **state) {
    (void)state;
    struct rendezvous_config c = config_of();
    begin(&c);
    unanswered(need(ACTION_SNAPSHOT));
    assert_true(need(ACTION_STORE)->store.lost);
    assert_non_null(strstr(need(ACTION_STORE)->store.text, "up to 600 s"));
    tick(500 * MS);
    unanswered(need(ACTION_SNAPSHOT));
    assert_null(find(ACTION_STORE));
    tick(500 * MS);
    answer(need(ACTION_SNAPSHOT), NULL, 0, 10);
    assert_false(need(ACTION_STORE)->store.lost);
}

static void test_a_lost_store_is_told_once_at_the_fence_and_when_it_is_back(void **state) {
    (void)state;
    int told = 0;
    bool killed = false;
    work();
    int64_t silent_ns = now_ns;
    tick(500 * MS);
    while (now_ns < silent_ns + 20000 * MS) {
        const struct action *a = find(ACTION_BEAT), *said = find(ACTION_STORE);
        if (said) {
            assert_true(said->store.lost && now_ns >= silent_ns + 5400 * MS);
            assert_non_null(strstr(said->store.text, "up to 300 s for it (--rdzv-conf give_up"));
            told++;
        }
        killed |= find(ACTION_KILL) != NULL;
        if (a) {
            beat(a->beat.seq, BEAT_FAILED);
        } else if (killed) {
            killed = false;
            reaped();
        } else {
            tick(500 * MS);
        }
    }
    assert_int_equal(told, 1);
    if (!find(ACTION_BEAT))
        tick(500 * MS);
    beat(need(ACTION_BEAT)->beat.seq, BEAT_APPLIED);
    assert_false(need(ACTION_STORE)->store.lost);
    assert_string_equal(need(ACTION_STORE)->store.text, "answers again");
}

/* A session alone, as its own coordinator, sees one of 1:2 nodes. */
static void test_a_coordinator_that_waits_for_more_nodes_says_how_long(void **state) {
    (void)state;
    union value session = {0}, member = {.member = {.slots = 2}}, lead = {0};
    join();
    tick(20 * MS * (1 + 16));
    done(find_put(KEY_LEAD, NULL)->txn.id, true, true, 12);
    memcpy(lead.lead.uid, uid, sizeof(lead.lead.uid));
    changed(WATCH_LEAD, entry_of(KEY_LEAD, 12, &lead));
    struct entry all[] = {entry_of(KEY_SESSION, 11, &session), entry_of(KEY_MEMBER, 11, &member),
                          entry_of(KEY_LEAD, 12, &lead)};
    memcpy(all[0].key.uid, uid, sizeof(all[0].key.uid));
    memcpy(all[1].key.uid, uid, sizeof(all[1].key.uid));
    answer(need(ACTION_SNAPSHOT), all, 3, 12);
    assert_non_null(strstr(need(ACTION_LOG)->log, "1 of 1:2 nodes is here; starting with it in 1"));
    tick(500 * MS);
    assert_null(find(ACTION_LOG));
}

static void test_a_store_that_is_lost_for_good_leaves_the_outcome_unknown(void **state) {
    (void)state;
    join();
    for (int i = 0; i < 2000 && !find(ACTION_EXIT); i++) {
        const struct action *a = find(ACTION_BEAT);
        if (a)
            beat(a->beat.seq, BEAT_FAILED);
        else
            tick(500 * MS);
    }
    assert_int_equal(need(ACTION_EXIT)->exit.code, 69);
    assert_non_null(strstr(need(ACTION_EXIT)->exit.text, "unknown"));
}

/* The session was revoked: until its workers are dead this agent asks for nothing, so that the
 * store cannot answer. */
static void test_a_store_that_is_not_asked_is_not_given_up(void **state) {
    (void)state;
    work();
    r->config.give_up_ns = 1000 * MS;
    tick(500 * MS);
    beat(need(ACTION_BEAT)->beat.seq, BEAT_REFUSED);
    need(ACTION_KILL);
    for (int i = 0; i < 12; i++) {
        tick(500 * MS);
        assert_null(find(ACTION_EXIT));
    }
    reaped();
    int64_t asked_ns = now_ns;
    while (!find(ACTION_EXIT) && now_ns < asked_ns + 20000 * MS) {
        if (find(ACTION_SNAPSHOT))
            unanswered(find(ACTION_SNAPSHOT));
        else
            tick(500 * MS);
    }
    assert_int_equal(need(ACTION_EXIT)->exit.code, 69);
    assert_true(now_ns >= asked_ns + 1000 * MS);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_teardown(name, script_end)
    const struct CMUnitTest tests[] = {
        TEST(test_the_first_agent_makes_the_incarnation_under_a_lease),
        TEST(test_a_closed_run_is_not_joined_but_answered),
        TEST(test_another_attempt_replaces_a_run_that_is_closed_and_settled_at_once),
        TEST(test_another_attempt_waits_for_suspect_where_there_are_sessions),
        TEST(test_another_attempt_replaces_a_run_without_sessions_at_once),
        TEST(test_a_round_of_a_run_without_sessions_still_needs_its_certificates),
        TEST(test_another_attempt_is_refused_while_the_run_lives),
        TEST(test_a_replacement_without_an_answer_is_looked_up),
        TEST(test_a_join_without_a_reply_is_looked_up),
        TEST(test_the_deadline_counts_from_the_sending_of_an_accepted_beat),
        TEST(test_a_beat_without_a_reply_extends_nothing),
        TEST(test_a_refused_beat_kills_and_begins_a_new_session),
        TEST(test_without_an_accepted_beat_the_workers_die_and_the_round_ends_free),
        TEST(test_a_job_of_one_node_with_its_own_store_has_no_deadline),
        TEST(test_a_signal_before_the_join_ends_at_once),
        TEST(test_a_leaver_goes_after_its_workers_and_says_so),
        TEST(test_a_store_that_is_never_reached_is_given_up_after_the_join_timeout),
        TEST(test_a_store_that_is_lost_for_good_leaves_the_outcome_unknown),
        TEST(test_a_store_that_is_not_asked_is_not_given_up),
        TEST(test_a_failed_run_names_its_round_and_its_budget_where_there_is_one),
        TEST(test_a_store_that_is_not_up_yet_is_told_once_and_when_it_is),
        TEST(test_a_lost_store_is_told_once_at_the_fence_and_when_it_is_back),
        TEST(test_a_coordinator_that_waits_for_more_nodes_says_how_long),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
