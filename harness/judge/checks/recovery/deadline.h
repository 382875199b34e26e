/* deadline: a budget of time, held against what faults took. detect and recover are two such
 * questions; they differ in what they measure and in how they tell it. */
#pragma once

#include "harness/judge/checks/check.h"

struct deadline {
    const char *broken;
    const char *done; /* as in "detected within 500 ms" */
    /* Nothing was to be measured, and rightly so. */
    bool (*exempt)(const struct trial *t, const struct incident *i);
    int64_t (*took_ns)(const struct incident *i); /* -1: it was never done */
    int64_t (*off_ns)(const struct incident *i);  /* it may be so much more or less */
    void (*tell_never)(const struct incident *i, char *out, size_t size);
    void (*tell_late)(const struct incident *i, char *out, size_t size); /* after "900 ms" */
    void (*tell_kept)(const struct incident *i, char *out,
                      size_t size); /* the same; NULL: no more */
};

/* What a time says of its bound, when the harness was late by so much meanwhile. Either stamp may
 * be as late as that, so a time beyond the bound is no failure when that is more than a fifth of
 * the bound, and one within it is certain only when both together are: unknown, if not. */
enum finding_status deadline_answer(int64_t took_ns, int64_t bound_ns, int64_t lag_ns);

/* Passes, with what each fault took, when every incident that ended a round kept the budgets it is
 * meant for; skips when none did. Fails otherwise, or leaves it unknown (deadline_answer). */
bool deadline_judge(const struct deadline *d, const struct trial *t, struct finding *f,
                    const struct budget *budgets, size_t n);
