/* Verdicts: what all checks say of every planted case and of changed histories is, word for word,
 * what was read and found right before.
 *
 *   test_verdicts --fill          writes tests/harness/judge/checks/verdicts/ anew: `make verdicts`
 *   test_verdicts --show H:LINE   what the changes of record LINE of history H make the checks say
 */
#include "tests/harness/judge/checks/verdicts.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define CASES    "tests/harness/judge/checks/cases"
#define VERDICTS "tests/harness/judge/checks/verdicts"

enum { TEXT_MAX = 1 << 22 };

static struct cases cases;
static bool fill;

static int read_cases(void **state) {
    (void)state;
    struct err err = {0};
    int rc = cases_read_all(&cases, CASES, &err);
    if (rc < 0)
        print_error("%s\n", err.msg);
    return rc;
}

static int drop_cases(void **state) {
    (void)state;
    cases_fini(&cases);
    return 0;
}

static size_t line_end(const char *text) {
    return strcspn(text, "\n");
}

static void differ(const char *path, const char *is, const char *was) {
    const char *of = is;
    int line = 1;
    size_t n;
    while (*is && (n = line_end(is)) == line_end(was) && strncmp(is, was, n) == 0) {
        if (strncmp(is, "case ", 5) == 0 || strncmp(is, "history ", 8) == 0)
            of = is;
        is += n + (is[n] != 0);
        was += n + (was[n] != 0);
        line++;
    }
    fail_msg("%s:%d: (%.*s) says\n%.*s\nand said\n%.*s\n`make verdicts` writes it anew; read the "
             "difference",
             path, line, (int)line_end(of), of, (int)line_end(is), is, (int)line_end(was), was);
}

static void write_text(const char *path, const struct buf *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(buf_str(text), 1, text->len, f), text->len);
    assert_int_equal(fclose(f), 0);
}

static void compare(const char *name, const struct buf *is) {
    char path[300];
    struct buf was = {0};
    snprintf(path, sizeof(path), VERDICTS "/%s.txt", name);
    if (fill)
        write_text(path, is);
    else if (file_read(path, TEXT_MAX, &was, NULL) < 0)
        fail_msg("%s is missing: `make verdicts` writes it", path);
    else if (!str_eq(buf_str(is), buf_str(&was)))
        differ(path, buf_str(is), buf_str(&was));
    buf_fini(&was);
}

static void test_what_is_said_of_each_history_is_the_same_word_for_word(void **state) {
    (void)state;
    struct buf is = {0};
    verdicts_of_histories(&is);
    compare("histories", &is);
    buf_fini(&is);
}

static void test_what_is_said_of_each_case_is_the_same_word_for_word(void **state) {
    (void)state;
    glob_t g = {0};
    assert_int_equal(glob(CASES "/*.txt", 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        struct buf is = {0};
        char name[100];
        const char *file = strrchr(g.gl_pathv[i], '/') + 1;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(file, "."), file);
        verdicts_of_cases(&cases, g.gl_pathv[i], &is);
        assert_true(is.len > 0);
        compare(name, &is);
        buf_fini(&is);
    }
    globfree(&g);
}

static void compare_changes(const char *history) {
    struct buf is = {0};
    char name[100];
    snprintf(name, sizeof(name), "changed-%s", history);
    verdicts_of_changes(history, &is);
    compare(name, &is);
    buf_fini(&is);
}

static void test_what_a_changed_record_changes_is_the_same_as_before(void **state) {
    (void)state;
    static const char *const names[] = {"gpu-worker-killed", "node-powered-off", "printed-steps",
                                        "weights", "worker-killed"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        compare_changes(names[i]);
}

static int show(char *what) {
    struct buf out = {0};
    char *line = strchr(what, ':');
    if (!line)
        return 64;
    *line = 0;
    verdicts_of_record(what, strtoul(line + 1, NULL, 10), &out);
    fputs(buf_str(&out), stdout);
    buf_fini(&out);
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said_of_each_history_is_the_same_word_for_word),
        cmocka_unit_test(test_what_is_said_of_each_case_is_the_same_word_for_word),
        cmocka_unit_test(test_what_a_changed_record_changes_is_the_same_as_before),
    };
    if (argc == 3 && str_eq(argv[1], "--show"))
        return show(argv[2]);
    fill = argc == 2 && str_eq(argv[1], "--fill");
    return cmocka_run_group_tests(tests, read_cases, drop_cases);
}
