/* The same history under rankrun's promises, under torchrun's and of a template: what is a failure
 * in one is nothing that another has promised, and what each has promised is judged in each. */
#include "tests/harness/checks/planted.h"

#include "harness/checks/check.h"

static const struct edit none[1];

enum dialect { STRICT, TORCHRUN, TEMPLATE };

static struct finding ask(const char *check, const char *name, enum dialect dialect,
                          const struct edit *edits) {
    struct scenario s = planted_scenario(name);
    s.torchrun_semantics = dialect == TORCHRUN;
    s.job.launcher = dialect == TEMPLATE ? "template" : "rankrun";
    return planted_ask(check, &s, edits);
}

#define DARK   "node-powered-off"
#define KILLED "worker-killed"

/* The worker of the node that was lost lives on until the end. */
static const struct edit orphan[] = {{"worker-exit", "\"pid\":112", "1091010000", "2021000000"},
                                     {0}};
/* So does one whose node nothing has happened to. */
static const struct edit lingering[] = {{"worker-exit", "\"pid\":111", "1900010000", "2021000000"},
                                        {0}};

static void test_torchrun_leaves_the_workers_of_a_lost_agent_alone(void **state) {
    (void)state;
    assert_found(ask("one_round", DARK, STRICT, orphan), FINDING_FAIL, "was alive");
    assert_found(ask("one_round", DARK, TORCHRUN, orphan), FINDING_PASS, "2 rounds");
    assert_found(ask("one_round", DARK, TORCHRUN, lingering), FINDING_FAIL, "rank 1 on n1");
}

/* One port for all rounds, as torchrun's since 2.3: n2 is lost before its first worker starts,
 * comes back, and is the first to start one of the next round, which is not the one that lacked
 * it. */
static const struct edit same_port[] = {
    {"worker-start", NULL, "40002", "40001"},
    {"worker-start", "\"pid\":12", "\"WORLD_SIZE\":\"2\"", "\"WORLD_SIZE\":\"3\""},
    {"worker-start", "\"pid\":112", "", NULL},
    {"lost n2", NULL, NULL,
     "{\"t\":1920000000,\"source\":\"probe\",\"kind\":\"worker-start\",\"node\":\"n2\",\"pid\":122,"
     "\"argv0\":\"ranktrain\",\"env\":{\"RANK\":\"2\",\"WORLD_SIZE\":\"3\",\"MASTER_ADDR\":\"n0\","
     "\"MASTER_PORT\":\"40001\",\"TORCHELASTIC_RESTART_COUNT\":\"0\","
     "\"TORCHELASTIC_RUN_ID\":\"tour\"}}"},
    {"lost n2", NULL, NULL,
     "{\"t\":1910000000,\"source\":\"kernel\",\"kind\":\"agent-start\",\"node\":\"n2\","
     "\"pid\":104}"},
    {0}};

static void test_who_comes_back_fills_no_round_that_is_over(void **state) {
    (void)state;
    struct scenario s = planted_scenario(DARK);
    s.torchrun_semantics = true;
    s.expect.world_sizes = (const int[]){3};
    s.expect.world_sizes_n = 1;
    assert_found(planted_ask("world_sizes", &s, same_port), FINDING_PASS, "3");
    assert_found(ask("phases", DARK, TORCHRUN, same_port), FINDING_PASS, "rendezvous 20 ms");
}

static void test_agents_of_torchrun_end_one_by_one(void **state) {
    (void)state;
    static const struct edit apart[] = {{"worker-exit", "\"pid\":121", "\"code\":0", "\"code\":5"},
                                        {"agent-exit", "\"pid\":101", "\"code\":0", "\"code\":1"},
                                        {0}};
    static const struct edit lied[] = {{"worker-exit", "\"pid\":121", "\"code\":0", "\"code\":5"},
                                       {0}};
    static const struct edit died[] = {{"agent-exit", "\"pid\":101", "\"code\":0", "\"signal\":11"},
                                       {0}};
    assert_found(ask("one_outcome", DARK, STRICT, apart), FINDING_FAIL, "ended 1");
    assert_found(ask("one_outcome", DARK, TORCHRUN, apart), FINDING_PASS,
                 "1 agent ended 0, as did their workers; 1 ended 1");
    assert_found(ask("outcome", DARK, TORCHRUN, apart), FINDING_FAIL, "no one outcome");
    assert_found(ask("one_outcome", DARK, TORCHRUN, lied), FINDING_FAIL,
                 "the agent of n1 ended 0, but rank 1 of round 2 did not");
    assert_found(ask("one_outcome", DARK, TORCHRUN, died), FINDING_FAIL, "died on signal 11");
}

