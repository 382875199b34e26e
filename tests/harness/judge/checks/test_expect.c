/* Expectations: each way in which a scenario may ask, against runs in which all is well. */
#include "tests/harness/judge/checks/planted.h"

#include "harness/judge/checks/check.h"
#include "harness/judge/checks/recovery/deadline.h"

static const struct edit none[1];

static struct finding ask(const char *check, const struct scenario *s, const struct edit *edits) {
    return planted_ask(check, s, edits);
}

static void test_world_sizes_match_in_order_with_stars_and_tails(void **state) {
    (void)state;
    static const struct {
        int sizes[4];
        size_t n;
        bool ends;
        enum finding_status status;
    } rows[] = {
        {{3, 2}, 2, false, FINDING_PASS},     {{3}, 1, false, FINDING_FAIL},
        {{2, 3}, 2, false, FINDING_FAIL},     {{3, 2, 2}, 3, false, FINDING_FAIL},
        {{-1}, 1, false, FINDING_PASS},       {{-1, 2}, 2, false, FINDING_PASS},
        {{3, -1, 2}, 3, false, FINDING_PASS}, {{3, 2, -1}, 3, false, FINDING_PASS},
        {{-1, 3}, 2, false, FINDING_FAIL},    {{2}, 1, true, FINDING_PASS},
        {{3, 2}, 2, true, FINDING_PASS},      {{3}, 1, true, FINDING_FAIL},
        {{-1, 3, 2}, 3, true, FINDING_PASS},  {{4, 3, 2}, 3, true, FINDING_FAIL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scenario s = planted_scenario("node-powered-off");
        s.expect.world_sizes = rows[i].sizes;
        s.expect.world_sizes_n = rows[i].n;
        s.expect.world_sizes_ends = rows[i].ends;
        assert_found(ask("world_sizes", &s, none), rows[i].status, "[3, 2]");
    }
}

static void put_start(struct history *h, int64_t t_ns, const char *rank, const char *world) {
    struct json_writer *w = history_begin(h, t_ns, SOURCE_PROBE, "worker-start");
    json_put_string(w, "node", "n0");
    json_put_i64(w, "pid", t_ns);
    json_object(w, "env");
    json_put_string(w, "RANK", rank);
    json_put_string(w, "WORLD_SIZE", world);
    json_end_object(w);
    history_end(h);
}

/* Hundreds of rounds of one worker, then one of two. */
static void test_world_sizes_are_those_of_the_last_rounds_however_many_there_are(void **state) {
    (void)state;
    static const struct {
        int sizes[3];
        size_t n;
        bool ends;
        enum finding_status status;
    } rows[] = {
        {{1, 2}, 2, true, FINDING_PASS},       {{1}, 1, true, FINDING_FAIL},
        {{-1, 2}, 2, false, FINDING_PASS},     {{-1, 1}, 2, false, FINDING_FAIL},
        {{1, -1, 2}, 3, false, FINDING_PASS},  {{2, -1}, 2, false, FINDING_FAIL},
        {{-1, 1, -1}, 3, false, FINDING_PASS}, {{-1, 3, -1}, 3, false, FINDING_FAIL},
    };
    struct history h = {0};
    struct verdict v;
    struct scenario s = planted_scenario("worker-killed");
    struct trial t = {.scenario = &s, .history = &h};
    for (int64_t at = 1; at <= 700; at++)
        put_start(&h, at, "0", "1");
    put_start(&h, 701, "0", "2");
    put_start(&h, 702, "1", "2");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        s.expect.world_sizes = rows[i].sizes;
        s.expect.world_sizes_n = rows[i].n;
        s.expect.world_sizes_ends = rows[i].ends;
        verdict_judge(&v, &t);
        const struct finding *f = verdict_find(&v, "world_sizes");
        /* A history that stops with the starts leaves open what fails. */
        if ((f->status == FINDING_PASS) != (rows[i].status == FINDING_PASS))
            fail_msg("row %zu: %s: %s", i, finding_status_name(f->status), f->seen);
    }
    history_fini(&h);
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
    struct scenario s = planted_scenario("node-powered-off");
    s.torchrun_semantics = true;
    s.expect.world_sizes = (const int[]){3};
    s.expect.world_sizes_n = 1;
    assert_found(ask("world_sizes", &s, same_port), FINDING_PASS, "3");
    s = planted_scenario("node-powered-off");
    s.torchrun_semantics = true;
    assert_found(ask("phases", &s, same_port), FINDING_PASS, "rendezvous 20 ms");
}

static void test_what_is_not_asked_for_is_skipped(void **state) {
    (void)state;
    static const char *const names[] = {"world_sizes", "restarts", "model",  "detect",
                                        "recover",     "goodput",  "phases", "loss"};
    struct scenario s = planted_scenario("worker-killed");
    s.expect = (struct expect){.outcome = OUTCOME_SUCCEEDED};
    s.job.checkpoint_dir = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        assert_found(ask(names[i], &s, none), FINDING_SKIP, "the scenario");
    assert_found(ask("resume_step", &s, none), FINDING_SKIP, "names no directory");
}

