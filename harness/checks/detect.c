#include "harness/checks/check.h"

#include "agent/base/str.h"

#include <stdio.h>

static const char broken[] = "Detection: the others notice a fault in time.";

/* Nothing was there to notice it, and the job was meant to end with it. */
static bool nothing_to_detect(const struct incident *i) {
    if (i->next || i->phase_ns[PHASE_DETECT] >= 0)
        return false;
    for (size_t k = 0; k < i->round->n; k++)
        if (!incident_hits(i, i->round->workers[k]))
            return false;
    return true;
}

static bool judge_incident(const struct trial *t, struct finding *f, const struct budget *b,
                           const struct incident *i) {
    int64_t ns = i->phase_ns[PHASE_DETECT];
    int64_t lag = check_lag_ns(t->history, i->t0_ns, i->t0_ns + (ns > b->ns ? ns : b->ns));
    char expected[200];
    snprintf(expected, sizeof(expected), "%s detected within %.0f ms", i->id, (double)b->ns / 1e6);
    finding_prove(f, i->force_seq);
    if (ns < 0)
        finding_fail(f, broken, expected, "no other worker ended after %s", i->id);
    else if (lag * 5 > b->ns)
        finding_unknown(f, broken, "%s: %.0f ms, but the harness itself was late by %.0f ms", i->id,
                        (double)ns / 1e6, (double)lag / 1e6);
    else if (ns > b->ns)
        finding_fail(f, broken, expected, "%.0f ms, until a worker %s", (double)ns / 1e6,
                     i->by_signal ? "was ended by a signal" : "ended by itself");
    else
        return true;
    return false;
}

static bool judge_budget(const struct trial *t, struct finding *f, const struct budget *b) {
    bool seen = false;
    for (size_t k = 0; k < t->incidents->n; k++) {
        const struct incident *i = t->incidents->v[k];
        if ((b->id && !str_eq(b->id, i->id)) || !i->ended_round || nothing_to_detect(i))
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

static void describe(char *out, size_t size, const struct incidents *is) {
    size_t at = 0;
    for (size_t k = 0; k < is->n && at < size; k++) {
        const struct incident *i = is->v[k];
        if (i->phase_ns[PHASE_DETECT] >= 0)
            at += (size_t)snprintf(out + at, size - at, "%s%s %.0f ms", at ? ", " : "", i->id,
                                   (double)i->phase_ns[PHASE_DETECT] / 1e6);
    }
    if (!at)
        snprintf(out, size, "no fault ended a round");
}

static void judge(const struct trial *t, struct finding *f) {
    const struct expect *e = &t->scenario->expect;
    char times[250];
    if (!e->detect_n) {
        finding_skip(f, "the scenario bounds no detection");
        return;
    }
    for (size_t i = 0; i < e->detect_n; i++)
        if (!judge_budget(t, f, &e->detect_within[i]))
            return;
    describe(times, sizeof(times), t->incidents);
    *f = (struct finding){.check = f->check, .class = f->class};
    finding_pass(f, "%s", times);
}

const struct check check_detect = {
    .name = "detect",
    .summary = "the workers elsewhere end soon after a fault",
    .text = "expect.detect_within: from the moment the fault is in force to the end of the first "
            "worker on another node (on one node: of another worker). Not judged when the harness "
            "was late itself by more than a fifth of the budget.",
    .class = CLASS_EXPECT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL) | SOURCES(WIRE),
    .judge = judge,
};
