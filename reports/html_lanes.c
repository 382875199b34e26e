/* The page's lanes: one for each rank, with the lives of its workers. */
#include "reports/html.h"

#include "base/str.h"

#include <signal.h>

/* Beyond these a lane is drawn without words, and no further lane is drawn. */
enum { BARS_WITH_WORDS = 1200, LANES_MAX = 200 };

/* ---- one life of a worker ---- */

static int64_t end_of(const struct html *h, const struct worker *w) {
    return w->exit_ns ? w->exit_ns : h->end_ns;
}

bool html_was_hit(const struct html *h, const struct worker *w) {
    for (size_t i = 0; i < h->incidents.n; i++) {
        const struct incident *f = h->incidents.v[i];
        if (f->in_force && f->round && f->round->number == w->round && w->exit_ns >= f->fired_ns &&
            incident_hits(f, w) && (w->exit_code || w->exit_signal || !w->exit_known))
            return true;
    }
    return false;
}

/* Until its first step a worker is starting; then it is drawn as high as the step it is at. */
static void put_life(struct html *h, const struct html_bar *b) {
    const struct worker *w = b->worker;
    int start = html_x(h, w->start_ns), end = html_x(h, end_of(h, w));
    int work = w->first_step_ns ? html_x(h, w->first_step_ns) : end;
    html_put(h, "<path class=\"setup\" d=\"M%d 0H%dV100H%dz\"/>", start, work, start);
    if (end > work)
        html_put(h, "<path class=\"alive\" d=\"M%d 0H%dV100H%dz\"/>", work, end, work);
    if (!b->points_n)
        return;
    html_put(h, "<path class=\"steps\" d=\"M%d 100", html_x(h, b->points[0].t_ns));
    for (size_t i = 0; i < b->points_n; i++) {
        html_put(h, "L%d %d", html_x(h, b->points[i].t_ns),
                 (int)(100 - 92 * b->points[i].step / h->last_step));
    }
    html_put(h, "H%dV100z\"/>", end);
}

/* How a launcher ends a worker; any other signal is the worker's own misfortune. */
static bool is_stop(int signal) {
    return signal == SIGTERM || signal == SIGKILL || signal == SIGINT;
}

static void put_end(struct html *h, const struct worker *w) {
    bool good = w->exit_known && !w->exit_code && !w->exit_signal;
    bool hit = html_was_hit(h, w);
    bool bad = hit || (w->exit_known && (w->exit_code || !is_stop(w->exit_signal)));
    if (!w->exit_ns)
        return;
    html_put(h, "<i class=\"end %s\" style=\"left:%.2f%%\" title=\"rank %d, pid %lld: ",
             good  ? "good"
             : hit ? "hit"
             : bad ? "bad"
                   : "soft",
             html_percent(h, w->exit_ns), w->rank, (long long)w->pid);
    if (!w->exit_known)
        html_put(h, "ended");
    else if (w->exit_signal)
        html_put(h, "ended by signal %d", w->exit_signal);
    else
        html_put(h, "ended %d", w->exit_code);
    html_put(h, "%s at step %lld, record %lld\">%s</i>", hit ? " (a fault's target)" : "",
             (long long)(w->last_step > 0 ? w->last_step : 0), (long long)w->exit_seq,
             good             ? "\u2713"
             : bad            ? "\u2717"
             : !w->exit_known ? "?"
                              : "\u25a0");
}

static void put_words(struct html *h, const struct worker *w) {
    double left = html_percent(h, w->start_ns), width = html_percent(h, end_of(h, w)) - left;
    if (width > 5)
        html_put(h, "<span class=\"rank\" style=\"left:%.2f%%;width:%.2f%%\">rank %d</span>", left,
                 width, w->rank);
    put_end(h, w);
}

/* ---- a lane: all lives at one place ---- */

static void put_lane(struct html *h, const struct html_bar *bars, size_t n) {
    html_put(h,
             "<div class=\"row lane\"><b>%s/%d"
             "</b><div class=\"track\"><svg viewBox=\"0 0 %d 100\" preserveAspectRatio=\"none\" "
             "role=\"img\" aria-label=\"%zu lives of the worker\">",
             bars->worker->node, bars->worker->local_rank, HTML_X, n);
    int last = -1;
    for (size_t i = 0; i < n; i++) {
        int end = html_x(h, end_of(h, bars[i].worker));
        if (end > last || i == 0) /* what is too narrow to be seen is left out */
            put_life(h, &bars[i]);
        last = end;
    }
    html_put(h, "</svg>");
    for (size_t i = 0; i < n && h->bars_n <= BARS_WITH_WORDS; i++)
        put_words(h, bars[i].worker);
    html_put(h, "</div></div>\n");
}

