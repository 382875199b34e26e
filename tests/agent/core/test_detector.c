/* Silence and eviction, as a coordinator sees them: the view is made by hand, time is the test's.
 */
#include "agent/core/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SECOND 1000000000LL

static struct rendezvous *r;
static int64_t revision;

static struct view *view(void) {
    return &r->coordinator.view;
}

static void put(enum key_kind kind, const char *uid, int64_t round, const union value *v) {
    struct entry e = {.key = {.kind = kind, .round = round}, .value = v, .deleted = !v};
    snprintf(e.key.uid, sizeof(e.key.uid), "%s", uid);
    snprintf(e.key.pid, sizeof(e.key.pid), "%s", kind == KEY_PLAN ? "1-1-1" : "");
    struct member *m = view_find(view(), uid);
    e.mod_revision = ++revision;
    e.create_revision = kind == KEY_SESSION && m && m->session ? m->created : revision;
    view_apply(view(), &e, r->now.monotonic_ns);
    view_settle(view());
}

static void beat(const char *uid) {
    put(KEY_SESSION, uid, 0, &(union value){0});
}

/* Round 1 of a and b has ended; both may take 4 s to stop. */
static int setup(void **state) {
    union value head = {.head = {.phase = HEAD_END, .round = 1, .last_round = 1, .n = 2}};
    (void)state;
    r = calloc(1, sizeof(*r));
    timing_profile("default", &r->cur.timing);
    view()->gap_ns = r->cur.timing.fence_ns;
    revision = 10;
    r->now.monotonic_ns = SECOND;
    for (int i = 0; i < 2; i++) {
        union value m = {.member = {.stop_ns = 4 * SECOND}}, place = {.plan = {.group_rank = i}};
        const char *uid = i ? "b" : "a";
        put(KEY_MEMBER, uid, 0, &m);
        beat(uid);
        put(KEY_PLAN, uid, 0, &place);
    }
    strcpy(head.head.pid, "1-1-1");
    strcpy(head.head.last_pid, "1-1-1");
    put(KEY_HEAD, "", 0, &head);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    view_fini(view());
    arena_fini(&r->arena);
    free(r->actions);
    free(r);
    return 0;
}

/* Half a second passes, in which these beat; what the detector asks for then. */
static void pass(const char *uids) {
    r->now.monotonic_ns += SECOND / 2;
    for (; *uids; uids++)
        beat((char[]){*uids, 0});
    r->n_actions = 0;
    r->wake_ns = INT64_MAX;
    detector_advance(r);
}

/* The transaction that deletes the session, and whether it certifies a death. */
static const struct txn *deletion_of(const char *uid, bool *ret_gone) {
    for (size_t i = 0; i < r->n_actions; i++) {
        const struct txn *t = &r->actions[i].txn.txn;
        if (r->actions[i].kind != ACTION_TXN || strcmp(t->ops[0].key.uid, uid) != 0)
            continue;
        *ret_gone = t->n_ops > 1;
        return t;
    }
    return NULL;
}

static const struct txn *passes_until_deletion(const char *beating, const char *uid, int limit,
                                               int *ret_passes, bool *ret_gone) {
    const struct txn *t = NULL;
    for (*ret_passes = 0; !t && *ret_passes < limit; ++*ret_passes) {
        pass(beating);
        t = deletion_of(uid, ret_gone);
    }
    return t;
}

static void test_who_beats_and_does_not_ack_is_evicted_without_a_certificate(void **state) {
    (void)state;
    int passes;
    bool gone;
    put(KEY_ACK, "a", 1, &(union value){0});
    const struct txn *t = passes_until_deletion("ab", "b", 100, &passes, &gone);
    assert_non_null(t);
    assert_false(gone);
    assert_in_range(passes, 18, 20); /* 4 s to stop, 5 s of margin */
    assert_int_equal(t->compares[t->n_compares - 1].key.kind, KEY_ACK);
    assert_null(deletion_of("a", &gone));
}

static void test_a_session_that_is_not_there_is_certified_after_suspect(void **state) {
    (void)state;
    int passes;
    bool gone = false;
    put(KEY_SESSION, "b", 0, NULL);
    put(KEY_ACK, "a", 1, &(union value){0});
    assert_non_null(passes_until_deletion("a", "b", 100, &passes, &gone));
    assert_true(gone);
    assert_int_equal(passes, 12);
}

