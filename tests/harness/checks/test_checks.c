/* Checks: each of them passes a run in which all is well, and catches what is planted for it. */
#include "tests/harness/checks/planted.h"

#include "harness/checks/check.h"

struct wrong {
    const char *check;
    enum finding_status status;
    const char *seen;    /* part of what the finding says */
    const char *history; /* of tests/histories */
    struct edit edits[EDITS_MAX];
};

#define KILLED  "worker-killed"
#define DARK    "node-powered-off"
#define FAIL    FINDING_FAIL
#define UNKNOWN FINDING_UNKNOWN
#define PASS    FINDING_PASS
#define SKIP    FINDING_SKIP

static const struct wrong wrongs[] = {
    {"agreement",
     FAIL,
     "MASTER_PORT is 40001 for rank 0 on n0 and 40009 for rank 2 on n2",
     DARK,
     {{"\"pid\":112,\"argv0\"", NULL, "\"40001\"", "\"40009\""}}},
    {"agreement",
     FAIL,
     "TORCHELASTIC_RESTART_COUNT is 1 for rank 0",
     KILLED,
     {{"\"pid\":121,\"argv0\"", NULL, "COUNT\":\"1\"", "COUNT\":\"2\""}}},
    {"agreement",
     FAIL,
     "TORCHELASTIC_MAX_RESTARTS is 3",
     KILLED,
     {{"\"pid\":121,\"argv0\"", NULL, "MAX_RESTARTS\":\"3\"", "MAX_RESTARTS\":\"0\""}}},
    {"agreement", UNKNOWN, "no worker-start", KILLED, {{"\"source\":\"probe\"", NULL, "x", NULL}}},
    {"fired",
     FAIL,
     "it fired 0 times: its moment did not come",
     KILLED,
     {{"fault-fired", NULL, "", NULL},
      {"fault-in-force", NULL, "", NULL},
      {"fault-evidence", NULL, "", NULL}}},
    {"fired",
     UNKNOWN,
     "nothing outside shows that it was felt",
     KILLED,
     {{"fault-evidence", NULL, "", NULL}}},
    {"fired",
     UNKNOWN,
     "nothing outside shows",
     DARK,
     {{"fault-evidence", NULL, "\"wire\"", "\"launcher\""}}},
    {"fired",
     FAIL,
     "no such process",
     KILLED,
     {{"fault-in-force", NULL, NULL,
       "{\"t\":1080000000,\"source\":\"harness\",\"kind\":\"fault-failed\",\"id\":\"kill\",\"n\":1,"
       "\"error\":\"no such process\"}"},
      {"fault-in-force", NULL, "", NULL}}},
    {"one_round",
     FAIL,
     "rank 0 on n0 of round 2 started while rank 0 on n0 of round 1 was alive",
     KILLED,
     {{"worker-exit", "\"pid\":110", "\"t\":1073", "\"t\":1077"}}},
    {"one_round",
     UNKNOWN,
     "was never seen to end",
     KILLED,
     {{"worker-exit", "\"pid\":110", "", NULL}}},
    {"one_round",
     UNKNOWN,
     "less than the harness was late itself",
     KILLED,
     {{"worker-exit", "\"pid\":110", "\"t\":1073", "\"t\":1077"},
      {"\"lag\"", NULL, "\"max_ns\":300000", "\"max_ns\":5000000"}}},
    {"ranks",
     FAIL,
     "RANK 0 was given twice in one group: on n0 and on n1",
     DARK,
     {{"\"pid\":121,\"argv0\"", NULL, "\"RANK\":\"1\"", "\"RANK\":\"0\""}}},
    {"ranks",
     FAIL,
     "was given RANK=2, WORLD_SIZE=2",
     DARK,
     {{"\"pid\":121,\"argv0\"", NULL, "\"RANK\":\"1\"", "\"RANK\":\"2\""}}},
    {"ranks",
     FAIL,
     "rank 1 on n0 has LOCAL_RANK 0, it is number 1",
     KILLED,
     {{"\"pid\":121,\"argv0\"", NULL, "LOCAL_RANK\":\"1\"", "LOCAL_RANK\":\"0\""}}},
    {"ranks",
     FAIL,
     "was started without MASTER_ADDR",
     KILLED,
     {{"\"pid\":121,\"argv0\"", NULL, "\"MASTER_ADDR\":\"n0\",", ""}}},
    {"ranks",
     FAIL,
     "ranks 0 and 1 both have ROLE_RANK 0",
     KILLED,
     {{"\"pid\":121,\"argv0\"", NULL, "ROLE_RANK\":\"1\"", "ROLE_RANK\":\"0\""}}},
    {"ranks",
     FAIL,
     "n0 and n1 both have GROUP_RANK 0",
     DARK,
     {{"\"pid\":121,\"argv0\"", NULL, "GROUP_RANK\":\"1\"", "GROUP_RANK\":\"0\""}}},
    {"ranks",
     FAIL,
     "was told 4, the node has 2",
     KILLED,
     {{"\"argv0\"", NULL, "LOCAL_WORLD_SIZE\":\"2\"", "LOCAL_WORLD_SIZE\":\"4\""}}},
};

