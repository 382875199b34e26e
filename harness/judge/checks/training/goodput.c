/* Measures the share of the time in which steps were made that count. */
#include "harness/history/goodput.h"
#include "harness/judge/checks/check.h"

static const char broken[] = "Goodput: most of the time goes into steps that count.";

static const char *idle(const struct scenario *s) {
    return !s->expect.goodput ? "the scenario sets no goodput" : NULL;
}

static bool judge(const struct trial *t, struct finding *f) {
    struct goodput g;
    if (!check_sees_rounds(t, f))
        return false;
    goodput_measure(&g, t->history, t->rounds);
    if (g.unknown)
        return finding_unknown(f, broken, "%s", g.unknown);
    if (g.percent >= t->scenario->expect.goodput)
        return finding_pass(f, "%.0f %%: %lld steps in %.1f s, worth %.1f s in the control run",
                            g.percent, (long long)g.steps, g.span_s, g.control_s);
    const char *expected = finding_expected(f, "goodput: %d%%", t->scenario->expect.goodput);
    finding_prove(f, g.first_seq, g.last_seq);
    return finding_fail(f, broken, expected,
                        "%.0f %%: %lld steps in %.1f s, worth %.1f s in the control run", g.percent,
                        (long long)g.steps, g.span_s, g.control_s);
}

const struct check check_goodput = {
    .name = "goodput",
    .summary = "enough of the time goes into steps that count",
    .text = "expect.goodput: the time that the steps of the job take in the control run (their "
            "number, each counted once, times its mean time per step), in per cent of the time "
            "from the first step to the last. Steps count that are in the model at the end. What "
            "is lost is detection, recovery, steps made again, and steps that take longer.",
    .example = "expect: {goodput: 60%}",
    .class = CLASS_EXPECT,
    .sources = SOURCES(JOB) | SOURCES(PROBE),
    .needs_events = NEEDS_STEPS,
    .not_applicable = idle,
    .judge = judge,
};
