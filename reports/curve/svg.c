/* The curve as a picture: a panel for each measure that some run has. */
#include "reports/curve/curve.h"
#include "reports/escape.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 720, /* in units of the picture, as all that follows */
    LEFT = 64,
    RIGHT = WIDTH - 24,
    HEAD = 44,
    PANEL = 250, /* one measure with its axis */
    TOP = 28,    /* of a panel, above what is drawn */
    PLOT = 160,
    LETTER = 7, /* how wide one is, about */
    GRID = 4
};

static const char style[] =
    "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif;fill:#1c1e22}\n"
    ".panel{fill:#fff;stroke:#d5d4ce}.soft{fill:#62686f}.title{font-size:15px;font-weight:600}\n"
    ".grid{stroke:#e4e3de}.base{stroke:#62686f}.control{stroke:#17774a;stroke-dasharray:5 4}\n"
    ".line{fill:none;stroke:#3c6ca8;stroke-width:2}.spread{stroke:#8fb3dd;stroke-width:4;\n"
    "stroke-linecap:round}.dot{fill:#3c6ca8}.bad{fill:#bf2a23}.doubt{fill:#9a5f00}\n"
    "@media(prefers-color-scheme:dark){text{fill:#e6e7e9}.panel{fill:#1a1d21;stroke:#2c3036}\n"
    ".soft{fill:#9aa1a9}.grid{stroke:#2c3036}.base{stroke:#9aa1a9}.control{stroke:#55c78d}\n"
    ".line{stroke:#8db8ec}.spread{stroke:#35587f}.dot{fill:#8db8ec}.bad{fill:#ff7b70}\n"
    ".doubt{fill:#efb455}}\n";

static double scaled(const struct curve *c, double x) {
    return c->log ? log10(x) : x;
}

static int x_of(const struct curve *c, double x) {
    double low = scaled(c, c->runs[0].x), high = scaled(c, c->runs[c->n - 1].x);
    double share = high > low ? (scaled(c, x) - low) / (high - low) : 0.5;
    return LEFT + 24 + (int)(share * (RIGHT - LEFT - 48) + 0.5);
}

/* The highest that is drawn, rounded up to 1, 2 or 5 times a power of ten; goodput to 100 at least. */
static double top_of(const struct curve *c, enum curve_measure m) {
    double most = m == CURVE_GOODPUT ? 100 : 1;
    for (size_t i = 0; i < c->n; i++)
        if (curve_is_drawn(&c->runs[i], m) && c->runs[i].y[m] > most)
            most = c->runs[i].y[m];
    if (m == CURVE_GOODPUT)
        return ceil(most / 20 - 0.01) * 20;
    double power = pow(10, floor(log10(most)));
    return most <= power       ? power
           : most <= 2 * power ? 2 * power
           : most <= 5 * power ? 5 * power
                               : 10 * power;
}

static int y_of(int y, double figure, double top) {
    return y + TOP + PLOT - (int)(figure / top * PLOT + 0.5);
}

static void put_grid(struct buf *out, int y, double top, enum curve_measure m) {
    for (int i = 0; i <= GRID; i++) {
        int at = y_of(y, top * i / GRID, top);
        buf_printf(out, "<path class=\"%s\" d=\"M%d %dH%d\"/>\n", i ? "grid" : "base", LEFT, at,
                   RIGHT);
        buf_printf(out, "<text class=\"soft\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%g%s</text>\n",
                   LEFT - 8, at + 4, top * i / GRID, m == CURVE_GOODPUT ? "%" : "");
    }
    if (m == CURVE_GOODPUT)
        buf_printf(out, "<path class=\"control\" d=\"M%d %dH%d\"/>\n", LEFT, y_of(y, 100, top),
                   RIGHT);
}

/* A value whose text would cover the one before it has none. */
static void put_values(struct buf *out, const struct curve *c, int y) {
    int free_from = 0;
    for (size_t i = 0; i < c->n; i += curve_same(c, i)) {
        int x = x_of(c, c->runs[i].x), half = (int)strlen(c->runs[i].value) * LETTER / 2;
        if (x - half < free_from)
            continue;
        free_from = x + half + LETTER;
        escape_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x,
                      y + TOP + PLOT + 34, c->runs[i].value);
    }
    escape_printf(out, "<text class=\"soft\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s%s</text>\n",
                  RIGHT, y + TOP + PLOT + 52, c->key, c->log ? " (logarithmic)" : "");
}

