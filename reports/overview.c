#include "reports/overview.h"

#include "base/printable.h"
#include "base/str.h"
#include "reports/story.h"

#include <stdio.h>
#include <string.h>

/* ---- a run in five words ---- */

/* All workers of the last round, but those that a fault (NULL: none) has taken. */
static bool ended_well(const struct recorded_run *run, const struct incident *taken) {
    const struct round *last = rounds_last_complete(run->rounds);
    for (size_t i = 0; last && i < last->n; i++) {
        const struct worker *w = last->workers[i];
        if ((!w->exit_ns || w->exit_code || w->exit_signal) && !(taken && incident_hits(taken, w)))
            return false;
    }
    return last != NULL;
}

/* No round followed: either nothing came of it, or the job did not come back. */
static const char *stayed(const struct recorded_run *run, const struct incident *i) {
    if (!ended_well(run, i))
        return "the job ended, failed";
    if (incident_has(i, EFFECT_STOPS_WORKER))
        return "waited for it, went on";
    if (incident_has(i, EFFECT_STARTS_NODE))
        return "trained on without the node";
    return "nobody noticed; the others ended well";
}

static void put_next(const struct recorded_run *run, const struct incident *i, char *ret,
                     size_t size) {
    const struct round *last = rounds_last_complete(run->rounds);
    int before = i->round ? i->round->world_size : 0, now = last->world_size;
    const char *verb = now > before   ? "grew to"
                       : now < before ? "went on with"
                                      : "started again with";
    int rounds = last->number - (i->round ? i->round->number : 0);
    char times[40] = "";
    if (rounds > 1)
        snprintf(times, sizeof(times), ", after %d rounds", rounds);
    snprintf(ret, size, "%s%s %d worker%s%s", ended_well(run, NULL) ? "" : "failed; ", verb, now,
             now == 1 ? "" : "s", times);
}

/* What ended after that, the interruption ended. */
static void put_interrupted(const struct record *by, const struct incident *i, char *ret,
                            size_t size) {
    if (!i || !i->in_force || i->t0_ns > by->t_ns) {
        str_copy(ret, size, "interrupted before the fault");
        return;
    }
    int64_t detect_ns = i->phase_ns[PHASE_DETECT];
    bool noticed = detect_ns >= 0 && i->t0_ns + detect_ns < by->t_ns;
    snprintf(ret, size, "interrupted %.0f s after the fault; %s",
             (double)(by->t_ns - i->t0_ns) / 1e9,
             noticed ? "it had been noticed" : "nobody had noticed");
}

/* The first; or behind one of which nobody has heard, the first that has led to a new round. NULL. */
static const struct incident *telling(const struct incidents *is) {
    for (size_t k = 0; k < is->n && is->v[0]->in_force; k++)
        if (is->v[k]->next)
            return is->v[k];
    return is->n ? is->v[0] : NULL;
}

static void put_what(const struct recorded_run *run, const struct incident *i, char *ret,
                     size_t size) {
    const struct record *interrupted = history_newest(run->history, SOURCE_HARNESS, "interrupted");
    const struct record *limit = history_newest(run->history, SOURCE_HARNESS, "limit");
    if (interrupted)
        put_interrupted(interrupted, i, ret, size);
    else if (!i || !i->in_force)
        str_copy(ret, size, "the fault did not happen");
    else if (limit)
        snprintf(ret, size, "stood still (limits.%s)", record_text(limit, "name"));
    else if (!i->next)
        str_copy(ret, size, stayed(run, i));
    else
        put_next(run, i, ret, size);
}

/* ---- figures ---- */

static void put_decided(struct overview_row *row, const struct recorded_run *run) {
    const struct finding *f = verdict_first(run->verdict);
    if (!f)
        return;
    str_copy(row->check, sizeof(row->check), f->check);
    str_copy(row->expected, sizeof(row->expected), f->expected);
    str_copy(row->seen, sizeof(row->seen), f->seen);
    snprintf(row->where, sizeof(row->where), "%s%s%s", run->dir, *f->where ? "/" : "", f->where);
}

/* ---- what could not be judged ---- */

/* What other checks are skipped for is nobody's to fix. */
static const char *const fixable[OVERVIEW_OPEN] = {"lost_work", "observed", "resume_step",
                                                   "samples"};

