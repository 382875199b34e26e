/* What is told of clocks, and of times between two of them. */
#include "reports/story.h"

#include <inttypes.h>

void story_bound(int64_t bound_ns, bool unicode, struct buf *out) {
    char text[40];
    buf_puts(out, clocks_text(text, sizeof(text), bound_ns, unicode));
}

void story_clock(const struct node_clock *c, bool unicode, struct buf *out) {
    int64_t bound_ns = c->stamped ? c->most_ns : c->bound_ns;
    buf_puts(out, c->host);
    if (c->samples)
        buf_printf(out, ": %.6f s %s, asked %" PRId64 " time%s",
                   (double)c->ahead_ns / (c->ahead_ns < 0 ? -1e9 : 1e9),
                   c->ahead_ns < 0 ? "behind" : "ahead", c->samples, c->samples == 1 ? "" : "s");
    else
        buf_puts(out, ": how far ahead is not recorded");
    buf_puts(out, bound_ns ? ", its stamps known to" : "");
    story_bound(bound_ns, unicode, out);
    if (c->steps)
        buf_printf(out, ", set %s", c->steps == 1 ? "once" : "several times");
}
