#include "reports/crash_points.h"

const char *const crash_point_words[CRASH_POINT_VERDICTS] = {
    [CRASH_POINT_UNTRIED] = "not tried",
    [CRASH_POINT_EQUAL] = "resumed bit-equal",
    [CRASH_POINT_BAND] = "resumed within the loss band",
    [CRASH_POINT_RESUMED] = "resumed",
    [CRASH_POINT_LOST] = "lost work",
    [CRASH_POINT_FAILED] = "hard failure",
    [CRASH_POINT_DIVERGED] = "silent divergence",
    [CRASH_POINT_HUNG] = "hang",
};
const char *const crash_point_deaths[CRASH_POINT_DEATHS] = {"process", "kernel", "power"};

enum finding_status crash_point_status(enum crash_point_verdict v) {
    return v == CRASH_POINT_UNTRIED ? FINDING_SKIP
           : v < CRASH_POINT_LOST   ? FINDING_PASS
                                    : FINDING_FAIL;
}

/* Who does not start is seen by somebody; who diverges is not. */
enum crash_point_verdict crash_point_worse(enum crash_point_verdict a, enum crash_point_verdict b) {
    static const int rank[CRASH_POINT_VERDICTS] = {
        [CRASH_POINT_UNTRIED] = 0, [CRASH_POINT_EQUAL] = 1,    [CRASH_POINT_BAND] = 2,
        [CRASH_POINT_RESUMED] = 3, [CRASH_POINT_LOST] = 4,     [CRASH_POINT_FAILED] = 5,
        [CRASH_POINT_HUNG] = 6,    [CRASH_POINT_DIVERGED] = 7,
    };
    return rank[a] >= rank[b] ? a : b;
}

/* ---- for a terminal ---- */

static void put_table(struct page *p, const struct crash_points *c) {
    page_line(p);
    for (int d = 0; d < CRASH_POINT_DEATHS; d++) {
        page_tab(p, 32 + 10 * d);
        page_printf(p, INK_DIM, "%8s", crash_point_deaths[d]);
    }
    page_line(p);
    for (int v = CRASH_POINT_VERDICTS - 1; v >= 0; v--) {
        size_t all = 0;
        for (int d = 0; d < CRASH_POINT_DEATHS; d++)
            all += c->counts[v][d];
        if (!all)
            continue;
        enum finding_status s = crash_point_status(v);
        page_put(p, page_ink(s), page_mark(p, s));
        page_tab(p, 2);
        page_put(p, INK_PLAIN, crash_point_words[v]);
        for (int d = 0; d < CRASH_POINT_DEATHS; d++) {
            page_tab(p, 32 + 10 * d);
            page_printf(p, INK_PLAIN, "%8zu", c->counts[v][d]);
        }
        page_line(p);
    }
}

static void put_finding(struct page *p, const struct crash_point_finding *f, size_t i) {
    page_line(p);
    page_printf(p, INK_BAD, "%zu. %s", i + 1, crash_point_words[f->verdict]);
    page_printf(p, INK_DIM, " (%zu state%s)", f->states, f->states == 1 ? "" : "s");
    page_line(p);
    page_labelled(p, 3, INK_DIM, "what", 12, INK_STRONG, f->sentence ? f->sentence : "");
    page_labelled(p, 3, INK_DIM, "missing", 12, INK_PLAIN, f->missing ? f->missing : "");
    page_labelled(p, 3, INK_DIM, "seen", 12, INK_PLAIN, f->seen ? f->seen : "");
    page_labelled(p, 3, INK_DIM, "way out", 12, INK_PLAIN, f->fix ? f->fix : "");
    page_labelled(p, 3, INK_DIM, "look at", 12, INK_PLAIN, f->look ? f->look : "");
    page_labelled(p, 3, INK_DIM, "repeat", 12, INK_PLAIN, f->repeat ? f->repeat : "");
}

void crash_points_put(const struct crash_points *c, const struct report_style *style,
                      struct buf *out) {
    struct page p = {.out = out, .style = *style};
    p.style.whole_words = true;
    page_line(&p);
    for (const char *const *f = c->facts; f && *f; f++)
        page_wrap(&p, 2, INK_PLAIN, *f);
    put_table(&p, c);
    for (size_t i = 0; i < c->findings_n; i++)
        put_finding(&p, &c->findings[i], i);
    page_line(&p);
    enum finding_status s = report_status(c->exit_code);
    page_put(&p, page_ink(s),
             s == FINDING_PASS   ? "nothing was found"
             : s == FINDING_FAIL ? "the job does not survive every crash of its saves"
                                 : report_outcome(c->exit_code));
    page_line(&p);
}

enum crash_point_verdict crash_point_row_worst(const struct crash_point_row *r) {
    enum crash_point_verdict worst = CRASH_POINT_UNTRIED;
    for (int d = 0; d < CRASH_POINT_DEATHS; d++)
        worst = crash_point_worse(worst, r->worst[d]);
    return worst;
}
