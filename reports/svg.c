/* svg: the picture of a run as a file of its own, for a README, a wiki or an issue: rounds, faults
 * and every worker over time. It brings its background and its colours, by day and by night. */
#include "reports/html.h"
#include "reports/story.h"

enum {
    WIDTH = 960, /* in units of the picture, as all that follows */
    LEFT = 92,   /* where time begins and ends */
    RIGHT = WIDTH - 20,
    LANE = 20,
    LETTER = 6,     /* how wide one is, about */
    LABEL_ROWS = 4, /* of faults whose texts would cover one another */
    LANES_MAX = 64
};

struct picture {
    struct html h;  /* what is drawn, and where to */
    int64_t run_ns; /* when the run began */
    int y, first;   /* the next row, and the first */
};

static const char style[] =
    "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif;fill:#1c1e22}\n"
    ".panel{fill:#fff;stroke:#d5d4ce}.soft{fill:#62686f}.title{font-size:15px;font-weight:600}\n"
    ".good{fill:#17774a}.bad{fill:#bf2a23}.doubt{fill:#9a5f00}.grid{stroke:#e4e3de}\n"
    ".struck{stroke:#bf2a23;stroke-dasharray:4 3}.lost{fill:#e9bd62;opacity:.28}\n"
    ".setup{fill:#e9bd62}.alive{fill:#dfe9f5}.steps{fill:#8fb3dd}.away{fill:#1c1e22;opacity:.1}\n"
    ".round{fill:#eef2f7;stroke:#8fb3dd}.save{fill:#0c8580}\n"
    "@media(prefers-color-scheme:dark){text{fill:#e6e7e9}.panel{fill:#1a1d21;stroke:#2c3036}\n"
    ".soft{fill:#9aa1a9}.good{fill:#55c78d}.bad{fill:#ff7b70}.doubt{fill:#efb455}\n"
    ".grid{stroke:#2c3036}.struck{stroke:#ff7b70}.lost{opacity:.15}.setup{fill:#b98a35}\n"
    ".alive{fill:#243446}.steps{fill:#4f7fb8}.away{fill:#fff}\n"
    ".round{fill:#202a36;stroke:#4f7fb8}.save{fill:#3fc1ba}}\n";

static int x_of(const struct picture *p, int64_t t_ns) {
    return LEFT + html_x(&p->h, t_ns) * (RIGHT - LEFT) / HTML_X;
}

