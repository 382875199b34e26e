/* The page's list of checks, with the records that prove each finding. */
#include "reports/html.h"
#include "reports/story.h"

enum { RECORD_SHOWN = 700 }; /* characters of a record; an environment can be long */

static void put_record(struct html *h, int64_t seq) {
    const struct record *r = history_record(h->run->history, seq);
    if (!r)
        return;
    BUF_FINI struct buf line = {0};
    struct json_writer w = {.out = &line};
    record_put(r, &w);
    html_put(h, "<code>%.*s%s</code>\n", RECORD_SHOWN, buf_str(&line),
             line.len > RECORD_SHOWN ? " ..." : "");
}

/* The numbers, and the records themselves for whoever opens them. */
static void put_evidence(struct html *h, const struct finding *f) {
    size_t n = 0;
    while (n < sizeof(f->evidence) / sizeof(*f->evidence) && f->evidence[n])
        n++;
    if (!n)
        return;
    html_put(h, "<details><summary>record%s", html_plural(n));
    for (size_t i = 0; i < n; i++)
        html_put(h, "%s %lld", i ? "," : "", (long long)f->evidence[i]);
    html_put(h, "</summary>\n");
    for (size_t i = 0; i < n; i++)
        put_record(h, f->evidence[i]);
    html_put(h, "</details>\n");
}

static void put_check(struct html *h, const struct finding *f) {
    bool open = f->status == FINDING_FAIL || f->status == FINDING_UNKNOWN;
    html_put(h,
             "<li class=\"%s\"><span class=\"mark\" title=\"%s\">%s</span><b>%s"
             "</b><div><p>%s</p>\n",
             html_tone(f->status), finding_status_name(f->status), html_mark(f->status), f->check,
             f->seen);
    if (open) {
        html_put(h, "<dl>");
        html_labelled(h, "broken", f->broken);
        html_labelled(h, "expected", f->expected);
        html_labelled(h, "look at", f->where);
        html_put(h, "</dl>\n");
    }
    put_evidence(h, f);
    html_put(h, "</div></li>\n");
}

void html_checks(struct html *h) {
    static const enum finding_status order[] = {FINDING_FAIL, FINDING_UNKNOWN, FINDING_PASS,
                                                FINDING_SKIP};
    const struct verdict *v = h->run->verdict;
    BUF_FINI struct buf lost = {0}, loud = {0};
    story_lost(v, &lost);
    story_loud(v, &loud);
    html_put(h, "<section id=\"checks\">\n<h2>Checks</h2>\n");
    if (lost.len) {
        html_put(h, "<p>%s</p>\n", buf_str(&lost));
    }
    if (loud.len) {
        html_put(h, "<p>Beware: %s</p>\n", buf_str(&loud));
    }
    html_put(h, "<ul class=\"checks\">\n");
    for (size_t k = 0; k < sizeof(order) / sizeof(*order); k++)
        for (size_t i = 0; i < v->n; i++)
            if (v->v[i].status == order[k])
                put_check(h, &v->v[i]);
    html_put(h, "</ul>\n</section>\n");
}
