/* The curve as a table of Markdown, for an issue or a page of docs. */
#include "reports/curve/curve.h"
#include "reports/escape.h"

#include <string.h>

/* What somebody else wrote neither ends a cell nor begins markup. */
static void put_text(struct buf *out, const char *text) {
    BUF_FINI struct buf safe = {0};
    escape_put(&safe, text);
    for (const char *s = buf_str(&safe); *s; s++) {
        if (strchr("|\\`*_[]", *s))
            buf_putc(out, '\\');
        buf_putc(out, *s == '\n' ? ' ' : *s);
    }
}

static void render(const struct curve *c, const struct report_style *style, struct buf *out) {
    buf_puts(out, "| ");
    put_text(out, c->key);
    buf_puts(out, " | seed | verdict |");
    for (int m = 0; m < CURVE_MEASURES; m++)
        buf_printf(out, " %s |", curve_title((enum curve_measure)m));
    buf_puts(out, "\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < c->n; i++) {
        const struct curve_run *r = &c->runs[i];
        buf_puts(out, "| ");
        put_text(out, r->value);
        buf_printf(out, " | %lld | %s |", (long long)r->seed, report_outcome(r->exit_code));
        for (int m = 0; m < CURVE_MEASURES; m++) {
            buf_putc(out, ' ');
            curve_put_figure(r, (enum curve_measure)m, out);
            buf_puts(out, " |");
        }
        buf_putc(out, '\n');
    }
}

const struct curve_report curve_markdown = {.name = "markdown", .render = render};
