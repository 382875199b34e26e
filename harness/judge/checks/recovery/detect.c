/* Measures how long after a fault the workers elsewhere ended. */
#include "harness/judge/checks/recovery/deadline.h"

#include <stdio.h>

/* Nothing was there to notice it, and the job was meant to end with it. */
static bool nothing_to_detect(const struct trial *t, const struct incident *i) {
    if (i->next || i->phase_ns[PHASE_DETECT] >= 0)
        return false;
    for (size_t k = 0; k < i->round->n; k++)
        if (!incident_hits(i, i->round->workers[k]))
            return false;
    return true;
}

static int64_t took_ns(const struct incident *i) {
    return i->phase_ns[PHASE_DETECT];
}

static int64_t off_ns(const struct incident *i) {
    return i->phase_bound_ns[PHASE_DETECT];
}

static void tell_never(const struct incident *i, char *out, size_t size) {
    snprintf(out, size, "no other worker ended after %s", i->id);
}

static void tell_late(const struct incident *i, char *out, size_t size) {
    snprintf(out, size, ", until a worker %s",
             i->by_signal ? "was ended by a signal" : "ended by itself");
}

static const struct deadline detection = {
    .broken = "Detection: the others notice a fault in time.",
    .done = "detected",
    .exempt = nothing_to_detect,
    .took_ns = took_ns,
    .off_ns = off_ns,
    .tell_never = tell_never,
    .tell_late = tell_late,
};

static const char *idle(const struct scenario *s) {
    return !s->expect.detect_n ? "the scenario sets no detect_within" : NULL;
}

static bool judge(const struct trial *t, struct finding *f) {
    const struct expect *e = &t->scenario->expect;
    return deadline_judge(&detection, t, f, e->detect_within, e->detect_n);
}

const struct check check_detect = {
    .name = "detect",
    .summary = "the workers elsewhere end soon after a fault",
    .text = "expect.detect_within: from the moment the fault is in force to the end of the first "
            "worker on another node (on one node: of another worker). Unknown when the budget was "
            "missed while the harness itself was late by more than a fifth of it.",
    .example = "expect: {detect_within: {hit: 500ms}}",
    .class = CLASS_EXPECT,
    .sources = SOURCES(PROBE) | SOURCES(KERNEL) | SOURCES(WIRE),
    .not_applicable = idle,
    .judge = judge,
};
