#include "harness/judge/checks/checks.h"

#include "base/str.h"

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