static void test_a_spare_of_torchrun_may_end_as_it_likes(void **state) {
    (void)state;
    static const struct edit spare[] = {
        {"agent-start", "\"n2\"", NULL,
         "{\"t\":1005080000,\"source\":\"kernel\",\"kind\":\"agent-start\",\"node\":\"n3\","
         "\"pid\":103}"},
        {"agent-exit", "\"n1\"", NULL,
         "{\"t\":2026000000,\"source\":\"kernel\",\"kind\":\"agent-exit\",\"node\":\"n3\","
         "\"pid\":103,\"code\":1}"},
        {0}};
    assert_found(ask("one_outcome", DARK, STRICT, spare), FINDING_FAIL, "n3 ended 1");
    assert_found(ask("one_outcome", DARK, TORCHRUN, spare), FINDING_PASS, "2 agents ended 0");
    assert_found(ask("outcome", DARK, STRICT, spare), FINDING_FAIL, "n3 1");
    assert_found(ask("outcome", DARK, TORCHRUN, spare), FINDING_PASS, "succeeded");
}

static void test_what_torchrun_leaves_after_a_fault_is_told_and_not_judged(void **state) {
    (void)state;
    static const struct edit left[] = {{"leftovers", "\"n1\"", "\"processes\":[]",
                                        "\"processes\":[{\"pid\":9,\"name\":\"loader\"}]"},
                                       {0}};
    static const struct edit calm[] = {
        {"leftovers", NULL, "\"processes\":[]", "\"processes\":[{\"pid\":9,\"name\":\"loader\"}]"},
        {"fault-in-force", NULL, "", NULL},
        {0}};
    assert_found(ask("leftovers", DARK, STRICT, left), FINDING_FAIL, "loader");
    assert_found(ask("leftovers", DARK, TORCHRUN, left), FINDING_SKIP,
                 "on n1: 1 process (9 loader");
    assert_found(ask("leftovers", KILLED, TORCHRUN, calm), FINDING_FAIL, "loader");
    assert_found(ask("leftovers", DARK, TORCHRUN, none), FINDING_PASS, "nothing was left");
}

static void test_torchrun_counts_restarts_by_agent(void **state) {
    (void)state;
    static const struct edit once[] = {
        {"\"pid\":121,\"argv0\"", NULL, "COUNT\":\"0\"", "COUNT\":\"1\""}, {0}};
    static const struct edit twice[] = {
        {"\"pid\":121,\"argv0\"", NULL, "COUNT\":\"0\"", "COUNT\":\"2\""}, {0}};
    static const struct edit late[] = {
        {"\"pid\":111,\"argv0\"", NULL, "COUNT\":\"0\"", "COUNT\":\"1\""},
        {"\"pid\":121,\"argv0\"", NULL, "COUNT\":\"0\"", "COUNT\":\"1\""},
        {0}};
    assert_found(ask("agreement", DARK, STRICT, once), FINDING_FAIL, "RESTART_COUNT is");
    assert_found(ask("agreement", DARK, TORCHRUN, once), FINDING_PASS, "");
    assert_found(ask("restarts", DARK, TORCHRUN, none), FINDING_PASS, "0 restarts");
    assert_found(ask("restarts", DARK, TORCHRUN, once), FINDING_FAIL, "1 ");
    assert_found(ask("restart_count", DARK, TORCHRUN, once), FINDING_SKIP, "torchrun");
    assert_found(ask("rank_order", DARK, TORCHRUN, once), FINDING_SKIP, "torchrun");
    assert_found(ask("agent_restarts", DARK, TORCHRUN, once), FINDING_PASS, "3 agents");
    assert_found(ask("agent_restarts", DARK, TORCHRUN, late), FINDING_FAIL, "n1 told 1 in round 1");
    assert_found(ask("agent_restarts", DARK, TORCHRUN, twice), FINDING_FAIL,
                 "n1 told 0 in round 1 and 2 in round 2");
}

