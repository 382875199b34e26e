/* Checks: each of them passes a run in which all is well, and catches what is planted for it. */
#include "tests/harness/judge/checks/all_cases.h"
#include "tests/harness/judge/checks/cases_judge.h"

#include "harness/judge/checks/check.h"

#define KILLED  "worker-killed"
#define DARK    "node-powered-off"
#define GPUS    "gpu-worker-killed"
#define PRINTED "printed-steps"
#define PROBED  "probed"
#define GIVEN   "given"
#define WEIGHTS "weights"

/* The launcher and the job say that all is well, in the very words of the evidence. */
static const char lies[] =
    "{\"t\":1159000000,\"source\":\"launcher\",\"kind\":\"agent-start\",\"node\":\"n0\",\"pid\":"
    "100}"
    "\n{\"seq\":0,\"t\":1159000001,\"source\":\"launcher\",\"kind\":\"agent-exit\",\"node\":\"n0\","
    "\"pid\":100,\"code\":0}"
    "\n{\"seq\":0,\"t\":2025000000,\"source\":\"launcher\",\"kind\":\"agent-exit\",\"node\":\"n1\","
    "\"pid\":101,\"code\":0}"
    "\n{\"seq\":0,\"t\":1073000000,\"source\":\"launcher\",\"kind\":\"worker-exit\",\"node\":"
    "\"n0\",\"pid\":110,\"code\":0}"
    "\n{\"seq\":0,\"t\":1159000000,\"source\":\"launcher\",\"kind\":\"worker-exit\",\"node\":"
    "\"n0\",\"pid\":121,\"code\":0}"
    "\n{\"seq\":0,\"t\":1159000000,\"source\":\"launcher\",\"kind\":\"leftovers\",\"node\":\"n0\","
    "\"processes\":[],\"ports\":[],\"shm\":[],\"cgroups\":[]}"
    "\n{\"seq\":0,\"t\":2030000000,\"source\":\"launcher\",\"kind\":\"leftovers\",\"node\":\"n2\","
    "\"processes\":[],\"ports\":[],\"shm\":[],\"cgroups\":[]}"
    "\n{\"seq\":0,\"t\":1072000000,\"source\":\"launcher\",\"kind\":\"fault-fired\",\"id\":"
    "\"kill\",\"n\":1,\"fault\":\"worker-kill\"}"
    "\n{\"seq\":0,\"t\":1072000000,\"source\":\"launcher\",\"kind\":\"fault-in-force\",\"id\":"
    "\"kill\",\"n\":1,\"fault\":\"worker-kill\",\"t0\":1071000000}"
    "\n{\"seq\":0,\"t\":1072000000,\"source\":\"launcher\",\"kind\":\"fault-evidence\",\"id\":"
    "\"kill\",\"n\":1,\"what\":\"it was felt\"}"
    "\n{\"seq\":0,\"t\":1092000000,\"source\":\"launcher\",\"kind\":\"fault-evidence\",\"id\":"
    "\"dark\",\"n\":1,\"what\":\"it was felt\"}"
    "\n{\"seq\":0,\"t\":1074000000,\"source\":\"launcher\",\"kind\":\"checkpoints\",\"round\":1,"
    "\"dir\":\"x\",\"newest\":4,\"complete\":[{\"step\":4,\"round\":1,\"path\":\"x\"}],\"damaged\":"
    "[]}"
    "\n{\"seq\":0,\"t\":1076000000,\"source\":\"launcher\",\"kind\":\"worker-start\",\"node\":"
    "\"n0\",\"pid\":121,\"argv0\":\"x\",\"env\":{\"RANK\":\"1\",\"WORLD_SIZE\":\"2\"}}"
    "\n{\"seq\":0,\"t\":1160020000,\"source\":\"launcher\",\"kind\":\"devices\",\"at\":"
    "\"job-end\",\"round\":0,\"devices\":[],\"open\":[],\"nodes\":{\"n0\":[\"GPU-aaaa\"]}}"
    "\n{\"seq\":0,\"t\":1160020000,\"source\":\"job\",\"kind\":\"devices\",\"at\":"
    "\"job-end\",\"round\":0,\"devices\":[],\"open\":[],\"nodes\":{\"n0\":[\"GPU-aaaa\"]}}"
    "\n{\"seq\":0,\"t\":1020000000,\"source\":\"launcher\",\"kind\":\"usage\",\"node\":\"n0\","
    "\"pid\":100,\"rss\":1,\"fds\":1}"
    "\n{\"seq\":0,\"t\":1000000000,\"source\":\"launcher\",\"kind\":\"control\",\"model\":\"3f\","
    "\"last_step\":8}"
    "\n{\"seq\":0,\"t\":1169000000,\"source\":\"launcher\",\"kind\":\"job-end\",\"why\":\"ended\"}"
    "\n{\"seq\":0,\"t\":1169000000,\"source\":\"launcher\",\"kind\":\"health\",\"left\":[],"
    "\"complete\":true}"
    "\n{\"seq\":0,\"t\":1159000000,\"source\":\"job\",\"kind\":\"agent-start\",\"node\":\"n0\","
    "\"pid\":100}"
    "\n{\"seq\":0,\"t\":1159000001,\"source\":\"job\",\"kind\":\"agent-exit\",\"node\":\"n0\","
    "\"pid\":100,\"code\":0}"
    "\n{\"seq\":0,\"t\":2025000000,\"source\":\"job\",\"kind\":\"agent-exit\",\"node\":\"n1\","
    "\"pid\":101,\"code\":0}"
    "\n{\"seq\":0,\"t\":1073000000,\"source\":\"job\",\"kind\":\"worker-exit\",\"node\":\"n0\","
    "\"pid\":110,\"code\":0}"
    "\n{\"seq\":0,\"t\":1159000000,\"source\":\"job\",\"kind\":\"worker-exit\",\"node\":\"n0\","
    "\"pid\":121,\"code\":0}"
    "\n{\"seq\":0,\"t\":1159000000,\"source\":\"job\",\"kind\":\"leftovers\",\"node\":\"n0\","
    "\"processes\":[],\"ports\":[],\"shm\":[],\"cgroups\":[]}"
    "\n{\"seq\":0,\"t\":2030000000,\"source\":\"job\",\"kind\":\"leftovers\",\"node\":\"n2\","
    "\"processes\":[],\"ports\":[],\"shm\":[],\"cgroups\":[]}"
    "\n{\"seq\":0,\"t\":1072000000,\"source\":\"job\",\"kind\":\"fault-fired\",\"id\":\"kill\","
    "\"n\":1,\"fault\":\"worker-kill\"}"
    "\n{\"seq\":0,\"t\":1072000000,\"source\":\"job\",\"kind\":\"fault-in-force\",\"id\":\"kill\","
    "\"n\":1,\"fault\":\"worker-kill\",\"t0\":1071000000}"
    "\n{\"seq\":0,\"t\":1072000000,\"source\":\"job\",\"kind\":\"fault-evidence\",\"id\":\"kill\","
    "\"n\":1,\"what\":\"it was felt\"}"
    "\n{\"seq\":0,\"t\":1092000000,\"source\":\"job\",\"kind\":\"fault-evidence\",\"id\":\"dark\","
    "\"n\":1,\"what\":\"it was felt\"}"
    "\n{\"seq\":0,\"t\":1074000000,\"source\":\"job\",\"kind\":\"checkpoints\",\"round\":1,\"dir\":"
    "\"x\",\"newest\":4,\"complete\":[{\"step\":4,\"round\":1,\"path\":\"x\"}],\"damaged\":[]}"
    "\n{\"seq\":0,\"t\":1076000000,\"source\":\"job\",\"kind\":\"worker-start\",\"node\":\"n0\","
    "\"pid\":121,\"argv0\":\"x\",\"env\":{\"RANK\":\"1\",\"WORLD_SIZE\":\"2\"}}"
    "\n{\"seq\":0,\"t\":1000000000,\"source\":\"job\",\"kind\":\"control\",\"model\":\"3f\"}"
    "\n{\"seq\":0,\"t\":1169000000,\"source\":\"job\",\"kind\":\"job-end\",\"why\":\"ended\"}"
    "\n{\"seq\":0,\"t\":1169000000,\"source\":\"job\",\"kind\":\"health\",\"left\":[],\"complete\":"
    "true}";

