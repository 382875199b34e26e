/* The comparison as JSON. */
#include "reports/comparison/comparison.h"
#include "reports/story.h"

static void put_launchers(const struct comparison *c, struct json_writer *w) {
    json_array(w, "launchers");
    for (size_t i = 0; i < c->launchers_n; i++) {
        json_object(w, NULL);
        json_put_string(w, "name", c->launchers[i].name);
        json_put_string(w, "launcher", c->launchers[i].words);
        json_put_string(w, "rootfs", c->launchers[i].rootfs);
        json_put_string(w, "version", c->launchers[i].version);
        json_end_object(w);
    }
    json_end_array(w);
}

static void put_cell(const struct comparison_launcher *l, const struct comparison_cell *cell,
                     struct json_writer *w) {
    json_object(w, NULL);
    json_put_string(w, "launcher", l->name);
    json_put_string(w, "outcome", report_outcome(cell->exit_code));
    json_put_i64(w, "exit_code", cell->exit_code);
    json_put_double(w, "took_s", (double)cell->took_ns / 1e9);
    json_put_string(w, "dir", cell->dir);
    if (!cell->judged) {
        json_put_string(w, "why", cell->why);
    } else {
        story_put_ms(w, "detect_ms", cell->detect_ns);
        story_put_ms(w, "recover_ms", cell->recover_ns);
        json_put_bool(w, "stayed_down", cell->stayed_down);
        verdict_json(&cell->verdict, w, "verdict");
    }
    json_end_object(w);
}

static void put_row(const struct comparison *c, const struct comparison_row *row,
                    struct json_writer *w) {
    const char *checks[COMPARISON_CHECKS_MAX];
    size_t n = comparison_differences(row, c->launchers_n, checks);
    json_object(w, NULL);
    json_put_string(w, "scenario", row->scenario);
    json_array(w, "differences");
    for (size_t i = 0; i < n; i++)
        json_put_string(w, NULL, checks[i]);
    json_end_array(w);
    json_array(w, "cells");
    for (size_t i = 0; i < c->launchers_n; i++)
        put_cell(&c->launchers[i], &row->cells[i], w);
    json_end_array(w);
    json_end_object(w);
}

static void render(const struct comparison *c, const struct report_style *style, struct buf *out) {
    struct json_writer w = {.out = out};
    json_object(&w, NULL);
    json_put_i64(&w, "v", 1);
    json_put_string(&w, "command", c->command);
    put_launchers(c, &w);
    json_array(&w, "rows");
    for (size_t i = 0; i < c->rows_n; i++)
        put_row(c, &c->rows[i], &w);
    json_end_array(&w);
    json_end_object(&w);
    buf_putc(out, '\n');
}

const struct comparison_report comparison_json = {
    .name = "json",
    .summary = "the table and every finding, for programs",
    .file = "comparison.json",
    .render = render,
};
