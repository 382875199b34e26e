#include "harness/checks/recovery/deadline.h"

#include <stdio.h>

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

static int64_t took_ns(const struct incident *i) {
    return i->next ? i->recover_ns : -1;
}

static void tell_never(const struct incident *i, char *out, size_t size) {
    char phases[160];
    describe(phases, sizeof(phases), i);
    if (!i->next)
        snprintf(out, size, "no complete round came after %s", i->id);
    else
        snprintf(out, size, "not all workers of round %d made a step after %s (ms: %s)",
                 i->next->number, i->id, phases);
}

static void tell_late(const struct incident *i, char *out, size_t size) {
    char phases[160];
    describe(phases, sizeof(phases), i);
    snprintf(out, size, " (%s)", phases);
}

static const struct deadline recovery = {
    .broken = "Recovery: the job trains again in time after a fault.",
    .done = "recovered",
    .exempt = nothing_to_recover,
    .took_ns = took_ns,
    .tell_never = tell_never,
    .tell_late = tell_late,
};

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
        *out = 0;
}

static const char *idle(const struct scenario *s) {
    return !s->expect.recover_n ? "the scenario bounds no recovery" : NULL;
}

static void judge(const struct trial *t, struct finding *f) {
    const struct expect *e = &t->scenario->expect;
    char times[290];
    if (!check_sees_rounds(t, f) ||
        !deadlines_kept(&recovery, t, f, e->recover_within, e->recover_n))
        return;
    summarize(times, sizeof(times), t->incidents);
    *f = (struct finding){.check = f->check, .class = f->class};
    if (*times)
        finding_pass(f, "%s", times);
    else
        finding_skip(f, "no fault ended a round");
}

const struct check check_recover = {
    .name = "recover",
    .summary = "the job trains again soon after a fault",
    .text = "expect.recover_within: from the moment the fault is in force to the first step of the "
            "last worker of the next complete round (to its start, when the job sends no steps). "
            "The phases between are told: detect, stop, rendezvous, start, init, load, first step.",
    .example = "expect: {recover_within: 5s}",
    .class = CLASS_EXPECT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL) | SOURCES(WIRE) | SOURCES(JOB),
    .idle = idle,
    .judge = judge,
};
