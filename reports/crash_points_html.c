/* Crash points as a page: the operations over time, a dot for each point, and why. */
#include "reports/crash_points.h"
#include "reports/escape.h"
#include "reports/plain_page.h"

static const char style[] =
    "th,td{padding:.3rem .8rem .3rem 0}\n"
    "svg{width:100%;height:auto}svg text{font:12px system-ui;fill:currentColor}\n"
    "circle.good{fill:#1a7f37}circle.bad{fill:#cf222e}circle.lost{fill:#9a6700}\n"
    "circle.diverged{fill:#8250df}circle.none{fill:#8884}\n"
    "line{stroke:#8886}\n"
    "</style>\n";

static const char *tone(enum crash_point_verdict v) {
    static const char *const tones[CRASH_POINT_VERDICTS] = {
        [CRASH_POINT_UNTRIED] = "none",      [CRASH_POINT_EQUAL] = "good",
        [CRASH_POINT_BAND] = "good",         [CRASH_POINT_RESUMED] = "good",
        [CRASH_POINT_LOST] = "lost",         [CRASH_POINT_FAILED] = "bad",
        [CRASH_POINT_DIVERGED] = "diverged", [CRASH_POINT_HUNG] = "bad",
    };
    return tones[v];
}

/* ---- the picture: a column per point, as wide as time where there is room ---- */

enum { LEFT = 90, WIDTH = 1000, LANE = 26, TOP = 24 };

static double column(const struct crash_points *p, size_t i) {
    double step = (double)(WIDTH - LEFT - 10) / (double)(p->rows_n > 1 ? p->rows_n - 1 : 1);
    return LEFT + step * (double)i;
}

static void put_dot(struct buf *out, const struct crash_points *p, size_t i, int death) {
    const struct crash_point_row *r = &p->rows[i];
    escape_printf(
        out,
        "<circle class=\"%s\" cx=\"%.1f\" cy=\"%d\" r=\"5\"><title>after operation %zu, %s "
        "(%.3f s): %s by %s, %zu states. %s</title></circle>\n",
        tone(r->worst[death]), column(p, i), TOP + LANE * (death + 1), r->point, r->operation,
        r->at_s, crash_point_words[r->worst[death]], crash_point_deaths[death], r->states[death],
        r->why);
}

static void put_marks(struct buf *out, const struct crash_points *p) {
    size_t save = 0;
    for (size_t i = 0; i < p->rows_n; i++) {
        const struct crash_point_row *r = &p->rows[i];
        if (r->save == save || !r->save)
            continue;
        save = r->save;
        escape_printf(out,
                      "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"4\" y2=\"%d\"/><text x=\"%.1f\" "
                      "y=\"14\">save %zu, %.2f s</text>\n",
                      column(p, i), column(p, i), TOP + LANE * 4, column(p, i) + 4, save, r->at_s);
    }
}

static void put_picture(struct buf *out, const struct crash_points *p) {
    buf_printf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\">\n", WIDTH, TOP + LANE * 4 + 8);
    put_marks(out, p);
    for (int d = 0; d < CRASH_POINT_DEATHS; d++) {
        escape_printf(out, "<text x=\"0\" y=\"%d\">%s</text>\n", TOP + LANE * (d + 1) + 4,
                      crash_point_deaths[d]);
        for (size_t i = 0; i < p->rows_n; i++)
            put_dot(out, p, i, d);
    }
    buf_puts(out, "</svg>\n<p><span class=\"good\">green</span> resumed, <span class=\"doubt\">"
                  "brown</span> lost work, <span class=\"bad\">red</span> hard failure or hang, "
                  "violet silent divergence.</p>\n");
}

/* ---- the texts ---- */

static void put_labelled(struct buf *out, const char *label, const char *text) {
    if (text && *text) {
        escape_printf(out, "<br>%s: <code>%s</code>", label, text);
    }
}

static void put_finding(struct buf *out, const struct crash_point_finding *f) {
    escape_printf(out, "<h3 class=\"bad\">%s</h3>\n<p><b>%s</b>", crash_point_words[f->verdict],
                  f->sentence ? f->sentence : "");
    put_labelled(out, "Missing", f->missing);
    put_labelled(out, "Seen", f->seen);
    put_labelled(out, "Way out", f->fix);
    put_labelled(out, "Look at", f->look);
    put_labelled(out, "Repeat", f->repeat);
    buf_puts(out, "</p>\n");
}

static void put_rows(struct buf *out, const struct crash_points *p) {
    buf_puts(out, "<h2>Points</h2>\n<table><tr><th>after</th><th>s</th><th>operation</th>"
                  "<th>rank</th><th>process</th><th>kernel</th><th>power</th></tr>\n");
    for (size_t i = 0; i < p->rows_n; i++) {
        const struct crash_point_row *r = &p->rows[i];
        escape_printf(out, "<tr><td>%zu</td><td>%.3f</td><td>%s</td><td>", r->point, r->at_s,
                      r->operation);
        if (r->rank >= 0)
            buf_printf(out, "%d", r->rank);
        buf_puts(out, "</td>");
        for (int d = 0; d < CRASH_POINT_DEATHS; d++) {
            bool bad = crash_point_status(r->worst[d]) == FINDING_FAIL;
            escape_printf(out, "<td class=\"%s\">%s</td>", bad ? "bad" : "dim",
                          crash_point_words[r->worst[d]]);
        }
        buf_puts(out, "</tr>\n");
    }
    buf_puts(out, "</table>\n");
}

void crash_points_html(const struct crash_points *p, struct buf *out) {
    buf_puts(out, plain_page_head);
    escape_printf(out, "<title>%s</title>\n", p->title);
    buf_puts(out, plain_page_style);
    buf_puts(out, style);
    escape_printf(out, "</head>\n<body>\n<h1>%s: %s</h1>\n<pre>%s</pre>\n<ul>\n", p->title,
                  report_outcome(p->exit_code), p->command);
    for (const char *const *f = p->facts; f && *f; f++) {
        escape_printf(out, "<li>%s</li>\n", *f);
    }
    buf_puts(out, "</ul>\n");
    put_picture(out, p);
    for (size_t i = 0; i < p->findings_n; i++)
        put_finding(out, &p->findings[i]);
    put_rows(out, p);
    buf_puts(out, "</body>\n</html>\n");
}
