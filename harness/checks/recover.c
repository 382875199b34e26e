#include "harness/checks/check.h"

#include "agent/base/str.h"

#include <stdio.h>

static const char broken[] = "Recovery: the job trains again in time after a fault.";

/* "detect 3 ms, stop 1 ms, ..." as far as the stamps go. */
static void describe(char *out, size_t size, const struct incident *i) {
    size_t at = 0;
    *out = 0;
    for (int p = 0; p < PHASE_N && at < size; p++)
        if (i->phase_ns[p] >= 0)
            at += (size_t)snprintf(out + at, size - at, "%s%s %.0f", at ? ", " : "",
                                   phase_name((enum phase)p), (double)i->phase_ns[p] / 1e6);
}

/* Where the job was meant to fail there is no next round to wait for. */
static bool nothing_to_recover(const struct trial *t, const struct incident *i) {
    return !i->next && t->scenario->expect.outcome != OUTCOME_SUCCEEDED;
}

static bool judge_incident(const struct trial *t, struct finding *f, const struct budget *b,
                           const struct incident *i) {
    int64_t ns = i->recover_ns;
    int64_t lag = check_lag_ns(t->history, i->t0_ns, i->t0_ns + (ns > b->ns ? ns : b->ns));
    char expected[200], phases[200];
    describe(phases, sizeof(phases), i);
    snprintf(expected, sizeof(expected), "%s recovered within %.0f ms", i->id, (double)b->ns / 1e6);
    finding_prove(f, i->force_seq);
    if (!i->next)
        finding_fail(f, broken, expected, "no complete round came after %s", i->id);
    else if (ns < 0)
        finding_fail(f, broken, expected,
                     "not all workers of round %d made a step after %s (ms: %s)", i->next->number,
                     i->id, phases);
    else if (lag * 5 > b->ns)
        finding_unknown(f, broken, "%s: %.0f ms, but the harness itself was late by %.0f ms", i->id,
                        (double)ns / 1e6, (double)lag / 1e6);
    else if (ns > b->ns)
        finding_fail(f, broken, expected, "%.0f ms (%s)", (double)ns / 1e6, phases);
    else
        return true;
    return false;
}

static bool judge_budget(const struct trial *t, struct finding *f, const struct budget *b) {
    bool seen = false;
    for (size_t k = 0; k < t->incidents->n; k++) {
        const struct incident *i = t->incidents->v[k];
        if ((b->id && !str_eq(b->id, i->id)) || !i->ended_round || nothing_to_recover(t, i))
            continue;
        seen = true;
        if (!judge_incident(t, f, b, i))
            return false;
    }
    if (seen || !b->id)
        return true;
    const struct incident *i = incidents_find(t->incidents, b->id, 1);
    if (i && i->in_force)
        finding_fail(f, broken, "a fault that ends a round", "%s ended no round", b->id);
    else
        finding_unknown(f, broken, "%s was never in force", b->id);
    return false;
}

static void summarize(char *out, size_t size, const struct incidents *is) {
    size_t at = 0;
    for (size_t k = 0; k < is->n && at < size; k++) {
        char phases[160];
        if (is->v[k]->recover_ns < 0)
            continue;
        describe(phases, sizeof(phases), is->v[k]);
        at += (size_t)snprintf(out + at, size - at, "%s%s %.0f ms (%s)", at ? "; " : "",
                               is->v[k]->id, (double)is->v[k]->recover_ns / 1e6, phases);
    }
    if (!at)
        snprintf(out, size, "no fault ended a round");
}

static void judge(const struct trial *t, struct finding *f) {
    const struct expect *e = &t->scenario->expect;
    char times[290];
    if (!e->recover_n) {
        finding_skip(f, "the scenario bounds no recovery");
        return;
    }
    for (size_t i = 0; i < e->recover_n; i++)
        if (!judge_budget(t, f, &e->recover_within[i]))
            return;
    summarize(times, sizeof(times), t->incidents);
    *f = (struct finding){.check = f->check, .class = f->class};
    finding_pass(f, "%s", times);
}

const struct check check_recover = {
    .name = "recover",
    .summary = "the job trains again soon after a fault",
    .text = "expect.recover_within: from the moment the fault is in force to the first step of the "
            "last worker of the next complete round (to its start, when the job sends no steps). "
            "The phases between are told: detect, stop, rendezvous, start, init, load, first step.",
    .class = CLASS_EXPECT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL) | SOURCES(WIRE) | SOURCES(JOB),
    .judge = judge,
};
