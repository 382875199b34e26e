/* A question that is tried answers, dies or says nothing, and changes nothing of whoever asks. The
 * questions themselves are asked of this host in tests/live/doctor.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/doctor/host_questions.h"
#include "harness/doctor/outlook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *self;

static void said(const char *experiment, const char *expected) {
    char command[512], line[1000] = "";
    snprintf(command, sizeof(command), "%.*sspawn_host_question %s",
             (int)(strrchr(self, '/') + 1 - self), self, experiment);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    assert_non_null(fgets(line, sizeof(line), out));
    assert_int_equal(pclose(out), 0);
    assert_string_equal(line, expected);
}

static void test_the_answer_of_a_probe_comes_through(void **state) {
    (void)state;
    said("works", "works: it was given here; \n");
    said("lacks", "lacks: it is broken; fix it\n");
}

static void test_a_probe_that_dies_or_says_nothing_lacks(void **state) {
    (void)state;
    said("dies", "lacks: it died while it was tried; look into the kernel's log\n");
    said("silent", "lacks: it died while it was tried; look into the kernel's log\n");
}

static void test_what_a_probe_does_to_itself_stays_with_it(void **state) {
    (void)state;
    said("moves", "works: it was given here; \n");
}

static void test_every_probe_says_what_it_gives(void **state) {
    size_t demo = 0;
    (void)state;
    for (size_t i = 0; host_questions[i]; i++) {
        assert_true(strlen(host_questions[i]->name) < 15);
        assert_true(strlen(host_questions[i]->gives) > 10);
        assert_non_null(host_questions[i]->look);
        demo += host_questions[i]->demo;
    }
    assert_true(demo > 0);
}

/* ---- what becomes of faults ---- */

enum { QUESTIONS_MAX = 64 };
static struct question_result answers[QUESTIONS_MAX];

static void lack(const char *name) {
    for (size_t i = 0; host_questions[i]; i++)
        if (strcmp(host_questions[i]->name, name) == 0) {
            question_lacks(&answers[i], "repair it", "%s is broken", name);
            return;
        }
    fail_msg("there is no question %s", name);
}

static void is_told(const char *fault, enum outlook_kind kind, const char *why) {
    struct outlook o = outlook_of(fault_find(fault), answers);
    assert_int_equal(o.kind, kind);
    assert_string_equal(o.why ? o.why : "", why);
    assert_string_equal(o.fix ? o.fix : "repair it", "repair it");
    assert_true(kind == OUTLOOK_WORKS || o.fix);
}

static void test_all_that_a_fault_needs_is_asked_for(void **state) {
    (void)state;
    for (size_t i = 0; faults[i]; i++) {
        unsigned asked = 0;
        for (size_t k = 0; host_questions[k]; k++)
            asked |= host_questions[k]->need;
        if (faults[i]->needs & ~asked)
            fail_msg("%s needs what no question of harness/doctor/ has in .need", faults[i]->name);
    }
}

static void test_a_fault_is_possible_where_all_was_seen_to_work_that_it_needs(void **state) {
    (void)state;
    memset(answers, 0, sizeof(answers));
    for (size_t i = 0; faults[i]; i++)
        is_told(faults[i]->name, OUTLOOK_WORKS, "");
    lack("ptrace");
    is_told("worker-exit", OUTLOOK_CANNOT, "ptrace is broken");
    is_told("worker-kill", OUTLOOK_WORKS, "");
    lack("cut");
    lack("processes"); /* nobody asks for them where there are namespaces */
    is_told("net-partition", OUTLOOK_WORKS, "");
    lack("uptime");
    is_told("clock-boot", OUTLOOK_CANNOT, "uptime is broken");
    is_told("clock-jump", OUTLOOK_WORKS, "");
    lack("seccomp");
    is_told("disk-slow", OUTLOOK_CANNOT, "seccomp is broken");
    is_told("file-flip", OUTLOOK_WORKS, "");
    lack("blas");
    is_told("worker-kill", OUTLOOK_CANNOT, "blas is broken");
}

static void test_without_namespaces_faults_are_had_on_processes_or_not_at_all(void **state) {
    static const char processes[] = "nodes are processes of this host",
                      sockets[] = "nodes are processes of this host; what they are sent is dropped "
                                  "at their sockets";
    (void)state;
    memset(answers, 0, sizeof(answers));
    lack("namespaces");
    is_told("worker-kill", OUTLOOK_WORKS, ""); /* a process is one on nodes of either kind */
    is_told("node-kill", OUTLOOK_LESS, processes);
    is_told("net-partition", OUTLOOK_LESS, sockets);
    is_told("net-delay", OUTLOOK_CANNOT, "namespaces is broken");
    is_told("clock-monotonic", OUTLOOK_CANNOT, "namespaces is broken");
    lack("cut");
    is_told("net-partition", OUTLOOK_CANNOT, "namespaces is broken");
    is_told("clock-jump", OUTLOOK_LESS, processes);
    lack("processes");
    is_told("worker-kill", OUTLOOK_CANNOT, "namespaces is broken");
}

int main(int argc, char **argv) {
    (void)argc;
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_answer_of_a_probe_comes_through),
        cmocka_unit_test(test_a_probe_that_dies_or_says_nothing_lacks),
        cmocka_unit_test(test_what_a_probe_does_to_itself_stays_with_it),
        cmocka_unit_test(test_every_probe_says_what_it_gives),
        cmocka_unit_test(test_all_that_a_fault_needs_is_asked_for),
        cmocka_unit_test(test_a_fault_is_possible_where_all_was_seen_to_work_that_it_needs),
        cmocka_unit_test(test_without_namespaces_faults_are_had_on_processes_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
