/* Lost: of a run that nobody has seen as it was, nothing is said to have failed that need not have,
 * and it does not pass either. */
#include "tests/harness/checks/wrongs.h"

/* 7 s in which the harness was away, between the first steps of round 2 and the next thing that is
 * recorded; and before round 2, so that its starts were only heard when the harness was back. */
#define BEHIND_STARTS                                                                              \
    {"\"t\":11", NULL, "\"t\":11", "\"t\":81"}, {                                                  \
        "\"lag\"", NULL, "300000,\"window_ns\":150000000", "7000000000,\"window_ns\":7060000000"   \
    }
#define BEFORE_STARTS                                                                              \
    {"\"t\":1076", NULL, "\"t\":1076", "\"t\":8076"},                                              \
        {"\"t\":108", NULL, "\"t\":108", "\"t\":808"}, {                                           \
        "\"t\":11", NULL, "\"t\":11", "\"t\":81"                                                   \
    }
#define AWAY_BEFORE_STARTS                                                                         \
    BEFORE_STARTS, {                                                                               \
        "\"lag\"", NULL, "300000,\"window_ns\":150000000", "7000000000,\"window_ns\":7082000000"   \
    }
#define LATE(ns)                                                                                   \
    { "\"lag\"", NULL, "\"max_ns\":300000", "\"max_ns\":" ns }
#define WRONG_PLACE                                                                                \
    { "\"pid\":121,\"argv0\"", NULL, "LOCAL_RANK\":\"1\"", "LOCAL_RANK\":\"0\"" }
#define AGENT_ENDED_7                                                                              \
    { "agent-exit", NULL, "\"code\":0", "\"code\":7" }
#define LIMIT                                                                                      \
    {                                                                                              \
        "job-end", NULL, NULL,                                                                     \
            "{\"t\":8165000000,\"source\":\"harness\",\"kind\":\"limit\",\"name\":\"stall\","      \
            "\"ns\":30000000000}"                                                                  \
    }
#define UNSEEN_WORKER                                                                              \
    {"worker-start", "\"pid\":121", "", NULL}, {"worker-exec", "\"pid\":121", "", NULL}, {         \
        "worker-exit", "\"pid\":121", "", NULL                                                     \
    }
#define SCARCE                                                                                     \
    {                                                                                              \
        "\"steady\"", NULL, NULL,                                                                  \
            "{\"t\":1030020000,\"source\":\"harness\",\"kind\":\"scarce\",\"what\":\"processes\"," \
            "\"limit\":20,\"used\":18,\"why\":\"this user may have 20 processes, and had 18 "      \
            "(ulimit -u)\"}"                                                                       \
    }