static void read_open(struct overview *o, const struct verdict *v) {
    for (size_t k = 0; k < OVERVIEW_OPEN; k++) {
        const struct finding *f = verdict_find(v, fixable[k]);
        o->open[k].check = fixable[k];
        if (f && f->status == FINDING_SKIP)
            str_copy(o->open[k].why, sizeof(o->open[k].why), f->seen);
        else
            o->open[k].judged = true;
    }
}

const struct overview_open *overview_not_judged(const struct overview *o, size_t i) {
    for (size_t k = 0; k < OVERVIEW_OPEN; k++)
        if (o->open[k].check && !o->open[k].judged && *o->open[k].why && i-- == 0)
            return &o->open[k];
    return NULL;
}

void overview_read(struct overview *o, struct overview_row *row, const struct recorded_run *run) {
    struct incidents is;
    incidents_load(&is, run->history, run->rounds);
    const struct incident *i = telling(&is);
    row->detect_ns = row->recover_ns = row->lost_steps = -1;
    put_what(run, i, row->what, sizeof(row->what));
    if (i && !history_newest(run->history, SOURCE_HARNESS, "interrupted")) {
        row->detect_ns = i->phase_ns[PHASE_DETECT];
        row->recover_ns = i->recover_ns;
        row->lost_steps = story_steps_again(i->round, i->next);
    }
    row->over_before = !(is.n && is.v[0]->fired) && ended_well(run, NULL) &&
                       history_newest(run->history, SOURCE_HARNESS, "fault-not-fired");
    incidents_fini(&is);
    put_decided(row, run);
    history_each(r, run->history) o->steps |= r->source == SOURCE_JOB && record_is(r, "step");
    read_open(o, run->verdict);
}

/* ---- a table ---- */

enum { COLUMNS = 80 };

struct report_style overview_style(FILE *out) {
    struct report_style s = report_style_of(out);
    s.width = s.width ? s.width : COLUMNS;
    s.whole_words = true;
    return s;
}

enum { NAME = 2, VERDICT = 20, WHAT = 33, WHAT_MIN = 22, WHAT_MAX = 34, FIGURE = 9, LOST_WIDE = 6 };

/* Where the columns begin: what happened has the room that the others leave. */
struct columns {
    int what_n; /* of what happened; 0: no room for columns at all */
    int detect, recover, lost;
};

static struct columns columns_of(const struct page *p) {
    int room = p->style.width ? p->style.width - WHAT - 2 * FIGURE - LOST_WIDE - 1 : WHAT_MAX;
    struct columns c = {.what_n = room > WHAT_MAX ? WHAT_MAX : room < WHAT_MIN ? 0 : room};
    c.detect = WHAT + c.what_n + 1;
    c.recover = c.detect + FIGURE;
    c.lost = c.recover + FIGURE;
    return c;
}

void overview_put_time(struct buf *out, int64_t ns) {
    if (ns < 0)
        buf_puts(out, "-");
    else if (ns < 1000000000)
        buf_printf(out, "%.0f ms", (double)ns / 1e6);
    else
        buf_printf(out, "%.1f s", (double)ns / 1e9);
}

static void put_cell(struct page *p, int column, const char *text) {
    page_tab(p, column);
    page_put(p, INK_PLAIN, text);
}

/* So much of the text as a line of n columns holds, in whole words; returns where the rest begins.
 */
static const char *put_line_of(struct page *p, int n, const char *text) {
    size_t end = strlen(text);
    if (end > (size_t)n) {
        for (end = (size_t)n; end && text[end] != ' ';)
            end--;
        for (end = end ? end : (size_t)n; end > 1 && (text[end] & 0xc0) == 0x80;)
            end--; /* no character is cut in two */
    }
    page_printf(p, INK_PLAIN, "%.*s", (int)end, text);
    return text + end + strspn(text + end, " ");
}

static void put_figures(struct page *p, const struct overview_row *row, const struct columns *c) {
    BUF_FINI struct buf detect = {0}, recover = {0}, lost = {0};
    overview_put_time(&detect, row->detect_ns);
    overview_put_time(&recover, row->recover_ns);
    if (row->lost_steps >= 0)
        buf_printf(&lost, "%lld", (long long)row->lost_steps);
    else
        buf_puts(&lost, "-");
    if (!c->what_n) {
        page_line(p);
        page_tab(p, 4);
        page_printf(p, INK_DIM, "detect %s, recover %s, lost %s", buf_str(&detect),
                    buf_str(&recover), buf_str(&lost));
    } else {
        put_cell(p, c->detect, buf_str(&detect));
        put_cell(p, c->recover, buf_str(&recover));
        put_cell(p, c->lost, buf_str(&lost));
    }
}

