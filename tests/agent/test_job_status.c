#include "agent/job_status.h"

#include "agent/store/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { PAIRS = 32 };
static struct arena arena;
static struct kv_pair pairs[PAIRS];
static size_t n;
static struct job_status s;

static const char inc[] = "0123456789abcdef", other_inc[] = "fedcba9876543210";
static const char a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                  b[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
                  c[] = "cccccccccccccccccccccccccccccccc";

static void put(struct store_key key, const char *of_inc, const char *uid, const union value *v) {
    char text[KEY_SIZE], end[KEY_SIZE];
    struct buf value = {0};
    strcpy(key.inc, of_inc);
    strcpy(key.uid, uid);
    if (key.kind == KEY_PLAN)
        strcpy(key.pid, "2-7-1");
    key_format(&key, "job", text, end);
    codec_put(&value, key.kind, v);
    pairs[n++] = (struct kv_pair){.key = kv_string(arena_strdup(&arena, text)),
                                  .value = kv_string(arena_strdup(&arena, buf_str(&value)))};
    buf_fini(&value);
}

#define PUT(of, uid, ...) put((struct store_key){.kind = of}, inc, uid, &(union value){__VA_ARGS__})

/* Two rounds; a and b are in the second, c waits. */
static void make_job(enum head_phase phase) {
    n = 0;
    PUT(KEY_CUR, "", .cur = {.inc = "0123456789abcdef", .min = 2, .max = 2, .max_restarts = 3});
    PUT(KEY_HEAD, "",
        .head = {
            .round = 2, .phase = phase, .pid = "2-7-1", .n = 2, .last_round = 2, .restarts = 1});
    PUT(KEY_LEAD, "", .lead = {"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"});
    PUT(KEY_MEMBER, c, .member = {.node = "n2", .slots = 1});
    PUT(KEY_MEMBER, b, .member = {.node = "n1", .slots = 2});
    PUT(KEY_MEMBER, a, .member = {.node = "n0", .slots = 2});
    PUT(KEY_SESSION, a, .session = {1});
    PUT(KEY_SESSION, b, .session = {1});
    PUT(KEY_SESSION, c, .session = {1});
    PUT(KEY_PLAN, a, .plan = {.group_rank = 1, .rank_base = 2, .world = 4});
    PUT(KEY_PLAN, b, .plan = {.group_rank = 0, .rank_base = 0, .world = 4});
}

static const char *state_of(const char *uid) {
    job_status_read(&arena, "job", 9, pairs, n, &s);
    return job_member_state(&s, job_status_member(&s, uid));
}

static int clear(void **state) {
    (void)state;
    arena_fini(&arena);
    return 0;
}

static void test_members_come_in_the_order_of_their_places_and_those_that_wait_last(void **state) {
    (void)state;
    make_job(HEAD_RUN);
    job_status_read(&arena, "job", 9, pairs, n, &s);
    assert_true(s.found);
    assert_int_equal(s.n, 3);
    assert_string_equal(s.members[0].value.node, "n1");
    assert_string_equal(s.members[1].value.node, "n0");
    assert_string_equal(s.members[2].value.node, "n2");
    assert_string_equal(s.lead, b);
    assert_string_equal(job_status_phase(&s), "running");
    assert_int_equal(s.head.restarts, 1);
}

static void test_what_a_member_does_follows_from_what_it_wrote_of_the_last_round(void **state) {
    (void)state;
    make_job(HEAD_RUN);
    assert_string_equal(state_of(a), "running");
    assert_string_equal(state_of(c), "spare");
    put((struct store_key){.kind = KEY_DONE, .round = 1}, inc, a, &(union value){.done = {1}});
    assert_string_equal(state_of(a), "running");
    put((struct store_key){.kind = KEY_DONE, .round = 2}, inc, a, &(union value){.done = {2}});
    assert_string_equal(state_of(a), "done");
    put((struct store_key){.kind = KEY_ACK, .round = 2}, inc, b,
        &(union value){.ack = {.why = ACK_FENCED}});
    assert_string_equal(state_of(b), "fenced");
    PUT(KEY_GONE, b, .gone = {GONE_SILENT});
    assert_string_equal(state_of(b), "lost");
    make_job(HEAD_FORM);
    assert_string_equal(state_of(a), "forming");
    assert_string_equal(state_of(c), "joining");
}

static void test_a_job_that_ended_with_a_round_proposed_is_told_by_its_last(void **state) {
    (void)state;
    make_job(HEAD_CLOSED);
    n = 1;
    PUT(KEY_HEAD, "",
        .head = {.round = 3,
                 .phase = HEAD_CLOSED,
                 .pid = "3-9-1",
                 .n = 1,
                 .last_round = 2,
                 .last_pid = "2-7-1",
                 .last_n = 2,
                 .restarts = 4});
    PUT(KEY_PLAN, a, .plan = {.group_rank = 1, .rank_base = 2, .world = 4});
    PUT(KEY_PLAN, b, .plan = {.group_rank = 0, .rank_base = 0, .world = 4});
    job_status_read(&arena, "job", 9, pairs, n, &s);
    assert_int_equal(s.round, 2);
    assert_int_equal(s.nodes, 2);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.restarts, 3);
    assert_int_equal(s.world, 4);
    make_job(HEAD_FORM);
    job_status_read(&arena, "job", 9, pairs, n, &s);
    assert_int_equal(s.world, 0);
}