static const struct {
    int exit_code;
    struct wrong w;
} rows[] = {
    /* Nothing seems wrong, and it is no pass. */
    {2, {"harness_health", UNKNOWN, "was away for 7.0 s", KILLED, {BEHIND_STARTS}}},
    {2, {"one_outcome", PASS, "ended 0", KILLED, {BEHIND_STARTS}}},
    /* What came after, and what is missing. */
    {2,
     {"one_outcome",
      UNKNOWN,
      "was away for 7.0 s (a host or a process that was stopped); else: the agent of n0 ended 7",
      KILLED,
      {BEHIND_STARTS, AGENT_ENDED_7}}},
    {2, {"outcome", UNKNOWN, "was away", KILLED, {BEHIND_STARTS, AGENT_ENDED_7}}},
    {2, {"liveness", UNKNOWN, "was away for 7.0 s", KILLED, {BEHIND_STARTS, LIMIT}}},
    {2,
     {"samples",
      UNKNOWN,
      "was away for 7.0 s",
      KILLED,
      {BEHIND_STARTS, {"\"step\",", "\"pid\":121,\"job_seq\":4", "", NULL}}}},
    {2,
     {"leftovers",
      UNKNOWN,
      "was away for 7.0 s",
      KILLED,
      {BEHIND_STARTS, {"leftovers", NULL, "\"shm\":[]", "\"shm\":[\"/dev/shm/x\"]"}}}},
    /* What it had seen before it was away is as wrong as ever. */
    {1,
     {"resume_step",
      FAIL,
      "rank 0 on n0 of round 2 resumed from step 2",
      KILLED,
      {BEHIND_STARTS, {"\"resume\"", NULL, "\"step\":4", "\"step\":2"}}}},
    {1, {"ranks", FAIL, "has LOCAL_RANK 0, it is number 1", KILLED, {BEHIND_STARTS, WRONG_PLACE}}},
    /* Heard when it was back: whose round it was cannot be told for certain. */
    {2, {"ranks", UNKNOWN, "was away for 7.0 s", KILLED, {AWAY_BEFORE_STARTS, WRONG_PLACE}}},
    {2,
     {"restart_count",
      UNKNOWN,
      "was away for 7.0 s",
      KILLED,
      {AWAY_BEFORE_STARTS, {"\"argv0\"", NULL, "COUNT\":\"1\"", "COUNT\":\"2\""}}}},
    /* A machine that is slow is not away. */
    {0, {"harness_health", PASS, "late by 1100.0 ms at most", KILLED, {LATE("1100000000")}}},
    {1,
     {"one_outcome", FAIL, "the agent of n0 ended 7", KILLED, {LATE("2000000000"), AGENT_ENDED_7}}},
    {2,
     {"one_outcome", UNKNOWN, "was away for 2.0 s", KILLED, {LATE("2000000001"), AGENT_ENDED_7}}},
    /* For so long everybody waits for it: nothing that was to be seen is lost. */
    {0, {"harness_health", PASS, "68 records", KILLED, {LATE("5000000000")}}},
    {2, {"harness_health", UNKNOWN, "was away for 5.0 s", KILLED, {LATE("5000000001")}}},
    /* Others waited for it: it was there. */
    {1,
     {"one_outcome",
      FAIL,
      "the agent of n0 ended 7",
      KILLED,
      {LATE("7000000000,\"why\":\"workers waited\""), AGENT_ENDED_7}}},
    /* Somebody trains whom nobody saw start. */
    {2, {"harness_health", UNKNOWN, "process 121 on n0 makes steps", KILLED, {UNSEEN_WORKER}}},
    {2, {"world_sizes", UNKNOWN, "a worker went unobserved; else: [2]", KILLED, {UNSEEN_WORKER}}},
    /* The host had no room for it. */
    {1, {"one_outcome", FAIL, "the agent of n0 ended 7", KILLED, {AGENT_ENDED_7}}},
    {2,
     {"one_outcome",
      UNKNOWN,
      "may have 20 processes, and had 18 (ulimit -u); else: the agent of n0 ended 7",
      KILLED,
      {SCARCE, AGENT_ENDED_7}}},
    {0, {"one_outcome", PASS, "ended 0", KILLED, {SCARCE}}},
};

static void test_what_nobody_saw_neither_fails_nor_passes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct wrong *w = &rows[i].w;
        struct scenario s = planted_scenario(w->history);
        struct history h;
        struct verdict v;
        planted_load(&h, w->history, w->edits);
        verdict_judge(&v, &(struct trial){.scenario = &s, .history = &h});
        const struct finding *f = finding_of(&v, w->check);
        if (f->status != w->status || !strstr(f->seen, w->seen) || v.exit_code != rows[i].exit_code)
            fail_msg("row %zu: %s: %s, \"%s\", exit %d; expected %s, \"%s\", exit %d", i, w->check,
                     finding_status_name(f->status), f->seen, v.exit_code,
                     finding_status_name(w->status), w->seen, rows[i].exit_code);
        history_fini(&h);
    }
}

/* A program of the user's reads the same history. */
static void test_an_own_check_does_not_fail_a_run_that_nobody_saw(void **state) {
    (void)state;
    static const struct edit away[EDITS_MAX] = {BEHIND_STARTS}, none[EDITS_MAX];
    const struct finding own = {
        .check = "own", .class = CLASS_EXPECT, .status = FINDING_FAIL, .seen = "3 of 4"};
    for (int lost = 0; lost < 2; lost++) {
        struct scenario s = planted_scenario(KILLED);
        struct history h;
        struct verdict v;
        planted_load(&h, KILLED, lost ? away : none);
        verdict_judge(&v, &(struct trial){.scenario = &s, .history = &h});
        verdict_add(&v, &h, own);
        assert_int_equal(v.exit_code, lost ? 2 : 1);
        assert_non_null(strstr(verdict_find(&v, "own")->seen, "3 of 4"));
        history_fini(&h);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_nobody_saw_neither_fails_nor_passes),
        cmocka_unit_test(test_an_own_check_does_not_fail_a_run_that_nobody_saw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
