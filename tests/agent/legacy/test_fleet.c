/* What agents of the legacy rendezvous do among themselves, around a model of an etcd. */
#include "base/base64.h"
#include "base/buf.h"
#include "tests/agent/legacy/fixture.h"

static void test_nodes_that_are_all_there_start_at_once(void **state) {
    (void)state;
    begin(3, 3, 3, 0);
    fleet_run(f, 500 * MS);
    assert_round(7, 1);
}

/* Torchrun's master is a name; here it is one that all know. */
static void test_the_master_is_a_name_where_all_know_it(void **state) {
    (void)state;
    f = fleet_new(1, 3, 3, 0);
    fleet_names(f);
    for (int i = 0; i < 3; i++)
        fleet_start(f, i);
    fleet_run(f, 4 * S);
    assert_round(7, 1);
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof(name), "n%d.example", i);
        if (fleet_agent(f, i)->group.rank == 0)
            assert_string_equal(fleet_agent(f, i)->group.master_addr, name);
        assert_string_equal(fleet_agent(f, i)->group.master_addr,
                            fleet_agent(f, 0)->group.master_addr);
    }
}

static void test_the_master_is_an_address_where_one_does_not_know_its_name(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        f = fleet_new(1, 3, 3, 0);
        fleet_names(f);
        fleet_nameless(f, k);
        for (int i = 0; i < 3; i++)
            fleet_start(f, i);
        fleet_run(f, 4 * S);
        assert_round(7, 1);
        for (int i = 0; i < 3; i++)
            assert_string_equal(fleet_agent(f, i)->group.master_addr, "host");
        f = fleet_free(f);
    }
}

static void test_an_elastic_job_waits_for_more_and_then_starts(void **state) {
    (void)state;
    begin(2, 1, 4, 0);
    fleet_run(f, 1500 * MS);
    assert_round(0, 0);
    fleet_run(f, 1500 * MS);
    assert_round(3, 1);
}

static void test_too_few_nodes_start_nothing(void **state) {
    (void)state;
    begin(2, 3, 3, 0);
    fleet_run(f, 60 * S);
    assert_round(0, 0);
    fleet_start(f, 2);
    fleet_run(f, 1 * S);
    assert_round(7, 1);
}

static void test_nodes_that_do_not_come_end_it_with_their_number(void **state) {
    (void)state;
    begin(2, 3, 3, 0);
    fleet_run(f, 605 * S);
    assert_int_equal(fleet_agent(f, 0)->exit_code, 1);
    assert_non_null(strstr(fleet_agent(f, 0)->exit_text, "2 nodes had joined, at least 3"));
}

static void test_a_failed_worker_begins_a_round_before_any_key_has_expired(void **state) {
    (void)state;
    begin(2, 2, 2, 1);
    fleet_run(f, 1 * S);
    fleet_exit(f, 1, SIGKILL);
    fleet_run(f, 1500 * MS);
    assert_round(3, 2);
    assert_int_equal(fleet_agent(f, 1)->group.restart_count, 1);
    assert_int_equal(fleet_agent(f, 0)->group.restart_count, 0); /* each counts its own */
}

static void test_a_budget_that_is_spent_ends_all_agents_with_the_failure(void **state) {
    (void)state;
    begin(2, 2, 2, 0);
    fleet_run(f, 1 * S);
    fleet_exit(f, 0, 3 << 8);
    fleet_run(f, 3 * S);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fleet_agent(f, i)->exit_code, 1);
        assert_non_null(strstr(fleet_agent(f, i)->exit_text, "exited with code 3: it broke"));
    }
    assert_int_equal(fleet_agent(f, 0)->exit_round, 1); /* also where no restart is allowed */
}

static void test_a_guard_that_is_killed_is_charged_and_one_whose_time_is_up_is_not(void **state) {
    (void)state;
    begin(2, 2, 2, 1);
    fleet_run(f, 1 * S);
    fleet_exit(f, 1, FLEET_GUARD_DUE);
    fleet_run(f, 3 * S);
    assert_round(3, 2);
    assert_int_equal(fleet_agent(f, 1)->group.restart_count, 0);
    fleet_exit(f, 1, FLEET_GUARD_KILLED);
    fleet_run(f, 5 * S);
    assert_round(3, 3);
    assert_int_equal(fleet_agent(f, 1)->group.restart_count, 1);
    fleet_exit(f, 1, FLEET_GUARD_KILLED);
    fleet_run(f, 8 * S);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fleet_agent(f, i)->exit_code, 1);
        assert_non_null(strstr(fleet_agent(f, i)->exit_text, "the workers' guard (pid 7) was"));
    }
}

