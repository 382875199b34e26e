/* The page's timeline: lanes, faults and recoveries in one drawing. */
#include "reports/html.h"
#include "reports/story.h"

#include <math.h>

enum { SAVES_MAX = 2000, PIN_ROWS = 4, LANES_FEW = 24 };

/* ---- behind everything: the grid, recoveries and the moments of the faults ---- */

double html_tick_seconds(const struct html *h) {
    double span = (double)(h->end_ns - h->begin_ns) / 1e9, step = 1e-3;
    while (step * 10 < span / 10)
        step *= 10;
    return step * 10 <= span / 5 && step * 5 < span / 10  ? step * 10
           : step * 5 <= span / 5 && step * 2 < span / 10 ? step * 5
           : step * 2 <= span / 5                         ? step * 2
                                                          : step;
}

static int64_t tick_ns(const struct html *h, int i) {
    return h->begin_ns + (int64_t)(i * html_tick_seconds(h) * 1e9);
}

static void put_back(struct html *h) {
    const struct incidents *is = &h->incidents;
    html_put(h,
             "<svg class=\"back\" viewBox=\"0 0 %d 100\" preserveAspectRatio=\"none\" "
             "aria-hidden=\"true\">\n<path class=\"grid\" d=\"",
             HTML_X);
    for (int i = 0; tick_ns(h, i) < h->end_ns; i++)
        html_put(h, "M%d 0V100", html_x(h, tick_ns(h, i)));
    html_put(h, "\"/>\n<path class=\"lost\" d=\"");
    for (size_t i = 0; i < is->n && i < HTML_FAULTS_SEEN; i++)
        if (is->v[i]->in_force && is->v[i]->recover_ns > 0)
            html_put(h, "M%d 0H%dV100H%dz", html_x(h, is->v[i]->t0_ns),
                     html_x(h, is->v[i]->t0_ns + is->v[i]->recover_ns), html_x(h, is->v[i]->t0_ns));
    html_put(h, "\"/>\n<path class=\"struck\" d=\"");
    for (size_t i = 0; i < is->n && is->n <= HTML_FAULTS; i++)
        if (is->v[i]->in_force)
            html_put(h, "M%d 0V100", html_x(h, is->v[i]->t0_ns));
    html_put(h, "\"/>\n</svg>\n");
}

static void put_axis(struct html *h) {
    html_put(h, "<div class=\"row axis\"><b></b><div class=\"track\">");
    for (int i = 0; tick_ns(h, i) < h->end_ns; i++)
        html_put(h,
                 i % 2 ? "<span class=\"odd\" style=\"left:%.2f%%\">%g\u00a0s</span>"
                       : "<span style=\"left:%.2f%%\">%g\u00a0s</span>",
                 html_percent(h, tick_ns(h, i)), i * html_tick_seconds(h));
    html_put(h, "</div></div>\n");
}

/* ---- faults: numbered as they are below ---- */

static void put_pin(struct html *h, size_t k, int row) {
    const struct incident *i = h->incidents.v[k];
    BUF_FINI struct buf targets = {0};
    story_targets(i, &targets);
    if (i->in_force && i->recovered)
        html_put(h, "<i class=\"lasting\" style=\"left:%.2f%%;width:%.2f%%;top:%dpx\"></i>",
                 html_percent(h, i->t0_ns),
                 html_percent(h, i->recovered_ns) - html_percent(h, i->t0_ns), row * 22 + 8);
    html_put(h,
             "<a class=\"pin%s\" href=\"#fault-%zu\" style=\"left:%.2f%%;top:%dpx\" title=\""
             "%s: %s %s%s\">%zu</a>",
             i->in_force ? "" : " void", k + 1,
             html_percent(h, i->in_force ? i->t0_ns : i->fired_ns), row * 22, i->id, i->fault,
             targets.len ? "on " : "", buf_str(&targets), k + 1);
}

/* Pins that would cover one another stand one below the other. */
static int pin_row(const struct html *h, size_t k, double *ends) {
    const struct incident *i = h->incidents.v[k];
    double at = html_percent(h, i->in_force ? i->t0_ns : i->fired_ns);
    int row = 0;
    while (row < PIN_ROWS - 1 && ends[row] > at)
        row++;
    ends[row] = at + 4;
    return row;
}

/* Of very many faults only when they were. */
static void put_ticks(struct html *h) {
    html_put(
        h,
        "<div class=\"row ticks\"><b>faults</b><div class=\"track\"><svg viewBox=\"0 0 %d 100\" "
        "preserveAspectRatio=\"none\" aria-hidden=\"true\"><path class=\"tick\" d=\"",
        HTML_X);
    for (size_t i = 0; i < h->incidents.n && i < HTML_FAULTS_SEEN; i++)
        if (h->incidents.v[i]->in_force)
            html_put(h, "M%d 0V100", html_x(h, h->incidents.v[i]->t0_ns));
    html_put(h, "\"/></svg></div></div>\n");
}

