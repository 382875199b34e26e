/* One core, every event made by hand. */
#include "agent/core/rendezvous.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define MS  1000000LL
#define INC "0123456789abcdef"

static struct rendezvous *r;
static const struct action *actions;
static size_t n_actions;
static int64_t now_ns;
static uint64_t generations[WATCH_SLOTS];
static char uid[UID_SIZE];
static bool port_needed;

static struct rendezvous_config config_of(void) {
    struct rendezvous_config c = {
        .run_id = "job",
        .node = "n0",
        .addr = "10.0.0.1",
        .role = "default",
        .slots = 2,
        .min = 1,
        .max = 2,
        .max_restarts = 3,
        .attempt = "",
        .last_call_ns = 1000 * MS,
        .admit_ns = 50 * MS,
        .join_timeout_ns = 600000 * MS,
        .stop_timeout_ns = 2000 * MS,
        .shutdown_grace_ns = 30000 * MS,
        .give_up_ns = 300000 * MS,
    };
    timing_profile("default", &c.timing);
    return c;
}

static void step(struct event ev) {
    struct now now = {now_ns, now_ns + 5000 * MS};
    actions = rendezvous_step(r, &ev, now, &n_actions);
    for (size_t i = 0; i < n_actions; i++)
        if (actions[i].kind == ACTION_WATCH)
            generations[actions[i].watch.slot] = actions[i].watch.generation;
        else if (actions[i].kind == ACTION_NEED_PORT)
            port_needed = true;
    memcpy(uid, rendezvous_uid(r), strlen(rendezvous_uid(r)) + 1);
}

static const struct action *find(enum action_kind kind) {
    for (size_t i = 0; i < n_actions; i++)
        if (actions[i].kind == kind)
            return &actions[i];
    return NULL;
}

static const struct action *need(enum action_kind kind) {
    const struct action *a = find(kind);
    if (!a)
        fail_msg("no action of kind %d among %zu", kind, n_actions);
    return a;
}

/* The transaction that puts this kind of key, or NULL. */
static const struct action *find_put(enum key_kind kind, const union value **ret) {
    for (size_t i = 0; i < n_actions; i++) {
        for (size_t k = 0; actions[i].kind == ACTION_TXN && k < actions[i].txn.txn.n_ops; k++) {
            const struct op *op = &actions[i].txn.txn.ops[k];
            if (op->put && op->key.kind == kind) {
                if (ret)
                    *ret = op->value;
                return &actions[i];
            }
        }
    }
    return NULL;
}

static struct entry entry_of(enum key_kind kind, int64_t mod, const union value *v) {
    struct entry e = {.key = {.kind = kind}, .value = v, .deleted = !v};
    if (kind != KEY_CUR)
        strcpy(e.key.inc, INC);
    e.create_revision = e.mod_revision = mod;
    e.version = 1;
    return e;
}

static void answer(const struct action *a, const struct entry *entries, size_t n, int64_t rev) {
    struct event ev = {.kind = EVENT_SNAPSHOT};
    ev.snapshot.id = a->snapshot.id;
    ev.snapshot.reached = true;
    ev.snapshot.revision = rev;
    ev.snapshot.entries = entries;
    ev.snapshot.n = n;
    step(ev);
}

static void done(uint64_t id, bool reached, bool applied, int64_t rev) {
    struct event ev = {.kind = EVENT_DONE};
    ev.done.id = id;
    ev.done.reached = reached;
    ev.done.applied = applied;
    ev.done.revision = rev;
    step(ev);
}

static void changed(enum watch_slot slot, struct entry e) {
    struct event ev = {.kind = EVENT_CHANGES};
    ev.changes.slot = slot;
    ev.changes.generation = generations[slot];
    ev.changes.entries = &e;
    ev.changes.n = 1;
    step(ev);
}

static void tick(int64_t ns) {
    now_ns += ns;
    step((struct event){.kind = EVENT_TIMER});
}

static void beat(int64_t seq, enum beat_result result) {
    struct event ev = {.kind = EVENT_BEAT};
    ev.beat.seq = seq;
    ev.beat.result = result;
    step(ev);
}