/* What is wrong in the control run, too, is seen by what is known from elsewhere. */
static void test_losses_are_those_that_are_known(void **state) {
    (void)state;
    static const struct edit void_too[] = {{"\"step\":5,", "\"pid\":110",
                                            "\"loss\":", "\"loss\":9"},
                                           {0}},
                             unsaid[] = {{"\"step\":8,", "\"pid\":120", "\"loss\"", "\"cost\""},
                                         {0}};
    struct scenario s = planted_scenario("worker-killed");
    struct loss_expect known[] = {{.step = 5, .tolerance = "< 9"},
                                  {.step = 8, .tolerance = "1.45..1.55"}};
    s.expect = (struct expect){.outcome = OUTCOME_SUCCEEDED, .losses = known, .losses_n = 2};
    assert_found(ask("loss", &s, none), FINDING_PASS, "2 steps have the losses that are known");
    assert_found(ask("loss", &s, void_too), FINDING_FAIL,
                 "at step 5 of round 1, the mean of 2 ranks");
    assert_found(ask("loss", &s, unsaid), FINDING_UNKNOWN,
                 "no round of which all ranks told a loss of step 8");
    known[1].tolerance = "1.6..1.7";
    assert_found(ask("loss", &s, none), FINDING_FAIL, "1.5 at step 8");
    s.expect.loss_within = 5;
    known[1].tolerance = "1.5";
    assert_found(ask("loss", &s, none), FINDING_PASS, "of the control run");
}

#define SAVED "\"path\":\"step-00000008\""

/* What a worker names is compared with what it has saved, whether anybody asked for models or not.
 * What cannot be compared is told aloud. */
static void test_a_model_that_was_saved_is_compared_unasked(void **state) {
    (void)state;
    static const struct edit mine[] = {{"checkpoints", SAVED, SAVED,
                                        SAVED
                                        ",\"model\":\"3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f3f"
                                        "3f3f3f3f3f3f3f3f3f3f3f3f\""},
                                       {0}},
                             zeros[] = {{"checkpoints", SAVED, SAVED, SAVED ",\"model\":\"00\""},
                                        {0}},
                             other[] = {{"\"control\",", NULL, "\"model\":\"3f", "\"model\":\"4f"},
                                        mine[0],
                                        {0}};
    struct scenario s = planted_scenario("worker-killed");
    s.expect = (struct expect){.outcome = OUTCOME_SUCCEEDED};
    struct finding f = ask("model", &s, mine);
    assert_found(f, FINDING_PASS, "as it lies on disk");
    assert_false(f.loud);
    f = ask("model", &s, none);
    assert_found(f, FINDING_SKIP, "the job's word alone");
    assert_true(f.loud);
    f = ask("model", &s, other);
    assert_found(f, FINDING_PASS, "in the control run it is another: say expect.model");
    assert_true(f.loud);
    assert_found(ask("model", &s, zeros), FINDING_FAIL, "rank 0 on n0 names model 3f3f");
}

static void test_lost_work_may_be_bounded_in_steps_or_in_time(void **state) {
    (void)state;
    static const struct edit all[] = {{"\"resume\"", "\"pid\":12", "\"step\":4", "\"step\":3"},
                                      {0}};
    struct scenario s = planted_scenario("worker-killed");
    s.expect.lost_steps = 1;
    assert_found(ask("lost_work", &s, none), FINDING_PASS, "1 step");
    assert_found(ask("lost_work", &s, all), FINDING_FAIL, "round 2 made 2 steps again, 0.02 s");
    s.expect.lost_steps = 0;
    s.expect.lost_ns = 5000000;
    assert_found(ask("lost_work", &s, none), FINDING_FAIL, "1 steps again, 0.01 s of work");
    s.expect.lost_ns = 50000000;
    assert_found(ask("lost_work", &s, all), FINDING_PASS, "2 steps");
}

/* It begins with step 1 again and says nothing of resuming. */
#define FROM_NOTHING                                                                               \
    {"\"resume\"", NULL, NULL, NULL}, {                                                            \
        "\"kind\":\"step\"", "\"pid\":120", "\"step\":5", "\"step\":1"                             \
    }

static void test_lost_work_that_was_bounded_is_never_skipped(void **state) {
    (void)state;
    static const struct edit far[] = {{"\"kind\":\"control\"", NULL, "\"loss\":32.5",
                                       "\"last_step\":8"},
                                      FROM_NOTHING,
                                      {0}},
                             unclear[] = {FROM_NOTHING, {0}},
                             silent[] = {{"\"resume\"", NULL, NULL, NULL},
                                         {"\"step\"", "\"pid\":12", NULL, NULL},
                                         {0}};
    struct scenario s = planted_scenario("printed-steps");
    s.expect.lost_steps = 5;
    assert_found(ask("lost_work", &s, none), FINDING_PASS, "2 steps");
    assert_found(ask("lost_work", &s, far), FINDING_FAIL, "round 2 made 6 steps again");
    assert_found(ask("lost_work", &s, unclear), FINDING_UNKNOWN, "either it began from nothing");
    assert_found(ask("lost_work", &s, silent), FINDING_UNKNOWN, "no later round said");
}

