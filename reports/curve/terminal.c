/* The curve as a table, for a terminal. */
#include "reports/curve/curve.h"
#include "reports/page.h"

enum { SEED = 16, VERDICT = 24, FIGURE = 40, FIGURE_WIDE = 14 };

static void put_row(struct page *p, const struct curve_run *r) {
    page_put(p, INK_PLAIN, r->value);
    page_tab(p, SEED);
    page_printf(p, INK_DIM, "%lld", (long long)r->seed);
    page_tab(p, VERDICT);
    page_put(p, page_ink(report_status(r->exit_code)), report_outcome(r->exit_code));
    for (int m = 0; m < CURVE_MEASURES; m++) {
        BUF_FINI struct buf figure = {0};
        curve_put_figure(r, (enum curve_measure)m, &figure);
        page_tab(p, FIGURE + m * FIGURE_WIDE);
        page_put(p, INK_PLAIN, buf_str(&figure));
    }
    page_line(p);
}

static void render(const struct curve *c, const struct report_style *style, struct buf *out) {
    static const char *const columns[] = {"goodput", "recovery", "steps again"};
    struct page p = {.out = out, .style = *style};
    page_printf(&p, INK_STRONG, "%s over %s", c->name, c->key);
    page_line(&p);
    page_tab(&p, SEED);
    page_put(&p, INK_DIM, "seed");
    page_tab(&p, VERDICT);
    page_put(&p, INK_DIM, "verdict");
    for (int m = 0; m < CURVE_MEASURES; m++) {
        page_tab(&p, FIGURE + m * FIGURE_WIDE);
        page_put(&p, INK_DIM, columns[m]);
    }
    page_line(&p);
    for (size_t i = 0; i < c->n; i++)
        put_row(&p, &c->runs[i]);
}

const struct curve_report curve_terminal = {.name = "terminal", .render = render};
