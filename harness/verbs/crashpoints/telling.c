/* What people and machines are told of it. */
#include "harness/verbs/crashpoints/crashing.h"

#include "base/json.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/printing.h"
#include "harness/crash/words.h"
#include "harness/play/announcement.h"

#include <stdarg.h>

void crashing_say(const struct crashing *c, const char *fmt, ...) {
    BUF_FINI struct buf text = {0};
    va_list ap;
    (void)c;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    announcement_say("%s", buf_str(&text));
}

static void put_trial(struct crashing *c, size_t i, struct buf *out) {
    const struct resumption *o = &c->trials[i];
    for (size_t k = 0; k < c->states.v[i].ways_n; k++) {
        const struct crash_way *way = &c->states.v[i].ways[k];
        BUF_FINI struct buf words = {0};
        struct json_writer w = {.out = out};
        int64_t lost;
        enum crash_point_verdict v = crashing_judge(c, o, way, &lost);
        crash_words_way(&c->states, way, &words);
        json_object(&w, NULL);
        json_put_string(&w, "name", crashing_name(c, i, way->point));
        json_put_i64(&w, "point", (int64_t)way->point);
        json_put_string(&w, "death", crash_death_names[way->death]);
        json_put_string(&w, "words", buf_str(&words));
        json_put_string(&w, "verdict", crash_point_words[v]);
        json_put_known(&w, "resumed", o->resumed >= 0, o->resumed);
        json_put_i64(&w, "lost", lost);
        json_put_string(&w, "result", attempt_result(c, o));
        json_put_double(&w, "seconds", (double)o->ran_ns / 1e9);
        if (crash_point_status(v) == FINDING_FAIL)
            json_put_string(&w, "last", o->why);
        json_end_object(&w);
        buf_putc(out, '\n');
    }
}

static int write_reports(struct crashing *c, struct err *err) {
    BUF_FINI struct buf html = {0};
    BUF_FINI struct buf junit = {0};
    BUF_FINI struct buf lines = {0};
    crash_points_html(&c->report, &html);
    crash_points_junit(&c->report, &junit);
    for (size_t i = 0; i < c->states.n && i < c->trials_n; i++)
        put_trial(c, i, &lines);
    int r = folder_write(&c->out, "report.html", html.data, html.len, err);
    if (r == 0)
        r = folder_write(&c->out, "junit.xml", junit.data, junit.len, err);
    if (r == 0)
        r = folder_write(&c->out, "trials.jsonl", buf_str(&lines), lines.len, err);
    if (r == 0 && c->junit)
        r = file_write_atomic(c->junit, junit.data, junit.len, err);
    return r;
}

int crashing_tell(struct crashing *c, struct err *err) {
    struct report_style style = report_style_of(stdout);
    BUF_FINI struct buf text = {0};
    crash_points_put(&c->report, &style, &text);
    printing_put(stdout, buf_str(&text), text.len);
    int r = write_reports(c, err);
    if (r == 0)
        printf("\n%s/report.html\n", c->out.path);
    return r;
}
