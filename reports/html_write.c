/* Writes text and numbers into a page, escaped. */
#include "reports/escape.h"
#include "reports/html.h"
#include "reports/story.h"

void html_put(struct html *h, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    escape_vprintf(h->out, fmt, ap);
    va_end(ap);
}

void html_labelled(struct html *h, const char *label, const char *text) {
    if (*text)
        html_put(h, "<dt>%s</dt><dd>%s</dd>\n", label, text);
}

static double share(const struct html *h, int64_t t_ns) {
    double part = ((double)t_ns - (double)h->begin_ns) / ((double)h->end_ns - (double)h->begin_ns);
    return part < 0 ? 0 : part > 1 ? 1 : part;
}

int html_x(const struct html *h, int64_t t_ns) {
    return (int)(share(h, t_ns) * HTML_X + 0.5);
}

double html_percent(const struct html *h, int64_t t_ns) {
    return share(h, t_ns) * 100;
}

void html_duration(struct html *h, int64_t ns) {
    double s = (double)ns / 1e9;
    if (s < 1)
        html_put(h, "%.*f\u00a0ms", s < 0.01 ? 1 : 0, s * 1e3);
    else if (s < 120)
        html_put(h, "%.*f\u00a0s", s < 10 ? 2 : 1, s);
    else
        html_put(h, "%lld\u00a0min %lld\u00a0s", (long long)(s / 60), (long long)s % 60);
}

void html_bound(struct html *h, int64_t bound_ns) {
    BUF_FINI struct buf text = {0};
    story_bound(bound_ns, true, &text);
    html_put(h, "%s", buf_str(&text));
}

const char *html_plural(size_t n) {
    return n == 1 ? "" : "s";
}

const char *html_tone(enum finding_status s) {
    return s == FINDING_PASS   ? "good"
           : s == FINDING_FAIL ? "bad"
           : s == FINDING_SKIP ? "soft"
                               : "doubt";
}

const char *html_mark(enum finding_status s) {
    return s == FINDING_PASS   ? "\u2713"
           : s == FINDING_FAIL ? "\u2717"
           : s == FINDING_SKIP ? "\u2013"
                               : "?";
}
