/* One core, every event made by hand: stores that answer, and are of no use. */
#include "agent/core/state.h"
#include "tests/agent/core/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* A store that is full answers what is read, and lets leases live. */
static void test_a_store_that_only_answers_reads_is_given_up(void **state) {
    (void)state;
    work();
    int64_t done_ns = now_ns;
    bool told = false, broken = false;
    while (!find(ACTION_EXIT) && now_ns < done_ns + 900000 * MS) {
        const struct action *said = find(ACTION_STORE), *a = find(ACTION_BEAT);
        if (said) {
            assert_non_null(strstr(said->store.text, "answers, but has taken no write for 5"));
            assert_false(told);
            told = true;
        }
        if (find(ACTION_KILL) || find(ACTION_STOP))
            reaped();
        else if (a)
            beat(a->beat.seq, BEAT_FAILED);
        else if (find(ACTION_SNAPSHOT))
            answer(find(ACTION_SNAPSHOT), NULL, 0, 60);
        else if (find(ACTION_LEASE_KEEPALIVE))
            done(find(ACTION_LEASE_KEEPALIVE)->lease.id, true, true, 60);
        else if (find(ACTION_TXN))
            done(find(ACTION_TXN)->txn.id, false, false, 0);
        else
            tick(500 * MS);
        if (!broken && now_ns >= done_ns + 2000 * MS) { /* reads are asked for, too */
            broken = true;
            step((struct event){
                .kind = EVENT_WATCH_LOST,
                .watch_lost = {.slot = WATCH_HEAD, .generation = r->generations[WATCH_HEAD]}});
        }
    }
    assert_true(told);
    assert_int_equal(need(ACTION_EXIT)->exit.code, 69);
    assert_non_null(strstr(need(ACTION_EXIT)->exit.text, "has taken no write for 300 s"));
    assert_true(now_ns >= done_ns + 300000 * MS && now_ns < done_ns + 310000 * MS);
}

/* A newcomer is answered whatever it asks, and no incarnation of its ever stands there. */
static void join_in_vain(bool reached, const char *text) {
    struct rendezvous_config c = config_of();
    begin(&c);
    int64_t begun_ns = now_ns;
    int asked = 0;
    while (!find(ACTION_EXIT) && now_ns < begun_ns + 900000 * MS) {
        if (find(ACTION_SNAPSHOT))
            answer(find(ACTION_SNAPSHOT), NULL, 0, 10);
        else if (find(ACTION_LEASE_GRANT))
            done(find(ACTION_LEASE_GRANT)->lease.id, true, true, 10);
        else if (find(ACTION_TXN))
            asked++, done(find(ACTION_TXN)->txn.id, reached, reached, 11);
        else
            tick(500 * MS);
    }
    assert_int_equal(need(ACTION_EXIT)->exit.code, 69);
    assert_non_null(strstr(need(ACTION_EXIT)->exit.text, text));
    assert_true(now_ns >= begun_ns + 600000 * MS && now_ns < begun_ns + 610000 * MS);
    assert_in_range(asked, 600, 1300); /* not as fast as it answers */
}

static void test_a_store_that_takes_no_write_ends_a_newcomer_at_its_join_timeout(void **state) {
    (void)state;
    join_in_vain(false, "the store has taken no write for 600 s");
}

static void test_a_store_that_does_not_show_what_it_wrote_ends_a_newcomer(void **state) {
    (void)state;
    join_in_vain(true, "the store answers, but for 600 s this agent has not come into the run");
}

static void test_a_store_that_takes_every_session_away_is_given_up(void **state) {
    (void)state;
    union value session = {0};
    int64_t revision = 50;
    int sessions = 0;
    work();
    tick(500 * MS);
    beat(need(ACTION_BEAT)->beat.seq, BEAT_APPLIED);
    int64_t good_ns = now_ns;
    while (!find(ACTION_EXIT) && now_ns < good_ns + 900000 * MS) {
        struct entry own = entry_of(KEY_SESSION, revision, &session);
        if (find(ACTION_KILL))
            reaped();
        else if (find(ACTION_BEAT))
            beat(find(ACTION_BEAT)->beat.seq, BEAT_REFUSED);
        else if (find(ACTION_SNAPSHOT) && find(ACTION_SNAPSHOT)->snapshot.keys[0].kind == KEY_CUR)
            come_back(++revision);
        else if (find(ACTION_SNAPSHOT))
            answer(find(ACTION_SNAPSHOT), &own, 0, ++revision);
        else if (find_put(KEY_SESSION, NULL))
            sessions++, done(find_put(KEY_SESSION, NULL)->txn.id, true, true, ++revision);
        else
            tick(500 * MS);
    }
    assert_int_equal(need(ACTION_EXIT)->exit.code, 69);
    assert_non_null(strstr(need(ACTION_EXIT)->exit.text, "for 300 s this agent has not come into"));
    assert_in_range(sessions, 100, 1000);
}

