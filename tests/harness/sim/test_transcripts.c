#include "tests/harness/sim/transcripts.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static void differ(const char *path, const char *is, const char *was) {
    int line = 1;
    for (; *is && *is == *was; is++, was++)
        line += *is == '\n';
    fail_msg("%s: another exchange from line %d on; `make transcripts` writes it anew, the diff "
             "shows what has changed",
             path, line);
}

static void compare(const char *schedule) {
    char path[400];
    struct buf is = {0}, was = {0};
    snprintf(path, sizeof(path), "%.*s.txt", (int)(strlen(schedule) - strlen(".yaml")), schedule);
    assert_true(transcripts_make(schedule, &is));
    assert_int_equal(file_read(path, 1 << 20, &was, NULL), 0);
    if (!str_eq(buf_str(&is), buf_str(&was)))
        differ(path, buf_str(&is), buf_str(&was));
    buf_fini(&is);
    buf_fini(&was);
}

static void test_every_transcript_is_as_it_was(void **state) {
    (void)state;
    glob_t g = {0};
    assert_int_equal(glob("tests/harness/sim/transcripts/*.yaml", 0, NULL, &g), 0);
    assert_true(g.gl_pathc >= 9);
    for (size_t i = 0; i < g.gl_pathc; i++)
        compare(g.gl_pathv[i]);
    globfree(&g);
}

static void test_a_transcript_says_what_was_asked_answered_and_seen(void **state) {
    (void)state;
    struct buf text = {0};
    assert_true(transcripts_make(
        "tests/harness/sim/transcripts/coordinator-lost-behind-its-write.yaml", &text));
    static const char *const parts[] = {"The coordinator is killed", "FAULT: the agent is killed",
                                        "gone/n0 = silent",          "head = RUN 2",
                                        "==> workers: start",        "The job has succeeded."};
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        assert_non_null(strstr(buf_str(&text), parts[i]));
    buf_fini(&text);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_transcript_is_as_it_was),
        cmocka_unit_test(test_a_transcript_says_what_was_asked_answered_and_seen),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
