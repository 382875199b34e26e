#include "harness/launch/launchers.h"

#include "base/str.h"

#include <assert.h>

const struct launcher *const launchers[] = {
#define X(name) &launcher_##name,
    LAUNCHERS(X)
#undef X
        NULL};

const struct launcher *launcher_of(const struct plan *p) {
    const char *name = p->scenario->cluster.scheduler ? "slurm" : p->scenario->job.launcher;
    size_t i = 0;
    while (launchers[i] && !str_eq(launchers[i]->name, name))
        i++;
    assert(launchers[i]);
    return launchers[i];
}