/* Nobody bounded it, and all was made again: no failure, and not to be overlooked. */
static void test_a_round_that_begins_anew_is_told_aloud(void **state) {
    (void)state;
    static const struct edit far[] = {{"\"kind\":\"control\"", NULL, "\"loss\":32.5",
                                       "\"last_step\":8"},
                                      FROM_NOTHING,
                                      {0}},
                             unclear[] = {FROM_NOTHING, {0}};
    struct scenario s = planted_scenario("printed-steps");
    assert_false(ask("lost_work", &s, none).loud);
    struct finding f = ask("lost_work", &s, far);
    assert_found(f, FINDING_PASS, "round 2 began from nothing");
    assert_true(f.loud);
    f = ask("lost_work", &s, unclear);
    assert_found(f, FINDING_SKIP, "round 2 began with step 1, as the job had begun, after step 6");
    assert_true(f.loud);
}

static void test_restarts_may_be_a_range(void **state) {
    (void)state;
    struct scenario s = planted_scenario("worker-killed");
    s.expect.restarts_min = 0;
    s.expect.restarts_max = 2;
    assert_found(ask("restarts", &s, none), FINDING_PASS, "1 restart");
    s.expect.restarts_min = 2;
    assert_found(ask("restarts", &s, none), FINDING_FAIL, "1 in round 2");
}

static void test_an_expected_failure_is_a_pass_and_a_success_is_not(void **state) {
    (void)state;
    static const struct edit failed[] = {{"agent-exit", NULL, "\"code\":0", "\"code\":1"}, {0}};
    static const struct edit stopped[] = {{"agent-exit", NULL, "\"code\":0", "\"code\":143"}, {0}};
    struct scenario s = planted_scenario("worker-killed");
    s.expect.outcome = OUTCOME_FAILED;
    assert_found(ask("outcome", &s, failed), FINDING_PASS, "failed");
    assert_found(ask("outcome", &s, none), FINDING_FAIL, "it succeeded (agents ended: n0 0)");
    s.expect.outcome = OUTCOME_STOPPED;
    assert_found(ask("outcome", &s, stopped), FINDING_PASS, "stopped");
    s.expect.outcome = OUTCOME_SUCCEEDED;
    assert_found(ask("outcome", &s, stopped), FINDING_FAIL, "it was stopped");
}

static void test_a_launcher_that_is_told_nonsense_refuses_on_every_node(void **state) {
    (void)state;
    static const struct edit all[] = {
        {"\"probe\"", NULL, "", NULL}, {"agent-exit", NULL, "\"code\":0", "\"code\":64"}, {0}};
    static const struct edit failed[] = {
        {"\"probe\"", NULL, "", NULL}, {"agent-exit", NULL, "\"code\":0", "\"code\":1"}, {0}};
    static const struct edit began[] = {{"agent-exit", NULL, "\"code\":0", "\"code\":64"}, {0}};
    struct scenario s = planted_scenario("worker-killed");
    s.timeline_n = 0;
    s.expect.outcome = OUTCOME_REFUSED;
    assert_found(ask("outcome", &s, all), FINDING_PASS, "refused");
    assert_found(ask("one_outcome", &s, all), FINDING_PASS, "all agents ended 64");
    assert_found(ask("job_ran", &s, all), FINDING_PASS, "is to refuse");
    assert_found(ask("outcome", &s, failed), FINDING_FAIL, "it failed");
    assert_found(ask("outcome", &s, began), FINDING_FAIL, "no one outcome");
    assert_found(ask("outcome", &s, none), FINDING_FAIL, "it succeeded");
    s.expect.outcome = OUTCOME_FAILED;
    assert_found(ask("outcome", &s, all), FINDING_FAIL, "no one outcome");
    assert_found(ask("one_outcome", &s, all), FINDING_FAIL, "ended 64");
}

