#include "base/sys/process.h"
#include "harness/host/host_left.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

/* A process that a helper has started which is gone: its number is nobody's, or has another's start. */
static struct process leave(unsigned long long space, const char *run) {
    char name[160];
    struct process p;
    snprintf(name, sizeof(name), "RANKQUAKE_HELPER=%d.1.%llu.%s", (int)getpid(), space, run);
    const char *const argv[] = {"sleep", "1000", NULL};
    const char *const envp[] = {name, "PATH=/usr/bin:/bin", NULL};
    struct process_spawn s = {.argv = argv, .envp = envp, .death_signal = SIGKILL};
    assert_int_equal(process_spawn(&s, &p, NULL), 0);
    return p;
}

static void look(struct buf *ret) {
    static const char order[] = "{\"do\":\"look\"}";
    ARENA_FINI struct arena a = {0};
    const struct json *asked = json_parse(&a, order, strlen(order), NULL);
    struct json_writer w = {.out = ret};
    json_object(&w, NULL);
    host_left_answer(asked, &w);
    json_end_object(&w);
}

static void test_what_is_of_a_container_is_left_to_it(void **state) {
    (void)state;
    BUF_FINI struct buf said = {0};
    unsigned long long ours = process_pid_space(0);
    assert_true(ours);
    struct process here = leave(ours, "of-here"), there = leave(ours + 1, "of-there");
    look(&said);
    assert_non_null(strstr(buf_str(&said), "of-here"));
    assert_null(strstr(buf_str(&said), "of-there"));
    /* What clean would end is what look finds; tests beside this one have left things, too. */
    assert_int_equal(process_signal(&here, SIGKILL), 0);
    assert_int_equal(process_signal(&there, SIGKILL), 0);
    process_reap(&here, -1, NULL);
    process_reap(&there, -1, NULL);
    process_close(&here);
    process_close(&there);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_of_a_container_is_left_to_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
