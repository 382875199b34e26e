/* The page's clocks, of a run whose nodes do not all share the harness's. */
#include "reports/html.h"
#include "reports/story.h"

static void put_clock(struct html *h, const struct node_clock *c) {
    BUF_FINI struct buf text = {0};
    story_clock(c, true, &text);
    html_put(h, "<tr><td>%s</td><td>%s</td></tr>\n", c->node, buf_str(&text));
}

void html_clocks(struct html *h) {
    struct clocks c;
    clocks_load(&c, h->run->history);
    if (c.n) {
        html_put(
            h,
            "<section id=\"clocks\">\n<h2>Clocks</h2>\n<p>These hosts have a clock of their own. "
            "What was stamped there is told in ours, and two moments that are closer than "
            "the clocks are known have no order.</p>\n<table>\n"
            "<tr><th>node</th><th>clock of its host</th></tr>\n");
        for (size_t i = 0; i < c.n; i++)
            put_clock(h, &c.v[i]);
        html_put(h, "</table>\n</section>\n");
    }
    clocks_fini(&c);
}
