#include "harness/play/announcement.h"

#include "base/str.h"
#include "base/sys/printing.h"
#include "reports/headway.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void announcement_say(const char *fmt, ...) {
    BUF_FINI struct buf out = {0}, text = {0};
    struct page p = {.out = &out, .style = overview_style(stdout)};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    page_wrap(&p, 2, INK_PLAIN, buf_str(&text));
    printing_put(stdout, buf_str(&out), out.len);
}

void announcement_ended(const char *name, int exit_code, const char *what) {
    BUF_FINI struct buf out = {0};
    struct report_style style = overview_style(stdout);
    overview_put_ended(name, exit_code, what, &style, &out);
    printing_put(stdout, buf_str(&out), out.len);
}

/* What nodes are and what becomes of what the job writes, once. */
static void say_isolation(const struct announcement *a) {
    bool undone = a->base->job.writes_undone;
    if (a->plan->isolation == ISOLATION_PROCESSES)
        announcement_say("- nodes are processes of this host: %s%s",
                         a->plan->isolation_why ? a->plan->isolation_why : "as asked for",
                         undone ? "; each run works in a copy of this directory, and what is "
                                  "written elsewhere stays"
                                : "");
    if (!undone)
        announcement_say("- what the job writes into this directory stays, and the next run finds "
                         "it%s%s",
                         a->not_undone->code ? ": " : "",
                         a->not_undone->code ? a->not_undone->msg : "");
}

void announcement_plan(const struct announcement *a) {
    const struct generated *d = a->generated;
    BUF_FINI struct buf words = {0};
    char many[16];
    snprintf(many, sizeof(many), "%d", a->n);
    for (int i = 0; i < a->n; i++)
        buf_printf(&words, "%s%s", i ? "; " : "", a->faults[i].words);
    announcement_say("%s under %s: %d nodes, %d worker%s on each, emulated on this machine",
                     d->command->name, a->base->job.launcher, d->nodes, d->workers,
                     d->workers == 1 ? "" : "s");
    announcement_say("first a control run without faults, then %s runs with one fault each: %s",
                     a->n == GENERATE_FAULTS ? "five" : many, buf_str(&words));
    announcement_say("every run is kept in %s%s", a->dir,
                     a->base->job.writes_undone
                         ? "; what the job writes into this directory is undone after each"
                         : "");
    announcement_say("it ends after %s with what there is by then, the control run included "
                     "(--budget 20m gives it more; --limit total=2m shortens each run)",
                     a->budget);
    if (a->base->torchrun_semantics)
        announcement_say("- under torchrun a lost node can cost minutes: its agents wait for each "
                         "other, up to 300 s at the end, and workers for a silent node until their "
                         "own timeout");
    say_isolation(a);
    for (size_t i = 0; d->command->notes[i]; i++)
        announcement_say("- %s", d->command->notes[i]);
    for (size_t i = 0; d->notes[i]; i++)
        announcement_say("- %s", d->notes[i]);
}

/* ---- what it costs ---- */

static void say_cost(const char *name, const struct generate_cost *c) {
    BUF_FINI struct buf text = {0};
    buf_printf(&text, "- %s: about ", name);
    headway_put_time(&text, c->usual_ns);
    if (c->long_ns > c->usual_ns) {
        buf_puts(&text, ", or ");
        headway_put_time(&text, c->long_ns);
        buf_puts(&text, " if the others wait for the lost node");
    }
    buf_puts(&text, "; at most ");
    headway_put_time(&text, c->most_ns);
    announcement_say("%s", buf_str(&text));
}

void announcement_costs(const struct announcement_costs *c) {
    BUF_FINI struct buf left = {0}, all = {0};
    announcement_say("what each may cost under %s (at most limits.total: --limit total=2m shortens "
                     "it):",
                     c->launcher);
    for (int i = 0; i < c->n; i++)
        if (c->v[i].least_ns)
            say_cost(c->faults[i].name, &c->v[i]);
    headway_put_time(&left, c->left_ns);
    headway_put_time(&all, c->all_ns);
    if (c->left_ns < c->all_ns)
        announcement_say("of the budget of %s %s are left, and all of them may take %s: what does "
                         "not fit is not run (--budget gives more)",
                         c->budget, buf_str(&left), buf_str(&all));
}

/* ---- what came of it ---- */

static const char *const fix_steps =
    "With step events faults hit a named step, and lost work, stalls and resuming are judged: "
    "rankquake.py or rankquake.h in the job, or observe: on its output (docs/first-hour.md).";
static const char *const fix_checkpoints =
    "With the directory of the checkpoints the harness reads it itself: "
    "--set job.checkpoint.dir=DIR --set job.checkpoint.complete=COMMAND (docs/first-hour.md).";

/* What no run could judge, behind what the control run showed, with the option that would help most. */
static void name_open(struct overview *o, const struct scenario *base) {
    struct overview_row *row = &o->rows[0];
    BUF_FINI struct buf text = {0};
    const struct overview_open *open;
    buf_puts(&text, row->what);
    for (size_t i = 0; (open = overview_not_judged(o, i)); i++)
        buf_printf(&text, "%s%s", i ? ", " : "; not judged: ", open->check);
    if (text.len > strlen(row->what) && !o->steps)
        buf_puts(&text, ": try --observe step=REGEX");
    else if (text.len > strlen(row->what) && !base->job.checkpoint_dir)
        buf_puts(&text, ": try --set job.checkpoint.dir=DIR");
    str_copy(row->what, sizeof(row->what), buf_str(&text));
}

int announcement_result(struct overview *o, const struct scenario *base, const struct folder *dir,
                        struct err *err) {
    struct buf out = {0}, page = {0};
    const char *fix[3] = {NULL};
    size_t n = 0;
    struct report_style style = overview_style(stdout);
    if (!o->steps)
        fix[n++] = fix_steps;
    if (!base->job.checkpoint_dir)
        fix[n++] = fix_checkpoints;
    o->fix = fix;
    name_open(o, base);
    buf_putc(&out, '\n');
    overview_put(o, &style, &out);
    overview_html(o, &page);
    o->fix = NULL;
    int r = folder_write(dir, "index.html", page.data, page.len, err);
    printing_put(stdout, buf_str(&out), out.len);
    if (r == 0)
        printf("\nreport     %s/index.html\n", dir->path);
    buf_fini(&out);
    buf_fini(&page);
    return r;
}
