/* The comparison as a table on a terminal. */
#include "reports/comparison/comparison.h"
#include "reports/page.h"

#include <string.h>

enum { GAP = 2, CHECK_COLUMN = 4 };

/* How wide the column must be; 0 is that of the scenarios. */
static int width_of(const struct comparison *c, size_t column) {
    size_t widest = column ? strlen(c->launchers[column - 1].name) : strlen("scenario");
    for (size_t i = 0; i < c->rows_n; i++) {
        BUF_FINI struct buf text = {0};
        if (column)
            comparison_put_cell(&c->rows[i].cells[column - 1], &text);
        else
            buf_puts(&text, c->rows[i].scenario);
        widest = text.len > widest ? text.len : widest;
    }
    return (int)widest;
}

static void put_table(struct page *p, const struct comparison *c) {
    int at[64] = {0};
    size_t columns = c->launchers_n < 62 ? c->launchers_n : 62;
    for (size_t k = 0; k <= columns; k++)
        at[k + 1] = at[k] + width_of(c, k) + GAP;
    page_put(p, INK_STRONG, "scenario");
    for (size_t k = 0; k < columns; k++) {
        page_tab(p, at[k + 1]);
        page_put(p, INK_STRONG, c->launchers[k].name);
    }
    page_line(p);
    for (size_t i = 0; i < c->rows_n; i++) {
        page_put(p, INK_PLAIN, c->rows[i].scenario);
        for (size_t k = 0; k < columns; k++) {
            BUF_FINI struct buf text = {0};
            comparison_put_cell(&c->rows[i].cells[k], &text);
            page_tab(p, at[k + 1]);
            page_put(p, page_ink(report_status(c->rows[i].cells[k].exit_code)), buf_str(&text));
        }
        page_line(p);
    }
}

static void put_finding(struct page *p, const struct comparison_launcher *l,
                        const struct finding *f) {
    bool open = f->status == FINDING_FAIL || f->status == FINDING_UNKNOWN;
    page_tab(p, CHECK_COLUMN);
    page_put(p, page_ink(f->status), page_mark(p, f->status));
    page_printf(p, INK_PLAIN, " %s: ", l->name);
    page_wrap(p, CHECK_COLUMN + 2, INK_PLAIN, f->seen);
    if (open && *f->expected) {
        page_tab(p, CHECK_COLUMN + 2);
        page_put(p, INK_DIM, "expected: ");
        page_wrap(p, CHECK_COLUMN + 4, INK_DIM, f->expected);
    }
    if (open && *f->where) {
        page_tab(p, CHECK_COLUMN + 2);
        page_put(p, INK_DIM, "look at: ");
        page_wrap(p, CHECK_COLUMN + 4, INK_DIM, f->where);
    }
}

static void put_differences(struct page *p, const struct comparison *c,
                            const struct comparison_row *row) {
    const char *checks[COMPARISON_CHECKS_MAX];
    size_t n = comparison_differences(row, c->launchers_n, checks);
    for (size_t k = 0; k < n; k++) {
        page_printf(p, INK_STRONG, "  %s", checks[k]);
        page_line(p);
        for (size_t i = 0; i < c->launchers_n; i++) {
            const struct finding *f = comparison_finding(&row->cells[i], checks[k]);
            if (f)
                put_finding(p, &c->launchers[i], f);
        }
    }
}

static bool has_something_to_say(const struct comparison *c, const struct comparison_row *row) {
    const char *checks[COMPARISON_CHECKS_MAX];
    for (size_t i = 0; i < c->launchers_n; i++)
        if (!row->cells[i].judged)
            return true;
    return comparison_differences(row, c->launchers_n, checks);
}

static void put_row(struct page *p, const struct comparison *c, const struct comparison_row *row) {
    if (!has_something_to_say(c, row))
        return;
    page_heading(p, row->scenario);
    for (size_t i = 0; i < c->launchers_n; i++)
        if (!row->cells[i].judged) {
            page_printf(p, INK_PLAIN, "  %s: %s: ", c->launchers[i].name,
                        report_outcome(row->cells[i].exit_code));
            page_wrap(p, CHECK_COLUMN, INK_PLAIN, row->cells[i].why);
        }
    put_differences(p, c, row);
}

static void render(const struct comparison *c, const struct report_style *style, struct buf *out) {
    struct page p = {.out = out, .style = *style};
    put_table(&p, c);
    for (size_t i = 0; i < c->rows_n; i++)
        put_row(&p, c, &c->rows[i]);
    page_line(&p);
    for (size_t i = 0; i < c->launchers_n; i++) {
        const struct comparison_launcher *l = &c->launchers[i];
        page_printf(&p, INK_DIM, "%s: %s", l->name, l->words);
        if (*l->version)
            page_printf(&p, INK_DIM, ", %s", l->version);
        if (l->rootfs)
            page_printf(&p, INK_DIM, ", in %s", l->rootfs);
        page_line(&p);
    }
    page_printf(&p, INK_DIM, "again: %s", c->command);
    page_line(&p);
}

const struct comparison_report comparison_terminal = {
    .name = "terminal",
    .summary = "a table of scenarios and launchers, and the checks that explain each difference",
    .file = "comparison.txt",
    .render = render,
};