static void test_a_dead_node_is_given_up_when_its_key_has_expired(void **state) {
    (void)state;
    begin(3, 2, 3, 0);
    fleet_run(f, 5 * S);
    fleet_crash(f, 1);
    fleet_run(f, 6 * S);
    assert_int_equal(fleet_agent(f, 0)->group.round, 1);
    fleet_run(f, 9 * S);
    assert_round(5, 2);
}

static void test_a_node_that_comes_late_is_taken_in(void **state) {
    (void)state;
    begin(2, 2, 3, 0);
    fleet_run(f, 4 * S);
    fleet_start(f, 2);
    fleet_run(f, 4 * S);
    assert_round(7, 2);
    assert_int_equal(fleet_agent(f, 0)->group.restart_count, 0);
}

static void test_a_spare_disturbs_nobody_and_takes_the_place_of_who_leaves(void **state) {
    (void)state;
    begin(2, 2, 2, 0);
    fleet_run(f, 4 * S);
    fleet_start(f, 2);
    fleet_run(f, 700 * S); /* longer than a rendezvous may take */
    assert_round(3, 1);
    fleet_signal(f, 0, SIGTERM);
    fleet_run(f, 4 * S);
    assert_int_equal(fleet_agent(f, 0)->exit_code, 143);
    assert_round(6, 2);
}

static void test_who_is_done_waits_for_the_others_and_the_run_is_closed(void **state) {
    (void)state;
    begin(2, 2, 2, 0);
    fleet_run(f, 1 * S);
    fleet_exit(f, 0, 0);
    fleet_run(f, 400 * S);
    assert_true(fleet_agent(f, 0)->up);
    fleet_exit(f, 1, 0);
    fleet_run(f, 1 * S);
    assert_int_equal(fleet_agent(f, 0)->exit_code, 0);
    assert_int_equal(fleet_agent(f, 1)->exit_code, 0);
    fleet_start(f, 2);
    fleet_run(f, 1 * S);
    assert_int_equal(fleet_agent(f, 2)->exit_code, 0);
    assert_non_null(strstr(fleet_agent(f, 2)->exit_text, "it succeeded; no worker was started"));
}

/* What a member says at the barrier is for torchruns; ours see first that the run has failed. */
static void test_who_is_done_hears_that_a_peer_has_failed(void **state) {
    (void)state;
    for (int first = 0; first < 2; first++) {
        begin(2, 2, 2, 0);
        fleet_run(f, 1 * S);
        fleet_exit(f, first, 0);
        fleet_run(f, 1 * S);
        fleet_exit(f, 1 - first, 3 << 8);
        fleet_run(f, 2 * S);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(fleet_agent(f, i)->exit_code, 1);
            assert_non_null(strstr(fleet_agent(f, i)->exit_text, "exited with code 3: it broke"));
        }
        end(NULL);
    }
}

static void test_who_is_done_comes_along_when_a_peer_begins_anew(void **state) {
    (void)state;
    begin(2, 2, 2, 1);
    fleet_run(f, 1 * S);
    fleet_exit(f, 0, 0);
    fleet_run(f, 1 * S);
    fleet_exit(f, 1, SIGKILL);
    fleet_run(f, 2 * S);
    assert_round(3, 2);
}

/* The others may begin when the key has expired, 10 s after its last refresh. */
static void test_workers_of_a_node_that_is_cut_off_are_dead_before_the_others_begin(void **state) {
    (void)state;
    begin(3, 2, 3, 0);
    fleet_run(f, 5 * S);
    fleet_cut(f, 1, 30 * S);
    fleet_run(f, 9 * S);
    assert_false(fleet_agent(f, 1)->group.alive);
    fleet_run(f, 6 * S);
    assert_round(5, 2);
    fleet_run(f, 25 * S); /* it is back, and is taken in again */
    assert_round(7, 3);
    assert_int_equal(fleet_agent(f, 1)->group.restart_count, 0);
}

static void test_a_stopped_agent_is_given_up_and_comes_back(void **state) {
    (void)state;
    begin(2, 1, 2, 0);
    fleet_run(f, 5 * S);
    fleet_pause(f, 0, 40 * S);
    fleet_run(f, 16 * S);
    assert_round(2, 2);
    fleet_run(f, 34 * S);
    assert_round(3, 3);
}