/* There is nothing to heal in them (cases/heal.txt has runs in which there is), and two of them
 * have no GPU. */
static bool has_nothing_to_judge(const char *history, const char *check) {
    /* What is printed names no shards, and where nothing is read from it nothing is observed. */
    if (str_eq(check, str_eq(history, PRINTED) ? "samples" : "observed") ||
        (str_eq(history, PRINTED) && str_eq(check, "exactly_once")))
        return true;
    /* Nobody recorded signals, the files of workers or what agents print when these were made. */
    if (str_eq(check, "stop_signals") || str_eq(check, "kept") || str_eq(check, "said"))
        return true;
    if (str_eq(check, "probe") || str_eq(check, "log")) /* cases/ has runs with one */
        return true;
    if (str_eq(check, "given") && !str_eq(history, GIVEN)) /* recorded before it was */
        return true;
    if (str_eq(check, "resumed_loss")) /* in none of them the loss falls far enough */
        return true;
    if (str_eq(check, "saving") || str_eq(check, "idle")) /* recorded before they were told of */
        return true;
    if (!str_eq(history, WEIGHTS) && (str_eq(check, "weights") || str_eq(check, "epochs")))
        return true;
    if (str_eq(check, "pace") && !str_eq(history, KILLED)) /* or more than a worker was lost */
        return true;
    return str_eq(check, "heal") || str_eq(check, "drift") || str_eq(check, "root_cause") ||
           (!str_eq(history, GPUS) &&
            (str_eq(check, "communicator") || str_eq(check, "device_memory") ||
             str_eq(check, "one_device")));
}