/* ---- a node: its agent or store, and when it was away ---- */

/* From t on, when the node of that name is switched on again. */
static int64_t back_again_ns(const struct html *h, const char *node, int64_t t_ns) {
    history_each(r, h->run->history) {
        if (r->t_ns > t_ns && r->source == SOURCE_HARNESS && record_is(r, "node-up") &&
            str_eq(r->node, node))
            return r->t_ns;
    }
    return h->end_ns;
}

int64_t html_away_until(const struct html *h, const struct incident *f, const char *node) {
    return f->recovered && f->recovered_ns > f->t0_ns ? f->recovered_ns
                                                      : back_again_ns(h, node, f->t0_ns);
}

static void put_away(struct html *h, const struct incident *f, const char *node) {
    double left = html_percent(h, f->t0_ns);
    html_put(h,
             "<i class=\"%s\" style=\"left:%.2f%%;width:%.2f%%\" title=\"%s: %s"
             "\"></i>",
             incident_has(f, EFFECTS_TAKE_AGENT) ? "away" : "cut", left,
             html_percent(h, html_away_until(h, f, node)) - left, node, f->fault);
}

bool html_took_away(const struct incident *f, const char *node) {
    for (size_t k = 0; f->in_force && k < f->targets_n; k++)
        if (str_eq(f->targets[k].node, node) && str_eq(f->targets[k].what, "node"))
            return incident_has(f, EFFECTS_TAKE_AGENT) || f->recovered;
    return false;
}

static void put_aways(struct html *h, const char *node) {
    for (size_t i = 0; i < h->incidents.n; i++)
        if (html_took_away(h->incidents.v[i], node))
            put_away(h, h->incidents.v[i], node);
}

static void put_service(struct html *h, const char *node) {
    int64_t since_ns = 0;
    html_put(h, "<path class=\"agent\" d=\"");
    history_each(r, h->run->history) {
        if (r->source != SOURCE_KERNEL || !str_eq(r->node, node))
            continue;
        if (record_is(r, "agent-start") || record_is(r, "store-start"))
            since_ns = r->t_ns;
        if (!(record_is(r, "agent-exit") || record_is(r, "store-exit")) || !since_ns)
            continue;
        html_put(h, "M%d 50H%d", html_x(h, since_ns), html_x(h, r->t_ns));
        since_ns = 0;
    }
    if (since_ns)
        html_put(h, "M%d 50H%d", html_x(h, since_ns), HTML_X);
    html_put(h, "\"/>");
}

static void put_node(struct html *h, const char *node) {
    html_put(h,
             "<div class=\"row node\"><b>%s"
             "</b><div class=\"track\" title=\"the agent or store of %s"
             "\"><svg viewBox=\"0 0 %d 100\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
             node, node, HTML_X);
    put_service(h, node);
    html_put(h, "</svg></div></div>\n");
}

/* The node, and of its lanes as many as may still be drawn. Returns the bars that were its. */
static size_t put_group(struct html *h, const char *node, size_t at, size_t *lanes) {
    size_t n = 0;
    html_put(h, "<div class=\"group\"><div class=\"over\">");
    put_aways(h, node);
    html_put(h, "</div>\n");
    put_node(h, node);
    for (size_t k; at + n < h->bars_n && str_eq(h->bars[at + n].worker->node, node); n += k) {
        const struct worker *w = h->bars[at + n].worker;
        for (k = 1; at + n + k < h->bars_n && html_same_lane(w, h->bars[at + n + k].worker);)
            k++;
        if (*lanes < LANES_MAX)
            put_lane(h, &h->bars[at + n], k);
        ++*lanes;
    }
    html_put(h, "</div>\n");
    return n;
}

void html_lanes(struct html *h) {
    size_t lanes = 0;
    for (size_t i = 0, at = 0; i < h->nodes_n; i++)
        at += put_group(h, h->nodes[i], at, &lanes);
    if (lanes > LANES_MAX)
        html_put(h, "<p class=\"soft\">%zu more lanes of workers are not drawn.</p>\n",
                 lanes - LANES_MAX);
}