/* The store is gone for all of them; one alone that gives it up has no such excuse. */
static void test_agents_that_cannot_know_how_it_ended_say_so(void **state) {
    (void)state;
    static const char cut[] = "{\"t\":1060000000,\"source\":\"harness\",\"kind\":\"fault-in-"
                              "force\",\"id\":\"cut\",\"n\":1,"
                              "\"fault\":\"net-partition\",\"t0\":1060000000,\"targets\":[{"
                              "\"what\":\"node\",\"name\":\"n0\","
                              "\"node\":\"n0\",\"pid\":0},{\"what\":\"node\",\"name\":\"n1\","
                              "\"node\":\"n1\",\"pid\":0}]}";
    static const struct edit gone[] = {
        {"\"steady\"", NULL, NULL, cut}, {"agent-exit", NULL, "\"code\":0", "\"code\":69"}, {0}};
    static const struct edit uncut[] = {{"agent-exit", NULL, "\"code\":0", "\"code\":69"}, {0}};
    struct pair conf[] = {{.key = "give_up", .value = "10ms"}};
    struct scenario s = planted_scenario("node-powered-off");
    s.job.rdzv_conf = conf;
    s.job.rdzv_conf_n = 1;
    s.expect.outcome = OUTCOME_UNKNOWN;
    assert_found(ask("outcome", &s, gone), FINDING_PASS, "unknown");
    assert_found(ask("outcome", &s, uncut), FINDING_FAIL, "no one outcome");
    assert_found(ask("outcome", &s, none), FINDING_FAIL, "it succeeded");
    s.expect.outcome = OUTCOME_SUCCEEDED;
    assert_found(ask("outcome", &s, gone), FINDING_UNKNOWN, "taken away by a fault");
}

static void test_a_job_may_be_given_up_after_so_many_rounds_that_cost_nothing(void **state) {
    (void)state;
    static const struct edit failed[] = {{"agent-exit", NULL, "\"code\":0", "\"code\":1"}, {0}};
    static const char *const most[] = {"0", "1", "2", "many"}; /* 0: as many as come */
    for (size_t i = 0; i < sizeof(most) / sizeof(*most); i++) {
        struct scenario s = planted_scenario("node-powered-off"); /* its second round is free */
        struct pair conf[] = {{.key = "max_free_rounds_per_hour", .value = most[i]}};
        s.job.rdzv_conf = conf;
        s.job.rdzv_conf_n = 1;
        assert_found(ask("budget", &s, failed), i == 1 ? FINDING_PASS : FINDING_FAIL,
                     i == 1 ? "never above" : "gave up after round 2");
        s = planted_scenario("worker-killed"); /* and here it is not */
        s.job.rdzv_conf = conf;
        s.job.rdzv_conf_n = 1;
        assert_found(ask("budget", &s, failed), FINDING_FAIL, "gave up after round 2");
    }
}

static void test_a_job_whose_agents_are_all_told_to_leave_is_stopped(void **state) {
    (void)state;
    static const char leave[] =
        "{\"t\":2022000000,\"source\":\"harness\",\"kind\":\"fault-in-force\",\"id\":\"all\",\"n\":"
        "1,"
        "\"fault\":\"node-leave\",\"ends_node\":true,\"t0\":2022000000,\"targets\":[{\"what\":"
        "\"agent\",\"name\":\"n0\",\"node\":\"n0\",\"pid\":100},{\"what\":\"agent\",\"name\":"
        "\"n1\","
        "\"node\":\"n1\",\"pid\":101}]}";
    const struct edit left[] = {{"worker-exit", "\"pid\":121", NULL, leave},
                                {"agent-exit", NULL, "\"code\":0", "\"code\":143"},
                                {0}};
    const struct edit stayed[] = {{"worker-exit", "\"pid\":121", NULL, leave}, {0}};
    struct scenario s = planted_scenario("node-powered-off");
    s.expect.outcome = OUTCOME_STOPPED;
    assert_found(ask("outcome", &s, left), FINDING_PASS, "stopped");
    assert_found(ask("outcome", &s, stayed), FINDING_UNKNOWN, "taken away by a fault");
    s.expect.outcome = OUTCOME_FAILED;
    assert_found(ask("outcome", &s, left), FINDING_UNKNOWN, "taken away by a fault");
}

static void test_a_job_that_was_meant_to_fail_need_not_start_workers(void **state) {
    (void)state;
    static const struct edit edits[] = {{"\"probe\"", NULL, "", NULL}, {0}};
    static const char *const names[] = {"agreement", "bounds", "ranks", "one_round"};
    struct scenario s = planted_scenario("worker-killed");
    s.expect.outcome = OUTCOME_FAILED;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        assert_found(ask(names[i], &s, edits), FINDING_SKIP, "no worker started");
}

static void test_a_spent_budget_is_no_giving_up(void **state) {
    (void)state;
    static const struct edit edits[] = {
        {"agent-exit", NULL, "\"code\":0", "\"code\":1"},
        {"\"argv0\"", NULL, "MAX_RESTARTS\":\"3\"", "MAX_RESTARTS\":\"1\""},
        {0}};
    struct scenario s = planted_scenario("worker-killed");
    s.job.max_restarts = 1;
    assert_found(ask("budget", &s, edits), FINDING_PASS, "never above max_restarts, 1");
}

