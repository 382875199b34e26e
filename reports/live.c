#include "base/mem.h"
#include "reports/live.h"
#include "reports/page.h"

#include "base/printable.h"
#include "base/str.h"
#include "base/sys/printing.h"

#include <stdlib.h>

enum { REDRAW_NS = 100000000, BAR_CELLS = 20 };

struct live {
    FILE *out;
    struct report_style style;
    const char *title;
    int64_t total_steps, step;
    int64_t begin_ns, now_ns, drawn_ns;
    int told; /* the newest round whose completion has been printed */
    bool drawn, brief, quiet;
    const char *place;
    int64_t place_left_ns;
    struct tempo tempo;
    struct headway headway; /* objects alone */
    struct rounds rounds;
};

struct live *live_new(FILE *out, const struct report_style *style, const char *title,
                      int64_t total_steps) {
    struct live *l = mem_new(struct live);
    *l = (struct live){.out = out, .style = *style, .title = title, .total_steps = total_steps};
    rounds_init(&l->rounds, true);
    return l;
}

void live_be_brief(struct live *l) {
    l->brief = true;
}

void live_be_quiet(struct live *l) {
    l->quiet = true;
}

void live_place(struct live *l, const char *place, int64_t left_ns) {
    l->place = place;
    l->place_left_ns = left_ns;
}

void live_tell(struct live *l, const struct headway_wish *wish, const char *verb) {
    headway_begin(&l->headway, &(struct headway_spec){.out = l->out,
                                                      .verb = verb,
                                                      .of = l->title,
                                                      .unit = "steps",
                                                      .total = l->total_steps,
                                                      .own_line = true,
                                                      .wish = *wish});
}

static double seconds(const struct live *l, int64_t t_ns) {
    return (double)(t_ns - l->begin_ns) / 1e9;
}

static void erase(struct live *l) {
    static const char line[] = "\r\033[K";
    if (l->drawn)
        printing_put(l->out, line, sizeof(line) - 1);
    l->drawn = false;
}

/* Of one run when its last step comes, as things go; of several when the last of them ends. */
static void put_left(const struct live *l, struct buf *out) {
    int64_t after_ns = l->now_ns - l->begin_ns, left_ns = -1;
    if (l->place)
        left_ns = l->place_left_ns - after_ns;
    else if (l->total_steps)
        left_ns = tempo_left_ns(&l->tempo, after_ns, l->total_steps);
    if (left_ns <= 0)
        return;
    buf_puts(out, "about ");
    headway_put_time(out, left_ns);
    buf_puts(out, " left  ");
}

/* Cut to the width, so that a narrow terminal shows one line and not two. */
static void draw(struct live *l) {
    BUF_FINI struct buf text = {0};
    int columns = l->style.width;
    buf_printf(&text, "%6.1f s  ", seconds(l, l->now_ns));
    if (l->place)
        buf_printf(&text, "%s  ", l->place);
    put_left(l, &text);
    printable_puts(&text, l->title);
    if (l->rounds.n)
        buf_printf(&text, "  round %zu", l->rounds.n);
    if (l->step && l->total_steps) {
        int cells = (int)((double)l->step * BAR_CELLS / (double)l->total_steps);
        buf_printf(&text, "  step %lld/%lld", (long long)l->step, (long long)l->total_steps);
        if (columns >= 70 && page_columns(buf_str(&text)) + BAR_CELLS + 4 < columns)
            buf_printf(&text, "  [%-*.*s]", BAR_CELLS, cells, "####################");
    } else if (l->step) {
        buf_printf(&text, "  step %lld", (long long)l->step);
    }
    page_cut(&text, columns - 1);
    erase(l);
    fputs(buf_str(&text), l->out);
    fflush(l->out);
    l->drawn = true;
    l->drawn_ns = l->now_ns;
}

