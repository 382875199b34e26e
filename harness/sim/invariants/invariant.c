#include "harness/sim/invariants/judging.h"

#include "agent/base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define X(name) &invariant_##name,
const struct invariant *const invariants[] = {INVARIANTS(X) NULL};
#undef X

const struct invariant *invariant_find(const char *name) {
    for (size_t i = 0; invariants[i]; i++)
        if (str_eq(invariants[i]->name, name))
            return invariants[i];
    return NULL;
}

void invariant_broken(struct sim *c, const struct invariant *i, const char *fmt, ...) {
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    sim_violation(c, "%s %s: %s", i->number, i->name, text);
}

struct last_member *member_find(struct last_member *m, int n, const char *uid) {
    int low = 0, high = n;
    while (low < high) {
        int mid = low + (high - low) / 2, order = strcmp(m[mid].uid, uid);
        if (order == 0)
            return &m[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}
