/* What a coordinator asks the store for, besides its decisions. The core under test is the only
 * node of 1:2; what the store holds is made by hand. */
#include "agent/core/state.h"
#include "tests/agent/core/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { PLANS = 70 };

static const struct action *snapshot_of(enum key_kind kind) {
    for (size_t i = 0; i < n_actions; i++)
        if (actions[i].kind == ACTION_SNAPSHOT && actions[i].snapshot.keys[0].kind == kind)
            return &actions[i];
    return NULL;
}

static struct entry own(enum key_kind kind, int64_t mod, const union value *v) {
    struct entry e = entry_of(kind, mod, v);
    strcpy(e.key.uid, uid);
    return e;
}

/* It leads, and is asked what the store holds: these entries, at that revision. */
static void lead(const struct entry *entries, size_t n, int64_t rev) {
    union value lead = {0};
    tick(20 * MS * (1 + 16));
    done(find_put(KEY_LEAD, NULL)->txn.id, true, true, 12);
    strcpy(lead.lead.uid, uid);
    changed(WATCH_LEAD, entry_of(KEY_LEAD, 12, &lead));
    struct entry all[PLANS + 8] = {entry_of(KEY_LEAD, 12, &lead)};
    memcpy(all + 1, entries, n * sizeof(*entries));
    const struct action *a = snapshot_of(KEY_INCARNATION);
    assert_non_null(a);
    answer(a, all, n + 1, rev);
}

static size_t deletes_of(enum key_kind kind, const struct action **ret) {
    size_t n = 0;
    for (size_t i = 0; i < n_actions; i++)
        for (size_t k = 0; actions[i].kind == ACTION_TXN && k < actions[i].txn.txn.n_ops; k++) {
            const struct op *op = &actions[i].txn.txn.ops[k];
            bool is_one = !op->put && op->key.kind == kind;
            n += is_one;
            if (is_one)
                *ret = &actions[i];
        }
    return n;
}

/* As many proposals as a round can hardly need: what does not fit goes after the next round. */
static void
test_plans_that_nobody_names_any_more_go_as_many_as_one_transaction_takes(void **state) {
    (void)state;
    const struct action *a = NULL;
    union value session = {0}, member = {.member = {.slots = 2}}, place = {0};
    union value head = head_of(HEAD_RUN, 1, 1);
    struct entry all[PLANS + 4];
    size_t n = 0;
    join();
    all[n++] = own(KEY_SESSION, 11, &session);
    all[n++] = own(KEY_MEMBER, 11, &member);
    all[n++] = entry_of(KEY_HEAD, 20, &head);
    all[n] = own(KEY_PLAN, 15, &place);
    memcpy(all[n++].key.pid, head.head.pid, PID_SIZE);
    for (int i = 0; i < PLANS; i++, n++) {
        all[n] = own(KEY_PLAN, 14, &place);
        snprintf(all[n].key.pid, PID_SIZE, "1-2-%d", i);
    }
    lead(all, n, 20);
    size_t plans = deletes_of(KEY_PLAN, &a);
    assert_true(plans > 0 && plans < PLANS);
    assert_true(a->txn.txn.n_ops <= TXN_OPS_MAX);
    for (size_t i = 0; i < a->txn.txn.n_ops; i++)
        assert_string_not_equal(a->txn.txn.ops[i].key.pid, head.head.pid);
}

/* Of a store that came back empty without a word of it: the member was in round 3 of two nodes. */
static void test_a_first_round_waits_for_members_that_only_others_remember(void **state) {
    (void)state;
    union value session = {0}, place = {.plan = {.world = 2}}, ack = {.ack = {.port = 777}};
    union value member = {
        .member = {.slots = 2, .past = {.inc = "fedcba9876543210", .round = 3, .n = 2}}};
    union value head = head_of(HEAD_FORM, 4, 0);
    struct entry all[5];
    join();
    member.member.past.member = 1;
    all[0] = own(KEY_SESSION, 11, &session);
    all[1] = own(KEY_MEMBER, 11, &member);
    all[2] = entry_of(KEY_HEAD, 20, &head);
    all[3] = own(KEY_PLAN, 15, &place);
    memcpy(all[3].key.pid, head.head.pid, PID_SIZE);
    all[4] = own(KEY_ACK, 21, &ack);
    lead(all, 5, 21);
    assert_false(r->cur.hold);
    assert_null(find_put(KEY_HEAD, NULL));
    assert_non_null(strstr(need(ACTION_LOG)->log, "the first round waits"));
    for (int64_t passed = 0; passed < 7000 * MS && !find_put(KEY_HEAD, NULL); passed += 100 * MS)
        tick(100 * MS);
    const union value *v = NULL;
    assert_non_null(find_put(KEY_HEAD, &v));
    assert_int_equal(v->head.phase, HEAD_RUN);
}

static void test_changes_may_say_up_to_which_revision_they_are_whole(void **state) {
    (void)state;
    union value session = {0}, member = {.member = {.slots = 2}};
    join();
    struct entry all[] = {own(KEY_SESSION, 11, &session), own(KEY_MEMBER, 11, &member)};
    lead(all, 2, 12);
    struct event ev = {.kind = EVENT_CHANGES};
    ev.changes.slot = WATCH_ALL;
    ev.changes.generation = r->generations[WATCH_ALL];
    ev.changes.revision = 40;
    step(ev);
    assert_int_equal(r->coordinator.view.revision, 40);
    ev.changes.revision = 30;
    step(ev);
    assert_int_equal(r->coordinator.view.revision, 40);
}

static bool is_logged(const char *words) {
    for (size_t i = 0; i < n_actions; i++)
        if (actions[i].kind == ACTION_LOG && strstr(actions[i].log, words))
            return true;
    return false;
}

static void test_two_nodes_of_one_rank_are_too_few_and_why_is_said(void **state) {
    (void)state;
    union value session = {0}, member = {.member = {.slots = 2, .seat = 1}};
    const union value *v = NULL;
    join();
    r->cur.min = 2;
    r->config.join_timeout_ns = 1000 * MS;
    struct entry all[] = {own(KEY_SESSION, 11, &session), own(KEY_MEMBER, 11, &member),
                          entry_of(KEY_SESSION, 12, &session), entry_of(KEY_MEMBER, 12, &member)};
    strcpy(all[2].key.uid, "other");
    strcpy(all[3].key.uid, "other");
    lead(all, 4, 12);
    assert_true(is_logged("node rank 0 was given to several nodes"));
    for (int i = 0; i < 20 && !find_put(KEY_HEAD, NULL); i++)
        tick(100 * MS);
    assert_non_null(find_put(KEY_HEAD, &v));
    assert_int_equal(v->head.phase, HEAD_CLOSED);
    assert_string_equal(v->head.failure.error, "fewer than 2 nodes (1) for 1 s (join_timeout); "
                                               "several nodes have the same node rank");
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_teardown(name, script_end)
    const struct CMUnitTest tests[] = {
        TEST(test_plans_that_nobody_names_any_more_go_as_many_as_one_transaction_takes),
        TEST(test_a_first_round_waits_for_members_that_only_others_remember),
        TEST(test_changes_may_say_up_to_which_revision_they_are_whole),
        TEST(test_two_nodes_of_one_rank_are_too_few_and_why_is_said),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