static union value cur_of(const char *attempt) {
    union value v = {.cur = {.inc = INC, .min = 1, .max = 2, .max_restarts = 3}};
    timing_profile("default", &v.cur.timing);
    snprintf(v.cur.attempt, sizeof(v.cur.attempt), "%s", attempt);
    return v;
}

static void begin(const struct rendezvous_config *c) {
    struct err err = {0};
    r = rendezvous_new(c, 1, &err);
    assert_non_null(r);
    now_ns = 1000 * MS;
    step((struct event){.kind = EVENT_START});
}

/* The incarnation is there, held by an attempt; the head as given. */
static void come_to_head(const char *attempt, const union value *head) {
    union value cur = cur_of(attempt);
    struct entry e = entry_of(KEY_CUR, 3, &cur), h = entry_of(KEY_HEAD, 9, head);
    answer(need(ACTION_SNAPSHOT), &e, 1, 10);
    answer(need(ACTION_SNAPSHOT), &h, head ? 1 : 0, 10);
}

static void join(void) {
    struct rendezvous_config c = config_of();
    begin(&c);
    come_to_head("", NULL);
    done(find_put(KEY_MEMBER, NULL)->txn.id, true, true, 11);
    assert_int_equal(strlen(uid), 32);
}

static union value head_of(enum head_phase phase, int64_t round, int64_t last) {
    union value v = {.head = {.round = round, .phase = phase, .n = 1, .last_round = last}};
    snprintf(v.head.pid, sizeof(v.head.pid), "%lld-1-1", (long long)round);
    if (last)
        snprintf(v.head.last_pid, sizeof(v.head.last_pid), "%lld-1-1", (long long)last);
    v.head.last_n = last > 0;
    v.head.world = 2;
    v.head.master_port = 777;
    strcpy(v.head.master_addr, "10.0.0.1");
    return v;
}

/* FORM names a plan that this session is in. */
static void form(int64_t round, int64_t last, int64_t rev) {
    union value head = head_of(HEAD_FORM, round, last), place = {.plan = {.world = 2}};
    changed(WATCH_HEAD, entry_of(KEY_HEAD, rev, &head));
    const struct action *a = find(ACTION_SNAPSHOT);
    if (!a || a->snapshot.keys[0].kind != KEY_PLAN)
        return;
    struct entry e = entry_of(KEY_PLAN, rev - 1, &place);
    memcpy(e.key.pid, head.head.pid, sizeof(e.key.pid));
    memcpy(e.key.uid, uid, sizeof(e.key.uid));
    answer(a, &e, 1, rev);
}

static void port(void) {
    struct event ev = {.kind = EVENT_PORT};
    assert_true(port_needed);
    port_needed = false;
    ev.port.addr = "10.0.0.1";
    ev.port.port = 777;
    step(ev);
}

static void run(int64_t round, int64_t rev) {
    union value head = head_of(HEAD_RUN, round, round);
    changed(WATCH_HEAD, entry_of(KEY_HEAD, rev, &head));
}

/* Joined, and the workers of round 1 run. */
static void work(void) {
    join();
    form(1, 0, 20);
    port();
    done(find_put(KEY_ACK, NULL)->txn.id, true, true, 21);
    run(1, 22);
    need(ACTION_START);
    step((struct event){.kind = EVENT_WORKERS_STARTED});
}

static void exited(int local_rank, int status) {
    struct event ev = {.kind = EVENT_WORKER_EXITED};
    ev.exited.local_rank = local_rank;
    ev.exited.wait_status = status;
    ev.exited.error = status ? "boom" : "";
    step(ev);
}

static void reaped(void) {
    step((struct event){.kind = EVENT_GROUP_REAPED});
}

static void signaled(int signo) {
    struct event ev = {.kind = EVENT_SIGNAL};
    ev.signal.signo = signo;
    step(ev);
}

static int teardown(void **state) {
    (void)state;
    port_needed = false;
    r = rendezvous_free(r);
    return 0;
}

/* --- beginnings --- */

static void test_a_config_that_cannot_be_is_refused_with_a_sentence(void **state) {
    (void)state;
    struct err err = {0};
    struct rendezvous_config c = config_of();
    c.min = 3;
    assert_null(rendezvous_new(&c, 1, &err));
    assert_non_null(strstr(err.msg, "3:2"));
    c = config_of();
    c.timing.suspect_ns = c.timing.hard_ns;
    assert_null(rendezvous_new(&c, 1, &err));
    assert_non_null(strstr(err.msg, "suspect"));
    c = config_of();
    c.run_id = "";
    assert_null(rendezvous_new(&c, 1, &err));
}

