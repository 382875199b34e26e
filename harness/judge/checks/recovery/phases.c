/* Compares the phases of each recovery with their limits. */
#include "harness/judge/checks/check.h"
#include "harness/judge/checks/lags.h"
#include "harness/judge/checks/recovery/deadline.h"

#include "base/str.h"
#include "harness/history/clocks.h"

#include <stdio.h>

static const char broken[] = "Phases: each part of a recovery is done in time.";

static int phase_of(const char *name) {
    for (int p = 0; p < PHASE_N; p++)
        if (str_eq(phase_name((enum phase)p), name))
            return p;
    return -1;
}

/* The stamps that surround a phase lie somewhere in the recovery. */
static bool judge_phase(const struct trial *t, struct finding *f, const struct incident *i,
                        const struct budget *b, int p) {
    char off[40];
    int64_t ns = i->phase_ns[p];
    int64_t until = i->t0_ns + (i->recover_ns > b->ns ? i->recover_ns : b->ns);
    int64_t lag = lags_most_ns(t->lags, i->t0_ns, until);
    const char *expected = finding_expected(f, "%s within %.0f ms", b->id, (double)b->ns / 1e6);
    finding_prove(f, i->force_seq);
    enum finding_status answer = deadline_answer(ns, b->ns, lag);
    if (answer == FINDING_UNKNOWN)
        return finding_unknown(f, broken,
                               "%s of %s: %.0f ms, but the harness itself was late by %.0f ms",
                               b->id, i->id, (double)ns / 1e6, (double)lag / 1e6);
    if (answer == FINDING_FAIL)
        return finding_fail(f, broken, expected, "%s of %s took %.0f ms%s", b->id, i->id,
                            (double)ns / 1e6,
                            clocks_text(off, sizeof(off), i->phase_bound_ns[p], false));
    return true;
}

/* A phase that was not seen, although there was a next round, has no time to hold against it. */
static bool judge_incident(const struct trial *t, struct finding *f, const struct incident *i,
                           const struct budget *b, const struct incident **longest) {
    int p = phase_of(b->id);
    if (p < 0 || !i->ended_round || (!i->next && p >= PHASE_RENDEZVOUS))
        return true;
    if (i->phase_ns[p] < 0) {
        finding_prove(f, i->force_seq);
        return finding_unknown(f, broken, "%s of %s was not seen", b->id, i->id);
    }
    if (!*longest || i->phase_ns[p] > (*longest)->phase_ns[p])
        *longest = i;
    return judge_phase(t, f, i, b, p);
}

static const char *idle(const struct scenario *s) {
    return !s->expect.phases_n ? "the scenario sets no phases_within" : NULL;
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct expect *e = &t->scenario->expect;
    char text[250] = "";
    size_t at = 0;
    for (size_t k = 0; k < e->phases_n; k++) {
        const struct incident *longest = NULL;
        int p = phase_of(e->phases_within[k].id);
        char off[40];
        for (size_t i = 0; i < t->incidents->n; i++)
            if (!judge_incident(t, f, t->incidents->v[i], &e->phases_within[k], &longest))
                return false;
        if (longest && at < sizeof(text))
            at +=
                (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %.0f ms%s", at ? ", " : "",
                                 e->phases_within[k].id, (double)longest->phase_ns[p] / 1e6,
                                 clocks_text(off, sizeof(off), longest->phase_bound_ns[p], false));
    }
    *f = (struct finding){.check = f->check, .class = f->class};
    if (at)
        return finding_pass(f, "at most %s", text);
    return finding_unknown(f, broken, "no fault ended a round, so there is no recovery");
}

const struct check check_phases = {
    .name = "phases",
    .summary = "each phase of a recovery is done in time",
    .text = "expect.phases_within: detect, stop, rendezvous, start, init, load and first step, as "
            "reports draw them, of every fault that ended a round. init, load and first step are "
            "the job's own, and it must tell them. Unknown when the budget was missed while the "
            "harness itself was late by more than a fifth of it.",
    .example = "expect: {phases_within: {rendezvous: 500ms}}",
    .class = CLASS_EXPECT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL) | SOURCES(WIRE) | SOURCES(JOB),
    .not_applicable = idle,
    .judge = judge,
};
