/* The page's curves: how many workers run, and the loss. */
#include "reports/html.h"

#include <math.h>
#include <stdlib.h>

enum { LOSS_POINTS = 1500 };

/* ---- how many workers run ---- */

struct html_curves_change {
    int64_t t_ns;
    int by;
};

static int compare_changes(const void *pa, const void *pb) {
    const struct html_curves_change *a = pa, *b = pb;
    if (a->t_ns != b->t_ns)
        return a->t_ns < b->t_ns ? -1 : 1;
    return a->by - b->by;
}

static size_t read_changes(struct html *h, struct html_curves_change *v) {
    size_t n = 0;
    for (size_t i = 0; i < h->bars_n; i++) {
        const struct worker *w = h->bars[i].worker;
        v[n++] = (struct html_curves_change){w->start_ns, 1};
        if (w->exit_ns)
            v[n++] = (struct html_curves_change){w->exit_ns, -1};
    }
    qsort(v, n, sizeof(*v), compare_changes);
    return n;
}

static int largest(const struct rounds *rs) {
    int most = 1;
    for (size_t i = 0; i < rs->n; i++)
        most = rs->v[i]->world_size > most ? rs->v[i]->world_size : most;
    return most;
}

static void put_running(struct html *h) {
    struct html_curves_change *v =
        arena_array(&h->arena, struct html_curves_change, h->bars_n * 2 + 1);
    size_t n = read_changes(h, v);
    int running = 0, most = largest(h->run->rounds);
    html_put(h, "<path class=\"running\" d=\"M0 100");
    for (size_t i = 0; i < n; i++) {
        running += v[i].by;
        int x = html_x(h, v[i].t_ns);
        if (i + 1 == n || html_x(h, v[i + 1].t_ns) != x)
            html_put(h, "H%dV%d", x, 100 - 90 * (running < most ? running : most) / most);
    }
    html_put(h, "H%dV100z\"/>", HTML_X);
}

/* What each round was to have, as a line over what it had. */
static void put_wanted(struct html *h) {
    const struct rounds *rs = h->run->rounds;
    int most = largest(rs), last = -1;
    html_put(h, "<path class=\"wanted\" d=\"");
    for (size_t i = 0; i < rs->n; i++) {
        int x = html_x(h, rs->v[i]->first_start_ns);
        int end = i + 1 < rs->n ? html_x(h, rs->v[i + 1]->first_start_ns)
                                : html_x(h, html_round_end(h, rs->v[i]));
        if (end > last)
            html_put(h, "%c%d %dH%d", i ? 'L' : 'M', x, 100 - 90 * rs->v[i]->world_size / most,
                     end);
        last = end;
    }
    html_put(h, "\"/>");
}

static void begin_curve(struct html *h, const char *name) {
    html_put(h,
             "<div class=\"row curve\"><b>%s</b><div class=\"track\">"
             "<svg viewBox=\"0 0 %d 100\" preserveAspectRatio=\"none\" role=\"img\" "
             "aria-label=\"%s over time\">",
             name, HTML_X, name);
}

/* ---- loss: of rank 0, or of whoever told it, one line for each round ---- */

struct html_curves_loss {
    double lowest, highest, first, last;
    size_t seen;
};

static double loss_of(const struct record *r) {
    return r->source == SOURCE_JOB && record_is(r, "step") ? json_number(record_get(r, "loss"), NAN)
                                                           : NAN;
}

static const struct worker *teller(const struct round *r) {
    const struct worker *w = round_rank(r, 0);
    for (size_t i = 0; i < r->n && (!w || w->last_step < 0); i++)
        w = r->workers[i];
    return w;
}

/* The round whose losses the record tells, or NULL. rs->v[*at] is where the time has come to. */
static const struct round *told_by(const struct rounds *rs, const struct record *r, size_t *at) {
    while (*at + 1 < rs->n && rs->v[*at + 1]->first_start_ns <= r->t_ns)
        ++*at;
    for (size_t i = *at + 1; i-- > 0 && i + 2 > *at;) {
        const struct worker *w = teller(rs->v[i]);
        if (w && w->pid == r->pid)
            return rs->v[i];
    }
    return NULL;
}

static struct html_curves_loss read_loss(const struct html *h) {
    const struct rounds *rs = h->run->rounds;
    struct html_curves_loss l = {.lowest = INFINITY, .highest = -INFINITY};
    size_t at = 0;
    history_each(r, h->run->history) {
        double loss = loss_of(r);
        if (!isfinite(loss) || !told_by(rs, r, &at))
            continue;
        l.lowest = loss < l.lowest ? loss : l.lowest;
        l.highest = loss > l.highest ? loss : l.highest;
        l.first = l.seen++ ? l.first : loss;
        l.last = loss;
    }
    return l;
}

static void put_loss(struct html *h, const struct html_curves_loss *l) {
    const struct rounds *rs = h->run->rounds;
    const struct round *drawn = NULL;
    double range = l->highest > l->lowest ? l->highest - l->lowest : 1;
    size_t at = 0, k = 0, stride = l->seen / LOSS_POINTS + 1;
    html_put(h, "<path class=\"loss\" d=\"");
    history_each(r, h->run->history) {
        double loss = loss_of(r);
        const struct round *told = isfinite(loss) ? told_by(rs, r, &at) : NULL;
        if (!told || (k++ % stride && told == drawn && k != l->seen))
            continue;
        html_put(h, "%c%d %.1f", told == drawn ? 'L' : 'M', html_x(h, r->t_ns),
                 95 - 90 * (loss - l->lowest) / range);
        drawn = told;
    }
    html_put(h, "\"/>");
}

void html_curves(struct html *h) {
    struct html_curves_loss l = read_loss(h);
    begin_curve(h, "workers");
    put_running(h);
    put_wanted(h);
    html_put(h, "</svg><span class=\"top\">%d</span></div></div>\n", largest(h->run->rounds));
    if (!l.seen)
        return;
    begin_curve(h, "loss");
    put_loss(h, &l);
    html_put(
        h, "</svg><span class=\"top\">%.3g</span><span class=\"bottom\">%.3g</span></div></div>\n",
        l.highest, l.lowest);
}
