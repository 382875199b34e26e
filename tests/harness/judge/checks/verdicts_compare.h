/* verdicts_compare: texts of verdicts.h against those of verdicts/, which `make verdicts` writes. */
#pragma once

#include "tests/harness/judge/checks/verdicts.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define VERDICTS "tests/harness/judge/checks/verdicts"

enum { TEXT_MAX = 1 << 22 };

static bool fill; /* --fill: they are written instead */

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

/* The text NAME.txt. */
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
