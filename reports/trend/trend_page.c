#include "reports/trend/trend_page.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/trend/rank_test.h"
#include "reports/escape.h"
#include "reports/plain_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 960, /* in units of the picture, as all that follows */
    LEFT = 80,
    RIGHT = WIDTH - 16,
    TOP = 12,
    PLOT = 170,
    HEIGHT = TOP + PLOT + 40,
    LETTER = 8, /* how wide one is, about */
    GRID = 4,
    DOTS_MAX = 2000, /* of one chart: the newest */
};

static const char style[] =
    "section{margin:2rem 0}svg{width:100%;display:block}h2{margin:0}p{margin:.2rem 0 .6rem}\n"
    "text{font:12px system-ui,sans-serif;fill:currentColor}.grid{stroke:#8883}.base{stroke:#8888}\n"
    ".line{fill:none;stroke:#3c6ca8;stroke-width:2}.dot{fill:#3c6ca8;fill-opacity:.45}\n"
    ".mark{stroke:#cf222e;stroke-width:2;stroke-dasharray:4 3}text.bad{fill:#cf222e}\n"
    "</style>\n";

struct chart {
    struct buf *out;
    const struct trend_series *s;
    size_t first; /* of what is drawn */
    double top;
};

static int x_of(const struct chart *c, size_t i) {
    size_t n = c->s->n - c->first;
    double share = n > 1 ? (double)(i - c->first) / (double)(n - 1) : 0.5;
    return LEFT + 10 + (int)(share * (RIGHT - LEFT - 20) + 0.5);
}

static int y_of(const struct chart *c, double value) {
    return TOP + PLOT - (int)(value / c->top * PLOT + 0.5);
}

static double top_of(const struct chart *c) {
    double most = 0;
    for (size_t i = c->first; i < c->s->n; i++)
        most = fmax(most, c->s->values[i]);
    double power = most > 0 ? pow(10, floor(log10(most))) : 1;
    return most <= power       ? power
           : most <= 2 * power ? 2 * power
           : most <= 5 * power ? 5 * power
                               : 10 * power;
}

static size_t same_commit(const struct trend_series *s, size_t i) {
    size_t n = 1;
    while (i + n < s->n && str_eq(s->runs[i + n]->origin.commit, s->runs[i]->origin.commit))
        n++;
    return n;
}

static void put_grid(struct chart *c) {
    for (int i = 0; i <= GRID; i++) {
        BUF_FINI struct buf figure = {0};
        int y = y_of(c, c->top * i / GRID);
        series_put_value(c->s->measure, c->top * i / GRID, &figure);
        buf_printf(c->out, "<path class=\"%s\" d=\"M%d %dH%d\"/>\n", i ? "grid" : "base", LEFT, y,
                   RIGHT);
        buf_printf(c->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", LEFT - 6,
                   y + 4, i ? buf_str(&figure) : "0");
    }
}

static void put_dots(struct chart *c) {
    for (size_t i = c->first; i < c->s->n; i++) {
        BUF_FINI struct buf figure = {0};
        series_put_value(c->s->measure, c->s->values[i], &figure);
        escape_printf(c->out,
                      "<circle class=\"dot\" cx=\"%d\" cy=\"%d\" r=\"3\"><title>%s at commit "
                      "%s on %s</title></circle>\n",
                      x_of(c, i), y_of(c, c->s->values[i]), buf_str(&figure),
                      c->s->runs[i]->origin.commit, c->s->runs[i]->origin.branch);
    }
}