static void test_nobody_asks_for_anything_while_nothing_happens(void **state) {
    (void)state;
    begin(3, 3, 3, 0);
    fleet_run(f, 5 * S);
    int64_t before = fleet_requests(f);
    fleet_run(f, 100 * S);
    assert_in_range(fleet_requests(f) - before, 1, 3 * 41); /* one refresh each 2.5 s */
}

/* ---- the test as a torchrun ---- */

#define RDZV "/torchelastic/p2p/run_job/rdzv"

static void put(const char *key, const char *value) {
    struct arena a = {0};
    struct tree_request q = {
        .verb = TREE_PUT, .key = arena_printf(&a, RDZV "/%s", key), .value = value};
    tree_model_do(fleet_tree(f), 0, &q, &a);
    arena_fini(&a);
    fleet_run(f, 200 * MS);
}

static void drop(const char *key) {
    struct arena a = {0};
    struct tree_request q = {.verb = TREE_DELETE, .key = arena_printf(&a, RDZV "/%s", key)};
    tree_model_do(fleet_tree(f), 0, &q, &a);
    arena_fini(&a);
    fleet_run(f, 200 * MS);
}

static void put_kv(const char *key, const char *value) {
    struct buf path = {0}, text = {0};
    buf_puts(&path, "v_1/kv/");
    base64_put(&path, key, strlen(key));
    base64_put(&text, value, strlen(value));
    put(buf_str(&path), buf_str(&text));
    buf_fini(&path);
    buf_fini(&text);
}

static void assert_kv(const char *key, const char *value) {
    struct buf path = {0}, text = {0};
    buf_puts(&path, RDZV "/v_1/kv/");
    base64_put(&path, key, strlen(key));
    const char *found = tree_model_get(fleet_tree(f), buf_str(&path));
    buf_fini(&path);
    if (!value) {
        assert_null(found);
        return;
    }
    assert_non_null(found);
    assert_true(base64_take(&text, found, strlen(found)));
    assert_string_equal(buf_str(&text), value);
    buf_fini(&text);
}

/* What a torchrun makes of the state: python's text, with the mark of the other passed on. */
static void put_state(const char *status, const char *keys, const char *more) {
    const char *now = tree_model_get(fleet_tree(f), RDZV "/active_version");
    const char *mark = strstr(now, "\"rankrun\":{");
    struct buf b = {0};
    assert_non_null(mark);
    buf_printf(&b,
               "{\"status\": \"%s\", \"version\": \"1\", \"participants\": [0, 1], %.*s, "
               "\"keep_alives\": [%s]%s}",
               status, (int)(strchr(mark, '}') + 1 - mark), mark, keys, more);
    put("active_version", buf_str(&b));
    buf_fini(&b);
}

static bool gang; /* of the next */

/* Agent 1 (two workers) is rank 0 of a round whose rank 1 the test is. */
static void meet(void) {
    f = fleet_new(1, 2, 2, 0);
    if (gang)
        fleet_gang(f);
    gang = false;
    fleet_start(f, 1);
    fleet_run(f, 300 * MS);
    put_state("frozen", "", "");
    put("v_1/rank_1", "");
    assert_non_null(strstr(tree_model_get(fleet_tree(f), RDZV "/active_version"),
                           "\"keep_alives\":[\"" RDZV "/v_1/rank_0\"]"));
    put_state("final", "\"" RDZV "/v_1/rank_0\", \"" RDZV "/v_1/rank_1\"",
              ", \"num_workers_waiting\": 0");
}

static void test_a_torchrun_is_told_what_it_asks_for(void **state) {
    (void)state;
    meet();
    assert_kv("torchelastic/role_info0",
              "{\"role\":\"default\",\"rank\":0,\"local_world_size\":2}");
    put_kv("torchelastic/role_info1",
           "{\"role\": \"other\", \"rank\": 1, \"local_world_size\": 3}");
    assert_kv("torchelastic/role_info0.FIN", "FIN");
    assert_kv("MASTER_ADDR", "host");
    assert_kv("torchelastic/role_info/0", NULL);
    assert_true(fleet_agent(f, 1)->group.alive);
    assert_int_equal(fleet_agent(f, 1)->group.world, 5);
    fleet_exit(f, 1, 0);
    fleet_run(f, 200 * MS);
    assert_kv("torchelastic/agent/terminal_state0", "0");
    assert_true(fleet_agent(f, 1)->up);
    put_kv("torchelastic/agent/terminal_state1", "1");
    assert_kv("torchelastic/agent/terminal_state0.FIN", "FIN");
    assert_int_equal(fleet_agent(f, 1)->exit_code, 0);
}

