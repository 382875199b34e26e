/* The recorded run for a terminal. */
#include "reports/page.h"
#include "reports/reports.h"
#include "reports/story.h"

#include <signal.h>
#include <string.h>

/* Columns of the left edge of texts, where there is room for them. */
enum { LABEL = 11, CHECK = 19, ROUND = 31, FAULT = 4 };
/* Of what a worker printed before it failed. */
enum { LAST_LINES = 8, LAST_BYTES = 4096, INDENT_MAX = 16 };

static const char *plural(size_t n) {
    return n == 1 ? "" : "s";
}

/* ---- the first lines ---- */

static void put_labelled(struct page *p, const char *label, enum ink ink, const char *text) {
    page_labelled(p, 0, INK_STRONG, label, LABEL, ink, text);
}

static void put_where(struct page *p, const struct recorded_run *run, const char *where) {
    BUF_FINI struct buf text = {0};
    if (*where && *run->dir)
        buf_printf(&text, "%s/", run->dir);
    buf_puts(&text, where);
    put_labelled(p, "look at", INK_PLAIN, buf_str(&text));
}

/* Fewer answers than before is no failure, and must not look as if nothing had changed. */
static void put_lost(struct page *p, const struct verdict *v) {
    BUF_FINI struct buf text = {0};
    story_lost(v, &text);
    put_labelled(p, "fewer", INK_DOUBT, buf_str(&text));
}

/* Nor is what passed, or was not asked, and may yet be the worst of the run. */
static void put_loud(struct page *p, const struct verdict *v) {
    BUF_FINI struct buf text = {0};
    story_loud(v, &text);
    put_labelled(p, "beware", INK_DOUBT, buf_str(&text));
}

static void put_goodput(struct page *p, const struct verdict *v) {
    BUF_FINI struct buf text = {0};
    story_goodput(&v->goodput, &text);
    put_labelled(p, "goodput", INK_PLAIN, buf_str(&text));
}

static void put_headline(struct page *p, const struct recorded_run *run,
                         const struct finding *first) {
    int code = run->verdict->exit_code;
    enum finding_status status = report_status(code);
    page_put(p, page_ink(status), page_mark(p, status));
    BUF_FINI struct buf text = {0};
    page_printf(p, INK_STRONG, " %s ", run->scenario->name);
    buf_printf(&text, "%s%s%s (exit code %d)", report_outcome(code), first ? ": " : "",
               first ? first->check : "", code);
    page_wrap(p, 2, page_ink(status), buf_str(&text));
}

static bool has_failed(const struct verdict *v, const char *check) {
    const struct finding *f = verdict_find(v, check);
    return f && f->status == FINDING_FAIL;
}

/* It failed, and not by a signal with which faults and launchers end workers. */
static bool failed_by_itself(const struct worker *w) {
    return worker_failed(w) && w->exit_signal != SIGKILL && w->exit_signal != SIGTERM;
}

/* Who by its own end has ended a job that should have gone on: in the last round the first that
 * failed by itself. NULL: nobody. */
static const struct worker *culprit(const struct recorded_run *run) {
    if (!run->rounds->n ||
        (!has_failed(run->verdict, "outcome") && !has_failed(run->verdict, "one_outcome")))
        return NULL;
    const struct round *r = run->rounds->v[run->rounds->n - 1];
    const struct worker *first = NULL;
    for (size_t i = 0; i < r->n; i++) {
        const struct worker *w = r->workers[i];
        if (failed_by_itself(w) && (!first || w->exit_ns < first->exit_ns))
            first = w;
    }
    return first;
}

static void put_lines(struct page *p, char *text) {
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        size_t blanks = strspn(line, " ");
        int indent = LABEL + (int)(blanks < INDENT_MAX ? blanks : INDENT_MAX);
        page_tab(p, indent);
        page_wrap(p, indent, INK_DIM, line);
    }
}

/* The reason mostly stands in the last lines that it printed: nobody should have to look for them.
 */
static void put_last_words(struct page *p, const struct recorded_run *run) {
    const struct worker *w = culprit(run);
    const char *name = w ? history_output(run->history, w->pid, w->exit_ns) : "";
    struct buf path = {0}, said = {0}, text = {0};
    if (*name)
        buf_printf(&path, "logs/%s/%s", w->node, name);
    if (*name && run->folder &&
        folder_read_last(run->folder, buf_str(&path), LAST_LINES, LAST_BYTES, &text, NULL) == 0) {
        buf_printf(&said, "rank %d on %s of round %d ended %s %d; last lines of %s/%s:", w->rank,
                   w->node, w->round, w->exit_signal ? "on signal" : "with status",
                   w->exit_signal ? w->exit_signal : w->exit_code, run->dir, buf_str(&path));
        put_labelled(p, "last words", INK_PLAIN, buf_str(&said));
        put_lines(p, text.data);
    }
    buf_fini(&path);
    buf_fini(&said);
    buf_fini(&text);
}