static void test_a_budget_of_time_may_be_for_one_fault(void **state) {
    (void)state;
    static const char *const names[] = {"detect", "recover"};
    struct budget budget = {.id = "dark", .ns = 2000000000};
    for (size_t i = 0; i < 2; i++) {
        struct scenario s = planted_scenario("node-powered-off");
        s.expect.detect_within = s.expect.recover_within = &budget;
        budget.id = "dark";
        budget.ns = 2000000000;
        assert_found(ask(names[i], &s, none), FINDING_PASS, "dark");
        budget.ns = 500000000;
        assert_found(ask(names[i], &s, none), FINDING_FAIL, i ? "879 ms" : "809 ms");
        budget.id = "other";
        assert_found(ask(names[i], &s, none), FINDING_UNKNOWN, "other was never in force");
    }
}

static void test_a_fault_that_ended_no_round_has_no_times(void **state) {
    (void)state;
    static const struct edit edits[] = {
        {"\"done\"", "\"pid\":121", NULL,
         "{\"t\":1151000000,\"source\":\"harness\",\"kind\":\"fault-in-force\",\"id\":\"late\","
         "\"n\":1,\"fault\":\"net-delay\",\"t0\":1151000000,\"targets\":[]}"},
        {0}};
    static const struct budget budget = {.id = "late", .ns = 2000000000};
    struct scenario s = planted_scenario("worker-killed");
    s.expect.detect_within = s.expect.recover_within = &budget;
    assert_found(ask("detect", &s, edits), FINDING_FAIL, "late ended no round");
    assert_found(ask("recover", &s, edits), FINDING_FAIL, "late ended no round");
}

static void test_what_is_sticky_comes_again_where_it_was_or_says_why_not(void **state) {
    (void)state;
    static const struct timeline_entry sticky = {
        .id = "kill",
        .fault = "worker-kill",
        .heal = -1,
        .times_n = 1,
        .sticky = true,
        .on = {.pick = PICK_RANK, .rank = 1, .local_rank = -1}};
    struct scenario s = planted_scenario("worker-killed");
    s.timeline = &sticky;
    s.timeline_n = 1;
    assert_found(ask("fired", &s, none), FINDING_PASS, "");
    static const struct edit unfired[] = {
        {"\"steady\"", NULL, NULL,
         "{\"t\":1165000000,\"source\":\"harness\",\"kind\":\"fault-not-fired\",\"id\":\"kill\","
         "\"why\":\"its node came back alone\"}"},
        {0}};
    assert_found(ask("fired", &s, unfired), FINDING_UNKNOWN, "its node came back alone");
    for (int node = 0; node < 2; node++) { /* n0 is where it was */
        char force[300];
        snprintf(
            force, sizeof(force),
            "{\"t\":1072000000,\"source\":\"harness\",\"kind\":\"fault-in-force\",\"id\":\"kill\","
            "\"n\":2,\"fault\":\"worker-kill\",\"t0\":1072000000,\"targets\":[{\"what\":\"worker\","
            "\"name\":\"n%d/0\",\"node\":\"n%d\",\"pid\":110}]}",
            node, node);
        const struct edit again[] = {
            {"\"fault-in-force\"", "\"n\":1", NULL, force},
            {"\"fault-in-force\"", "\"n\":1", NULL,
             "{\"t\":1072000000,\"source\":\"kernel\",\"kind\":\"fault-evidence\",\"id\":\"kill\","
             "\"n\":2,\"what\":\"process 110 ended\"}"},
            {"\"fault-in-force\"", "\"n\":1", NULL,
             "{\"t\":1072000000,\"source\":\"harness\",\"kind\":\"fault-fired\",\"id\":\"kill\","
             "\"n\":2,\"fault\":\"worker-kill\",\"lag_ns\":0,\"held\":false}"},
            {0}};
        assert_found(ask("fired", &s, again), node ? FINDING_FAIL : FINDING_PASS,
                     node ? "came again on n1, where it was not" : "");
    }
}

/* Whom the store has named was struck, and nobody without its word. */
static void test_who_leads_is_whom_the_store_named(void **state) {
    (void)state;
    struct timeline_entry dark = {.id = "dark", .fault = "node-poweroff", .heal = -1, .times_n = 1};
    struct scenario s = planted_scenario("node-powered-off");
    s.timeline = &dark;
    dark.on =
        (struct target_spec){.pick = PICK_COORDINATOR, .local_rank = -1, .text = "coordinator"};
    assert_found(ask("fired", &s, none), FINDING_FAIL, "struck n2 on n2");
    static const struct {
        const char *said;
        enum finding_status status;
    } rows[] = {
        {"\"id\":\"dark\",\"n\":1,\"node\":\"n2\"}", FINDING_PASS},
        {"\"id\":\"dark\",\"n\":1,\"node\":\"n1\"}", FINDING_FAIL},
        {"\"id\":\"dark\",\"n\":1,\"error\":\"nobody\"}", FINDING_FAIL},
        {"\"id\":\"dark\",\"n\":2,\"node\":\"n2\"}", FINDING_FAIL}, /* another time */
        {"\"id\":\"dusk\",\"n\":1,\"node\":\"n2\"}", FINDING_FAIL}, /* another line */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char said[200];
        snprintf(said, sizeof(said),
                 "{\"t\":1060000000,\"source\":\"harness\",\"kind\":\"store-said\",%s",
                 rows[i].said);
        const struct edit edits[] = {{"\"steady\"", NULL, NULL, said}, {0}};
        assert_found(ask("fired", &s, edits), rows[i].status, "");
    }
}

