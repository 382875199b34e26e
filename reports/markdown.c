/* The recorded run as Markdown (GitHub's), for a step's summary or a comment: what failed, the faults
 * with their times, and how to do it again. */
#include "reports/markdown.h"

#include "reports/story.h"

#include "base/printable.h"

#include <string.h>

void markdown_put_words(struct buf *out, const char *s) {
    BUF_FINI struct buf clean = {0};
    printable_puts(&clean, s);
    for (const char *c = buf_str(&clean); *c; c++) {
        if (*c == '<')
            buf_puts(out, "&lt;");
        else if (*c == '&')
            buf_puts(out, "&amp;");
        else if (strchr("\\`*_[]|~#@", *c))
            buf_printf(out, "\\%c", *c);
        else
            buf_putc(out, *c);
    }
}

const char *markdown_mark(enum finding_status s) {
    static const char *const marks[] = {
        [FINDING_PASS] = "✅", [FINDING_FAIL] = "❌", [FINDING_UNKNOWN] = "❓", [FINDING_SKIP] = "➖"};
    return marks[s];
}

static void put_finding(struct buf *out, const struct finding *f) {
    buf_printf(out, "| %s | ", markdown_mark(f->status));
    markdown_put_words(out, f->check);
    buf_puts(out, " | ");
    if (*f->broken) {
        markdown_put_words(out, f->broken);
        buf_putc(out, ' ');
    }
    markdown_put_words(out, f->seen);
    if (*f->expected) {
        buf_puts(out, "; expected ");
        markdown_put_words(out, f->expected);
    }
    buf_puts(out, " |\n");
}

static void put_findings(const struct verdict *v, struct buf *out, bool good) {
    for (size_t i = 0; i < v->n; i++)
        if ((v->v[i].status == FINDING_PASS || v->v[i].status == FINDING_SKIP) == good)
            put_finding(out, &v->v[i]);
}

static size_t count_bad(const struct verdict *v) {
    return story_count(v, FINDING_FAIL) + story_count(v, FINDING_UNKNOWN);
}

static void put_ms(struct buf *out, int64_t ns, int64_t bound_ns) {
    if (ns >= 0)
        buf_printf(out, "%.0f ms", (double)ns / 1e6);
    story_bound(ns < 0 ? 0 : bound_ns, true, out);
    buf_puts(out, " | ");
}

static void put_fault(struct buf *out, const struct incident *i) {
    BUF_FINI struct buf targets = {0};
    story_targets(i, &targets);
    buf_puts(out, "| ");
    markdown_put_words(out, i->id);
    buf_puts(out, " | ");
    markdown_put_words(out, i->fault);
    buf_puts(out, " | ");
    markdown_put_words(out, buf_str(&targets));
    buf_puts(out, " | ");
    markdown_put_words(out, !i->in_force   ? "was not in force"
                            : *i->evidence ? i->evidence
                            : i->unfelt    ? i->unfelt
                                           : "nothing shows it");
    buf_puts(out, " | ");
    put_ms(out, i->phase_ns[PHASE_DETECT], i->phase_bound_ns[PHASE_DETECT]);
    put_ms(out, i->recover_ns, i->recover_bound_ns);
    buf_putc(out, '\n');
}

static void put_faults(const struct recorded_run *run, struct buf *out) {
    struct incidents is;
    incidents_load(&is, run->history, run->rounds);
    if (is.n)
        buf_puts(out, "\n| id | fault | on | evidence | detected | recovered |\n"
                      "|---|---|---|---|---:|---:|\n");
    for (size_t i = 0; i < is.n; i++)
        put_fault(out, is.v[i]);
    incidents_fini(&is);
}

static int render(const struct recorded_run *run, const struct report_style *style, struct buf *out,
                  struct err *err) {
    const struct verdict *v = run->verdict;
    BUF_FINI struct buf command = {0};
    story_command(run, &command);
    buf_printf(out, "### %s ", markdown_mark(report_status(v->exit_code)));
    markdown_put_words(out, run->scenario->name);
    buf_printf(out, ": %s\n\n", report_outcome(v->exit_code));
    if (count_bad(v))
        buf_puts(out, "| | check | what was seen |\n|---|---|---|\n");
    put_findings(v, out, false);
    put_faults(run, out);
    buf_printf(out,
               "\n<details><summary>%zu checks passed or had nothing to judge</summary>\n\n"
               "| | check | what was seen |\n|---|---|---|\n",
               v->n - count_bad(v));
    put_findings(v, out, true);
    buf_puts(out, "\n</details>\n\nAgain:\n\n```sh\n");
    printable_puts(out, buf_str(&command));
    buf_puts(out, "\n```\n");
    return 0;
}

const struct report report_markdown = {
    .name = "markdown",
    .summary = "a summary for a pull request or a step of CI",
    .render = render,
};