static void put_text(struct picture *p, int x, int y, const char *class, const char *text) {
    html_put(&p->h, "<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, class, text);
}

static void put_box(struct picture *p, const char *class, int x, int width, int y, int height) {
    html_put(&p->h, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", class, x,
             y, width > 1 ? width : 1, height);
}

/* ---- rows: title, faults, rounds, lanes, checkpoints, axis ---- */

static void put_title(struct picture *p) {
    const struct recorded_run *run = p->h.run;
    enum finding_status status = report_status(run->verdict->exit_code);
    html_put(&p->h, "<text x=\"16\" y=\"27\" class=\"title %s\">%s %s %s</text>\n",
             html_tone(status), html_mark(status), run->scenario->name,
             report_outcome(run->verdict->exit_code));
}

static int64_t moment(const struct incident *i) {
    return i->in_force ? i->t0_ns : i->fired_ns;
}

/* Its text stands right of its moment, or left of it where the picture would end. */
static void put_fault(struct picture *p, const struct incident *i, int *ends) {
    BUF_FINI struct buf text = {0}, targets = {0};
    story_targets(i, &targets);
    buf_printf(&text, "%s%s%s", i->fault, targets.len ? " on " : "", buf_str(&targets));
    int at = x_of(p, moment(i)), width = (int)text.len * LETTER + 12, row = 0;
    int x = at + 4 + width <= WIDTH ? at + 4 : at - width > 0 ? at - width : 0;
    while (row < LABEL_ROWS - 1 && ends[row] > x)
        row++;
    ends[row] = x + width;
    put_text(p, x, p->y + 14 + 16 * row, i->in_force ? "bad" : "soft", buf_str(&text));
}

static void put_faults(struct picture *p) {
    const struct incidents *is = &p->h.incidents;
    int ends[LABEL_ROWS] = {0}, rows = 1;
    if (!is->n)
        return;
    put_text(p, 16, p->y + 14, "soft", "faults");
    for (size_t k = 0; k < is->n && is->n <= HTML_FAULTS; k++)
        put_fault(p, is->v[k], ends);
    for (int row = 0; row < LABEL_ROWS; row++)
        rows = ends[row] ? row + 1 : rows;
    p->y += 16 * rows + 8;
}

static void put_round(struct picture *p, const struct round *r) {
    int x = x_of(p, r->first_start_ns), width = x_of(p, html_round_end(&p->h, r)) - x;
    int64_t from = story_resume_step(r);
    BUF_FINI struct buf text = {0};
    put_box(p, "round", x, width, p->y, LANE - 2);
    buf_printf(&text, "%d", r->number);
    if (width > 100)
        buf_printf(&text, ": %d workers", r->world_size);
    if (width > 210 && from > 0)
        buf_printf(&text, ", from step %lld", (long long)from);
    if (width > 16)
        put_text(p, x + 5, p->y + 13, "", buf_str(&text));
}

static void put_rounds(struct picture *p) {
    const struct rounds *rs = p->h.run->rounds;
    put_text(p, 16, p->y + 13, "soft", "rounds");
    for (size_t i = 0; i < rs->n && i < WIDTH / 2; i++)
        put_round(p, rs->v[i]);
    p->y += LANE + 4;
}

/* Until its first step a worker is starting; then it is drawn as high as the step it is at. */
static void put_life(struct picture *p, const struct html_bar *b) {
    const struct worker *w = b->worker;
    int height = LANE - 4, floor = p->y + height, last = -1;
    int start = x_of(p, w->start_ns), end = x_of(p, w->exit_ns ? w->exit_ns : p->h.end_ns);
    int work = w->first_step_ns ? x_of(p, w->first_step_ns) : end;
    put_box(p, "setup", start, work - start, p->y, height);
    if (end > work)
        put_box(p, "alive", work, end - work, p->y, height);
    if (b->points_n) {
        html_put(&p->h, "<path class=\"steps\" d=\"M%d %d", x_of(p, b->points[0].t_ns), floor);
        for (size_t i = 0; i < b->points_n; i++) {
            int x = x_of(p, b->points[i].t_ns);
            if (x > last)
                html_put(&p->h, "L%d %d", x,
                         floor - (int)((height - 1) * b->points[i].step / p->h.last_step));
            last = x;
        }
        html_put(&p->h, "H%dV%dz\"/>\n", end, floor);
    }
    if (html_was_hit(&p->h, w))
        put_text(p, end - 4, p->y + 13, "bad", "\u2717");
}

/* All lives at one place. Returns how many there were. */
static size_t put_lane(struct picture *p, const struct html_bar *bars, size_t n) {
    const struct worker *w = bars->worker;
    const struct incidents *is = &p->h.incidents;
    BUF_FINI struct buf name = {0};
    size_t k = 0;
    buf_printf(&name, "%s/%d", w->node, w->local_rank);
    put_text(p, 16, p->y + 13, "soft", buf_str(&name));
    for (size_t i = 0; i < is->n; i++) {
        if (!html_took_away(is->v[i], w->node))
            continue;
        int x = x_of(p, is->v[i]->t0_ns),
            until = x_of(p, html_away_until(&p->h, is->v[i], w->node));
        put_box(p, "away", x, until - x, p->y - 2, LANE);
    }
    for (; k < n && html_same_lane(w, bars[k].worker); k++)
        put_life(p, &bars[k]);
    p->y += LANE;
    return k;
}

static void put_lanes(struct picture *p) {
    const struct html *h = &p->h;
    size_t at = 0, lanes = 0;
    for (; at < h->bars_n && lanes < LANES_MAX; lanes++)
        at += put_lane(p, &h->bars[at], h->bars_n - at);
    if (at < h->bars_n) {
        put_text(p, LEFT, p->y + 13, "soft", "Further workers are not drawn.");
        p->y += LANE;
    }
}

static void put_saves(struct picture *p) {
    int last = -1;
    history_each(r, p->h.run->history) {
        int x = x_of(p, r->t_ns);
        if (r->source != SOURCE_JOB || !record_is(r, "checkpoint-commit") || x <= last)
            continue;
        if (last < 0)
            put_text(p, 16, p->y + 14, "soft", "checkpoints");
        html_put(&p->h, "<path class=\"save\" d=\"M%d %dl4 4-4 4-4-4z\"/>\n", x, p->y + 6);
        last = x + 2;
    }
    p->y += last < 0 ? 0 : LANE;
}

/* The tick of that number, on a clock that began with the run. */
static int64_t tick_ns(const struct picture *p, int i) {
    return p->run_ns + (int64_t)(i * html_tick_seconds(&p->h) * 1e9);
}

static int first_tick(const struct picture *p) {
    double since_s = (double)(p->h.begin_ns - p->run_ns) / 1e9;
    return (int)(since_s / html_tick_seconds(&p->h) + 0.999);
}

static void put_axis(struct picture *p) {
    for (int i = first_tick(p); tick_ns(p, i) < p->h.end_ns; i++)
        html_put(&p->h,
                 "<text x=\"%d\" y=\"%d\" class=\"soft\" text-anchor=\"middle\">%g s</text>\n",
                 x_of(p, tick_ns(p, i)), p->y + 14, i * html_tick_seconds(&p->h));
    p->y += 24;
}

/* ---- what stands behind the rows, once their height is known ---- */

static void put_back(struct picture *p) {
    const struct incidents *is = &p->h.incidents;
    int floor = p->y - 22;
    html_put(&p->h, "<path class=\"grid\" d=\"");
    for (int i = first_tick(p); tick_ns(p, i) < p->h.end_ns; i++)
        html_put(&p->h, "M%d %dV%d", x_of(p, tick_ns(p, i)), p->first, floor);
    html_put(&p->h, "\"/>\n");
    for (size_t i = 0; i < is->n && i < HTML_FAULTS; i++) {
        int x = x_of(p, moment(is->v[i]));
        if (!is->v[i]->in_force)
            continue;
        if (is->v[i]->recover_ns > 0)
            put_box(p, "lost", x, x_of(p, is->v[i]->t0_ns + is->v[i]->recover_ns) - x, p->first,
                    floor - p->first);
        html_put(&p->h, "<path class=\"struck\" d=\"M%d %dV%d\"/>\n", x, p->first, floor);
    }
}

/* Time begins shortly before the first worker does: building the cluster shows nothing. */
static void skip_setup(struct picture *p) {
    struct html *h = &p->h;
    int64_t first_ns = h->end_ns;
    p->run_ns = h->begin_ns;
    for (size_t i = 0; i < h->bars_n; i++)
        first_ns = h->bars[i].worker->start_ns < first_ns ? h->bars[i].worker->start_ns : first_ns;
    for (size_t i = 0; i < h->incidents.n; i++)
        first_ns = moment(h->incidents.v[i]) < first_ns ? moment(h->incidents.v[i]) : first_ns;
    first_ns -= (h->end_ns - first_ns) / 50;
    if (first_ns > h->begin_ns && h->bars_n)
        h->begin_ns = first_ns;
}

static void put_rows(struct picture *p) {
    put_title(p);
    p->y = p->first = 40;
    put_faults(p);
    put_rounds(p);
    if (!p->h.bars_n)
        put_text(p, LEFT, p->y - LANE + 10, "doubt", "No worker was seen to start.");
    put_lanes(p);
    put_saves(p);
    put_axis(p);
}

static int render(const struct recorded_run *run, const struct report_style *unused,
                  struct buf *out, struct err *err) {
    BUF_FINI struct buf rows = {0};
    struct picture p = {.h = {.out = &rows, .run = run}};
    incidents_load(&p.h.incidents, run->history, run->rounds);
    html_bars(&p.h);
    skip_setup(&p);
    put_rows(&p);
    p.h.out = out;
    html_put(
        &p.h,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\">\n<title>"
        "%s: workers over time, with faults and rounds</title>\n<style>\n",
        WIDTH, p.y + 4, run->scenario->name);
    buf_puts(out, style);
    html_put(
        &p.h,
        "</style>\n<rect class=\"panel\" x=\".5\" y=\".5\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n",
        WIDTH - 1, p.y + 3);
    put_back(&p);
    buf_puts(out, buf_str(&rows));
    html_put(&p.h, "</svg>\n");
    incidents_fini(&p.h.incidents);
    arena_fini(&p.h.arena);
    return 0;
}

const struct report report_svg = {
    .name = "svg",
    .summary = "a picture: workers over time, rounds and faults, to be shown on another page",
    .render = render,
};