static void test_a_fault_on_the_store_strikes_what_serves_it(void **state) {
    (void)state;
    struct timeline_entry dark = {.id = "dark", .fault = "node-poweroff", .heal = -1, .times_n = 1};
    struct scenario s = planted_scenario("node-powered-off");
    s.timeline = &dark;
    dark.on = (struct target_spec){.what = TARGET_STORES, .local_rank = -1, .text = "store"};
    static const struct edit store[] = {
        {"fault-in-force", NULL, "\"what\":\"node\",\"name\":\"n2\",\"node\":\"n2\"",
         "\"what\":\"store\",\"name\":\"store\",\"node\":\"store\""},
        {0}};
    assert_found(ask("fired", &s, none), FINDING_FAIL, "struck n2 on n2");
    assert_found(ask("fired", &s, store), FINDING_PASS, "1 of 1");
    s.cluster.store_on = "n2";
    assert_found(ask("fired", &s, none), FINDING_PASS, "1 of 1");
    s.cluster.store_on = "n1";
    assert_found(ask("fired", &s, none), FINDING_FAIL, "struck n2 on n2");
    dark.on.pick = PICK_LEADER; /* the only one leads */
    s.cluster.store_on = NULL;
    assert_found(ask("fired", &s, store), FINDING_PASS, "1 of 1");
    s.cluster.store = STORE_ETCD_3;
    assert_found(ask("fired", &s, store), FINDING_FAIL, "struck store on store");
}

static void test_a_store_that_is_lost_takes_the_order_of_nodes_along(void **state) {
    (void)state;
    static const struct edit turned[] = {
        {"\"pid\":120,\"argv0\"", NULL, "\"GROUP_RANK\":\"0\"", "\"GROUP_RANK\":\"1\""},
        {"\"pid\":121,\"argv0\"", NULL, "\"GROUP_RANK\":\"1\"", "\"GROUP_RANK\":\"0\""},
        {0}};
    struct scenario s = planted_scenario("node-powered-off");
    assert_found(ask("rank_order", &s, turned), FINDING_FAIL, "n0 came before n1");
    s.cluster.store_on = "n1"; /* n2 is lost */
    assert_found(ask("rank_order", &s, turned), FINDING_FAIL, "n0 came before n1");
    s.cluster.store_on = "n2";
    assert_found(ask("rank_order", &s, turned), FINDING_PASS, "the order was kept");
}

static void test_a_fault_must_fire_as_often_as_asked_and_heal_when_told(void **state) {
    (void)state;
    static const struct timeline_entry timeline[] = {
        {.id = "kill", .fault = "worker-kill", .heal = -1, .times = TIMES_N, .times_n = 2},
        {.id = "fix", .fault = NULL, .heal = 0}};
    struct scenario s = planted_scenario("worker-killed");
    s.timeline = timeline;
    assert_found(ask("fired", &s, none), FINDING_FAIL, "it fired 1 time: its moment did not come");
    static const struct edit said[] = {
        {"\"steady\"", NULL, NULL,
         "{\"t\":1165000000,\"source\":\"harness\",\"kind\":\"fault-not-fired\",\"id\":\"kill\","
         "\"why\":\"no worker of rank 7 was alive\"}"},
        {0}};
    assert_found(ask("fired", &s, said), FINDING_FAIL, "no worker of rank 7 was alive");
    s.timeline = &timeline[0];
    struct timeline_entry once[] = {timeline[0], timeline[1]};
    once[0].times_n = 1;
    s.timeline = once;
    s.timeline_n = 2;
    assert_found(ask("fired", &s, none), FINDING_FAIL, "fix did not heal");
    static const struct edit healed[] = {
        {"\"steady\"", NULL, NULL,
         "{\"t\":1165000000,\"source\":\"harness\",\"kind\":\"fault-recovered\",\"id\":\"kill\","
         "\"n\":1}"},
        {0}};
    assert_found(ask("fired", &s, healed), FINDING_PASS, "2 of 2");
    s.timeline_n = 0;
    assert_found(ask("fired", &s, none), FINDING_PASS, "the timeline is empty");
}

static void test_a_fault_of_each_round_must_fire_in_every_complete_round(void **state) {
    (void)state;
    static const struct timeline_entry each[] = {
        {.id = "kill", .fault = "worker-kill", .heal = -1, .times = TIMES_EACH_ROUND}};
    static const struct edit one_round[] = {{"worker-start", "\"pid\":12", "", NULL}, {0}};
    struct scenario s = planted_scenario("worker-killed");
    s.timeline = each;
    struct finding f = planted_ask("fired", &s, none);
    assert_found(f, FINDING_FAIL, "it fired 1 time: its moment did not come");
    assert_string_equal(f.expected, "kill (worker-kill) fires 2 times, once in each round");
    assert_found(ask("fired", &s, one_round), FINDING_PASS, "1 of 1");
}