/* Runs without a figure stand below the axis. */
static void put_signs(struct buf *out, const struct curve *c, size_t i, size_t n, int y,
                      enum curve_measure m) {
    BUF_FINI struct buf signs = {0};
    bool bad = false;
    for (size_t k = i; k < i + n; k++) {
        const struct curve_run *r = &c->runs[k];
        if (curve_is_drawn(r, m))
            continue;
        bad |= r->exit_code == 1 || r->exit_code == 3;
        buf_puts(&signs, r->exit_code == 0                        ? "\u2013"
                         : r->exit_code == 1 || r->exit_code == 3 ? "\u2717"
                                                                  : "?");
    }
    if (signs.len) {
        escape_printf(
            out, "<text class=\"%s\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
            bad ? "bad" : "doubt", x_of(c, c->runs[i].x), y + TOP + PLOT + 17, buf_str(&signs));
    }
}

static void put_dots(struct buf *out, const struct curve *c, size_t i, size_t n, int y, double top,
                     enum curve_measure m) {
    double low = INFINITY, high = -INFINITY;
    int x = x_of(c, c->runs[i].x);
    for (size_t k = i; k < i + n; k++)
        if (curve_is_drawn(&c->runs[k], m)) {
            low = fmin(low, c->runs[k].y[m]);
            high = fmax(high, c->runs[k].y[m]);
        }
    if (high > low)
        buf_printf(out, "<path class=\"spread\" d=\"M%d %dV%d\"/>\n", x, y_of(y, low, top),
                   y_of(y, high, top));
    for (size_t k = i; k < i + n; k++) {
        const struct curve_run *r = &c->runs[k];
        if (!curve_is_drawn(r, m))
            continue;
        BUF_FINI struct buf figure = {0};
        curve_put_figure(r, m, &figure);
        escape_printf(out,
                      "<circle class=\"dot\" cx=\"%d\" cy=\"%d\" r=\"4\"><title>%s: %s, seed "
                      "%lld</title></circle>\n",
                      x, y_of(y, r->y[m], top), r->value, buf_str(&figure), (long long)r->seed);
    }
}

/* The line leads through medians, and stops where a value has none. */
static void put_line(struct buf *out, const struct curve *c, int y, double top,
                     enum curve_measure m) {
    bool drawn = false;
    buf_puts(out, "<path class=\"line\" d=\"");
    for (size_t i = 0, n; i < c->n; i += n) {
        n = curve_same(c, i);
        double median = curve_median(c, i, n, m);
        if (isfinite(median))
            buf_printf(out, "%c%d %d", drawn ? 'L' : 'M', x_of(c, c->runs[i].x),
                       y_of(y, median, top));
        drawn = isfinite(median);
    }
    buf_puts(out, "\"/>\n");
}

static void put_panel(struct buf *out, const struct curve *c, int y, enum curve_measure m) {
    double top = top_of(c, m);
    buf_printf(out, "<text x=\"%d\" y=\"%d\">%s</text>\n", 16, y + 14, curve_title(m));
    put_grid(out, y, top, m);
    put_values(out, c, y);
    put_line(out, c, y, top, m);
    for (size_t i = 0, n; i < c->n; i += n) {
        n = curve_same(c, i);
        put_dots(out, c, i, n, y, top, m);
        put_signs(out, c, i, n, y, m);
    }
}

static void render(const struct curve *c, const struct report_style *unused, struct buf *out) {
    int panels = 0;
    for (int m = 0; m < CURVE_MEASURES; m++)
        panels += curve_has(c, (enum curve_measure)m) || m == CURVE_GOODPUT;
    int height = HEAD + panels * PANEL + 20, y = HEAD;
    escape_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\">\n"
                  "<title>%s over %s</title>\n<style>\n",
                  WIDTH, height, c->name, c->key);
    buf_puts(out, style);
    buf_printf(out,
               "</style>\n<rect class=\"panel\" x=\".5\" y=\".5\" width=\"%d\" height=\"%d\" "
               "rx=\"8\"/>\n",
               WIDTH - 1, height - 1);
    escape_printf(out, "<text class=\"title\" x=\"16\" y=\"27\">%s over %s</text>\n", c->name,
                  c->key);
    for (int m = 0; m < CURVE_MEASURES; m++)
        if (curve_has(c, (enum curve_measure)m) || m == CURVE_GOODPUT) {
            put_panel(out, c, y, (enum curve_measure)m);
            y += PANEL;
        }
    buf_printf(
        out,
        "<text class=\"soft\" x=\"16\" y=\"%d\">a dot: one run; line: medians; below the "
        "axis, without a figure: \u2717 failed, ? inconclusive, \u2013 not measured</text>\n",
        height - 10);
    buf_puts(out, "</svg>\n");
}

const struct curve_report curve_svg = {.name = "svg", .render = render};
