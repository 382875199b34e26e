/* A job on a stage, on both kinds of isolation. spawn_stage plays all of it, once for each kind, and prints a line
 * for each part; each line is asked for by one test here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/sys/descriptors.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 64, LINE = 512, KINDS = 2 };

static const char *self;
static struct played {
    const char *kind;
    bool skipped;
    char line[LINES][LINE];
    bool asked[LINES];
    size_t n;
} played[KINDS] = {{.kind = "namespaces"}, {.kind = "processes"}};

static int play_all(void **state) {
    (void)state;
    for (struct played *p = played; p < played + KINDS; p++) {
        char command[LINE];
        snprintf(command, sizeof(command),
                 "d=$(mktemp -d) && %.*sspawn_stage %s $d/desk; r=$?; rm -rf $d; exit $r",
                 (int)(strrchr(self, '/') + 1 - self), self, p->kind);
        FILE *out = popen(command, "r");
        while (out && p->n < LINES && fgets(p->line[p->n], LINE, out)) {
            p->line[p->n][strcspn(p->line[p->n], "\n")] = '\0';
            p->skipped |= strncmp(p->line[p->n], "skip", 4) == 0;
            p->n++;
        }
        if (!out || pclose(out) != 0)
            return -1;
        if (p->skipped)
            print_message("%s: %s\n", p->kind, p->line[p->n - 1]);
    }
    return 0;
}

static void wants_of(struct played *p, const char *line) {
    if (p->skipped)
        return;
    for (size_t i = 0; i < p->n; i++)
        if (!p->asked[i] && strcmp(p->line[i], line) == 0) {
            p->asked[i] = true;
            return;
        }
    const char *what = strchr(line, ':');
    for (size_t i = 0; i < p->n; i++)
        if (what && strncmp(p->line[i], line, (size_t)(what - line)) == 0)
            fail_msg("%s: \"%s\", not \"%s\"", p->kind, p->line[i], line);
    fail_msg("%s: not said: \"%s\"", p->kind, line);
}

static void wants(const char *line) {
    for (size_t k = 0; k < KINDS; k++)
        wants_of(&played[k], line);
}

/* ---- what a job does ---- */

static void test_a_job_finds_its_directory_filled_and_its_end_is_told(void **state) {
    (void)state;
    wants("ends: exit 7, \"there\"; there made");
    wants("killed itself: signal 9; there ");
}

static void test_the_next_job_finds_nothing_of_the_one_before(void **state) {
    (void)state;
    wants("again: exit 0, \"fresh\"; there ");
    wants("nothing is left beside");
}

static void test_what_changes_beside_the_directory_is_gone_with_the_namespaces(void **state) {
    (void)state;
    wants_of(&played[0], "changes what lies beside it: exit 0, \"done\"; there ");
}

static void test_a_job_in_namespaces_has_all_of_its_own(void **state) {
    (void)state;
    wants_of(&played[0], "has a network of its own: exit 0, \"lo \"; there ");
    wants_of(&played[0], "has memory of its own: exit 0, \".tmp\"; there ");
    wants_of(&played[0], "nothing is left in /dev/shm");
    wants_of(&played[0], "is alone: exit 0, \"few\"; there ");
}

/* ---- who ends it ---- */

static void test_a_job_that_takes_too_long_is_ended_and_said_to_be_late(void **state) {
    (void)state;
    wants("late: late; there ");
}

static void test_what_a_job_leaves_running_is_ended(void **state) {
    (void)state;
    wants("leaves somebody: exit 0, \"off\"; there ");
}

static void test_a_stage_that_is_ended_leaves_nobody_whatever_they_ignore(void **state) {
    (void)state;
    wants("is ended: nobody is left");
}

static void test_with_who_has_started_it_all_ends(void **state) {
    (void)state;
    wants("who has started it dies: nobody is left, nor its directory");
}

static void test_a_stage_that_others_kill_says_so_and_leaves_nobody(void **state) {
    (void)state;
    wants_of(&played[0], "killed from outside: it was killed from outside; nobody is left");
}

/* ---- what cannot be started ---- */

static void test_a_program_that_is_none_ends_as_in_a_shell(void **state) {
    (void)state;
    wants("no such program: exit 127");
    wants("no program: exit 126");
}

static void test_a_directory_that_cannot_be_filled_starts_no_job(void **state) {
    (void)state;
    wants("full: not started: no room");
}

static void test_a_directory_that_cannot_be_made_is_named(void **state) {
    (void)state;
    wants("below a file: refused, named");
}

static void test_where_namespaces_are_refused_it_is_said(void **state) {
    (void)state;
    wants_of(&played[0], "namespaces are refused: said");
}

/* ---- what is asked of it afterwards ---- */

static void test_a_result_is_the_hash_of_a_file_and_of_nothing_else(void **state) {
    (void)state;
    wants("result: ba7816bf"); /* of "abc" */
    wants("no result: none");
    wants("result that is a pipe: none");
}

static void test_a_directory_that_cannot_be_summed_has_no_sum(void **state) {
    (void)state;
    wants("cannot be summed: exit 0, \"\"");
}

static void test_who_would_record_is_told_that_there_is_nothing_to(void **state) {
    (void)state;
    wants("nothing to watch: said");
    wants("nobody to watch: said");
    wants(
        "what is recorded is not there: said, hand on /nowhere/at/all: No such file or directory");
}

static void test_every_line_was_asked_for(void **state) {
    (void)state;
    for (struct played *p = played; p < played + KINDS; p++)
        for (size_t i = 0; i < p->n && !p->skipped; i++)
            if (!p->asked[i])
                fail_msg("%s: nobody asked for \"%s\"", p->kind, p->line[i]);
}

int main(int argc, char **argv) {
    descriptors_open_standard(); /* those of the processes that are started here */
    (void)argc;
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_finds_its_directory_filled_and_its_end_is_told),
        cmocka_unit_test(test_the_next_job_finds_nothing_of_the_one_before),
        cmocka_unit_test(test_what_changes_beside_the_directory_is_gone_with_the_namespaces),
        cmocka_unit_test(test_a_job_in_namespaces_has_all_of_its_own),
        cmocka_unit_test(test_a_job_that_takes_too_long_is_ended_and_said_to_be_late),
        cmocka_unit_test(test_what_a_job_leaves_running_is_ended),
        cmocka_unit_test(test_a_stage_that_is_ended_leaves_nobody_whatever_they_ignore),
        cmocka_unit_test(test_with_who_has_started_it_all_ends),
        cmocka_unit_test(test_a_stage_that_others_kill_says_so_and_leaves_nobody),
        cmocka_unit_test(test_a_program_that_is_none_ends_as_in_a_shell),
        cmocka_unit_test(test_a_directory_that_cannot_be_filled_starts_no_job),
        cmocka_unit_test(test_a_directory_that_cannot_be_made_is_named),
        cmocka_unit_test(test_where_namespaces_are_refused_it_is_said),
        cmocka_unit_test(test_a_result_is_the_hash_of_a_file_and_of_nothing_else),
        cmocka_unit_test(test_a_directory_that_cannot_be_summed_has_no_sum),
        cmocka_unit_test(test_who_would_record_is_told_that_there_is_nothing_to),
        cmocka_unit_test(test_every_line_was_asked_for),
    };
    return cmocka_run_group_tests(tests, play_all, NULL);
}
