/* Whom the store means when a trigger comes true: it is asked then, and without its word nobody is
 * struck. */
#include "harness/run/timeline.h"
#include "tests/harness/run/stage.h"

/* n2 is there for the store; with three, all are. */
static struct timeline_entry *on_role(struct stage *s, const struct fault *f, struct target_spec on,
                                      int stores) {
    struct timeline_entry *a = stage_add(s, "k", f);
    static struct plan_node nodes[NODES];
    at_step(a, 5);
    a->on = on;
    a->on.local_rank = -1;
    a->on.text = on.what == TARGET_STORES ? "store-leader" : "coordinator";
    s->scenario.job.launcher = "rankrun";
    s->scenario.name = "job";
    s->scenario.cluster.nodes = NODES - stores;
    for (int i = 0; i < NODES; i++) {
        struct plan_node *p = &s->cluster.nodes[i].plan;
        p->is_store = i >= NODES - stores;
        snprintf(p->addr, sizeof(p->addr), "198.18.0.%c", '0' + i);
        nodes[i] = *p;
    }
    s->plan.nodes = nodes;
    s->plan.nodes_n = NODES;
    stage_begin(s);
    start_round(s, 1, 3);
    return a;
}

static const struct target_spec coordinator = {.pick = PICK_COORDINATOR},
                                leader = {.what = TARGET_STORES, .pick = PICK_LEADER};

/* ended NULL: with status 0. */
static void store_says(size_t question, const char *text, const char *ended) {
    char said[200];
    str_copy(said, sizeof(said), text);
    const struct question_answer a = {.text = said, .len = strlen(said), .ended = ended};
    stores_asked[question].fn(stores_asked[question].arg, &a);
}

static const struct record *newest(const struct stage *s, const char *kind) {
    const struct record *found = NULL;
    history_each(r, &s->history) if (record_is(r, kind)) found = r;
    if (!found)
        fail_msg("there is no %s", kind);
    return found;
}

static void test_the_coordinator_is_struck_once_the_store_has_said_who_it_is(void **state) {
    (void)state;
    struct stage *s = stage_new();
    on_role(s, &kill_node, coordinator, 1);
    int tag = say_step(s, 102, 5); /* anybody's */
    assert_int_not_equal(tag, 0);
    assert_int_equal(stores_asked_n, 1);
    assert_string_equal(stores_asked[0].words, "coordinator 198.18.0.2 29400 job");
    assert_int_equal(killed_nodes, 0);
    assert_int_equal(s->observer.released[tag], 0);
    store_says(0, "n1 17", NULL);
    assert_int_equal(killed_nodes, 1);
    assert_string_equal(stage_acts(s)[0].bound[0].target.name, "n1");
    assert_true(s->observer.released[tag] > 0);
    const struct record *said = newest(s, "store-said");
    assert_string_equal(said->node, "n1");
    assert_int_equal(json_get_i64(said->fields, "term", 0), 17);
    assert_int_equal(json_get_i64(said->fields, "n", 0), 1);
    assert_true(said->seq < newest(s, "fault-fired")->seq);
    stage_free(s);
}