/* By its time rather than at a step at which somebody is held. */
#define BY_TIME                                                                                    \
    { "fault-fired", NULL, "\"held\":true", "\"held\":false" }
/* The survivors of the first round end well, and no other follows. */
#define NO_SECOND_ROUND                                                                            \
    {"worker-start", "\"pid\":12", "", NULL}, {"worker-exit", "\"pid\":12", "", NULL},             \
        {"\"source\":\"job\"", "\"pid\":12", "", NULL}, {                                          \
        "worker-exit", "\"pid\":11", "\"signal\":15", "\"code\":0"                                 \
    }

static void test_a_fault_that_came_when_the_job_had_finished_shows_nothing(void **state) {
    (void)state;
    static const struct edit finished[] = {
        BY_TIME, NO_SECOND_ROUND, {"worker-exit", "\"pid\":11", "\"t\":19000", "\"t\":10930"}, {0}};
    static const struct edit worked_on[] = {
        BY_TIME, NO_SECOND_ROUND, {"\"source\":\"job\"", NULL, "", NULL}, {0}};
    static const struct edit no_more_steps[] = {
        BY_TIME, {"\"kind\":\"step\"", "\"pid\":12", "", NULL}, {0}};
    static const struct edit by_time[] = {BY_TIME, {0}};
    struct timeline_entry dark = {.id = "dark", .fault = "node-poweroff", .heal = -1};
    struct scenario s = planted_scenario("node-powered-off");
    s.timeline = &dark;
    s.timeline_n = 1;
    dark.when = (struct trigger){.has_time = true, .time_ns = 1, .after = -1};
    assert_found(ask("fired", &s, by_time), FINDING_PASS, "1 of 1");
    assert_found(ask("fired", &s, finished), FINDING_UNKNOWN, "too late: the job had finished");
    assert_found(ask("fired", &s, worked_on), FINDING_PASS, "1 of 1");
    assert_found(ask("fired", &s, no_more_steps), FINDING_UNKNOWN, "had made its last step");
    /* Who names the end means it. */
    dark.when = (struct trigger){.has_event = true, .event = "done", .nth = 1, .after = -1};
    assert_found(ask("fired", &s, no_more_steps), FINDING_PASS, "1 of 1");
    dark.when = (struct trigger){.phase = "exit-barrier", .after = -1};
    assert_found(ask("fired", &s, finished), FINDING_PASS, "1 of 1");
}