enum { WRONGS = sizeof(wrongs) / sizeof(*wrongs) };

static const struct finding *finding_of(const struct verdict *v, const char *check) {
    for (size_t i = 0; i < v->n; i++)
        if (str_eq(v->v[i].check, check))
            return &v->v[i];
    fail_msg("there is no check %s", check);
    return NULL;
}

static void judge(struct verdict *v, struct history *h, const char *name) {
    struct scenario s = planted_scenario(name);
    struct trial t = {.scenario = &s, .history = h};
    verdict_judge(v, &t);
}

static void test_every_check_passes_a_run_in_which_all_is_well(void **state) {
    (void)state;
    static const char *const names[] = {KILLED, DARK};
    for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++) {
        static const struct edit none[1];
        struct history h;
        struct verdict v;
        planted_load(&h, names[k], none);
        judge(&v, &h, names[k]);
        for (size_t i = 0; i < v.n; i++)
            if (v.v[i].status != FINDING_PASS)
                fail_msg("%s: %s: %s", names[k], v.v[i].check, v.v[i].seen);
        assert_int_equal(v.exit_code, 0);
        history_fini(&h);
    }
}

static void test_each_planted_wrong_is_caught_by_its_check(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < WRONGS; i++) {
        struct history h;
        struct verdict v;
        planted_load(&h, wrongs[i].history, wrongs[i].edits);
        judge(&v, &h, wrongs[i].history);
        const struct finding *f = finding_of(&v, wrongs[i].check);
        if (f->status != wrongs[i].status || !strstr(f->seen, wrongs[i].seen)) {
            print_error("wrong %zu: %s: %s, \"%s\"; expected %s, \"%s\"\n", i, f->check,
                        finding_status_name(f->status), f->seen,
                        finding_status_name(wrongs[i].status), wrongs[i].seen);
            wrong++;
        }
        history_fini(&h);
    }
    assert_int_equal(wrong, 0);
}

static void test_every_check_of_the_table_has_a_wrong_that_it_catches(void **state) {
    (void)state;
    for (size_t c = 0; checks[c]; c++) {
        bool caught = false;
        for (size_t i = 0; i < WRONGS; i++)
            caught |= str_eq(wrongs[i].check, checks[c]->name) && wrongs[i].status == FAIL;
        if (!caught)
            fail_msg("nothing is planted for the check %s", checks[c]->name);
    }
}

static void test_the_table_is_in_alphabetical_order_and_complete(void **state) {
    (void)state;
    for (size_t i = 0; checks[i]; i++) {
        assert_true(*checks[i]->name && *checks[i]->summary && *checks[i]->text);
        assert_ptr_equal(check_find(checks[i]->name), checks[i]);
        if (i)
            assert_true(strcmp(checks[i - 1]->name, checks[i]->name) < 0);
    }
    assert_null(check_find("no_such_check"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_check_passes_a_run_in_which_all_is_well),
        cmocka_unit_test(test_each_planted_wrong_is_caught_by_its_check),
        cmocka_unit_test(test_every_check_of_the_table_has_a_wrong_that_it_catches),
        cmocka_unit_test(test_the_table_is_in_alphabetical_order_and_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
