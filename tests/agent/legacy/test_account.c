/* Runs as etcd answers them, written by hand. */
#include "agent/legacy/account.h"

#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { NODES = 32 };
static const char folder[] = "/torchelastic/p2p/run_job/rdzv";
static struct arena arena;
static struct tree_node nodes[NODES];
static size_t n;
static struct account c;

static void put(const char *below, const char *value) {
    assert_true(n < NODES);
    nodes[n++] = (struct tree_node){.key = arena_printf(&arena, "%s/%s", folder, below),
                                    .value = value,
                                    .modified = (int64_t)n};
}

static const char *encoded(const char *text) {
    struct buf b = {0};
    base64_put(&b, text, strlen(text));
    const char *copy = arena_strdup(&arena, buf_str(&b));
    buf_fini(&b);
    return copy;
}

static void tell(const char *name, const char *value) {
    put(arena_printf(&arena, "v_3/kv/%s", encoded(name)), encoded(value));
}

static void read_it(void) {
    struct tree_answer answer = {.result = TREE_DONE, .index = 77, .nodes = nodes, .n = n};
    account_fini(&c);
    account_read(&arena, account_folder(&arena, NULL, "job"), &answer, &c);
}

static int clear(void **state) {
    (void)state;
    account_fini(&c);
    arena_fini(&arena);
    n = 0;
    return 0;
}

/* Member 0 is a rankrun agent, 1 a torchrun of 1.13, 2 one whose key is gone. */
static void put_round(const char *status, const char *more) {
    put("active_version",
        arena_printf(&arena,
                     "{\"status\": \"%s\", \"version\": \"3\", \"participants\": [0, 1, 2], "
                     "\"rankrun\": {\"0\": \"abc\"}, \"keep_alives\": [\"%s/v_3/rank_1\"], "
                     "\"num_workers_waiting\": 1%s}",
                     status, folder, more));
    put("v_3/rank_0", "");
    put("v_3/rank_1", "");
    tell("MASTER_ADDR", "n0");
    tell("MASTER_PORT", "29111");
    tell("torchelastic/role_info0",
         "{\"role\": \"trainer\", \"rank\": 0, \"local_world_size\": 2}");
    tell("torchelastic/role_info/1", "{\"role\": \"t\", \"rank\": 1, \"local_world_size\": 1}");
}

static void test_a_running_round_is_told_with_its_members(void **state) {
    (void)state;
    put_round("final", "");
    tell("torchelastic/role_info2", "{\"role\": \"t\", \"rank\": 2, \"local_world_size\": 4}");
    read_it();
    assert_int_equal(c.index, 77);
    assert_string_equal(account_phase(&c), "running");
    assert_int_equal(c.version, 3);
    assert_int_equal(c.n, 3);
    assert_int_equal(c.world, 7);
    assert_int_equal(c.doc.waiting, 1);
    assert_string_equal(c.addr, "n0");
    assert_string_equal(c.port, "29111");
    assert_string_equal(c.members[0].uid, "abc");
    assert_null(c.members[1].uid);
    assert_string_equal(c.members[0].role, "trainer");
    assert_int_equal(c.members[1].rank_base, 2);
    assert_int_equal(c.members[2].rank_base, 3);
    assert_string_equal(account_member_state(&c, &c.members[0]), "running");
    assert_string_equal(account_member_state(&c, &c.members[2]), "gone");
    tell("torchelastic/agent/terminal_state1", "1");
    read_it();
    assert_string_equal(account_member_state(&c, &c.members[1]), "done");
}

static void test_what_is_not_told_yet_is_unknown(void **state) {
    (void)state;
    put_round("frozen", "");
    read_it();
    assert_string_equal(account_phase(&c), "forming");
    assert_int_equal(c.world, 0);
    assert_int_equal(c.members[2].slots, 0);
    assert_null(c.members[2].role);
    assert_string_equal(account_member_state(&c, &c.members[0]), "joining");
    assert_string_equal(account_member_state(&c, &c.members[1]), "forming");
    clear(NULL);
    put_round("final", "");
    nodes[5].value = encoded("no JSON"); /* role_info0: then nobody's ranks are known but its own */
    read_it();
    assert_int_equal(c.members[0].slots, 0);
    assert_int_equal(c.members[0].rank_base, 0);
    assert_int_equal(c.members[1].rank_base, -1);
}

static void test_a_closed_run_has_its_last_round_and_perhaps_an_outcome(void **state) {
    (void)state;
    put_round("closed", ", \"rankrun_end\": \"rank 1 exited with code 3\"");
    read_it();
    assert_string_equal(account_phase(&c), "closed");
    assert_int_equal(c.version, 3);
    assert_int_equal(c.n, 3);
    assert_string_equal(document_end(&c.doc), "rank 1 exited with code 3");
    assert_string_equal(account_member_state(&c, &c.members[0]), "ending");
    clear(NULL);
    put("active_version", "{\"status\": \"closed\"}"); /* by torchrun, before any round */
    read_it();
    assert_int_equal(c.version, 0);
    assert_int_equal(c.n, 0);
    assert_null(document_end(&c.doc));
}

static void test_between_two_versions_nothing_is_known_and_strange_states_are_seen(void **state) {
    (void)state;
    put("version_counter", "3");
    read_it();
    assert_int_equal(c.doc.status, DOCUMENT_ABSENT);
    assert_string_equal(account_phase(&c), "joining");
    assert_int_equal(c.n, 0);
    assert_int_equal(c.version, 0);
    put("active_version", "{\"status\": \"setup\"}");
    read_it();
    assert_string_equal(account_phase(&c), "joining");
    clear(NULL);
    put("active_version", "[]");
    read_it();
    assert_int_equal(c.doc.status, DOCUMENT_STRANGE);
}

static void test_a_prefix_of_ones_own_is_used(void **state) {
    (void)state;
    assert_string_equal(account_folder(&arena, "/mine", "a b"), "/mine/run_a b/rdzv");
}

static void test_nothing_is_left_of_one_that_is_given_back(void **state) {
    (void)state;
    static const struct account nothing;
    put_round("final", "");
    read_it();
    account_fini(&c);
    assert_string_equal(c.doc.text ? c.doc.text : "", "");
    c.doc.text = NULL;
    assert_memory_equal(&c, &nothing, sizeof(c));
}

int main(int argc, char **argv) {
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_running_round_is_told_with_its_members, clear),
        cmocka_unit_test_teardown(test_what_is_not_told_yet_is_unknown, clear),
        cmocka_unit_test_teardown(test_a_closed_run_has_its_last_round_and_perhaps_an_outcome,
                                  clear),
        cmocka_unit_test_teardown(
            test_between_two_versions_nothing_is_known_and_strange_states_are_seen, clear),
        cmocka_unit_test_teardown(test_a_prefix_of_ones_own_is_used, clear),
        cmocka_unit_test_teardown(test_nothing_is_left_of_one_that_is_given_back, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