/* Budget 1000; up to 200 of lag is a fifth. */
static void test_a_budget_is_judged_by_the_time_and_by_how_late_the_harness_was(void **state) {
    (void)state;
    static const struct {
        int64_t took, lag;
        enum finding_status status;
    } rows[] = {
        {1000, 0, FINDING_PASS},         {1001, 0, FINDING_FAIL},      {1000, 200, FINDING_PASS},
        {1001, 200, FINDING_FAIL}, /* also where the lag explains it */
        {799, 201, FINDING_PASS},        {800, 201, FINDING_UNKNOWN}, /* both together are within */
        {1000, 201, FINDING_UNKNOWN},    {1001, 201, FINDING_UNKNOWN}, /* beyond, or one of them */
        {60000, 201, FINDING_UNKNOWN},   {0, 1000, FINDING_PASS},      {0, 1001, FINDING_UNKNOWN},
        {1, INT64_MAX, FINDING_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (deadline_answer(rows[i].took, 1000, rows[i].lag) != rows[i].status)
            fail_msg("row %zu: %s", i,
                     finding_status_name(deadline_answer(rows[i].took, 1000, rows[i].lag)));
}

/* Agents of torchrun have no guard, and a fence of one's own counts instead of the profile's. */
static void test_what_a_short_host_excuses_follows_from_the_fence(void **state) {
    (void)state;
    static const struct edit edits[] = {
        {"worker-exit", "\"pid\":110", "\"signal\":15", "\"signal\":9"},
        {"\"lag\"", NULL, "\"max_ns\":300000", "\"max_ns\":70000000"},
        {0}};
    static const struct {
        const char *fence;
        enum finding_status status;
    } rows[] = {{"650ms", FINDING_UNKNOWN}, {"700ms", FINDING_FAIL}, {"1300ms", FINDING_FAIL}};
    struct scenario s = planted_scenario("node-powered-off");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct pair conf[] = {{.key = "fence", .value = rows[i].fence},
                              {.key = "profile", .value = "fast"}};
        s.job.rdzv_conf = conf;
        s.job.rdzv_conf_n = 2;
        assert_found(ask("grace", &s, edits), rows[i].status, "rank 0 on n0 of round 1");
    }
    s = planted_scenario("node-powered-off");
    assert_found(ask("grace", &s, edits), FINDING_UNKNOWN, "rank 0 on n0 of round 1");
    s.torchrun_semantics = true;
    assert_found(ask("grace", &s, edits), FINDING_FAIL, "rank 0 on n0 of round 1");
}

/* torchelastic's file timer: the first of a round may be ended at once, and nobody after it. */
static void test_a_timer_of_its_own_ends_the_first_of_a_round_alone(void **state) {
    (void)state;
    static const struct pair watched[] = {{.key = "TORCHELASTIC_ENABLE_FILE_TIMER", .value = "1"}};
    static const struct edit
        first[] = {{"worker-exit", "\"pid\":121", "\"code\":0", "\"signal\":9"},
                   {"worker-exit", "\"pid\":120", "\"t\":1155000000", "\"t\":1155020000"},
                   {0}},
        second[] = {{"worker-exit", "\"pid\":110", "\"signal\":15", "\"signal\":9"}, {0}};
    struct scenario s = planted_scenario("worker-killed");
    assert_found(ask("grace", &s, first), FINDING_FAIL, "the first of its round, and no fault");
    s.job.env = watched;
    s.job.env_n = 1;
    assert_found(ask("grace", &s, first), FINDING_PASS, "no worker ended on SIGKILL");
    assert_found(ask("grace", &s, second), FINDING_FAIL, "no more than 3 ms after it could");
}

static void test_each_worker_may_be_the_only_one_that_it_sees(void **state) {
    (void)state;
    static const char *const virtual[] = {"--virtual_local_rank", NULL};
    static const struct edit zeros[] = {
        {"worker-start", NULL, "\"LOCAL_RANK\":\"1\"", "\"LOCAL_RANK\":\"0\""}, {0}};
    struct scenario s = planted_scenario("worker-killed");
    assert_found(ask("ranks", &s, zeros), FINDING_FAIL, "has LOCAL_RANK 0, it is number 1");
    s.job.launcher_args = virtual;
    s.job.launcher_args_n = 1;
    assert_found(ask("ranks", &s, zeros), FINDING_PASS, "each with a rank of its own");
    assert_found(ask("ranks", &s, none), FINDING_FAIL, "rank 1 on n0 has LOCAL_RANK 1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_timer_of_its_own_ends_the_first_of_a_round_alone),
        cmocka_unit_test(test_each_worker_may_be_the_only_one_that_it_sees),
        cmocka_unit_test(test_what_a_short_host_excuses_follows_from_the_fence),
        cmocka_unit_test(test_world_sizes_are_those_of_the_last_rounds_however_many_there_are),
        cmocka_unit_test(test_a_budget_is_judged_by_the_time_and_by_how_late_the_harness_was),
        cmocka_unit_test(test_world_sizes_match_in_order_with_stars_and_tails),
        cmocka_unit_test(test_who_comes_back_fills_no_round_that_is_over),
        cmocka_unit_test(test_what_is_not_asked_for_is_skipped),
        cmocka_unit_test(test_a_model_that_was_saved_is_compared_unasked),
        cmocka_unit_test(test_losses_are_those_that_are_known),
        cmocka_unit_test(test_lost_work_may_be_bounded_in_steps_or_in_time),
        cmocka_unit_test(test_lost_work_that_was_bounded_is_never_skipped),
        cmocka_unit_test(test_a_round_that_begins_anew_is_told_aloud),
        cmocka_unit_test(test_restarts_may_be_a_range),
        cmocka_unit_test(test_an_expected_failure_is_a_pass_and_a_success_is_not),
        cmocka_unit_test(test_a_launcher_that_is_told_nonsense_refuses_on_every_node),
        cmocka_unit_test(test_agents_that_cannot_know_how_it_ended_say_so),
        cmocka_unit_test(test_a_job_may_be_given_up_after_so_many_rounds_that_cost_nothing),
        cmocka_unit_test(test_a_job_whose_agents_are_all_told_to_leave_is_stopped),
        cmocka_unit_test(test_a_job_that_was_meant_to_fail_need_not_start_workers),
        cmocka_unit_test(test_a_spent_budget_is_no_giving_up),
        cmocka_unit_test(test_a_budget_of_time_may_be_for_one_fault),
        cmocka_unit_test(test_a_fault_that_ended_no_round_has_no_times),
        cmocka_unit_test(test_what_is_sticky_comes_again_where_it_was_or_says_why_not),
        cmocka_unit_test(test_who_leads_is_whom_the_store_named),
        cmocka_unit_test(test_a_fault_on_the_store_strikes_what_serves_it),
        cmocka_unit_test(test_a_store_that_is_lost_takes_the_order_of_nodes_along),
        cmocka_unit_test(test_a_fault_must_fire_as_often_as_asked_and_heal_when_told),
        cmocka_unit_test(test_a_fault_of_each_round_must_fire_in_every_complete_round),
        cmocka_unit_test(test_a_fault_that_came_when_the_job_had_finished_shows_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
