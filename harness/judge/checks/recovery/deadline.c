#include "harness/judge/checks/recovery/deadline.h"

#include "base/str.h"
#include "harness/history/clocks.h"
#include "harness/judge/checks/lags.h"

#include <stdio.h>

enum finding_status deadline_answer(int64_t took_ns, int64_t bound_ns, int64_t lag_ns) {
    if (lag_ns <= bound_ns / 5)
        return took_ns <= bound_ns ? FINDING_PASS : FINDING_FAIL;
    return lag_ns <= bound_ns && took_ns <= bound_ns - lag_ns ? FINDING_PASS : FINDING_UNKNOWN;
}

static bool judge_incident(const struct deadline *d, const struct trial *t, struct finding *f,
                           const struct budget *b, const struct incident *i) {
    int64_t ns = d->took_ns(i);
    int64_t lag = lags_most_ns(t->lags, i->t0_ns, i->t0_ns + (ns > b->ns ? ns : b->ns));
    char told[250], off[40];
    const char *expected =
        finding_expected(f, "%s %s within %.0f ms", i->id, d->done, (double)b->ns / 1e6);
    enum finding_status answer = deadline_answer(ns, b->ns, lag);
    finding_prove(f, i->force_seq);
    if (ns < 0) {
        d->tell_never(i, told, sizeof(told));
        finding_fail(f, d->broken, expected, "%s", told);
    } else if (answer == FINDING_UNKNOWN) {
        finding_unknown(f, d->broken, "%s: %.0f ms, but the harness itself was late by %.0f ms",
                        i->id, (double)ns / 1e6, (double)lag / 1e6);
    } else if (answer == FINDING_FAIL) {
        d->tell_late(i, told, sizeof(told));
        finding_fail(f, d->broken, expected, "%.0f ms%s%s", (double)ns / 1e6,
                     clocks_text(off, sizeof(off), d->off_ns(i), false), told);
    } else {
        return true;
    }
    return false;
}

/* A budget that names a fault wants it to have ended a round. */
static bool asked_in_vain(const struct deadline *d, const struct trial *t, struct finding *f,
                          const struct budget *b) {
    const struct incident *i = incidents_find(t->incidents, b->id, 1);
    if (i && i->in_force)
        return finding_fail(f, d->broken, "a fault that ends a round", "%s ended no round", b->id);
    return finding_unknown(f, d->broken, "%s was never in force", b->id);
}

static bool judge_budget(const struct deadline *d, const struct trial *t, struct finding *f,
                         const struct budget *b) {
    bool seen = false;
    for (size_t k = 0; k < t->incidents->n; k++) {
        const struct incident *i = t->incidents->v[k];
        if ((b->id && !str_eq(b->id, i->id)) || !i->ended_round || d->exempt(t, i))
            continue;
        seen = true;
        if (!judge_incident(d, t, f, b, i))
            return false;
    }
    return seen || !b->id || asked_in_vain(d, t, f, b);
}

static void describe(const struct deadline *d, const struct incidents *is, char *out, size_t size) {
    const char *between = d->tell_kept ? "; " : ", ";
    size_t at = 0;
    *out = 0;
    for (size_t k = 0; k < is->n && at < size; k++) {
        const struct incident *i = is->v[k];
        char more[200] = "", off[40];
        if (d->took_ns(i) < 0)
            continue;
        if (d->tell_kept)
            d->tell_kept(i, more, sizeof(more));
        at += (size_t)snprintf(out + at, size - at, "%s%s %.0f ms%s%s", at ? between : "", i->id,
                               (double)d->took_ns(i) / 1e6,
                               clocks_text(off, sizeof(off), d->off_ns(i), false), more);
    }
}

bool deadline_judge(const struct deadline *d, const struct trial *t, struct finding *f,
                    const struct budget *budgets, size_t n) {
    char times[290];
    if (!check_sees_rounds(t, f))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!judge_budget(d, t, f, &budgets[i]))
            return false;
    describe(d, t->incidents, times, sizeof(times));
    *f = (struct finding){.check = f->check, .class = f->class};
    return *times ? finding_pass(f, "%s", times) : finding_skip(f, "no fault ended a round");
}