static void test_the_first_agent_makes_the_incarnation_under_a_lease(void **state) {
    (void)state;
    struct rendezvous_config c = config_of();
    const union value *v = NULL;
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
    assert_int_equal(v->cur.max, 2);
    done(put->txn.id, false, false, 0); /* its reply is never believed: cur is read again */
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
    rendezvous_free(r);
    head.head.outcome = OUTCOME_FAILED;
    head.head.failure = (struct failure){.uid = "a", .node = "n7", .rank = 3, .wait_status = 9};
    begin(&c);
    come_to_head("", &head);
    assert_int_equal(need(ACTION_EXIT)->exit.code, 1);
    assert_non_null(strstr(need(ACTION_EXIT)->exit.text, "rank 3"));
    assert_non_null(strstr(need(ACTION_EXIT)->exit.text, "signal 9"));
    assert_int_equal(need(ACTION_EXIT)->exit.failure->rank, 3);
}

static void test_another_attempt_is_refused_while_the_run_is_open(void **state) {
    (void)state;
    struct rendezvous_config c = config_of();
    union value head = head_of(HEAD_RUN, 2, 2);
    c.attempt = "two";
    begin(&c);
    come_to_head("one", &head);
    assert_int_equal(need(ACTION_EXIT)->exit.code, 64);
    rendezvous_free(r);
    head.head.phase = HEAD_CLOSED;
    begin(&c);
    come_to_head("one", &head);
    done(need(ACTION_LEASE_GRANT)->lease.id, true, true, 10);
    const struct action *put = find_put(KEY_CUR, NULL);
    assert_int_equal(put->txn.txn.compares[0].number, 3); /* replaces the cur that was read */
}