static void test_who_was_away_with_the_store_gets_the_time_again(void **state) {
    (void)state;
    int passes;
    bool gone;
    for (int i = 0; i < 10; i++)
        pass("ab");
    r->now.monotonic_ns += 60 * SECOND; /* nobody reached the store */
    beat("a");
    beat("b");
    assert_non_null(passes_until_deletion("ab", "b", 100, &passes, &gone));
    assert_false(gone);
    assert_in_range(passes, 18, 20);
}

static void stall(int64_t late_ns) {
    r->now.monotonic_ns += late_ns;
    detector_stalled(r, late_ns);
}

static void test_who_owes_an_ack_is_not_charged_with_a_stall_of_the_coordinator(void **state) {
    (void)state;
    int passes;
    bool gone;
    for (int i = 0; i < 10; i++)
        pass("ab");
    stall(30 * SECOND);
    assert_non_null(passes_until_deletion("ab", "b", 100, &passes, &gone));
    assert_in_range(passes, 8, 10); /* of the 18 to 20 that it has */
}

static void test_silence_begins_anew_with_a_stall_of_the_coordinator(void **state) {
    (void)state;
    int passes;
    bool gone;
    put(KEY_ACK, "a", 1, &(union value){0});
    put(KEY_ACK, "b", 1, &(union value){0});
    for (int i = 0; i < 10; i++)
        pass("a");
    stall(30 * SECOND);
    assert_non_null(passes_until_deletion("a", "b", 100, &passes, &gone));
    assert_true(gone);
    assert_int_equal(passes, 12);
}

/* Of each second and a half the last is not run. What counts is the time that was. */
static void test_a_coordinator_that_halts_again_and_again_gives_up_who_is_silent(void **state) {
    (void)state;
    bool gone = false;
    int seconds = 0;
    put(KEY_ACK, "a", 1, &(union value){0});
    put(KEY_ACK, "b", 1, &(union value){0});
    for (; !gone && seconds < 100; seconds++) {
        stall(SECOND);
        pass("a");
        deletion_of("b", &gone);
    }
    assert_true(gone);
    assert_int_equal(seconds, 12);
}

static void test_who_is_heard_between_two_stalls_has_all_its_time_after_each(void **state) {
    (void)state;
    int passes;
    bool gone;
    put(KEY_ACK, "a", 1, &(union value){0});
    put(KEY_ACK, "b", 1, &(union value){0});
    stall(SECOND);
    for (int i = 0; i < 10; i++)
        pass("a");
    pass("ab");
    stall(SECOND);
    assert_non_null(passes_until_deletion("a", "b", 100, &passes, &gone));
    assert_int_equal(passes, 12);
}

static void test_who_acks_in_time_stays(void **state) {
    (void)state;
    int passes;
    bool gone;
    for (int i = 0; i < 10; i++)
        pass("ab");
    put(KEY_ACK, "a", 1, &(union value){0});
    put(KEY_ACK, "b", 1, &(union value){0});
    assert_null(passes_until_deletion("ab", "b", 100, &passes, &gone));
}

/* An agent of before that said nothing of its longest stop, or one whose member key is gone. */
static void test_who_has_not_said_how_long_it_may_take_gets_as_long_as_this_agent(void **state) {
    (void)state;
    r->config.stop_timeout_ns = 7 * SECOND;
    struct member *m = view_find(view(), "a");
    int64_t told_ns = detector_evict_ns(r, m);
    m->value.stop_ns = 0;
    int64_t own_ns = detector_evict_ns(r, m);
    assert_true(own_ns > told_ns);
    m->value.stop_ns = 4 * SECOND;
    m->known = false;
    assert_true(detector_evict_ns(r, m) == own_ns);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_who_beats_and_does_not_ack_is_evicted_without_a_certificate, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_session_that_is_not_there_is_certified_after_suspect,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_was_away_with_the_store_gets_the_time_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            test_who_owes_an_ack_is_not_charged_with_a_stall_of_the_coordinator, setup, teardown),
        cmocka_unit_test_setup_teardown(test_silence_begins_anew_with_a_stall_of_the_coordinator,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_coordinator_that_halts_again_and_again_gives_up_who_is_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_who_is_heard_between_two_stalls_has_all_its_time_after_each, setup, teardown),
        cmocka_unit_test_setup_teardown(test_who_acks_in_time_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_who_has_not_said_how_long_it_may_take_gets_as_long_as_this_agent, setup, teardown),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
