/* The comparison as a page. */
#include "reports/comparison/comparison.h"
#include "reports/escape.h"

/* One page that needs nothing but itself; its links lead to the reports of the runs below it. */
static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri "
    "'none'; form-action 'none'; style-src "
    "'unsafe-inline'; img-src data:\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<link rel=\"icon\" href=\"data:,\">\n<title>Launchers compared</title>\n<style>\n"
    ":root{color-scheme:light dark}\n"
    "a,b,code,dd,dt,h1,h2,h3,li,p,pre,small,td,th{unicode-bidi:isolate}\n"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:80rem;margin:2rem auto;padding:0 1rem}\n"
    "table{border-collapse:collapse}\n"
    "th,td{text-align:left;padding:.4rem 1.2rem .4rem 0;border-bottom:1px solid #8884;"
    "vertical-align:top}\n"
    "dt{font-weight:600}dd{margin:0 0 .6rem 1rem}\n"
    "td a{color:inherit}\n"
    ".good{color:#1a7f37}.bad{color:#cf222e}.doubt{color:#9a6700}.soft{opacity:.7}\n"
    "</style>\n</head>\n<body>\n<h1>Launchers compared</h1>\n";

static const char *const tones[] = {
    [FINDING_PASS] = "good",
    [FINDING_FAIL] = "bad",
    [FINDING_UNKNOWN] = "doubt",
    [FINDING_SKIP] = "soft",
};

static void put_cell(struct buf *out, const struct comparison_cell *cell) {
    BUF_FINI struct buf text = {0};
    comparison_put_cell(cell, &text);
    buf_printf(out, "<td class=\"%s\">", tones[report_status(cell->exit_code)]);
    if (cell->dir) {
        escape_printf(out, "<a href=\"%s/report.html\">", cell->dir);
    }
    escape_put(out, buf_str(&text));
    buf_puts(out, cell->dir ? "</a></td>" : "</td>");
}

static void put_table(struct buf *out, const struct comparison *c) {
    buf_puts(out, "<table>\n<tr><th>scenario</th>");
    for (size_t i = 0; i < c->launchers_n; i++) {
        escape_printf(out, "<th>%s<br><small>%s", c->launchers[i].name, c->launchers[i].words);
        buf_puts(out, *c->launchers[i].version ? ", " : "");
        escape_printf(out, "%s</small></th>", c->launchers[i].version);
    }
    buf_puts(out, "</tr>\n");
    for (size_t i = 0; i < c->rows_n; i++) {
        escape_printf(out, "<tr><td>%s</td>", c->rows[i].scenario);
        for (size_t k = 0; k < c->launchers_n; k++)
            put_cell(out, &c->rows[i].cells[k]);
        buf_puts(out, "</tr>\n");
    }
    buf_puts(out, "</table>\n");
}

static void put_part(struct buf *out, const char *label, const char *text) {
    if (!*text)
        return;
    escape_printf(out, "<br><small>%s: %s</small>", label, text);
}

static void put_finding(struct buf *out, const char *launcher, const struct finding *f) {
    escape_printf(out, "<dd class=\"%s\">%s %s: %s", tones[f->status],
                  finding_status_name(f->status), launcher, f->seen);
    if (f->status == FINDING_FAIL || f->status == FINDING_UNKNOWN) {
        put_part(out, "expected", f->expected);
        put_part(out, "look at", f->where);
    }
    buf_puts(out, "</dd>\n");
}

static void put_row(struct buf *out, const struct comparison *c, const struct comparison_row *row) {
    const char *checks[COMPARISON_CHECKS_MAX];
    size_t n = comparison_differences(row, c->launchers_n, checks);
    escape_printf(out, "<h2>%s</h2>\n<p>%s</p>\n<dl>\n", row->scenario,
                  row->about ? row->about : "");
    for (size_t i = 0; i < c->launchers_n; i++) {
        if (row->cells[i].judged)
            continue;
        escape_printf(out, "<dt>%s</dt><dd>%s: %s</dd>\n", c->launchers[i].name,
                      report_outcome(row->cells[i].exit_code), row->cells[i].why);
    }
    for (size_t k = 0; k < n; k++) {
        escape_printf(out, "<dt>%s</dt>\n", checks[k]);
        for (size_t i = 0; i < c->launchers_n; i++) {
            const struct finding *f = comparison_finding(&row->cells[i], checks[k]);
            if (f)
                put_finding(out, c->launchers[i].name, f);
        }
    }
    buf_puts(out, n ? "</dl>\n" : "</dl>\n<p class=\"soft\">No check tells them apart.</p>\n");
}

static void render(const struct comparison *c, const struct report_style *style, struct buf *out) {
    buf_puts(out, head);
    put_table(out, c);
    for (size_t i = 0; i < c->rows_n; i++)
        put_row(out, c, &c->rows[i]);
    escape_printf(out, "<p><small>Again: <code>%s</code></small></p>\n</body>\n</html>\n",
                  c->command);
}

const struct comparison_report comparison_html = {
    .name = "html",
    .summary = "one page with the table, the differences and links to the runs",
    .file = "comparison.html",
    .render = render,
};