/* What is wrong comes first: broken, expected, seen, where to look. */
static void put_first(struct page *p, const struct recorded_run *run) {
    const struct finding *f = verdict_first(run->verdict);
    if (f) {
        put_labelled(p, "broken", INK_BAD, f->broken);
        put_labelled(p, "expected", INK_PLAIN,
                     *f->expected ? f->expected : "evidence that answers the question");
        put_labelled(p, "seen", INK_PLAIN, f->seen);
        put_where(p, run, f->where);
        put_last_words(p, run);
        page_line(p);
    }
    put_headline(p, run, f);
    put_lost(p, run->verdict);
    put_loud(p, run->verdict);
    put_goodput(p, run->verdict);
}

/* ---- checks ---- */

static void put_check(struct page *p, const struct finding *f) {
    page_put(p, INK_PLAIN, "  ");
    page_put(p, page_ink(f->status), page_mark(p, f->status));
    page_put(p, f->status == FINDING_SKIP ? INK_DIM : INK_PLAIN, " ");
    page_put(p, f->status == FINDING_SKIP ? INK_DIM : INK_PLAIN, f->check);
    if (page_narrow(p)) {
        page_line(p);
        page_put(p, INK_PLAIN, "   ");
        page_tab(p, 4);
        page_wrap(p, 4, INK_DIM, f->seen);
        return;
    }
    page_tab(p, CHECK);
    page_wrap(p, CHECK,
              f->status == FINDING_PASS || f->status == FINDING_SKIP ? INK_DIM : INK_PLAIN,
              f->seen);
}

static void put_checks(struct page *p, const struct verdict *v) {
    static const enum finding_status order[] = {FINDING_FAIL, FINDING_UNKNOWN, FINDING_PASS,
                                                FINDING_SKIP};
    size_t passed = 0, skipped = 0;
    for (size_t i = 0; i < v->n; i++) {
        passed += v->v[i].status == FINDING_PASS;
        skipped += v->v[i].status == FINDING_SKIP;
    }
    page_put(p, INK_STRONG, "checks");
    BUF_FINI struct buf text = {0};
    buf_printf(&text, "%zu of %zu passed", passed, v->n - skipped);
    if (skipped)
        buf_printf(&text, ", %zu not asked for", skipped);
    page_put(p, INK_PLAIN, "  ");
    page_wrap(p, 8, INK_DIM, buf_str(&text));
    for (size_t k = 0; k < sizeof(order) / sizeof(*order); k++)
        for (size_t i = 0; i < v->n; i++)
            if (v->v[i].status == order[k])
                put_check(p, &v->v[i]);
}

/* ---- rounds ---- */

static void put_round(struct page *p, const struct recorded_run *run, const struct incidents *is,
                      const struct round *r) {
    BUF_FINI struct buf text = {0};
    int64_t step = story_resume_step(r);
    page_printf(p, INK_PLAIN, "  %d", r->number);
    page_tab(p, 5);
    page_printf(p, r->complete ? INK_PLAIN : INK_DOUBT, "%d",
                r->complete ? r->world_size : r->started);
    if (!r->complete)
        page_printf(p, INK_DOUBT, " of %d", r->world_size);
    page_printf(p, INK_PLAIN, " worker%s", plural((size_t)r->world_size));
    page_tab(p, page_narrow(p) ? 0 : 19);
    page_printf(p, INK_DIM, "%.3f s", story_seconds(run, r->first_start_ns));
    if (page_narrow(p)) {
        page_line(p);
        page_tab(p, 4);
    } else {
        page_tab(p, ROUND);
    }
    if (step == 0)
        buf_puts(&text, "from the beginning, ");
    else if (step > 0)
        buf_printf(&text, "from step %lld, ", (long long)step);
    buf_puts(&text, "until: ");
    story_round_end(is, r, &text);
    page_wrap(p, page_narrow(p) ? 4 : ROUND, INK_PLAIN, buf_str(&text));
}

static void put_rounds(struct page *p, const struct recorded_run *run, const struct incidents *is) {
    if (!run->rounds->n)
        return;
    page_heading(p, "rounds");
    for (size_t i = 0; i < run->rounds->n; i++)
        put_round(p, run, is, run->rounds->v[i]);
}

/* ---- faults ---- */

/* "937 ms ± 0.4 ms" */
static void put_time(const struct page *p, struct buf *out, int64_t ns, int64_t bound_ns) {
    buf_printf(out, "%.0f ms", (double)ns / 1e6);
    story_bound(bound_ns, p->style.unicode, out);
}

