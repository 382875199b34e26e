/* on_record: what was said once, line by line, is in a file, and a test says it again. */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* FNV-1a of n bytes more, in place of a record that would be too long; 0 at first. */
static inline uint64_t on_record_sum(uint64_t so_far, const void *p, size_t n) {
    const unsigned char *bytes = p;
    for (size_t i = 0; i < n; i++)
        so_far = (so_far ^ bytes[i]) * UINT64_C(1099511628211);
    return so_far;
}

/* Fails with the first line that is said otherwise; broken: who says otherwise, and what tells more. */
static inline void on_record_same(const char *path, void (*say)(struct buf *out),
                                  const char *broken) {
    BUF_FINI struct buf is = {0}, was = {0};
    say(&is);
    assert_int_equal(file_read(path, 1 << 20, &was, NULL), 0);
    const char *a = buf_str(&is), *b = buf_str(&was), *line = a;
    for (; *a && *a == *b; a++, b++)
        line = *a == '\n' ? a + 1 : line;
    if (*a || *b)
        fail_msg("%s: from \"%.*s\" on %s; `make transcripts` writes it anew", path,
                 (int)strcspn(line, "\n"), line, broken);
}

/* Of a program that was given --write writes the file anew and returns true; *ret is its exit code. */
static inline bool on_record_written(int argc, char **argv, const char *path,
                                     void (*say)(struct buf *out), int *ret) {
    BUF_FINI struct buf out = {0};
    if (argc < 2 || !str_eq(argv[1], "--write"))
        return false;
    say(&out);
    *ret = file_write(path, out.data, out.len, NULL) < 0;
    return true;
}

/* What main returns where one test, which calls on_record_same, is all that there is. */
static inline int on_record_main(int argc, char **argv, const char *path,
                                 void (*say)(struct buf *out), const struct CMUnitTest *test) {
    const struct CMUnitTest tests[] = {*test};
    int code;
    if (on_record_written(argc, argv, path, say, &code))
        return code;
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