static void say(struct live *l, enum ink ink, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void say(struct live *l, enum ink ink, const char *fmt, ...) {
    BUF_FINI struct buf out = {0}, text = {0};
    struct page p = {.out = &out, .style = l->style};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    page_printf(&p, INK_DIM, "%8.3f s  ", seconds(l, l->now_ns));
    page_wrap(&p, 12, ink, buf_str(&text));
    erase(l);
    printing_put(l->out, buf_str(&out), out.len);
    fflush(l->out);
}

/* Told also where only a line for each run is: whoever waits must know for what. */
static void tell_quiet(struct live *l, const struct record *r) {
    say(l, INK_DIM, "%s%snothing has happened for %.0f s; limits.%s ends the run in %.0f s",
        l->brief ? l->title : "", l->brief ? ": " : "", (double)record_i64(r, "ns", 0) / 1e9,
        record_text(r, "limit"), (double)record_i64(r, "left_ns", 0) / 1e9);
}

static void targets(const struct record *r, struct buf *out) {
    bool first = true;
    json_each(t, record_get(r, "targets")) {
        buf_printf(out, "%s%s", first ? " on " : ", ", json_get_string(t, "name", "?"));
        first = false;
    }
}

static void tell_harness(struct live *l, const struct record *r) {
    BUF_FINI struct buf where = {0};
    targets(r, &where);
    if (record_is(r, "fault-in-force"))
        say(l, INK_DOUBT, "%s: %s%s", record_text(r, "id"), record_text(r, "fault"),
            buf_str(&where));
    else if (record_is(r, "fault-recovered") && record_get(r, "error"))
        say(l, INK_BAD, "%s could not be undone: %s", record_text(r, "id"),
            record_text(r, "error"));
    else if (record_is(r, "fault-recovered"))
        say(l, INK_PLAIN, "%s is over", record_text(r, "id"));
    else if (record_is(r, "dead-man"))
        say(l, INK_BAD, "after %.0f s without a word from us, %s has undone what lasted there",
            (double)record_i64(r, "silent_ns", 0) / 1e9, record_text(r, "who"));
    else if (record_is(r, "clock-step"))
        say(l, INK_DOUBT,
            "%s (%s): its clock was set by %+.3f s against ours; what was stamped "
            "there before and after keeps its own bound",
            record_text(r, "host"), r->node,
            (double)record_i64(r, "ahead_ns", 0) / 1e9 - (double)record_i64(r, "was_ns", 0) / 1e9);
    else if (record_is(r, "power") && record_get(r, "error"))
        say(l, INK_BAD, "%s", record_text(r, "error"));
    else if (record_is(r, "power"))
        say(l, INK_DOUBT, "%s (%s): its power is %s, after %.1f s", r->node, record_text(r, "host"),
            str_eq(record_text(r, "do"), "off") ? "gone" : "back",
            (double)record_i64(r, "took_ns", 0) / 1e9);
    else if (record_is(r, "fault-failed"))
        say(l, INK_BAD, "%s could not be brought in force: %s", record_text(r, "id"),
            record_text(r, "error"));
    else if (record_is(r, "fault-not-fired"))
        say(l, INK_BAD, "%s did not fire: %s", record_text(r, "id"), record_text(r, "why"));
    else if (record_is(r, "heal-idle"))
        say(l, INK_DOUBT, "%s had nothing to heal: %s, %s", record_text(r, "id"),
            record_text(r, "of"), record_text(r, "why"));
    else if (record_is(r, "limit"))
        say(l, INK_BAD, "limits.%s has passed, the job is stopped", record_text(r, "name"));
    else if (record_is(r, "kept"))
        say(l, INK_STRONG,
            "the cluster stays up until you press Enter; to look into a node: "
            "rankquake enter %s n0",
            record_text(r, "dir"));
    else if (record_is(r, "paused"))
        say(l, INK_STRONG, "it stands still until somebody says go");
    else if (record_is(r, "by-hand") && !record_get(r, "error"))
        say(l, INK_PLAIN, "by hand: %s", record_text(r, "line"));
    else if (record_is(r, "interrupted"))
        say(l, INK_BAD, "interrupted, taking everything down");
}

/* A round is told when it is complete, and again when it says where it resumed. */
static void tell_round(struct live *l, const struct record *r) {
    const struct round *last = rounds_last_complete(&l->rounds);
    if (!last)
        return;
    if (last->number > l->told) {
        l->told = last->number;
        say(l, INK_PLAIN, "round %d: %d worker%s", last->number, last->world_size,
            last->world_size == 1 ? "" : "s");
    }
    const struct worker *w = rounds_worker(&l->rounds, r->pid);
    if (r->source == SOURCE_JOB && record_is(r, "resume") && w && w->rank == 0 &&
        w->resume_step > 0)
        say(l, INK_PLAIN, "round %d resumes from step %lld", w->round, (long long)w->resume_step);
}

void live_record(struct live *l, const struct record *r) {
    if (!l->begin_ns) {
        l->begin_ns = r->t_ns;
        tempo_begin(&l->tempo, 0, 0);
    }
    l->now_ns = r->t_ns;
    rounds_feed(&l->rounds, r);
    if (r->source == SOURCE_JOB && record_is(r, "step"))
        l->step = record_i64(r, "step", l->step);
    if (l->step < 0 || (l->total_steps && l->step > l->total_steps))
        l->step = l->total_steps;
    if (l->step) {
        tempo_note(&l->tempo, l->now_ns - l->begin_ns, l->step);
        headway_at(&l->headway, l->step, NULL);
    }
    if (l->quiet)
        return;
    if (r->source == SOURCE_HARNESS && record_is(r, "quiet"))
        tell_quiet(l, r);
    if (r->source == SOURCE_HARNESS && !l->brief)
        tell_harness(l, r);
    if (!l->brief)
        tell_round(l, r);
    if (l->style.width && !l->style.still && (!l->drawn || l->now_ns - l->drawn_ns >= REDRAW_NS))
        draw(l);
}

struct live *live_end(struct live *l) {
    if (!l)
        return NULL;
    erase(l);
    headway_end(&l->headway);
    fflush(l->out);
    rounds_fini(&l->rounds);
    free(l);
    return NULL;
}