static void test_a_newer_torchrun_gets_its_ranks_by_its_own_keys(void **state) {
    (void)state;
    meet();
    assert_kv("MASTER_ADDR", "host"); /* it says nothing before it knows this */
    put_kv("torchelastic/role_info/1",
           "{\"role\": \"other\", \"rank\": 1, \"local_world_size\": 3}");
    assert_kv("torchelastic/role_info/0",
              "{\"role\":\"default\",\"rank\":0,\"local_world_size\":2}");
    assert_kv("torchelastic/assigned_ranks/0", "[0, 5, 0, 2]");
    assert_kv("torchelastic/assigned_ranks/1", "[2, 5, 0, 3]");
    assert_true(fleet_agent(f, 1)->group.alive);
    fleet_exit(f, 1, 0);
    fleet_run(f, 200 * MS);
    assert_kv("torchelastic/agent/terminal_state/num_members", "1");
    put_kv("torchelastic/agent/terminal_state/num_members", "2");
    put_kv("torchelastic/agent/terminal_state/last_member", "<val_ignored>");
    assert_int_equal(fleet_agent(f, 1)->exit_code, 0);
}

/* Keys are what a torchrun calls them: one that tells no number is of nobody that is known. */
static void test_a_gang_names_who_is_lost_as_far_as_it_is_known(void **state) {
    (void)state;
    static const struct {
        const char *key, *text;
    } rows[] = {{RDZV "/v_1/rank_1", "node of group rank 1 was lost"},
                {"/rank7", "node of group rank -1 was lost"},
                {RDZV "/v_1/rank_12", "node of group rank 12 was lost"},
                {RDZV "/v_1/rank_0", NULL}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char keys[256];
        gang = true;
        meet();
        put_kv("torchelastic/role_info1",
               "{\"role\": \"default\", \"rank\": 1, \"local_world_size\": 1}");
        assert_true(fleet_agent(f, 1)->group.alive);
        snprintf(keys, sizeof(keys), "\"" RDZV "/v_1/rank_0\", \"%s\"", rows[i].key);
        put_state("final", keys, ", \"num_workers_waiting\": 0");
        if (i == 0)
            drop("v_1/rank_1");
        fleet_run(f, 9 * S);
        assert_int_equal(fleet_agent(f, 1)->exit_code, rows[i].text ? 1 : -1);
        if (rows[i].text && !strstr(fleet_agent(f, 1)->exit_text, rows[i].text))
            fail_msg("%s: %s", rows[i].key, fleet_agent(f, 1)->exit_text);
        end(NULL);
    }
}

/* Agent 1 and the test, a torchrun of 2.4, have workers that run. */
static void meet_newer(void) {
    meet();
    put_kv("torchelastic/role_info/1",
           "{\"role\": \"default\", \"rank\": 1, \"local_world_size\": 1}");
    assert_true(fleet_agent(f, 1)->group.alive);
}

/* Who makes it the number of all says so to all. */
static void test_the_last_at_a_newer_barrier_opens_it(void **state) {
    (void)state;
    meet_newer();
    put_kv("torchelastic/agent/terminal_state/num_members", "1");
    fleet_exit(f, 1, 0);
    fleet_run(f, 200 * MS);
    assert_kv("torchelastic/agent/terminal_state/num_members", "2");
    assert_kv("torchelastic/agent/terminal_state/last_member", "<val_ignored>");
    assert_int_equal(fleet_agent(f, 1)->exit_code, 0);
}

/* text: what the number is before; after: behind it, the same where it is none that anybody has counted. */
static void test_a_barrier_counts_what_is_a_number(void **state) {
    (void)state;
    static const struct {
        const char *text, *after;
    } rows[] = {
        {"0", "1"}, {"7", "8"}, {"1000000", "1000001"}, {"1000001", "1000001"}, {"-1", "-1"},
        {"x", "x"}, {"", ""}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        meet_newer();
        put_kv("torchelastic/agent/terminal_state/num_members", rows[i].text);
        fleet_exit(f, 1, 0);
        fleet_run(f, 200 * MS);
        assert_kv("torchelastic/agent/terminal_state/num_members", rows[i].after);
        end(NULL);
    }
}