static void test_a_store_that_goes_back_is_not_the_one_that_was_known(void **state) {
    (void)state;
    work();
    tick(500 * MS);
    beat(need(ACTION_BEAT)->beat.seq, BEAT_REFUSED);
    need(ACTION_KILL);
    reaped();
    come_back(21); /* the round ran at 22 */
    assert_non_null(
        strstr(need(ACTION_STORE)->store.text, "says revision 21 after 22 of the same"));
    assert_int_equal(need(ACTION_EXIT)->exit.code, 69);
    assert_non_null(strstr(need(ACTION_EXIT)->exit.text, "not the one that this run is in"));
}

/* Its watch of head breaks, and the store shows these when it is read again. */
static void read_again(const struct entry *entries, size_t n, int64_t revision) {
    step((struct event){
        .kind = EVENT_WATCH_LOST,
        .watch_lost = {.slot = WATCH_HEAD, .generation = r->generations[WATCH_HEAD]}});
    answer(need(ACTION_SNAPSHOT), entries, n, revision);
}

static void assert_stranger(const char *text) {
    assert_non_null(strstr(need(ACTION_STORE)->store.text, text));
    need(ACTION_STOP);
    reaped();
    assert_int_equal(need(ACTION_EXIT)->exit.code, 69);
}

/* Beats count, too: by the time it is read it may be beyond what was known. */
static void test_a_store_that_went_back_and_has_caught_up_is_known_by_its_head(void **state) {
    (void)state;
    work(); /* the round ran at 22 */
    union value v = head_of(HEAD_FORM, 1, 0);
    struct entry head = entry_of(KEY_HEAD, 21, &v);
    read_again(&head, 1, 60);
    assert_stranger("says revision 21 after 22 of the same");
}

static void test_or_by_its_lead(void **state) {
    (void)state;
    work();
    changed(WATCH_LEAD, entry_of(KEY_LEAD, 30, NULL));
    union value lead = {.lead = {"somebody"}}, v = {.head = r->head};
    struct entry entries[] = {entry_of(KEY_HEAD, 22, &v), entry_of(KEY_LEAD, 25, &lead)};
    read_again(entries, 2, 60);
    assert_stranger("says revision 25 after 30 of the same");
}

static void test_or_by_its_own_session_where_it_has_neither(void **state) {
    (void)state;
    work();
    union value v = {.session = {1}};
    struct entry session = entry_of(KEY_SESSION, 9, &v);
    read_again(&session, 1, 12);
    assert_stranger("says revision 12 after 22 of the same");
}

/* It may have gone back by as little as that, and nothing else shows it. */
static void test_what_the_store_was_told_it_is_told_again_when_a_watch_was_lost(void **state) {
    (void)state;
    work();
    exited(0, 0);
    exited(1, 0);
    reaped();
    const struct action *put = find_put(KEY_DONE, NULL);
    assert_non_null(put);
    done(put->txn.id, true, true, 30);
    assert_null(find_put(KEY_DONE, NULL));
    union value v = {.head = r->head};
    struct entry head = entry_of(KEY_HEAD, 22, &v);
    read_again(&head, 1, 40);
    put = find_put(KEY_DONE, NULL);
    assert_non_null(put);
    assert_int_equal(put->txn.txn.compares[2].key.kind, KEY_DONE); /* only if it is not there */
    assert_int_equal(put->txn.txn.compares[2].number, 0);
}

/* It counts from 1 again, and knows nothing of the run. */
static void test_a_store_that_came_back_empty_is_no_stranger(void **state) {
    (void)state;
    work();
    tick(500 * MS);
    beat(need(ACTION_BEAT)->beat.seq, BEAT_REFUSED);
    need(ACTION_KILL);
    reaped();
    answer(need(ACTION_SNAPSHOT), NULL, 0, 1);
    need(ACTION_LEASE_GRANT);
    assert_null(find(ACTION_STORE));
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_teardown(name, script_end)
    const struct CMUnitTest tests[] = {
        TEST(test_a_store_that_only_answers_reads_is_given_up),
        TEST(test_a_store_that_takes_no_write_ends_a_newcomer_at_its_join_timeout),
        TEST(test_a_store_that_does_not_show_what_it_wrote_ends_a_newcomer),
        TEST(test_a_store_that_takes_every_session_away_is_given_up),
        TEST(test_a_store_that_goes_back_is_not_the_one_that_was_known),
        TEST(test_a_store_that_went_back_and_has_caught_up_is_known_by_its_head),
        TEST(test_or_by_its_lead),
        TEST(test_or_by_its_own_session_where_it_has_neither),
        TEST(test_what_the_store_was_told_it_is_told_again_when_a_watch_was_lost),
        TEST(test_a_store_that_came_back_empty_is_no_stranger),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
