#include "harness/checks/recovery/deadline.h"

#include "agent/base/str.h"

#include <stdio.h>

static bool judge_incident(const struct deadline *d, const struct trial *t, struct finding *f,
                           const struct budget *b, const struct incident *i) {
    int64_t ns = d->took_ns(i);
    int64_t lag = check_lag_ns(t->history, i->t0_ns, i->t0_ns + (ns > b->ns ? ns : b->ns));
    char expected[200], told[250];
    snprintf(expected, sizeof(expected), "%s %s within %.0f ms", i->id, d->done,
             (double)b->ns / 1e6);
    finding_prove(f, i->force_seq);
    if (ns < 0) {
        d->tell_never(i, told, sizeof(told));
        finding_fail(f, d->broken, expected, "%s", told);
    } else if (lag * 5 > b->ns) {
        finding_unknown(f, d->broken, "%s: %.0f ms, but the harness itself was late by %.0f ms",
                        i->id, (double)ns / 1e6, (double)lag / 1e6);
    } else if (ns > b->ns) {
        d->tell_late(i, told, sizeof(told));
        finding_fail(f, d->broken, expected, "%.0f ms%s", (double)ns / 1e6, told);
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
        finding_fail(f, d->broken, "a fault that ends a round", "%s ended no round", b->id);
    else
        finding_unknown(f, d->broken, "%s was never in force", b->id);
    return false;
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

bool deadlines_kept(const struct deadline *d, const struct trial *t, struct finding *f,
                    const struct budget *budgets, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!judge_budget(d, t, f, &budgets[i]))
            return false;
    return true;
}
