/* The user's command that lists checkpoints: what it answers, and every way in which it does not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/sys/process.h"
#include "harness/observe/listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct answer {
    struct loop *loop;
    struct buf steps;
    char error[300];
    int round, times;
};

static void on_listed(void *arg, int round, const int64_t *steps, size_t n, const char *error) {
    struct answer *a = arg;
    a->round = round;
    a->times++;
    for (size_t i = 0; i < n; i++)
        buf_printf(&a->steps, "%s%lld", i ? " " : "", (long long)steps[i]);
    snprintf(a->error, sizeof(a->error), "%s", error ? error : "");
    loop_stop(a->loop);
}

static void ask(struct answer *a, const char *dir, const char *command) {
    struct err err = {0};
    *a = (struct answer){.loop = loop_new(&err)};
    if (listing_start(a->loop, dir, command, -1, 3, on_listed, a))
        assert_int_equal(loop_run(a->loop, &err), 0);
    loop_free(a->loop);
    assert_int_equal(a->times, 1);
    assert_int_equal(a->round, 3);
}

static const struct {
    const char *command, *steps, *error;
} cases[] = {
    {"echo 10; echo 20", "10 20", ""},
    {"printf '  7 the seventh\\n\\n00000025\\r\\n8'", "7 25 8", ""},
    {"true", "", ""},
    {"pwd >/dev/null; ls -d . >/dev/null && echo 1", "1", ""},
    {"seq 1 3; sleep 300 >&- &", "1 2 3", ""},
    {"echo 4; sleep 300 &", "4", ""}, /* who holds the pipe open is not waited for */
    {"exit 2", "", "it ended with exit code 2"},
    {"kill -9 $$", "", "it ended with SIGKILL"},
    {"no-such-program-here", "", "it ended with exit code 127"},
    {"echo 1; echo epoch=3.ckpt", "", "it printed \"epoch=3.ckpt\" where the step"},
    {"echo -5", "", "it printed \"-5\""},
    {"head -c 3000000 /dev/zero", "", "it printed more than a megabyte"},
};

static void test_it_answers_with_steps_or_with_what_is_wrong(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct answer a;
        ask(&a, "/", cases[i].command);
        if (strcmp(buf_str(&a.steps), cases[i].steps) != 0 || !strstr(a.error, cases[i].error) ||
            !*cases[i].error != !*a.error)
            fail_msg("%s: \"%s\", \"%s\"", cases[i].command, buf_str(&a.steps), a.error);
        buf_fini(&a.steps);
    }
}

static void test_what_it_leaves_running_is_ended(void **state) {
    (void)state;
    char path[300], text[64] = "";
    const char *tmp = getenv("TMPDIR");
    struct answer a;
    snprintf(path, sizeof(path), "%s/listing-%d", tmp ? tmp : "/tmp", (int)getpid());
    char command[400];
    snprintf(command, sizeof(command), "sleep 300 & echo $! >%s; echo 1", path);
    ask(&a, "/", command);
    buf_fini(&a.steps);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof(text), f));
    fclose(f);
    unlink(path);
    struct process left;
    if (process_open((pid_t)atoi(text), &left, NULL) == 0) {
        assert_int_equal(process_wait_end(&left, 30000000000), 0);
        process_close(&left);
    }
}

static void test_a_directory_that_is_not_there_holds_none(void **state) {
    (void)state;
    struct answer a;
    ask(&a, "/no/such/directory", "echo 1");
    assert_string_equal(a.error, "");
    assert_string_equal(buf_str(&a.steps), "");
}

static void test_it_runs_in_the_directory(void **state) {
    (void)state;
    struct answer a;
    char dir[256];
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof(dir), "%s/listing-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(dir));
    char sub[300];
    snprintf(sub, sizeof(sub), "%s/41", dir);
    assert_int_equal(mkdir(sub, 0700), 0);
    ask(&a, dir, "ls");
    assert_string_equal(buf_str(&a.steps), "41");
    buf_fini(&a.steps);
    rmdir(sub);
    rmdir(dir);
}

static void test_one_that_is_abandoned_is_ended_and_never_answers(void **state) {
    (void)state;
    struct err err = {0};
    struct answer a = {.loop = loop_new(&err)};
    listing_abandon(listing_start(a.loop, "/", "sleep 300", -1, 1, on_listed, &a));
    listing_abandon(NULL);
    loop_free(a.loop);
    assert_int_equal(a.times, 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_answers_with_steps_or_with_what_is_wrong),
        cmocka_unit_test(test_what_it_leaves_running_is_ended),
        cmocka_unit_test(test_a_directory_that_is_not_there_holds_none),
        cmocka_unit_test(test_it_runs_in_the_directory),
        cmocka_unit_test(test_one_that_is_abandoned_is_ended_and_never_answers),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
