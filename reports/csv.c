/* The times of the recorded run as CSV (RFC 4180, with lines that end as ours do): a row for each fault. What was not measured is
 * empty. */
#include "reports/report.h"
#include "reports/story.h"

#include "base/printable.h"

#include <string.h>

static void put_text(struct buf *out, const char *text) {
    BUF_FINI struct buf clean = {0};
    printable_puts(&clean, text);
    const char *s = buf_str(&clean);
    if (!strpbrk(s, ",\"")) {
        buf_puts(out, s);
        return;
    }
    buf_putc(out, '"');
    for (; *s; s++) {
        if (*s == '"')
            buf_putc(out, '"');
        buf_putc(out, *s);
    }
    buf_putc(out, '"');
}

static void put_field(struct buf *out, const char *s) {
    buf_putc(out, ',');
    put_text(out, s);
}

static void put_ms(struct buf *out, int64_t ns) {
    buf_putc(out, ',');
    if (ns >= 0)
        buf_printf(out, "%.3f", (double)ns / 1e6);
}

static void put_number(struct buf *out, bool known, int64_t v) {
    buf_putc(out, ',');
    if (known)
        buf_printf(out, "%lld", (long long)v);
}

static void put_head(struct buf *out) {
    buf_puts(out, "scenario,seed,launcher,outcome,id,n,fault,targets,step,t0_ms,lag_ms,round,"
                  "next_round,steps_again");
    for (int p = 0; p < PHASE_N; p++) {
        buf_putc(out, ',');
        for (const char *c = phase_name((enum phase)p); *c; c++)
            buf_putc(out, *c == ' ' ? '_' : *c);
        buf_puts(out, "_ms");
    }
    buf_puts(out, ",recover_ms\n");
}

static void put_row(const struct recorded_run *run, struct buf *out, const struct incident *i) {
    BUF_FINI struct buf targets = {0};
    int64_t again = story_steps_again(i->round, i->next);
    story_targets(i, &targets);
    put_text(out, run->scenario->name);
    put_number(out, true, story_seed(run));
    put_field(out, story_run_text(run, "launcher"));
    put_field(out, report_outcome(run->verdict->exit_code));
    put_field(out, i->id);
    put_number(out, true, i->n);
    put_field(out, i->fault);
    put_field(out, buf_str(&targets));
    put_number(out, i->step >= 0, i->step);
    put_ms(out, i->in_force ? i->t0_ns - run->history->records[0]->t_ns : -1);
    put_ms(out, i->late_ns);
    put_number(out, i->round, i->round ? i->round->number : 0);
    put_number(out, i->next, i->next ? i->next->number : 0);
    put_number(out, again >= 0, again);
    for (int p = 0; p < PHASE_N; p++)
        put_ms(out, i->phase_ns[p]);
    put_ms(out, i->recover_ns);
    buf_puts(out, "\n");
}

static int render(const struct recorded_run *run, const struct report_style *style, struct buf *out,
                  struct err *err) {
    struct incidents is;
    incidents_load(&is, run->history, run->rounds);
    put_head(out);
    for (size_t i = 0; i < is.n; i++)
        put_row(run, out, is.v[i]);
    incidents_fini(&is);
    return 0;
}

const struct report report_csv = {
    .name = "csv",
    .summary = "the times of each fault, a row each",
    .render = render,
};