/* It asks every five seconds: the key of a lost member is there until it has, and so is ours. */
static void test_a_torchrun_has_time_to_see_that_others_wait(void **state) {
    (void)state;
    meet();
    put_kv("torchelastic/role_info1",
           "{\"role\": \"default\", \"rank\": 1, \"local_world_size\": 1}");
    assert_true(fleet_agent(f, 1)->group.alive);
    fleet_signal(f, 1, SIGTERM);
    fleet_run(f, 5 * S);
    assert_int_equal(fleet_agent(f, 1)->exit_code, 143);
    assert_non_null(
        strstr(tree_model_get(fleet_tree(f), RDZV "/active_version"), "\"num_workers_waiting\":1"));
    assert_non_null(tree_model_get(fleet_tree(f), RDZV "/v_1/rank_0"));
    fleet_run(f, 6 * S);
    assert_null(tree_model_get(fleet_tree(f), RDZV "/v_1/rank_0"));
}

static void test_a_state_that_is_not_torchelastics_is_told_with_its_key(void **state) {
    (void)state;
    struct arena a = {0};
    struct tree_request q = {.verb = TREE_PUT,
                             .key = "/torchelastic/p2p/run_job/rdzv/active_version",
                             .value = "{\"status\": \"melting\"}"};
    f = fleet_new(1, 1, 1, 0);
    tree_model_do(fleet_tree(f), 0, &q, &a);
    arena_fini(&a);
    fleet_start(f, 0);
    fleet_run(f, 1 * S);
    assert_int_equal(fleet_agent(f, 0)->exit_code, 1);
    assert_non_null(strstr(fleet_agent(f, 0)->exit_text, "active_version holds"));
    assert_non_null(strstr(fleet_agent(f, 0)->exit_text, "melting"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_nodes_that_are_all_there_start_at_once, end),
        cmocka_unit_test_teardown(test_the_master_is_a_name_where_all_know_it, end),
        cmocka_unit_test_teardown(test_the_master_is_an_address_where_one_does_not_know_its_name,
                                  end),
        cmocka_unit_test_teardown(test_an_elastic_job_waits_for_more_and_then_starts, end),
        cmocka_unit_test_teardown(test_too_few_nodes_start_nothing, end),
        cmocka_unit_test_teardown(test_nodes_that_do_not_come_end_it_with_their_number, end),
        cmocka_unit_test_teardown(test_a_failed_worker_begins_a_round_before_any_key_has_expired,
                                  end),
        cmocka_unit_test_teardown(test_a_budget_that_is_spent_ends_all_agents_with_the_failure,
                                  end),
        cmocka_unit_test_teardown(
            test_a_guard_that_is_killed_is_charged_and_one_whose_time_is_up_is_not, end),
        cmocka_unit_test_teardown(test_a_dead_node_is_given_up_when_its_key_has_expired, end),
        cmocka_unit_test_teardown(test_a_gang_names_who_is_lost_as_far_as_it_is_known, end),
        cmocka_unit_test_teardown(test_a_node_that_comes_late_is_taken_in, end),
        cmocka_unit_test_teardown(test_a_spare_disturbs_nobody_and_takes_the_place_of_who_leaves,
                                  end),
        cmocka_unit_test_teardown(test_who_is_done_waits_for_the_others_and_the_run_is_closed, end),
        cmocka_unit_test_teardown(test_who_is_done_hears_that_a_peer_has_failed, end),
        cmocka_unit_test_teardown(test_who_is_done_comes_along_when_a_peer_begins_anew, end),
        cmocka_unit_test_teardown(
            test_workers_of_a_node_that_is_cut_off_are_dead_before_the_others_begin, end),
        cmocka_unit_test_teardown(test_a_stopped_agent_is_given_up_and_comes_back, end),
        cmocka_unit_test_teardown(test_nobody_asks_for_anything_while_nothing_happens, end),
        cmocka_unit_test_teardown(test_a_torchrun_is_told_what_it_asks_for, end),
        cmocka_unit_test_teardown(test_a_newer_torchrun_gets_its_ranks_by_its_own_keys, end),
        cmocka_unit_test_teardown(test_the_last_at_a_newer_barrier_opens_it, end),
        cmocka_unit_test_teardown(test_a_barrier_counts_what_is_a_number, end),
        cmocka_unit_test_teardown(test_a_torchrun_has_time_to_see_that_others_wait, end),
        cmocka_unit_test_teardown(test_a_state_that_is_not_torchelastics_is_told_with_its_key, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
