/* Who follows the coordinator's view, and what comes of it when the coordinator is lost together
 * with another node. The core under test is u of group rank 0; h leads, x is the other one. */
#include "tests/agent/core/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char holder[] = "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh",
                  other[] = "xxxxxxxxxxxxxxxxxxxxxxxxx";

static struct entry named(enum key_kind kind, const char *of, int64_t mod, const union value *v) {
    struct entry e = entry_of(kind, mod, v);
    strcpy(e.key.uid, of);
    return e;
}

static void lead_is(const char *of, int64_t rev) {
    union value v = {0};
    strcpy(v.lead.uid, of);
    changed(WATCH_LEAD, entry_of(KEY_LEAD, rev, &v));
}

static const struct action *snapshot_of(enum key_kind kind) {
    for (size_t i = 0; i < n_actions; i++)
        if (actions[i].kind == ACTION_SNAPSHOT && actions[i].snapshot.keys[0].kind == kind)
            return &actions[i];
    return NULL;
}

/* A round of n nodes is formed, with this one at the rank. */
static void form_at(int rank, int n) {
    union value head = head_of(HEAD_FORM, 1, 0), place = {.plan = {.group_rank = rank, .world = 2}};
    head.head.n = n;
    changed(WATCH_HEAD, entry_of(KEY_HEAD, 20, &head));
    const struct action *a = snapshot_of(KEY_PLAN);
    assert_non_null(a);
    struct entry e = named(KEY_PLAN, uid, 19, &place);
    memcpy(e.key.pid, head.head.pid, sizeof(e.key.pid));
    answer(a, &e, 1, 20);
}

/* The whole incarnation: head with its plan of u, h and x, and their sessions. */
static void load(void) {
    const struct action *a = snapshot_of(KEY_INCARNATION);
    union value head = head_of(HEAD_FORM, 1, 0), s = {0}, lead = {0}, places[3] = {0};
    const char *uids[3] = {uid, holder, other};
    struct entry e[8];
    size_t n = 0;
    assert_non_null(a);
    head.head.n = 3;
    strcpy(lead.lead.uid, holder);
    e[n++] = entry_of(KEY_HEAD, 20, &head);
    e[n++] = entry_of(KEY_LEAD, 12, &lead);
    for (int i = 0; i < 3; i++) {
        places[i].plan.group_rank = i;
        e[n] = named(KEY_PLAN, uids[i], 19, &places[i]);
        memcpy(e[n++].key.pid, head.head.pid, PID_SIZE);
        e[n++] = named(KEY_SESSION, uids[i], 11, &s);
    }
    answer(a, e, n, 20);
}

static const struct action *revocation_of(const char *of) {
    for (size_t i = 0; i < n_actions; i++)
        for (size_t k = 0; actions[i].kind == ACTION_TXN && k < actions[i].txn.txn.n_ops; k++) {
            const struct op *op = &actions[i].txn.txn.ops[k];
            if (op->put && op->key.kind == KEY_GONE && strcmp(op->key.uid, of) == 0)
                return &actions[i];
        }
    return NULL;
}

/* In small steps: a timer that is served late is a stall, after which nobody is silent. */
static void pass(int64_t ns) {
    for (int64_t step_ns = 100 * MS; ns > 0; ns -= step_ns)
        tick(ns < step_ns ? ns : step_ns);
}

static void test_a_node_lost_with_the_coordinator_is_revoked_after_one_suspect(void **state) {
    (void)state;
    struct timing t;
    timing_profile("default", &t);
    join();
    lead_is(holder, 12);
    struct entry e = named(KEY_SESSION, holder, 11, &(union value){0});
    answer(snapshot_of(KEY_SESSION), &e, 1, 12);
    form_at(0, 3);
    load();
    pass(t.suspect_ns - MS);
    assert_null(revocation_of(holder));
    tick(MS);
    const struct action *take = revocation_of(holder);
    assert_non_null(take);
    assert_null(revocation_of(other)); /* not before the lead is its own */
    done(take->txn.id, true, true, 30);
    union value lead = {0};
    strcpy(lead.lead.uid, uid);
    lead_is(uid, 30);
    changed(WATCH_ALL, entry_of(KEY_LEAD, 30, &lead));
    assert_non_null(revocation_of(other));
}

/* Time passes, and its beats are taken. */
static bool revokes_while_beating(int64_t ns) {
    for (int64_t step_ns = 100 * MS; ns > 0; ns -= step_ns) {
        tick(ns < step_ns ? ns : step_ns);
        if (revocation_of(holder))
            return true;
        const struct action *b = find(ACTION_BEAT);
        if (b)
            beat(b->beat.seq, BEAT_APPLIED);
    }
    return false;
}

/* It runs for 300 ms, and then stands still for a second and a half. What counts is what it ran. */
static void test_a_silent_coordinator_is_revoked_by_who_halts_again_and_again(void **state) {
    (void)state;
    struct timing t;
    int64_t from_ns;
    int halts = 0;
    timing_profile("default", &t);
    join();
    lead_is(holder, 12);
    struct entry e = named(KEY_SESSION, holder, 11, &(union value){0});
    answer(snapshot_of(KEY_SESSION), &e, 1, 12);
    form_at(0, 3);
    load();
    from_ns = now_ns;
    while (halts < 100 && !revokes_while_beating(300 * MS)) {
        halts++;
        now_ns += 1500 * MS;
    }
    assert_in_range(halts, 6, 20);
    assert_true(now_ns - from_ns > t.suspect_ns);
}

static void test_the_third_in_line_follows_when_the_holder_is_before_it(void **state) {
    (void)state;
    join();
    lead_is(holder, 12);
    form_at(2, 4);
    const struct action *a = snapshot_of(KEY_PLAN);
    assert_non_null(a);
    assert_string_equal(a->snapshot.keys[0].uid, holder);
    union value place = {.plan = {.group_rank = 1}};
    struct entry e = named(KEY_PLAN, holder, 19, &place);
    answer(a, &e, 1, 21);
    assert_non_null(snapshot_of(KEY_INCARNATION));
}

static void test_the_third_in_line_does_not_when_two_others_do(void **state) {
    (void)state;
    join();
    lead_is(holder, 12);
    form_at(2, 4);
    union value place = {.plan = {.group_rank = 3}};
    struct entry e = named(KEY_PLAN, holder, 19, &place);
    answer(snapshot_of(KEY_PLAN), &e, 1, 21);
    assert_null(snapshot_of(KEY_INCARNATION));
}

static void test_nobody_follows_in_a_large_job(void **state) {
    (void)state;
    join();
    lead_is(holder, 12);
    form_at(0, 101);
    assert_null(snapshot_of(KEY_INCARNATION));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(
            test_a_node_lost_with_the_coordinator_is_revoked_after_one_suspect, script_end),
        cmocka_unit_test_teardown(test_a_silent_coordinator_is_revoked_by_who_halts_again_and_again,
                                  script_end),
        cmocka_unit_test_teardown(test_the_third_in_line_follows_when_the_holder_is_before_it,
                                  script_end),
        cmocka_unit_test_teardown(test_the_third_in_line_does_not_when_two_others_do, script_end),
        cmocka_unit_test_teardown(test_nobody_follows_in_a_large_job, script_end),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