/* Through the medians of commits; a commit whose name would cover the one before has none. */
static void put_commits(struct chart *c) {
    int free_from = 0;
    BUF_FINI struct buf line = {0};
    for (size_t i = c->first, n; i < c->s->n; i += n) {
        n = same_commit(c->s, i);
        double *v = mem_array(double, n);
        memcpy(v, c->s->values + i, n * sizeof(*v));
        int x = (x_of(c, i) + x_of(c, i + n - 1)) / 2, half = 7 * LETTER / 2;
        buf_printf(&line, "%c%d %d", line.len ? 'L' : 'M', x, y_of(c, rank_test_median(v, n)));
        free(v);
        if (x - half < free_from)
            continue;
        free_from = x + half + LETTER;
        char name[8];
        str_copy(name, sizeof(name), c->s->runs[i]->origin.commit);
        escape_printf(c->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x,
                      TOP + PLOT + 18, name);
    }
    buf_printf(c->out, "<path class=\"line\" d=\"%s\"/>\n", buf_str(&line));
}

static void put_bad(struct chart *c) {
    const struct trend_series *s = c->s;
    if (s->bad >= s->n || s->bad < c->first)
        return;
    int x = s->bad > c->first ? (x_of(c, s->bad - 1) + x_of(c, s->bad)) / 2 : x_of(c, s->bad);
    buf_printf(c->out, "<path class=\"mark\" d=\"M%d %dV%d\"/>\n", x, TOP, TOP + PLOT + 22);
    escape_printf(c->out,
                  "<text class=\"bad\" x=\"%d\" y=\"%d\" text-anchor=\"%s\">first bad commit: "
                  "%s</text>\n",
                  x, TOP + PLOT + 36, x > WIDTH / 2 ? "end" : "start",
                  s->runs[s->bad]->origin.commit);
}

static void put_chart(struct buf *out, const struct trend_series *s) {
    struct chart c = {.out = out, .s = s, .first = s->n > DOTS_MAX ? s->n - DOTS_MAX : 0};
    c.top = top_of(&c);
    escape_printf(out,
                  "<section>\n<h2>%s: %s</h2>\n<p class=\"dim\">%s on %s, %zu runs that passed",
                  s->scenario, s->measure, s->launcher, s->machine, s->n);
    if (s->bad < s->n) {
        escape_printf(out,
                      "</p>\n<p class=\"bad\">first bad commit: %s, slower by %.0f %% (p %.2g)",
                      s->runs[s->bad]->origin.commit, 100 * (s->why.ratio - 1), s->why.p);
    }
    buf_printf(out, "</p>\n<svg viewBox=\"0 0 %d %d\" role=\"img\">\n", WIDTH, HEIGHT);
    put_grid(&c);
    put_dots(&c);
    put_commits(&c);
    put_bad(&c);
    buf_puts(out, "</svg>\n</section>\n");
}

static void put_failures(struct buf *out, const struct logbook *l) {
    bool any = false;
    for (size_t i = 0; i < l->n; i++) {
        const struct trend_entry *e = l->v[i];
        if (e->exit_code != 1 && e->exit_code != 5)
            continue;
        buf_puts(out, any ? ""
                          : "<section>\n<h2>Runs that failed</h2>\n<table>\n<tr><th>commit</th>"
                            "<th>branch</th><th>scenario</th><th>check</th></tr>\n");
        any = true;
        escape_printf(out, "<tr><td><code>%s</code></td><td>%s</td><td>%s</td><td>%s</td></tr>\n",
                      e->origin.commit, e->origin.branch, e->scenario, e->check);
    }
    if (any)
        buf_puts(out, "</table>\n</section>\n");
}

void trend_page(const struct series_list *s, const struct logbook *l, struct buf *out) {
    buf_puts(out, plain_page_head);
    buf_puts(out, "<title>Trends</title>\n");
    buf_puts(out, plain_page_style);
    buf_puts(out, style);
    escape_printf(out,
                  "</head>\n<body>\n<h1>Trends</h1>\n<p>%zu runs. A dot is a run that passed; the "
                  "line leads through the medians of commits, in order of time.</p>\n",
                  l->n);
    for (size_t i = 0; i < s->n; i++)
        put_chart(out, &s->v[i]);
    put_failures(out, l);
    buf_puts(out, "</body>\n</html>\n");
}
