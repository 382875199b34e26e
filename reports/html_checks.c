#include "reports/html.h"
#include "reports/story.h"

enum { RECORD_SHOWN = 700 }; /* characters of a record; an environment can be long */

static void put_record(struct html *h, int64_t seq) {
    const struct record *r = html_record(h, seq);
    if (!r)
        return;
    struct buf line = {0};
    struct json_writer w = {.out = &line};
    record_put(r, &w);
    html_raw(h, "<code>");
    html_printf(h, "%.*s%s", RECORD_SHOWN, buf_str(&line), line.len > RECORD_SHOWN ? " ..." : "");
    html_raw(h, "</code>\n");
    buf_fini(&line);
}

/* The numbers, and the records themselves for whoever opens them. */
static void put_evidence(struct html *h, const struct finding *f) {
    size_t n = 0;
    while (n < sizeof(f->evidence) / sizeof(*f->evidence) && f->evidence[n])
        n++;
    if (!n)
        return;
    html_raw(h, "<details><summary>record%s", html_plural(n));
    for (size_t i = 0; i < n; i++)
        html_raw(h, "%s %lld", i ? "," : "", (long long)f->evidence[i]);
    html_raw(h, "</summary>\n");
    for (size_t i = 0; i < n; i++)
        put_record(h, f->evidence[i]);
    html_raw(h, "</details>\n");
}

static void put_line(struct html *h, const char *label, const char *text) {
    if (!*text)
        return;
    html_raw(h, "<dt>%s</dt><dd>", label);
    html_text(h, text);
    html_raw(h, "</dd>\n");
}

static void put_check(struct html *h, const struct finding *f) {
    bool open = f->status == FINDING_FAIL || f->status == FINDING_UNKNOWN;
    html_raw(h, "<li class=\"%s\"><span class=\"mark\" title=\"%s\">%s</span><b>",
             html_tone(f->status), finding_status_name(f->status), html_mark(f->status));
    html_text(h, f->check);
    html_raw(h, "</b><div><p>");
    html_text(h, f->seen);
    html_raw(h, "</p>\n");
    if (open) {
        html_raw(h, "<dl>");
        put_line(h, "broken", f->broken);
        put_line(h, "expected", f->expected);
        put_line(h, "look at", f->where);
        html_raw(h, "</dl>\n");
    }
    put_evidence(h, f);
    html_raw(h, "</div></li>\n");
}

void html_checks(struct html *h) {
    static const enum finding_status order[] = {FINDING_FAIL, FINDING_UNKNOWN, FINDING_PASS,
                                                FINDING_SKIP};
    const struct verdict *v = h->run->verdict;
    struct buf lost = {0};
    story_lost(v, &lost);
    html_raw(h, "<section id=\"checks\">\n<h2>Checks</h2>\n");
    if (lost.len) {
        html_raw(h, "<p>");
        html_text(h, buf_str(&lost));
        html_raw(h, "</p>\n");
    }
    buf_fini(&lost);
    html_raw(h, "<ul class=\"checks\">\n");
    for (size_t k = 0; k < sizeof(order) / sizeof(*order); k++)
        for (size_t i = 0; i < v->n; i++)
            if (v->v[i].status == order[k])
                put_check(h, &v->v[i]);
    html_raw(h, "</ul>\n</section>\n");
}
