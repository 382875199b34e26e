#include "harness/checks/checks.h"

#include "agent/base/str.h"

const struct check *const checks[] = {
#define X(name) &check_##name,
    CHECKS(X)
#undef X
        NULL};

const struct check *check_find(const char *name) {
    for (size_t i = 0; checks[i]; i++)
        if (str_eq(checks[i]->name, name))
            return checks[i];
    return NULL;
}

bool check_sees_rounds(const struct trial *t, struct finding *f) {
    if (t->rounds->n)
        return true;
    if (t->scenario->expect.outcome == OUTCOME_SUCCEEDED)
        finding_unknown(f, "No worker was seen to start, so nothing is known about the workers.",
                        "no worker-start from rankprobe");
    else
        finding_skip(f, "no worker started, so there is nothing to judge");
    return false;
}