static void test_torchrun_may_give_up_early_and_wait_for_a_lost_node(void **state) {
    (void)state;
    static const struct edit gave_up[] = {{"agent-exit", NULL, "\"code\":0", "\"code\":1"}, {0}};
    static const struct edit healed[] = {
        {"\"pid\":121,\"argv0\"", NULL, NULL,
         "{\"t\":1940000000,\"source\":\"harness\",\"kind\":\"fault-recovered\",\"id\":\"dark\","
         "\"n\":1}"},
        {"\"step\",", "\"pid\":12", "", NULL},
        {"job-end", NULL, "\"t\":20", "\"t\":990"},
        {0}};
    static const struct edit hangs[] = {
        {"job-end", NULL, NULL,
         "{\"t\":2026000000,\"source\":\"harness\",\"kind\":\"limit\",\"name\":\"stall\","
         "\"ns\":120000000000}"},
        {0}};
    assert_found(ask("budget", DARK, STRICT, gave_up), FINDING_FAIL, "gave up after round 2");
    assert_found(ask("budget", DARK, TORCHRUN, gave_up), FINDING_PASS, "never above");
    assert_found(ask("heal", DARK, STRICT, healed), FINDING_FAIL, "no step came any more");
    assert_found(ask("heal", DARK, TORCHRUN, healed), FINDING_SKIP, "nothing was healed");
    assert_found(ask("liveness", DARK, TORCHRUN, hangs), FINDING_FAIL, "no step for 120 s");
}

static void test_torchrun_gives_workers_thirty_seconds_and_asks_the_others_later(void **state) {
    (void)state;
    static const struct edit lingers[] = {
        {"worker-exit", "\"pid\":111", "\"t\":1900010000", "\"t\":100000000000"}, {0}};
    static const struct edit forced[] = {
        {"worker-exit", "\"pid\":110", "\"signal\":15", "\"signal\":9"},
        {"worker-exit", "\"pid\":110", "\"t\":1073", "\"t\":3973"},
        {"agent-exit", NULL, "\"t\":1158", "\"t\":4158"},
        {"job-end", NULL, "\"t\":1160", "\"t\":4160"},
        {0}};
    assert_found(ask("survivors", DARK, STRICT, lingers), FINDING_FAIL, "rank 1 on n1");
    assert_found(ask("survivors", DARK, TORCHRUN, lingers), FINDING_PASS, "in 1 round");
    assert_found(ask("grace", KILLED, STRICT, forced), FINDING_PASS, "none before 2.9 s");
    assert_found(ask("grace", KILLED, TORCHRUN, forced), FINDING_FAIL, "rank 0 on n0 of round 1");
    assert_found(ask("root_cause", KILLED, TORCHRUN, none), FINDING_SKIP, "");
}

static void test_a_template_is_asked_for_a_place_and_no_more(void **state) {
    (void)state;
    static const struct edit bare[] = {{"\"argv0\"", NULL, "\"LOCAL_RANK\"", "\"X\""},
                                       {"\"argv0\"", NULL, "\"TORCHELASTIC_", "\"Y_"},
                                       {"\"argv0\"", NULL, "\"MASTER_ADDR\"", "\"Z\""},
                                       {0}};
    static const struct edit unnamed[] = {{"\"argv0\"", NULL, "\"RANK\"", "\"X\""},
                                          {"\"argv0\"", NULL, "\"WORLD_SIZE\"", "\"Y\""},
                                          {0}};
    static const struct edit slurm[] = {{"\"argv0\"", NULL, "\"RANK\"", "\"SLURM_PROCID\""},
                                        {"\"argv0\"", NULL, "\"WORLD_SIZE\"", "\"SLURM_NTASKS\""},
                                        {0}};
    assert_found(ask("ranks", DARK, STRICT, bare), FINDING_FAIL, "without LOCAL_RANK");
    assert_found(ask("ranks", DARK, TEMPLATE, bare), FINDING_PASS, "5 workers in 2 rounds");
    assert_found(ask("budget", DARK, TEMPLATE, bare), FINDING_SKIP, "rules of its own");
    assert_found(ask("restart_count", DARK, TEMPLATE, bare), FINDING_SKIP, "rules of its own");
    assert_found(ask("master", DARK, TEMPLATE, bare), FINDING_SKIP, "no MASTER_ADDR");
    assert_found(ask("job_ran", DARK, TEMPLATE, unnamed), FINDING_FAIL, "RANK={node}");
    assert_found(ask("ranks", DARK, TEMPLATE, slurm), FINDING_PASS, "5 workers in 2 rounds");
    assert_found(ask("bounds", DARK, TEMPLATE, slurm), FINDING_PASS, "");
}