static void assert_all_well(const char *name, const struct edit *edits) {
    struct history h;
    struct verdict v;
    planted_load(&h, name, edits);
    cases_judge(&v, &h, name, DIALECT_STRICT);
    for (size_t i = 0; i < v.n; i++)
        if (v.v[i].status != FINDING_PASS && !has_nothing_to_judge(name, v.v[i].check))
            fail_msg("%s: %s: %s", name, v.v[i].check, v.v[i].seen);
    assert_int_equal(v.exit_code, 0);
    history_fini(&h);
}

static void test_every_check_passes_a_run_in_which_all_is_well(void **state) {
    (void)state;
    static const char *const names[] = {KILLED, DARK, GPUS, PRINTED, GIVEN, WEIGHTS};
    static const struct edit none[1];
    for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
        assert_all_well(names[k], none);
}

/* In a long run the system gives the number of a process that is gone to another one. */
static void test_a_pid_that_is_given_anew_is_another_worker(void **state) {
    (void)state;
    static const char *const names[] = {KILLED, DARK, GPUS};
    static const struct edit anew[EDITS_MAX] = {
        {"\"pid\":120", NULL, "\"pid\":120", "\"pid\":110"},
        {"\"pid\":121", NULL, "\"pid\":121", "\"pid\":111"}};
    for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
        assert_all_well(names[k], anew);
}

/* Whether the check says of it what it must. */
static bool is_found(const struct planted_case *c, bool with_lies) {
    struct history h;
    struct verdict v;
    struct edit edits[EDITS_MAX + 1] = {0};
    size_t n = 0;
    for (; c->edits[n].line; n++)
        edits[n] = c->edits[n];
    if (with_lies)
        edits[n] = (struct edit){.line = "\"kind\":\"run\"", .to = lies};
    planted_load(&h, c->history, edits);
    cases_judge(&v, &h, c->history, c->dialect);
    const struct finding *f = finding_of(&v, c->check);
    bool found = f->status == c->status && strstr(f->seen, c->seen);
    if (!found)
        print_error("%s: %s: %s %s, \"%s\"; expected %s, \"%s\"\n", c->place, c->name, f->check,
                    finding_status_name(f->status), f->seen, finding_status_name(c->status),
                    c->seen);
    history_fini(&h);
    return found;
}

static void assert_all_found(bool with_lies) {
    int missed = 0;
    for (const struct planted_case *c = cases.first; c; c = c->next)
        missed += !is_found(c, with_lies);
    assert_int_equal(missed, 0);
}

static void test_each_planted_wrong_is_caught_by_its_check(void **state) {
    (void)state;
    assert_all_found(false);
}

static void test_no_lie_of_launcher_or_job_changes_what_is_found(void **state) {
    (void)state;
    assert_all_found(true);
}

/* What nobody has seen: all lines of these sources are taken out. False when there are none. */
static bool blind_to(const char *name, unsigned sources, struct edit *ret) {
    static char lines[SOURCE_N][40];
    struct buf text = {0};
    size_t n = 0;
    read_text(&text, name);
    for (int s = 0; s < SOURCE_N; s++) {
        snprintf(lines[s], sizeof(lines[s]), "\"source\":\"%s\"", source_name((enum source)s));
        if (sources & 1u << s && strstr(buf_str(&text), lines[s]))
            ret[n++] = (struct edit){.line = lines[s], .from = ""};
    }
    buf_fini(&text);
    return n;
}

/* Judges every history without these sources; what passes all the same fails the test, unless
 * it may. */
static void assert_blind(unsigned sources, bool (*may_pass)(const struct check *, unsigned)) {
    static const char *const names[] = {KILLED, DARK, GPUS, PRINTED, PROBED, GIVEN};
    for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++) {
        struct edit edits[EDITS_MAX + 1] = {0};
        struct history h;
        struct verdict v;
        if (!blind_to(names[k], sources, edits))
            continue;
        planted_load(&h, names[k], edits);
        cases_judge(&v, &h, names[k], DIALECT_STRICT);
        for (size_t i = 0; i < v.n; i++)
            if (v.v[i].status == FINDING_PASS && !may_pass(check_find(v.v[i].check), sources))
                fail_msg("%s: %s passes: %s", names[k], v.v[i].check, v.v[i].seen);
        history_fini(&h);
    }
}

