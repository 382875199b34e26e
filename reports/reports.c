#include "reports/reports.h"

#include "base/str.h"
#include "base/sys/printing.h"

#include <errno.h>

const struct report *const reports[] = {
#define X(name) &report_##name,
    REPORTS(X)
#undef X
        NULL};

const struct report *report_find(const char *name) {
    for (size_t i = 0; reports[i]; i++)
        if (str_eq(reports[i]->name, name))
            return reports[i];
    return NULL;
}

const char *report_outcome(int exit_code) {
    switch (exit_code) {
    case 0:
        return "passed";
    case 1:
        return "failed";
    case 2:
        return "inconclusive";
    case 3:
        return "broken";
    case 4:
        return "skipped";
    case 5:
        return "left something behind";
    case 130:
        return "interrupted";
    default:
        return "ended";
    }
}

enum finding_status report_status(int exit_code) {
    switch (exit_code) {
    case 0:
        return FINDING_PASS;
    case 1:
    case 3:
        return FINDING_FAIL;
    case 4:
        return FINDING_SKIP;
    default:
        return FINDING_UNKNOWN;
    }
}

int report_print(const struct report *report, const struct recorded_run *r, FILE *out,
                 struct err *err) {
    struct report_style style = report_style_of(out);
    BUF_FINI struct buf text = {0};
    int rc = report->render(r, &style, &text, err);
    errno = 0;
    if (rc == 0 && (!printing_put(out, buf_str(&text), text.len) || fflush(out) != 0) &&
        errno != EPIPE) /* a reader that has gone has seen enough */
        rc = err_set(err, errno ? -errno : -EIO, "print the report");
    if (rc)
        clearerr(out); /* whoever flushes it at the end need not say it again */
    return rc;
}

static int write_one(const struct report *report, const struct recorded_run *r, struct err *err) {
    static const struct report_style plain = {.unicode = true};
    BUF_FINI struct buf text = {0};
    int rc = report->render(r, &plain, &text, err);
    if (rc == 0)
        rc = folder_write(r->folder, report->file, buf_str(&text), text.len, err);
    return rc;
}

int reports_write(const struct recorded_run *r, struct err *err) {
    int first = 0;
    for (size_t i = 0; reports[i]; i++) {
        int rc = reports[i]->file ? write_one(reports[i], r, first ? NULL : err) : 0;
        first = first ? first : rc;
    }
    return first;
}