static void test_any_exit_code_of_a_template_but_0_is_a_failure(void **state) {
    (void)state;
    static const struct edit seven[] = {{"agent-exit", NULL, "\"code\":0", "\"code\":7"}, {0}};
    static const struct edit one_of_two[] = {{"agent-exit", "\"n1\"", "\"code\":0", "\"code\":7"},
                                             {0}};
    assert_found(ask("outcome", DARK, TEMPLATE, seven), FINDING_FAIL, "it failed");
    assert_found(ask("one_outcome", DARK, STRICT, seven), FINDING_FAIL, "ended 7");
    assert_found(ask("one_outcome", DARK, TEMPLATE, seven), FINDING_PASS, "");
    assert_found(ask("one_outcome", DARK, TEMPLATE, one_of_two), FINDING_FAIL, "n1 ended 1");
}

static void test_a_launcher_that_starts_no_worker_is_told_as_such(void **state) {
    (void)state;
    static const struct edit silent[] = {{"\"probe\"", NULL, "", NULL},
                                         {"fault-", NULL, "", NULL},
                                         {"\"job\"", NULL, "", NULL},
                                         {"agent-exit", "\"n2\"", "", NULL},
                                         {"agent-exit", NULL, "\"code\":0", "\"code\":7"},
                                         {0}};
    static const struct edit away[] = {
        {"\"probe\"", NULL, "", NULL},
        {"fault-", NULL, "", NULL},
        {"\"job\"", NULL, "", NULL},
        {"agent-exit", "\"n2\"", "", NULL},
        {"leftovers", NULL, "\"processes\":[]", "\"processes\":[{\"pid\":9,\"name\":\"daemon\"}]"},
        {0}};
    static const struct edit slow[] = {
        {"\"probe\"", NULL, "", NULL},
        {"fault-", NULL, "", NULL},
        {"\"job\"", NULL, "", NULL},
        {"agent-exit", "\"n2\"", "", NULL},
        {"job-end", NULL, "\"ended\"", "\"limit\""},
        {"store-exit", NULL, NULL,
         "{\"t\":2026000000,\"source\":\"harness\",\"kind\":\"limit\",\"name\":\"start\","
         "\"ns\":60000000000}"},
        {0}};
    assert_found(ask("job_ran", DARK, STRICT, silent), FINDING_FAIL,
                 "the launcher on n0 ended 7 and had started none");
    assert_found(ask("job_ran", DARK, STRICT, away), FINDING_FAIL,
                 "it must stay in the foreground");
    assert_found(ask("job_ran", DARK, STRICT, slow), FINDING_FAIL,
                 "no worker within limits.start, 60 s");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torchrun_leaves_the_workers_of_a_lost_agent_alone),
        cmocka_unit_test(test_who_comes_back_fills_no_round_that_is_over),
        cmocka_unit_test(test_agents_of_torchrun_end_one_by_one),
        cmocka_unit_test(test_a_spare_of_torchrun_may_end_as_it_likes),
        cmocka_unit_test(test_what_torchrun_leaves_after_a_fault_is_told_and_not_judged),
        cmocka_unit_test(test_torchrun_counts_restarts_by_agent),
        cmocka_unit_test(test_torchrun_may_give_up_early_and_wait_for_a_lost_node),
        cmocka_unit_test(test_torchrun_gives_workers_thirty_seconds_and_asks_the_others_later),
        cmocka_unit_test(test_a_template_is_asked_for_a_place_and_no_more),
        cmocka_unit_test(test_any_exit_code_of_a_template_but_0_is_a_failure),
        cmocka_unit_test(test_a_launcher_that_starts_no_worker_is_told_as_such),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
