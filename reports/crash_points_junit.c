/* Crash points as JUnit XML: one case each. */
#include "reports/crash_points.h"
#include "reports/escape.h"

static void put_case(struct buf *out, const struct crash_points *p,
                     const struct crash_point_row *r) {
    enum crash_point_verdict worst = crash_point_row_worst(r);
    escape_printf(out, "  <testcase classname=\"%s\" name=\"after operation %zu: %s\"", p->title,
                  r->point, r->operation);
    enum finding_status s = crash_point_status(worst);
    if (s == FINDING_PASS) {
        buf_puts(out, "/>\n");
        return;
    }
    buf_puts(out, ">\n    ");
    if (s == FINDING_SKIP) {
        buf_puts(out, "<skipped message=\"no state of it was tried\"/>");
    } else {
        escape_printf(out, "<failure type=\"%s\" message=\"%s\"/>", crash_point_words[worst],
                      r->why);
    }
    buf_puts(out, "\n  </testcase>\n");
}

void crash_points_junit(const struct crash_points *p, struct buf *out) {
    size_t bad = 0, skipped = 0;
    for (size_t i = 0; i < p->rows_n; i++) {
        enum finding_status s = crash_point_status(crash_point_row_worst(&p->rows[i]));
        bad += s == FINDING_FAIL;
        skipped += s == FINDING_SKIP;
    }
    buf_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    escape_printf(out,
                  "<testsuite name=\"%s\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
                  "skipped=\"%zu\">\n",
                  p->title, p->rows_n, bad, skipped);
    for (size_t i = 0; i < p->rows_n; i++)
        put_case(out, p, &p->rows[i]);
    buf_puts(out, "</testsuite>\n");
}
