/* What /proc shows of a process that was started with something of each kind, and of one that is
 * only planned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/sys/descriptors.h"
#include "base/sys/process.h"
#include "harness/carrier/given.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct json *finish(struct arena *a, struct json_writer *w) {
    json_end_object(w);
    struct json *j = json_parse(a, buf_str(w->out), w->out->len, NULL);
    assert_non_null(j);
    return j;
}

static bool has(const struct json *list, int64_t number) {
    json_each(it, list) if (json_i64(it->type == JSON_ARRAY ? json_first(it) : it, -1) ==
                            number) return true;
    return false;
}

/* In the child: what a careless launcher leaves to its worker. */
static int be_careless(void *arg) {
    struct rlimit files = {64, 64};
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    signal(SIGPIPE, SIG_IGN);
    umask(077);
    (void)arg;
    return fcntl(STDIN_FILENO, F_DUPFD, 20) < 0 || fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 30) < 0 ||
                   setrlimit(RLIMIT_NOFILE, &files) < 0
               ? -1
               : 0;
}

static void test_all_that_a_careless_launcher_leaves_is_seen(void **state) {
    (void)state;
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    struct given_key key;
    struct process p;
    struct err err;
    static const char *const argv[] = {"sleep", "60", NULL};
    static const char *const env[] = {"PATH=/usr/bin:/bin", "SECRET=swordfish", "SAME=swordfish",
                                      "SECRET=second", NULL};
    struct process_spawn s = {
        .argv = argv, .envp = env, .dir = "/", .session = true, .in_child = be_careless};
    assert_int_equal(process_spawn(&s, &p, &err), 0);
    given_key_draw(&key);
    json_object(&w, NULL);
    given_put(&w, &key, p.pid);
    const struct json *g = finish(&a, &w), *vars = json_get(g, "env");
    process_signal(&p, SIGKILL);
    process_reap(&p, -1, NULL);
    process_close(&p);
    assert_int_equal(vars->length, 3);
    assert_null(strstr(buf_str(&out), "swordfish"));
    assert_int_equal(strlen(json_get_string(vars, "SECRET", "")), 12);
    assert_string_equal(json_get_string(g, "cwd", ""), "/");
    assert_int_equal(json_get_i64(g, "umask", -1), 077);
    assert_true(has(json_get(g, "blocked"), SIGTERM));
    assert_true(has(json_get(g, "ignored"), SIGPIPE));
    assert_int_equal(json_i64(json_first(json_get(json_get(g, "limits"), "open files")), -1), 64);
    assert_true(has(json_get(g, "fds"), 20));
    assert_false(has(json_get(g, "fds"), 30)); /* it is closed by the exec */
    assert_true(json_get_bool(g, "leads_session", false));
    assert_false(json_get_bool(g, "terminal", true));
}

static void test_marks_are_equal_for_equal_values_under_one_key_alone(void **state) {
    (void)state;
    ARENA_FINI struct arena a = {0};
    static const char *const env[] = {"A=1", NULL}, *const other[] = {"A=2", NULL};
    const char *const *const envs[] = {env, env, other, env};
    struct given_key keys[2];
    const char *marks[4];
    given_key_draw(&keys[0]);
    given_key_draw(&keys[1]);
    for (int i = 0; i < 4; i++) {
        BUF_FINI struct buf out = {0};
        struct json_writer w = {.out = &out};
        json_object(&w, NULL);
        given_put_planned(&w, &keys[i == 3], getpid(), envs[i], "/x");
        marks[i] = json_get_string(json_get(finish(&a, &w), "env"), "A", "");
    }
    assert_string_equal(marks[0], marks[1]);
    assert_string_not_equal(marks[0], marks[2]);
    assert_string_not_equal(marks[0], marks[3]);
}

static void test_a_planned_process_gets_back_what_its_parent_ignores_for_itself(void **state) {
    (void)state;
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    static const char *const env[] = {NULL};
    struct given_key key = {{0}};
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    json_object(&w, NULL);
    given_put_planned(&w, &key, getpid(), env, "/x");
    const struct json *g = finish(&a, &w);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    assert_false(has(json_get(g, "ignored"), SIGPIPE));
    assert_true(has(json_get(g, "ignored"), SIGHUP));
    assert_null(json_get(g, "fds"));
}

static void test_a_process_that_is_gone_is_an_error(void **state) {
    (void)state;
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    struct given_key key = {{0}};
    json_object(&w, NULL);
    given_put(&w, &key, 1 << 30);
    const struct json *g = finish(&a, &w);
    assert_true(*json_get_string(g, "error", ""));
    assert_null(json_get(g, "env"));
}

static void test_a_key_goes_as_text(void **state) {
    (void)state;
    static const char *const none[] = {"", "0", "0123456789abcdef0123456789abcdeg",
                                       "0123456789abcdef0123456789abcdef0"};
    struct given_key one, two;
    char text[GIVEN_KEY_TEXT];
    given_key_draw(&one);
    given_key_put(&one, text);
    assert_true(given_key_take(&two, text));
    assert_memory_equal(one.bytes, two.bytes, sizeof(one.bytes));
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        assert_false(given_key_take(&two, none[i]));
    assert_memory_equal(one.bytes, two.bytes, sizeof(one.bytes));
}

int main(void) {
    descriptors_open_standard(); /* those of the processes that are started here */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_that_a_careless_launcher_leaves_is_seen),
        cmocka_unit_test(test_marks_are_equal_for_equal_values_under_one_key_alone),
        cmocka_unit_test(test_a_planned_process_gets_back_what_its_parent_ignores_for_itself),
        cmocka_unit_test(test_a_process_that_is_gone_is_an_error),
        cmocka_unit_test(test_a_key_goes_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
