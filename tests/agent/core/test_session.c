#include "agent/core/state.h"
#include "tests/agent/core/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* --- what an agent is configured with --- */

static void refused(const struct rendezvous_config *c, const char *sentence) {
    struct err err = {0};
    assert_null(rendezvous_new(c, 1, &err));
    assert_non_null(strstr(err.msg, sentence));
}

static void test_a_config_that_cannot_be_is_refused_with_a_sentence(void **state) {
    (void)state;
    static char long_name[NAME_SIZE + 1];
    struct rendezvous_config c = config_of();
    memset(long_name, 'x', NAME_SIZE);
    c.min = 3;
    refused(&c, "3:2");
    c.min = 0;
    refused(&c, "0:2");
#define WITH(field, value, sentence) (c = config_of(), c.field = (value), refused(&c, sentence))
    WITH(timing.suspect_ns, c.timing.hard_ns, "suspect");
    WITH(run_id, "", "run id");
    WITH(slots, 0, "0 workers");
    WITH(max_free_rounds, -1, "max_free_rounds_per_hour -1");
    WITH(max_restarts, -1, "max_restarts -1");
    WITH(attempt, long_name, "too long");
    WITH(role, long_name, "too long");
    WITH(node, long_name, "too long");
    WITH(addr, long_name, "too long");
#undef WITH
}

/* Whoever began the run has said it, for all. */
static void differs(const struct rendezvous_config *c, bool expected) {
    begin(c);
    union value cur = cur_of("");
    struct entry e = entry_of(KEY_CUR, 3, &cur);
    answer(need(ACTION_SNAPSHOT), &e, 1, 10);
    assert_int_equal(find(ACTION_LOG) != NULL, expected);
    r = rendezvous_free(r);
}

static void test_what_this_agent_was_told_otherwise_is_said(void **state) {
    (void)state;
    struct rendezvous_config c = config_of();
    differs(&c, false);
    c.max = 4;
    differs(&c, true);
    c.max = c.min = 2;
    differs(&c, true);
    c = config_of();
    c.max_restarts = 9;
    differs(&c, true);
    begin(&c); /* for the teardown */
}

/* --- replies that say no, or nothing any more --- */

static void test_a_lease_that_is_refused_is_asked_for_again_after_a_beat(void **state) {
    (void)state;
    struct rendezvous_config c = config_of();
    begin(&c);
    answer(need(ACTION_SNAPSHOT), NULL, 0, 10);
    uint64_t id = need(ACTION_LEASE_GRANT)->lease.id;
    done(id, true, false, 10);
    assert_null(find(ACTION_LEASE_GRANT));
    tick(500 * MS);
    assert_true(need(ACTION_LEASE_GRANT)->lease.id != id);
}

static void test_the_answer_of_a_beat_that_is_not_out_is_nothing(void **state) {
    (void)state;
    join();
    beat(1, BEAT_REFUSED); /* none is out yet */
    assert_null(find(ACTION_LOG));
    tick(500 * MS);
    int64_t seq = need(ACTION_BEAT)->beat.seq;
    beat(seq - 1, BEAT_REFUSED);
    assert_null(find(ACTION_LOG));
    beat(seq, BEAT_REFUSED);
    assert_non_null(strstr(need(ACTION_LOG)->log, "revoked"));
}

/* The session was revoked, and the store has another incarnation by now. */
static void begin_anew(const union value *cur) {
    struct entry e = entry_of(KEY_CUR, 3, cur);
    beat(need(ACTION_BEAT)->beat.seq, BEAT_REFUSED);
    reaped();
    answer(need(ACTION_SNAPSHOT), &e, 1, 10);
    answer(need(ACTION_SNAPSHOT), NULL, 0, 10);
}

/* One of a shorter timing: what the guard was told before holds longer. */
static void test_a_deadline_is_never_taken_back(void **state) {
    (void)state;
    union value cur = cur_of("");
    work();
    tick(500 * MS);
    strcpy(cur.cur.inc, "fedcba9876543210");
    timing_profile("fast", &cur.cur.timing);
    begin_anew(&cur);
    int64_t before_ns = r->session.deadline_ns;
    done(find_put(KEY_MEMBER, NULL)->txn.id, true, true, 11);
    assert_null(find(ACTION_DEADLINE));
    assert_true(r->session.deadline_ns == before_ns);
}

/* Head and lead were asked for under the incarnation of before. */
static void test_a_snapshot_of_a_former_incarnation_is_not_taken(void **state) {
    (void)state;
    join();
    struct event lost = {.kind = EVENT_WATCH_LOST};
    lost.watch_lost.slot = WATCH_HEAD;
    lost.watch_lost.generation = r->generations[WATCH_HEAD];
    step(lost);
    union value head = head_of(HEAD_RUN, 7, 7);
    struct entry e = entry_of(KEY_HEAD, 20, &head);
    strcpy(e.key.inc, "fedcba9876543210");
    answer(need(ACTION_SNAPSHOT), &e, 1, 20);
    assert_int_equal(r->head.phase, HEAD_NONE);
    assert_null(find(ACTION_WATCH));
}

/* What another holder, or an older beat, says is not the holder's word. */
static void test_only_newer_beats_of_the_holder_are_heard(void **state) {
    (void)state;
    union value lead = {.lead = {.uid = "aaaa"}}, session = {0};
    join();
    changed(WATCH_LEAD, entry_of(KEY_LEAD, 15, &lead));
    struct entry own = entry_of(KEY_SESSION, 12, &session);
    struct entry other = entry_of(KEY_SESSION, 13, &session);
    strcpy(own.key.uid, "aaaa");
    strcpy(other.key.uid, "bbbb");
    struct entry both[] = {own, other};
    answer(need(ACTION_SNAPSHOT), both, 2, 16);
    assert_int_equal(r->holder.beat_revision, 12);
    int64_t heard_ns = r->holder.heard_ns;
    now_ns += 100 * MS;
    other.mod_revision = 30;
    changed(WATCH_HOLDER, other);
    changed(WATCH_HOLDER, own);
    own.key.kind = KEY_MEMBER;
    own.mod_revision = 31;
    changed(WATCH_HOLDER, own);
    assert_true(r->holder.heard_ns == heard_ns);
    own.key.kind = KEY_SESSION;
    changed(WATCH_HOLDER, own);
    assert_true(r->holder.heard_ns > heard_ns && r->holder.beat_revision == 31);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_teardown(name, script_end)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_config_that_cannot_be_is_refused_with_a_sentence),
        TEST(test_what_this_agent_was_told_otherwise_is_said),
        TEST(test_a_lease_that_is_refused_is_asked_for_again_after_a_beat),
        TEST(test_the_answer_of_a_beat_that_is_not_out_is_nothing),
        TEST(test_a_deadline_is_never_taken_back),
        TEST(test_a_snapshot_of_a_former_incarnation_is_not_taken),
        TEST(test_only_newer_beats_of_the_holder_are_heard),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
