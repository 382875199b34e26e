#include "harness/checks/check.h"

#include "agent/base/str.h"

#include <stdio.h>

static const char broken[] = "Faults: every fault of the timeline happens and is felt.";

static const char *why_not(const struct trial *t, const char *id) {
    history_each(r, t->history) {
        if (record_is(r, "fault-not-fired") && str_eq(record_text(r, "id"), id))
            return record_text(r, "why");
    }
    return "its moment did not come";
}

static const int64_t LATE_NS = 1000000000;

static bool is_at_a_point(const struct trial *t, const struct incident *i) {
    for (size_t k = 0; k < t->scenario->timeline_n; k++) {
        const struct trigger *w = &t->scenario->timeline[k].when;
        if (str_eq(t->scenario->timeline[k].id, i->id))
            return w->has_step || w->has_event || w->log;
    }
    return false;
}

static bool judge_incident(const struct trial *t, struct finding *f, const struct incident *i) {
    char expected[200];
    finding_prove(f, i->force_seq ? i->force_seq : i->fired_seq);
    if (i->failed || !i->in_force) {
        snprintf(expected, sizeof(expected), "%s (%s) in force", i->id, i->fault);
        finding_fail(f, broken, expected, "it could not be brought in force: %s",
                     i->failed ? i->failed : "no word came back");
        return false;
    }
    if (!i->evidence_seq) {
        finding_unknown(f, broken,
                        "%s (%s) was in force, but nothing outside shows that it was felt", i->id,
                        i->fault);
        return false;
    }
    /* Whoever is held waits; a step, an event or a line that is not held goes by. */
    if (!i->held && i->lag_ns > LATE_NS && is_at_a_point(t, i)) {
        finding_unknown(f, broken, "%s (%s) fired %.1f s after its moment: the harness was late",
                        i->id, i->fault, (double)i->lag_ns / 1e9);
        return false;
    }
    return true;
}

static bool healed(const struct trial *t, const struct action *a) {
    const struct action *fault = &t->scenario->timeline[a->heal];
    for (size_t i = 0; i < t->incidents->n; i++)
        if (str_eq(t->incidents->v[i]->id, fault->id) && t->incidents->v[i]->recovered)
            return true;
    return false;
}

/* each-round: in every round that was complete. */
static int times_wanted(const struct trial *t, const struct action *a) {
    int rounds = 0;
    if (a->times == TIMES_N)
        return a->times_n > 0 ? a->times_n : 1;
    for (size_t i = 0; i < t->rounds->n; i++)
        rounds += t->rounds->v[i]->complete;
    return rounds ? rounds : 1;
}

static bool judge_action(const struct trial *t, struct finding *f, const struct action *a) {
    int n = 0, wanted = times_wanted(t, a);
    char expected[200];
    if (!a->fault) {
        if (healed(t, a))
            return true;
        finding_fail(f, broken, "the healing of the timeline happens", "%s did not heal: %s", a->id,
                     why_not(t, a->id));
        return false;
    }
    for (size_t i = 0; i < t->incidents->n; i++) {
        if (!str_eq(t->incidents->v[i]->id, a->id))
            continue;
        if (!judge_incident(t, f, t->incidents->v[i]))
            return false;
        n++;
    }
    if (n >= wanted)
        return true;
    snprintf(expected, sizeof(expected), "%s (%s) fires %d time%s%s", a->id, a->fault, wanted,
             wanted == 1 ? "" : "s", a->times == TIMES_N ? "" : ", once in each round");
    finding_fail(f, broken, expected, "it fired %d time%s: %s", n, n == 1 ? "" : "s",
                 why_not(t, a->id));
    return false;
}

static void judge(const struct trial *t, struct finding *f) {
    size_t n = t->scenario->timeline_n;
    for (size_t i = 0; i < n; i++)
        if (!judge_action(t, f, &t->scenario->timeline[i]))
            return;
    if (!n) {
        finding_pass(f, "the timeline is empty: nothing was to be injected");
        return;
    }
    *f = (struct finding){.check = f->check, .class = f->class};
    finding_pass(f, "%zu of %zu fired, came in force and left evidence", n, n);
}

const struct check check_fired = {
    .name = "fired",
    .summary = "every fault of the timeline fired, came in force and left evidence",
    .text = "A run in which a fault did not happen shows nothing, so it is inconclusive, however "
            "well the job did. Evidence is a process that ended, frames that the wire dropped, an "
            "agent that started: never what the job or the launcher says. Where nobody was held, a "
            "fault that came a second after its moment is not counted either.",
    .example = "rankquake run scenarios/tour.yaml",
    .class = CLASS_FAULTS,
    .sources = SOURCES(KERNEL) | SOURCES(WIRE) | SOURCES(PROBE),
    .judge = judge,
};