static void test_a_member_without_session_and_place_is_not_shown(void **state) {
    (void)state;
    make_job(HEAD_RUN);
    PUT(KEY_MEMBER, "dddddddddddddddddddddddddddddddd", .member = {.node = "n9"});
    PUT(KEY_GONE, "dddddddddddddddddddddddddddddddd", .gone = {GONE_LEFT});
    job_status_read(&arena, "job", 9, pairs, n, &s);
    assert_int_equal(s.n, 3);
}

static void test_keys_of_an_incarnation_before_are_not_the_job(void **state) {
    (void)state;
    make_job(HEAD_RUN);
    put((struct store_key){.kind = KEY_SESSION}, other_inc, "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
        &(union value){.session = {1}});
    put((struct store_key){.kind = KEY_HEAD}, other_inc, "",
        &(union value){.head = {.round = 77, .phase = HEAD_CLOSED}});
    job_status_read(&arena, "job", 9, pairs, n, &s);
    assert_int_equal(s.n, 3);
    assert_int_equal(s.head.round, 2);
}

static void test_a_run_without_its_first_key_is_not_there(void **state) {
    (void)state;
    make_job(HEAD_RUN);
    job_status_read(&arena, "job", 9, pairs + 1, n - 1, &s);
    assert_false(s.found);
    job_status_read(&arena, "another", 9, pairs, n, &s);
    assert_false(s.found);
}

static void test_values_that_cannot_be_read_are_counted(void **state) {
    (void)state;
    make_job(HEAD_RUN);
    pairs[1].value = kv_string("{\"phase\":\"never-heard\"}");
    job_status_read(&arena, "job", 9, pairs, n, &s);
    assert_true(s.found);
    assert_int_equal(s.unread, 1);
    pairs[0].value = kv_string("nonsense");
    job_status_read(&arena, "job", 9, pairs, n, &s);
    assert_false(s.found);
    assert_int_equal(s.unread_cur, 1);
}

static void test_the_range_holds_the_run_and_no_other(void **state) {
    (void)state;
    char key[KEY_SIZE], end[KEY_SIZE];
    memset(key, 'x', sizeof(key));
    memset(end, 'x', sizeof(end));
    job_status_range("job", key, end);
    assert_string_equal(key, "/rankrun/job/");
    assert_string_equal(end, "/rankrun/job0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(
            test_members_come_in_the_order_of_their_places_and_those_that_wait_last, clear),
        cmocka_unit_test_teardown(
            test_what_a_member_does_follows_from_what_it_wrote_of_the_last_round, clear),
        cmocka_unit_test_teardown(test_a_job_that_ended_with_a_round_proposed_is_told_by_its_last,
                                  clear),
        cmocka_unit_test_teardown(test_a_member_without_session_and_place_is_not_shown, clear),
        cmocka_unit_test_teardown(test_keys_of_an_incarnation_before_are_not_the_job, clear),
        cmocka_unit_test_teardown(test_a_run_without_its_first_key_is_not_there, clear),
        cmocka_unit_test_teardown(test_values_that_cannot_be_read_are_counted, clear),
        cmocka_unit_test_teardown(test_the_range_holds_the_run_and_no_other, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