static void test_without_a_word_of_the_store_nobody_is_struck(void **state) {
    (void)state;
    static const struct {
        const char *text, *ended, *why;
    } rows[] = {
        {"nobody coordinates the job job", "it ended with exit code 1", "nobody coordinates"},
        {"", "it ended with SIGKILL", "it ended with SIGKILL"},
        {"n7 3", NULL, "the store names n7, which is no node of this cluster"},
        {"n1", NULL, "n2 did not say who is meant: its answer cannot be read"},
        {"", NULL, "its answer cannot be read"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct stage *s = stage_new();
        on_role(s, &kill_node, coordinator, 1);
        int tag = say_step(s, 100, 5);
        store_says(0, rows[i].text, rows[i].ended);
        assert_int_equal(killed_nodes, 0);
        assert_int_equal(count_records(s, "fault-fired", "k"), 0);
        assert_non_null(
            strstr(json_get_string(newest(s, "fault-not-fired")->fields, "why", ""), rows[i].why));
        assert_true(json_get_string(newest(s, "store-said")->fields, "error", NULL));
        assert_true(s->observer.released[tag] > 0);
        stage_free(s);
    }
}

static void test_a_store_that_is_off_is_not_asked(void **state) {
    (void)state;
    struct stage *s = stage_new();
    s->cluster.nodes[2].on = false;
    on_role(s, &kill_node, coordinator, 1);
    say_step(s, 100, 5);
    assert_int_equal(stores_asked_n, 0);
    assert_int_equal(count_records(s, "fault-not-fired", "k"), 1);
    stage_free(s);
}

static void test_the_workers_of_the_coordinators_node_are_struck(void **state) {
    (void)state;
    struct stage *s = stage_new();
    on_role(s, &kill_worker, coordinator, 1);
    say_step(s, 100, 5);
    store_says(0, "n1 17", NULL);
    assert_int_equal(injected_n, 1);
    assert_string_equal(injected[0], "n1/0 (rank 1)");
    stage_free(s);
}

static void test_a_patient_line_asks_again_when_something_has_changed(void **state) {
    (void)state;
    struct stage *s = stage_new();
    on_role(s, &kill_node, coordinator, 1)->when.patient = true;
    say_step(s, 100, 5);
    store_says(0, "who coordinated the job job is gone", "it ended with exit code 1");
    assert_int_equal(count_records(s, "fault-not-fired", "k"), 0);
    start_round(s, 2, 1);
    assert_int_equal(stores_asked_n, 2);
    start_round(s, 3, 1); /* while it is asked */
    assert_int_equal(stores_asked_n, 2);
    store_says(1, "still nobody", "it ended with exit code 1");
    start_round(s, 4, 1);
    store_says(2, "n0 30", NULL);
    assert_int_equal(killed_nodes, 1);
    assert_int_equal(count_records(s, "fault-not-fired", "k"), 0);
    stage_free(s);
}

static void test_most_members_must_agree_on_who_leads_them(void **state) {
    (void)state;
    struct stage *s = stage_new();
    on_role(s, &kill_node, leader, 3);
    say_step(s, 100, 5);
    assert_int_equal(stores_asked_n, 3);
    assert_string_equal(stores_asked[1].words, "store-leader 198.18.0.1 29400");
    store_says(0, "n0 4", NULL); /* cut off, it believes what it knew */
    assert_int_equal(killed_nodes, 0);
    store_says(2, "n1 5", NULL);
    assert_int_equal(killed_nodes, 0);
    store_says(1, "n1 5", NULL);
    assert_int_equal(killed_nodes, 1);
    assert_string_equal(stage_acts(s)[0].bound[0].target.name, "n1");
    stage_free(s);
}

static void test_two_of_three_are_enough_and_the_third_is_heard_no_more(void **state) {
    (void)state;
    struct stage *s = stage_new();
    on_role(s, &kill_node, leader, 3);
    say_step(s, 100, 5);
    store_says(1, "n2 5", NULL);
    store_says(2, "n2 5", NULL);
    assert_int_equal(killed_nodes, 1);
    assert_int_equal(questions_abandoned, 1);
    stage_free(s);
}

static void test_members_that_do_not_agree_strike_nobody(void **state) {
    (void)state;
    struct stage *s = stage_new();
    on_role(s, &kill_node, leader, 3);
    say_step(s, 100, 5);
    store_says(0, "n0 4", NULL);
    store_says(1, "n1 5", NULL);
    store_says(2, "n0 5", NULL);
    assert_int_equal(killed_nodes, 0);
    assert_string_equal(json_get_string(newest(s, "fault-not-fired")->fields, "why", ""),
                        "the members of the store do not agree on a leader");
    stage_free(s);
}

static void test_the_only_member_leads_and_is_not_asked(void **state) {
    (void)state;
    struct stage *s = stage_new();
    on_role(s, &kill_node, leader, 1);
    say_step(s, 100, 5);
    assert_int_equal(stores_asked_n, 0);
    assert_int_equal(killed_nodes, 1);
    assert_string_equal(stage_acts(s)[0].bound[0].target.name, "n2");
    stage_free(s);
}

static void test_a_run_that_ends_waits_for_no_answer(void **state) {
    (void)state;
    struct stage *s = stage_new();
    on_role(s, &kill_node, coordinator, 1);
    int tag = say_step(s, 100, 5);
    stage_end(s);
    assert_int_equal(questions_abandoned, 1);
    assert_int_equal(killed_nodes, 0);
    assert_true(s->observer.released[tag] > 0);
    assert_string_equal(json_get_string(newest(s, "fault-not-fired")->fields, "why", ""),
                        "the job ended before the store had said whom it means");
    stage_free(s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_coordinator_is_struck_once_the_store_has_said_who_it_is),
        cmocka_unit_test(test_without_a_word_of_the_store_nobody_is_struck),
        cmocka_unit_test(test_a_store_that_is_off_is_not_asked),
        cmocka_unit_test(test_the_workers_of_the_coordinators_node_are_struck),
        cmocka_unit_test(test_a_patient_line_asks_again_when_something_has_changed),
        cmocka_unit_test(test_most_members_must_agree_on_who_leads_them),
        cmocka_unit_test(test_two_of_three_are_enough_and_the_third_is_heard_no_more),
        cmocka_unit_test(test_members_that_do_not_agree_strike_nobody),
        cmocka_unit_test(test_the_only_member_leads_and_is_not_asked),
        cmocka_unit_test(test_a_run_that_ends_waits_for_no_answer),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