/* Where there is no room for columns, everything stands on a line of its own. */
static void put_row(struct page *p, const struct overview_row *row, const struct columns *c) {
    enum finding_status s = report_status(row->exit_code);
    const char *rest = "";
    BUF_FINI struct buf what = {0};
    printable_puts(&what, row->what); /* before it is cut into lines */
    page_put(p, page_ink(s), page_mark(p, s));
    page_put(p, INK_PLAIN, " ");
    page_put(p, INK_PLAIN, row->name);
    page_tab(p, VERDICT);
    page_put(p, page_ink(s), report_outcome(row->exit_code));
    if (c->what_n) {
        page_tab(p, WHAT);
        rest = put_line_of(p, c->what_n, buf_str(&what));
        put_figures(p, row, c);
    } else {
        page_line(p);
        page_tab(p, 4);
        page_put(p, INK_PLAIN, buf_str(&what));
        if (row->link)
            put_figures(p, row, c);
    }
    page_line(p);
    while (*rest) {
        page_tab(p, WHAT);
        rest = put_line_of(p, c->what_n, rest);
        page_line(p);
    }
}

void overview_put_ended(const char *name, int exit_code, const char *what,
                        const struct report_style *style, struct buf *out) {
    struct page p = {.out = out, .style = *style};
    enum finding_status s = report_status(exit_code);
    page_put(&p, page_ink(s), page_mark(&p, s));
    page_printf(&p, INK_PLAIN, " %s", name);
    page_tab(&p, VERDICT);
    page_wrap(&p, VERDICT, INK_PLAIN, what);
}

static void put_head(struct page *p, const struct columns *c) {
    const struct {
        int column;
        const char *text;
    } head[] = {{NAME, "scenario"},    {VERDICT, "verdict"},    {WHAT, "what happened"},
                {c->detect, "detect"}, {c->recover, "recover"}, {c->lost, "lost"}};
    if (!c->what_n)
        return;
    for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++) {
        page_tab(p, head[i].column);
        page_put(p, INK_DIM, head[i].text);
    }
    page_line(p);
}

static void put_labelled(struct page *p, const char *label, const char *text) {
    page_labelled(p, 4, INK_DIM, label, 14, INK_PLAIN, text);
}

static void put_troubles(struct page *p, const struct overview *o) {
    for (size_t i = 0; i < o->rows_n; i++) {
        const struct overview_row *r = &o->rows[i];
        if (r->exit_code == 0 || !*r->seen)
            continue;
        page_line(p);
        page_put(p, INK_STRONG, r->name);
        page_printf(p, INK_STRONG, ": %s%s%s", report_outcome(r->exit_code), *r->check ? ", " : "",
                    r->check);
        page_line(p);
        put_labelled(p, "expected", r->expected);
        put_labelled(p, *r->check ? "seen" : "why", r->seen);
        put_labelled(p, "look at", r->where);
    }
}

static void put_open(struct page *p, const struct overview *o) {
    const struct overview_open *open;
    if (!overview_not_judged(o, 0))
        return;
    page_heading(p, "not judged");
    for (size_t i = 0; (open = overview_not_judged(o, i)); i++) {
        BUF_FINI struct buf text = {0};
        buf_printf(&text, "%s: %s", open->check, open->why);
        page_put(p, INK_PLAIN, "  - ");
        page_wrap(p, 4, INK_DIM, buf_str(&text));
    }
    for (size_t i = 0; o->fix && o->fix[i]; i++) {
        page_put(p, INK_PLAIN, "  ");
        page_wrap(p, 2, INK_PLAIN, o->fix[i]);
    }
}

void overview_put(const struct overview *o, const struct report_style *style, struct buf *out) {
    struct page p = {.out = out, .style = *style};
    struct columns c = columns_of(&p);
    put_head(&p, &c);
    for (size_t i = 0; i < o->rows_n; i++)
        put_row(&p, &o->rows[i], &c);
    put_troubles(&p, o);
    put_open(&p, o);
}