static void test_a_join_without_a_reply_is_looked_up(void **state) {
    (void)state;
    struct rendezvous_config c = config_of();
    union value v = {0};
    begin(&c);
    come_to_head("", NULL);
    const struct action *join_txn = find_put(KEY_SESSION, NULL);
    struct key own = join_txn->txn.txn.ops[0].key;
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
    come_to_head("", NULL);
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

/* --- rounds --- */

static void test_the_workers_are_told_what_head_and_plan_say(void **state) {
    (void)state;
    join();
    form(1, 0, 20);
    port();
    done(find_put(KEY_ACK, NULL)->txn.id, true, true, 21);
    run(1, 22);
    const struct round_spec *s = need(ACTION_START)->start;
    assert_int_equal(s->round, 1);
    assert_int_equal(s->world, 2);
    assert_int_equal(s->local_world, 2);
    assert_int_equal(s->master_port, 777);
    assert_string_equal(s->master_addr, "10.0.0.1");
    assert_true(s->deadline_required);
}

static void test_a_round_below_an_own_ack_is_never_started(void **state) {
    (void)state;
    join();
    form(1, 0, 20);
    port();
    done(find_put(KEY_ACK, NULL)->txn.id, true, true, 21);
    form(2, 1, 30); /* round 1 ran without this node having seen it */
    if (port_needed)
        port();
    run(1, 25); /* an older state */
    assert_null(find(ACTION_START));
}

static void test_a_failed_worker_ends_the_round_and_the_group(void **state) {
    (void)state;
    const union value *v = NULL;
    work();
    exited(1, 3 << 8);
    assert_int_equal(need(ACTION_STOP)->stop.grace_ms, 2000);
    const struct action *end = find_put(KEY_HEAD, &v);
    assert_int_equal(v->head.phase, HEAD_END);
    assert_int_equal(v->head.cause, CAUSE_FAILURE);
    assert_int_equal(v->head.failure.local_rank, 1);
    assert_string_equal(v->head.failure.error, "boom");
    assert_int_equal(end->txn.txn.n_compares, 2);
    exited(0, 15);
    reaped();
    assert_false(port_needed); /* the round has not ended yet */
    form(2, 1, 40);
    port();
    assert_non_null(find_put(KEY_ACK, &v));
    assert_int_equal(v->ack.why, ACK_FAILED);
}

static void test_a_membership_change_gives_the_workers_the_full_grace(void **state) {
    (void)state;
    union value head = head_of(HEAD_FORM, 2, 1);
    work();
    head.head.cause = CAUSE_MEMBERSHIP;
    changed(WATCH_HEAD, entry_of(KEY_HEAD, 30, &head));
    assert_int_equal(need(ACTION_STOP)->stop.grace_ms, 30000);
    assert_false(port_needed);
    exited(0, 15);
    exited(1, 15);
    reaped();
    assert_null(find_put(KEY_HEAD, NULL)); /* stopped workers are nobody's failure */
}

static void test_workers_that_all_exit_zero_are_done_and_wait_in_the_barrier(void **state) {
    (void)state;
    work();
    exited(0, 0);
    exited(1, 0);
    assert_null(find_put(KEY_DONE, NULL)); /* not before nothing of them is left */
    reaped();
    const struct action *txn = find_put(KEY_DONE, NULL);
    assert_int_equal(txn->txn.txn.ops[0].key.round, 1);
    done(txn->txn.id, true, true, 31);
    tick(500 * MS);
    need(ACTION_BEAT);
    union value head = head_of(HEAD_CLOSED, 1, 1);
    head.head.outcome = OUTCOME_SUCCEEDED;
    changed(WATCH_HEAD, entry_of(KEY_HEAD, 32, &head));
    assert_null(find(ACTION_EXIT)); /* first the session is given back */
    done(need(ACTION_TXN)->txn.id, true, true, 33);
    assert_int_equal(need(ACTION_EXIT)->exit.code, 0);
}

static void test_a_dead_guard_is_a_fence_not_a_failure(void **state) {
    (void)state;
    const union value *v = NULL;
    work();
    step((struct event){.kind = EVENT_GUARD_DEAD});
    assert_non_null(find_put(KEY_HEAD, &v));
    assert_int_equal(v->head.cause, CAUSE_MEMBERSHIP);
}

static void test_workers_that_cannot_be_killed_end_the_agent(void **state) {
    (void)state;
    work();
    signaled(15);
    for (int i = 0; i < 400 && !find(ACTION_EXIT); i++) {
        const struct action *b = find(ACTION_BEAT);
        if (b)
            beat(b->beat.seq, BEAT_APPLIED);
        else
            tick(500 * MS);
    }
    assert_int_equal(need(ACTION_EXIT)->exit.code, 1);
    assert_non_null(strstr(need(ACTION_EXIT)->exit.text, "cannot be killed"));
    assert_null(find_put(KEY_GONE, NULL));
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

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_config_that_cannot_be_is_refused_with_a_sentence),
        TEST(test_the_first_agent_makes_the_incarnation_under_a_lease),
        TEST(test_a_closed_run_is_not_joined_but_answered),
        TEST(test_another_attempt_is_refused_while_the_run_is_open),
        TEST(test_a_join_without_a_reply_is_looked_up),
        TEST(test_the_deadline_counts_from_the_sending_of_an_accepted_beat),
        TEST(test_a_beat_without_a_reply_extends_nothing),
        TEST(test_a_refused_beat_kills_and_begins_a_new_session),
        TEST(test_without_an_accepted_beat_the_workers_die_and_the_round_ends_free),
        TEST(test_a_job_of_one_node_with_its_own_store_has_no_deadline),
        TEST(test_the_workers_are_told_what_head_and_plan_say),
        TEST(test_a_round_below_an_own_ack_is_never_started),
        TEST(test_a_failed_worker_ends_the_round_and_the_group),
        TEST(test_a_membership_change_gives_the_workers_the_full_grace),
        TEST(test_workers_that_all_exit_zero_are_done_and_wait_in_the_barrier),
        TEST(test_a_dead_guard_is_a_fence_not_a_failure),
        TEST(test_workers_that_cannot_be_killed_end_the_agent),
        TEST(test_a_signal_before_the_join_ends_at_once),
        TEST(test_a_leaver_goes_after_its_workers_and_says_so),
        TEST(test_a_store_that_is_never_reached_is_given_up_after_the_join_timeout),
        TEST(test_a_store_that_is_lost_for_good_leaves_the_outcome_unknown),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
