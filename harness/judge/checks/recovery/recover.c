/* Measures the time from each fault to the first step of the round that recovered. */
#include "harness/judge/checks/recovery/deadline.h"

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

static int64_t off_ns(const struct incident *i) {
    return i->recover_bound_ns;
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

static void tell_phases(const struct incident *i, char *out, size_t size) {
    char phases[160];
    describe(phases, sizeof(phases), i);
    snprintf(out, size, " (%s)", phases);
}

static const struct deadline recovery = {
    .broken = "Recovery: the job trains again in time after a fault.",
    .done = "recovered",
    .exempt = nothing_to_recover,
    .took_ns = took_ns,
    .off_ns = off_ns,
    .tell_never = tell_never,
    .tell_late = tell_phases,
    .tell_kept = tell_phases,
};

static const char *idle(const struct scenario *s) {
    return !s->expect.recover_n ? "the scenario sets no recover_within" : NULL;
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct expect *e = &t->scenario->expect;
    return deadline_judge(&recovery, t, f, e->recover_within, e->recover_n);
}

const struct check check_recover = {
    .name = "recover",
    .summary = "the job trains again soon after a fault",
    .text = "expect.recover_within: from the moment the fault is in force to the first step of the "
            "last worker of the next complete round (to its start, when the job sends no steps). "
            "Reports show the phases in between: detect, stop, rendezvous, start, init, load, "
            "first step.",
    .example = "expect: {recover_within: 5s}",
    .class = CLASS_EXPECT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL) | SOURCES(WIRE) | SOURCES(JOB),
    .not_applicable = idle,
    .judge = judge,
};