/* The harness looks for what is left, and its clock says whether the job went on; what a program
 * prints is a claim of which nothing more is asked. */
static bool is_seen_by_harness(const struct check *c, unsigned sources) {
    (void)sources;
    return str_eq(c->name, "cleanup") || str_eq(c->name, "liveness") || str_eq(c->name, "observed");
}

static void test_claims_alone_make_nothing_pass(void **state) {
    (void)state;
    assert_blind(SOURCES(KERNEL) | SOURCES(WIRE) | SOURCES(DISK) | SOURCES(PROBE),
                 is_seen_by_harness);
}

/* What a check can say all the same: what it asks of that source is asked of few runs, or only adds
 * to what another has shown. */
static const struct {
    const char *check;
    unsigned without;
} allowed[] = {
    {"checkpoints", SOURCES(JOB)}, /* what it called committed comes on top */
    {"fired", SOURCES(PROBE) | SOURCES(JOB) | SOURCES(DISK)}, /* the kernel felt it, or the wire */
    {"harness_health", ~0u},                                  /* it counts what there is */
    {"job_ran", SOURCES(PROBE)},                              /* its workers were seen to end */
    {"model", SOURCES(DISK)}, /* the weights that lie there come on top, and are missed aloud */
    {"observed", ~0u},
    {"one_device", SOURCES(JOB)}, /* what the job says of its device comes on top */
    /* Without steps a round goes on when its workers have started. */
    {"phases", SOURCES(JOB)},
    {"probe", SOURCES(JOB)},
    {"recover", SOURCES(JOB)},
};

static bool needs_it_not(const struct check *c, unsigned source) {
    for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
        if (str_eq(allowed[i].check, c->name) && allowed[i].without & source)
            return true;
    return !(c->sources & source);
}

static void test_without_a_source_nothing_passes_that_asks_it(void **state) {
    (void)state;
    /* Not the wire: it matters where a network is cut, and a row of wrongs takes it away there. */
    static const unsigned sources[] = {SOURCES(KERNEL), SOURCES(PROBE), SOURCES(DISK), SOURCES(JOB),
                                       SOURCES(USER)};
    for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++)
        assert_blind(sources[i], needs_it_not);
}

static bool is_planted(const char *check, enum finding_status status) {
    for (const struct planted_case *c = cases.first; c; c = c->next)
        if (str_eq(c->check, check) && c->status == status)
            return true;
    return false;
}

static void test_every_check_of_the_table_has_a_wrong_that_it_catches(void **state) {
    (void)state;
    for (size_t c = 0; checks[c]; c++)
        if (!is_planted(checks[c]->name, FINDING_FAIL))
            fail_msg(CASES "/%s.txt: no case ends with `fail`", checks[c]->name);
}

/* They go by the harness's own clock, or (idle) by the kernel's counts; heal says nothing of a job that tells no steps, nor pace of a
 * recovery for which the harness was late. The run of which drift cannot know is in test_drift.c. */
static bool always_knows(const char *check) {
    return str_eq(check, "job_ran") || str_eq(check, "liveness") || str_eq(check, "heal") ||
           str_eq(check, "pace") || str_eq(check, "drift") || str_eq(check, "idle");
}

static void test_every_check_of_the_table_has_a_run_of_which_it_cannot_know(void **state) {
    (void)state;
    for (size_t c = 0; checks[c]; c++) {
        bool planted = is_planted(checks[c]->name, FINDING_UNKNOWN);
        if (planted && always_knows(checks[c]->name))
            fail_msg("%s has a case of which it cannot know, and is said to know always",
                     checks[c]->name);
        if (!planted && !always_knows(checks[c]->name))
            fail_msg(CASES "/%s.txt: no case ends with `unknown`", checks[c]->name);
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
        cmocka_unit_test(test_a_pid_that_is_given_anew_is_another_worker),
        cmocka_unit_test(test_each_planted_wrong_is_caught_by_its_check),
        cmocka_unit_test(test_no_lie_of_launcher_or_job_changes_what_is_found),
        cmocka_unit_test(test_claims_alone_make_nothing_pass),
        cmocka_unit_test(test_without_a_source_nothing_passes_that_asks_it),
        cmocka_unit_test(test_every_check_of_the_table_has_a_wrong_that_it_catches),
        cmocka_unit_test(test_every_check_of_the_table_has_a_run_of_which_it_cannot_know),
        cmocka_unit_test(test_the_table_is_in_alphabetical_order_and_complete),
    };
    return cmocka_run_group_tests(tests, read_cases, drop_cases);
}
