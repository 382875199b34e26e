#include "harness/invariants/invariants.h"

#include "base/str.h"

#define X(name) &invariant_##name,
const struct invariant *const invariants[] = {INVARIANTS(X) NULL};
#undef X

const struct invariant *invariant_find(const char *name) {
    for (size_t i = 0; invariants[i]; i++)
        if (str_eq(invariants[i]->name, name))
            return invariants[i];
    return NULL;
}
