/* The overview of several runs as a page, whose links lead to the runs' own reports below it. */
#include "reports/escape.h"
#include "reports/overview.h"
#include "reports/plain_page.h"

static const char *tone(int code) {
    static const char *const tones[] = {
        [FINDING_PASS] = "good",
        [FINDING_FAIL] = "bad",
        [FINDING_UNKNOWN] = "doubt",
        [FINDING_SKIP] = "dim",
    };
    return tones[report_status(code)];
}

static void put_cell(struct buf *out, const char *text) {
    escape_printf(out, "<td>%s</td>", text);
}

static void put_time(struct buf *out, int64_t ns) {
    BUF_FINI struct buf text = {0};
    overview_put_time(&text, ns);
    put_cell(out, buf_str(&text));
}

static void put_row(struct buf *out, const struct overview_row *r) {
    buf_puts(out, "<tr><td>");
    if (r->link) {
        escape_printf(out, "<a href=\"%s/report.html\">", r->link);
    }
    escape_put(out, r->name);
    buf_puts(out, r->link ? "</a></td>" : "</td>");
    buf_printf(out, "<td class=\"%s\">%s</td>", tone(r->exit_code), report_outcome(r->exit_code));
    put_cell(out, r->what);
    put_time(out, r->detect_ns);
    put_time(out, r->recover_ns);
    buf_puts(out, "<td>");
    if (r->lost_steps >= 0)
        buf_printf(out, "%lld", (long long)r->lost_steps);
    else
        buf_puts(out, "-");
    buf_puts(out, "</td></tr>\n");
}

static void put_trouble(struct buf *out, const struct overview_row *r) {
    escape_printf(out, "<h3>%s: %s%s%s</h3>\n<p>", r->name, report_outcome(r->exit_code),
                  *r->check ? ", " : "", r->check);
    if (*r->expected) {
        escape_printf(out, "Expected: %s<br>", r->expected);
    }
    buf_puts(out, *r->check ? "Seen: " : "Why: ");
    escape_put(out, r->seen);
    if (*r->where) {
        escape_printf(out, "<br>Look at: <code>%s</code>", r->where);
    }
    buf_puts(out, "</p>\n");
}

static void put_open(struct buf *out, const struct overview *o) {
    const struct overview_open *open;
    if (!overview_not_judged(o, 0))
        return;
    buf_puts(out, "<h2>Not judged</h2>\n<ul>\n");
    for (size_t i = 0; (open = overview_not_judged(o, i)); i++) {
        escape_printf(out, "<li>%s: %s</li>\n", open->check, open->why);
    }
    buf_puts(out, "</ul>\n");
    for (size_t i = 0; o->fix && o->fix[i]; i++) {
        escape_printf(out, "<p>%s</p>\n", o->fix[i]);
    }
}

void overview_html(const struct overview *o, struct buf *out) {
    buf_puts(out, plain_page_head);
    escape_printf(out, "<title>%s</title>\n", o->title);
    buf_puts(out, plain_page_style);
    buf_puts(out, "</style>\n");
    escape_printf(out,
                  "</head>\n<body>\n<h1>%s</h1>\n<pre>%s"
                  "</pre>\n<table>\n<tr><th>scenario</th><th>verdict</th><th>what "
                  "happened</th><th>detect</th><th>recover</th><th>lost steps</th></tr>\n",
                  o->title, o->command);
    for (size_t i = 0; i < o->rows_n; i++)
        put_row(out, &o->rows[i]);
    buf_puts(out, "</table>\n");
    for (size_t i = 0; i < o->rows_n; i++)
        if (o->rows[i].exit_code && *o->rows[i].seen)
            put_trouble(out, &o->rows[i]);
    put_open(out, o);
    buf_puts(out, "</body>\n</html>\n");
}
