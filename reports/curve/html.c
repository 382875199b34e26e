/* The curve as a page: the picture, then every run with a link to its report. */
#include "reports/curve/curve.h"
#include "reports/escape.h"

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; "
    "form-action 'none'; style-src 'unsafe-inline'; img-src data:\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<link rel=\"icon\" href=\"data:,\">\n<style>\n:root{color-scheme:light dark}\n"
    "a,code,h1,p,td,th{unicode-bidi:isolate}\n"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\n"
    "table{border-collapse:collapse;margin-top:1.5rem}td a{color:inherit}svg{width:100%}\n"
    "th,td{text-align:left;padding:.3rem 1.2rem .3rem 0;border-bottom:1px solid #8884}\n"
    "td.bad{color:#cf222e}td.doubt{color:#9a6700}td.good{color:#1a7f37}\n</style>\n";

static void put_row(struct buf *out, const struct curve_run *r) {
    enum finding_status status = report_status(r->exit_code);
    escape_printf(out,
                  "<tr><td>%s</td><td>%lld</td><td class=\"%s\"><a href=\"%s/report.html\">%s</a>"
                  "</td>",
                  r->value, (long long)r->seed,
                  status == FINDING_PASS   ? "good"
                  : status == FINDING_FAIL ? "bad"
                                           : "doubt",
                  r->dir, report_outcome(r->exit_code));
    for (int m = 0; m < CURVE_MEASURES; m++) {
        BUF_FINI struct buf figure = {0};
        curve_put_figure(r, (enum curve_measure)m, &figure);
        escape_printf(out, "<td>%s</td>", buf_str(&figure));
    }
    buf_puts(out, "</tr>\n");
}

static void render(const struct curve *c, const struct report_style *style, struct buf *out) {
    buf_puts(out, head);
    escape_printf(out,
                  "<title>%s over %s</title>\n</head>\n<body>\n<h1>%s over %s</h1>\n<p>%s</p>\n",
                  c->name, c->key, c->name, c->key, c->about);
    curve_svg.render(c, style, out);
    escape_printf(out, "<table>\n<tr><th>%s</th><th>seed</th><th>verdict</th>", c->key);
    for (int m = 0; m < CURVE_MEASURES; m++)
        escape_printf(out, "<th>%s</th>", curve_title((enum curve_measure)m));
    buf_puts(out, "</tr>\n");
    for (size_t i = 0; i < c->n; i++)
        put_row(out, &c->runs[i]);
    buf_puts(out, "</table>\n</body>\n</html>\n");
}

const struct curve_report curve_html = {.name = "html", .render = render};
