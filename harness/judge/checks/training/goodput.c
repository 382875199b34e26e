/* Measures the share of the time in which steps were made that count. */
#include "harness/judge/checks/check.h"

static const char broken[] = "Goodput: most of the time goes into steps that count.";

/* From the first step that was told to the last new one; steps that were made again count once. */
struct work {
    int64_t first, last, first_ns, last_ns, first_seq, last_seq;
};

static struct work work_of(const struct history *h) {
    struct work w = {.first = -1, .last = -1};
    history_each(r, h) {
        int64_t step = record_i64(r, "step", -1);
        if (r->source != SOURCE_JOB || !record_is(r, "step") || step < 0)
            continue;
        if (w.first < 0) {
            w.first = step;
            w.first_ns = r->t_ns;
            w.first_seq = r->seq;
        }
        if (step <= w.last)
            continue;
        w.last = step;
        w.last_ns = r->t_ns;
        w.last_seq = r->seq;
    }
    return w;
}

static const char *idle(const struct scenario *s) {
    return !s->expect.goodput ? "the scenario sets no goodput" : NULL;
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct record *control = history_newest(t->history, SOURCE_HARNESS, "control");
    int64_t step_ns = control ? record_i64(control, "step_ns", 0) : 0;
    struct work w = work_of(t->history);
    if (!check_sees_rounds(t, f))
        return false;
    if (w.first < 0 || w.last <= w.first || w.last_ns <= w.first_ns)
        return finding_unknown(f, broken, "the job told no two steps");
    if (step_ns <= 0)
        return finding_unknown(f, broken, "the control run does not tell how long a step takes");
    double span_s = (double)(w.last_ns - w.first_ns) / 1e9;
    double worth_s = (double)(w.last - w.first) * (double)step_ns / 1e9;
    double share = 100 * worth_s / span_s;
    if (share >= t->scenario->expect.goodput)
        return finding_pass(f, "%.0f %%: %lld steps in %.1f s, worth %.1f s in the control run",
                            share, (long long)(w.last - w.first), span_s, worth_s);
    const char *expected = finding_expected(f, "goodput: %d%%", t->scenario->expect.goodput);
    finding_prove(f, w.first_seq, w.last_seq);
    return finding_fail(f, broken, expected,
                        "%.0f %%: %lld steps in %.1f s, worth %.1f s in the control run", share,
                        (long long)(w.last - w.first), span_s, worth_s);
}

const struct check check_goodput = {
    .name = "goodput",
    .summary = "enough of the time goes into steps that count",
    .text = "expect.goodput: the time that the steps of the job take in the control run (their "
            "number, each counted once, times its median step), in per cent of the time from the "
            "first step to the last. What is lost is detection, recovery, and steps made again.",
    .example = "expect: {goodput: 60%}",
    .class = CLASS_EXPECT,
    .sources = SOURCES(JOB) | SOURCES(PROBE),
    .needs_events = NEEDS_STEPS,
    .not_applicable = idle,
    .judge = judge,
};