static void put_pins(struct html *h) {
    double ends[PIN_ROWS] = {0};
    size_t n = h->incidents.n;
    int rows = 0;
    for (size_t k = 0; k < n; k++) {
        int row = pin_row(h, k, ends);
        rows = row + 1 > rows ? row + 1 : rows;
    }
    html_put(h, "<div class=\"row pins\" style=\"height:%dpx\"><b>faults</b><div class=\"track\">",
             rows * 22);
    for (int row = 0; row < PIN_ROWS; row++)
        ends[row] = 0;
    for (size_t k = 0; k < n; k++)
        put_pin(h, k, pin_row(h, k, ends));
    html_put(h, "</div></div>\n");
}

/* ---- rounds and checkpoints ---- */

static void put_round(struct html *h, const struct round *r) {
    double left = html_percent(h, r->first_start_ns);
    double width = html_percent(h, html_round_end(h, r)) - left;
    int64_t from = story_resume_step(r);
    html_put(h,
             "<span class=\"round%s%s\" style=\"left:%.2f%%;width:%.2f%%\" title=\"round %d"
             ", %d of %d workers started",
             r->complete ? "" : " partial", width > 1.5 ? "" : " thin", left, width, r->number,
             r->started, r->world_size);
    if (from >= 0)
        html_put(h, ", from step %lld", (long long)from);
    html_put(h, "\">");
    if (width > 1.5)
        html_put(h, "<b>%d</b>", r->number);
    if (width > 6)
        html_put(h, " %d workers", r->world_size);
    if (width > 6 && from > 0)
        html_put(h, " <em>from step %lld</em>", (long long)from);
    html_put(h, "</span>");
}

static void put_rounds(struct html *h) {
    html_put(h, "<div class=\"row rounds\"><b>rounds</b><div class=\"track\">");
    for (size_t i = 0; i < h->run->rounds->n && i < HTML_X / 10; i++)
        put_round(h, h->run->rounds->v[i]);
    html_put(h, "</div></div>\n");
}

static bool is_save(const struct record *r) {
    return r->source == SOURCE_JOB && record_is(r, "checkpoint-commit");
}

static void put_saves(struct html *h) {
    size_t all = 0, k = 0;
    history_each(r, h->run->history) all += is_save(r);
    if (!all)
        return;
    html_put(h, "<div class=\"row saves\"><b>checkpoints</b><div class=\"track\">");
    history_each(r, h->run->history) {
        if (is_save(r) && k++ % (all / SAVES_MAX + 1) == 0)
            html_put(h, "<i style=\"left:%.2f%%\" title=\"step %lld\"></i>",
                     html_percent(h, r->t_ns), (long long)record_i64(r, "step", 0));
    }
    html_put(h, "</div></div>\n");
}

/* The moments that show what is wrong: where the eye should go. */
static void put_moments(struct html *h) {
    const struct finding *f = verdict_first(h->run->verdict);
    if (!f || !f->evidence[0])
        return;
    html_put(h, "<div class=\"row moments\"><b>seen here</b><div class=\"track\">");
    for (size_t i = 0; i < sizeof(f->evidence) / sizeof(*f->evidence) && f->evidence[i]; i++) {
        const struct record *r = history_record(h->run->history, f->evidence[i]);
        if (!r)
            continue;
        html_put(h,
                 "<i style=\"left:%.2f%%\" title=\"record %lld, evidence of %s"
                 "\">\u25bc</i>",
                 html_percent(h, r->t_ns), (long long)r->seq, f->check);
    }
    html_put(h, "</div></div>\n");
}

static void put_legend(struct html *h) {
    html_put(h, "<p class=\"legend\"><span><i class=\"k setup\"></i>starting</span>"
                "<span><i class=\"k train\"></i>training (height: its step)</span>"
                "<span><i class=\"k lost\"></i>recovering</span>"
                "<span><i class=\"k off\"></i>node away</span>"
                "<span><i class=\"k save\"></i>checkpoint</span>"
                "<span><i class=\"end good\">\u2713</i>ended well</span>"
                "<span><i class=\"end soft\">\u25a0</i>stopped by launcher</span>"
                "<span><i class=\"end bad\">\u2717</i>ended badly</span>"
                "<span><i class=\"end hit\">\u2717</i>hit by a fault</span></p>\n");
}

static int largest_world(const struct html *h) {
    int most = 0;
    for (size_t i = 0; i < h->run->rounds->n; i++)
        most = h->run->rounds->v[i]->started > most ? h->run->rounds->v[i]->started : most;
    return most;
}

void html_timeline(struct html *h) {
    html_put(h, "<section id=\"timeline\">\n<h2>What happened</h2>\n");
    if (!h->bars_n) {
        html_put(h, "<p class=\"doubt\">No worker was seen to start.</p>\n</section>\n");
        return;
    }
    put_legend(h);
    bool many = largest_world(h) > LANES_FEW; /* the curves say more, and come first */
    html_put(h, "<div class=\"chart%s\" data-seconds=\"%.6f\">\n", many ? " dense" : "",
             (double)(h->end_ns - h->begin_ns) / 1e9);
    put_back(h);
    put_axis(h);
    if (h->incidents.n > HTML_FAULTS)
        put_ticks(h);
    else if (h->incidents.n)
        put_pins(h);
    put_moments(h);
    put_rounds(h);
    if (!many)
        html_lanes(h);
    put_saves(h);
    html_curves(h);
    if (many)
        html_lanes(h);
    html_put(h, "</div>\n</section>\n");
}
