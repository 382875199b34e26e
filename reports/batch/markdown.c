/* All runs as Markdown, for a step's summary: a row for each scenario, then what did not pass. GitHub
 * takes 1 MiB of a step: what would not fit is left out, and said to be. */
#include "reports/batch/batch.h"
#include "reports/markdown.h"

#include "base/printable.h"

enum { ROOM = 900 << 10 };

static const char *outcome_mark(int exit_code) {
    return markdown_mark(report_status(exit_code));
}

static int worst(const struct judged *const *v, size_t n) {
    static const int order[] = {130, 1, 5, 3, 2};
    for (size_t k = 0; k < sizeof(order) / sizeof(*order); k++)
        for (size_t i = 0; i < n; i++)
            if (v[i]->exit_code == order[k] && !v[i]->forgiven)
                return order[k];
    for (size_t i = 0; i < n; i++)
        if (v[i]->exit_code != 4)
            return 0;
    return 4;
}

static double slowest_ms(const struct judged *const *v, size_t n) {
    int64_t most = -1;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < v[i]->faults_n; k++)
            most = v[i]->faults[k].recover_ns > most ? v[i]->faults[k].recover_ns : most;
    return most < 0 ? -1 : (double)most / 1e6;
}

static void put_runs(struct buf *out, const struct judged *const *v, size_t n) {
    size_t bad = 0, judged = 0;
    for (size_t i = 0; i < n; i++) {
        bad += v[i]->exit_code == 1 || v[i]->exit_code == 5;
        judged += v[i]->exit_code == 1 || v[i]->exit_code == 5 || v[i]->exit_code == 0;
    }
    if (n < 2 || !judged) {
        buf_printf(out, "%zu", n);
        return;
    }
    struct judged_rate r = judged_rate(bad, judged);
    buf_printf(out, "%zu, %zu failed (%.0f to %.0f %%)", n, bad, 100 * r.low, 100 * r.high);
}

static void put_row(void *arg, const struct judged *const *v, size_t n) {
    struct buf *out = arg;
    double ms = slowest_ms(v, n), seconds = 0;
    int code = worst(v, n);
    for (size_t i = 0; i < n; i++)
        seconds += v[i]->duration_s;
    if (out->len > ROOM)
        return;
    buf_printf(out, "| %s | ", outcome_mark(code));
    markdown_put_words(out, v[0]->name);
    if (*v[0]->sets) {
        buf_putc(out, ' ');
        markdown_put_words(out, v[0]->sets);
    }
    buf_printf(out, " | %s | ", report_outcome(code));
    put_runs(out, v, n);
    if (ms < 0)
        buf_puts(out, " | |");
    else
        buf_printf(out, " | %.0f ms |", ms);
    buf_printf(out, " %.1f s |\n", seconds);
}

static void put_check(struct buf *out, const struct judged_check *c) {
    BUF_FINI struct buf text = {0};
    const struct finding *f = c->shown;
    judged_put_check(c, &text);
    buf_printf(out, "- %s **", c->forgiven ? "⚠️" : markdown_mark(f->status));
    markdown_put_words(out, c->name);
    buf_puts(out, "**: ");
    markdown_put_words(out, buf_str(&text));
    buf_putc(out, '\n');
}

/* Of the first run that did not pass, how to do it again and where it lies. */
static void put_again(struct buf *out, const struct judged *const *v, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!v[i]->exit_code || !*v[i]->command)
            continue;
        buf_puts(out, "\n```sh\n");
        printable_puts(out, v[i]->command);
        buf_puts(out, "\n```\n");
        if (*v[i]->dir) {
            buf_puts(out, "\nreport: ");
            markdown_put_words(out, v[i]->dir);
            buf_puts(out, "/report.html\n");
        }
        return;
    }
}

static void put_bad(void *arg, const struct judged *const *v, size_t n) {
    struct buf *out = arg;
    struct judged_check c;
    bool bad = false;
    for (size_t i = 0; i < n; i++)
        bad |= v[i]->exit_code != 0;
    if (!bad || out->len > ROOM)
        return;
    buf_puts(out, "\n#### ");
    markdown_put_words(out, v[0]->name);
    buf_puts(out, "\n\n");
    for (size_t k = 0; judged_check(v, n, k, &c); k++)
        if (c.failed)
            put_check(out, &c);
    for (size_t i = 0; i < n; i++)
        if (*v[i]->why) {
            buf_printf(out, "- %s ", outcome_mark(v[i]->exit_code));
            markdown_put_words(out, v[i]->why);
            buf_putc(out, '\n');
        }
    put_again(out, v, n);
}

static void put_hidden(const struct batch *b, struct buf *out) {
    if (!b->hidden || !*b->hidden)
        return;
    buf_puts(out, "\nThe values of these variables are covered in all of it: ");
    for (const char *const *h = b->hidden; *h; h++) {
        buf_puts(out, h == b->hidden ? "" : ", ");
        markdown_put_words(out, *h);
    }
    buf_puts(out, ".\n");
}

static void render(const struct batch *b, struct buf *out) {
    buf_printf(out, "### %s RankQuake: ", outcome_mark(b->exit_code));
    markdown_put_words(out, b->title);
    buf_printf(out, ": %s\n\n%zu run%s in %.0f s\n\n", report_outcome(b->exit_code), b->n,
               b->n == 1 ? "" : "s", b->took_s);
    buf_puts(out, "| | scenario | outcome | runs | slowest recovery | time |\n"
                  "|---|---|---|---|---:|---:|\n");
    batch_each(b, put_row, out);
    batch_each(b, put_bad, out);
    if (out->len > ROOM)
        buf_puts(out, "\nThere is more than a summary can hold: junit.xml has all of it.\n");
    put_hidden(b, out);
}

const struct batch_report batch_markdown = {
    .name = "markdown",
    .summary = "a summary for a pull request or a step of CI",
    .file = "summary.md",
    .render = render,
};