static void put_times(struct page *p, const struct incident *i) {
    BUF_FINI struct buf text = {0};
    bool steps = i->phase_ns[PHASE_FIRST_STEP] >= 0;
    if (i->phase_ns[PHASE_DETECT] >= 0) {
        buf_puts(&text, "detected in ");
        put_time(p, &text, i->phase_ns[PHASE_DETECT], i->phase_bound_ns[PHASE_DETECT]);
        buf_printf(&text, " (a worker %s)",
                   i->by_signal ? "was ended by a signal" : "ended by itself");
    }
    if (i->recover_ns >= 0) {
        buf_printf(&text, "%s%s again after ", text.len ? ", " : "",
                   steps ? "training" : "started");
        put_time(p, &text, i->recover_ns, i->recover_bound_ns);
    }
    for (int k = PHASE_STOP, first = 1; k < PHASE_N; k++) {
        if (i->phase_ns[k] < 0)
            continue;
        buf_printf(&text, "%s%s %.0f", first ? "; then " : ", ", phase_name((enum phase)k),
                   (double)i->phase_ns[k] / 1e6);
        story_bound(i->phase_bound_ns[k], p->style.unicode, &text);
        first = 0;
    }
    if (text.len) {
        page_tab(p, FAULT);
        page_wrap(p, FAULT, INK_DIM, buf_str(&text));
    }
}

static void put_fault(struct page *p, const struct recorded_run *run, const struct incident *i) {
    BUF_FINI struct buf text = {0};
    page_put(p, INK_PLAIN, "  ");
    page_put(p, INK_STRONG, i->id);
    page_put(p, INK_STRONG, ":");
    buf_puts(&text, i->fault);
    if (i->targets_n)
        buf_puts(&text, " on ");
    story_targets(i, &text);
    if (i->step >= 0)
        buf_printf(&text, " at step %lld", (long long)i->step);
    if (i->done > i->step && i->step >= 0)
        buf_printf(&text, " (%lld were done)", (long long)i->done);
    if (i->in_force)
        story_in_force(run, i, &text);
    else
        buf_printf(&text, ", not in force%s%s", i->failed ? ": " : "", i->failed ? i->failed : "");
    if (i->in_force && !i->evidence_seq)
        buf_puts(&text, ", no evidence");
    if (i->in_force && !i->ended_round)
        buf_puts(&text, ", ended no round");
    page_put(p, INK_PLAIN, " ");
    page_wrap(p, FAULT, INK_PLAIN, buf_str(&text));
    put_times(p, i);
}

static void put_faults(struct page *p, const struct recorded_run *run, const struct incidents *is) {
    if (!is->n)
        return;
    page_heading(p, "faults");
    for (size_t i = 0; i < is->n; i++)
        put_fault(p, run, is->v[i]);
}

/* Of nodes whose hosts have a clock of their own. */
static void put_clocks(struct page *p, const struct recorded_run *run) {
    struct clocks c;
    clocks_load(&c, run->history);
    if (c.n)
        page_heading(p, "clocks");
    for (size_t i = 0; i < c.n; i++) {
        BUF_FINI struct buf text = {0};
        story_clock(&c.v[i], p->style.unicode, &text);
        page_put(p, INK_PLAIN, "  ");
        page_put(p, INK_PLAIN, c.v[i].node);
        page_put(p, INK_PLAIN, " ");
        page_wrap(p, FAULT, INK_DIM, buf_str(&text));
    }
    clocks_fini(&c);
}

static void put_last(struct page *p, const struct recorded_run *run) {
    BUF_FINI struct buf text = {0};
    page_line(p);
    buf_printf(&text, "%s/%s", run->dir, report_html.file);
    bool there = run->folder && folder_has(run->folder, report_html.file);
    put_labelled(p, "report", INK_PLAIN, there ? buf_str(&text) : run->dir);
    if (story_of_processes(run))
        put_labelled(p, "nodes", INK_PLAIN, "processes of this host (isolation: processes)");
    buf_clear(&text);
    story_command(run, &text);
    put_labelled(p, "again", INK_PLAIN, buf_str(&text));
}

static int render(const struct recorded_run *run, const struct report_style *style, struct buf *out,
                  struct err *err) {
    struct page p = {.out = out, .style = *style};
    struct incidents is;
    incidents_load(&is, run->history, run->rounds);
    put_first(&p, run);
    page_line(&p);
    put_checks(&p, run->verdict);
    put_rounds(&p, run, &is);
    put_faults(&p, run, &is);
    put_clocks(&p, run);
    put_last(&p, run);
    incidents_fini(&is);
    return 0;
}

const struct report report_terminal = {
    .name = "terminal",
    .summary = "what broke and where to look, then checks, rounds and faults",
    .file = NULL,
    .render = render,
};
