/* The page's table of rounds. */
#include "reports/html.h"
#include "reports/story.h"

enum { ROWS_MAX = 300 };

static void put_step(struct html *h, int64_t step) {
    if (step < 0)
        html_put(h, "<td class=\"n\">\u2013</td>");
    else
        html_put(h, "<td class=\"n\">%lld</td>", (long long)step);
}

static void put_round(struct html *h, const struct round *r) {
    BUF_FINI struct buf why = {0};
    int64_t end_ns = round_ended_ns(r);
    html_put(h, "<tr><th>%d</th><td class=\"n\">%.3f s</td><td class=\"n\">", r->number,
             story_seconds(h->run, r->first_start_ns));
    if (end_ns)
        html_duration(h, end_ns - r->first_start_ns);
    else
        html_put(h, "\u2013");
    html_put(h, "</td><td class=\"n%s\">", r->complete ? "" : " doubt");
    if (!r->complete)
        html_put(h, "%d of ", r->started);
    html_put(h, "%d on %d node%s</td><td class=\"n\">%d</td>", r->world_size, round_nodes(r),
             html_plural((size_t)round_nodes(r)), r->workers[0]->restart_count);
    put_step(h, story_resume_step(r));
    put_step(h, story_last_step(r));
    story_round_end(&h->incidents, r, &why);
    html_put(h, "<td>%s</td></tr>\n", buf_str(&why));
}

void html_rounds(struct html *h) {
    const struct rounds *rs = h->run->rounds;
    if (!rs->n)
        return;
    html_put(h, "<section id=\"rounds\">\n<h2>Rounds</h2>\n<div class=\"wide\"><table>\n<thead><tr>"
                "<th>round</th><th class=\"n\">began</th><th class=\"n\">lasted</th>"
                "<th class=\"n\">workers</th><th class=\"n\">restarts</th>"
                "<th class=\"n\">from step</th><th class=\"n\">to step</th><th>until</th>"
                "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < rs->n && i < ROWS_MAX; i++)
        put_round(h, rs->v[i]);
    html_put(h, "</tbody>\n</table></div>\n");
    if (rs->n > ROWS_MAX)
        html_put(h, "<p class=\"soft\">%zu more are in report.json.</p>\n", rs->n - ROWS_MAX);
    html_put(h, "</section>\n");
}
