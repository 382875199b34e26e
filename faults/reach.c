#include "faults/reach.h"

#include "base/str.h"
#include "faults/fault.h"

#include <assert.h>
#include <stddef.h>

const char *const fault_reach_names[REACHES_N + 1] = {"job", "node", "shared", NULL};

enum {
#define X(name, reach) REACH_OF_##name = REACH_##reach,
    FAULT_REACHES(X)
#undef X
};

#define X(name) extern const struct fault fault_##name;
#include "faults/faults.h"
#undef X

static const struct {
    const struct fault *fault;
    enum fault_reach reach;
} rows[] = {
#define X(name) {&fault_##name, (enum fault_reach)REACH_OF_##name},
#include "faults/faults.h"
#undef X
};

#define X(name, reach) +1
_Static_assert(sizeof(rows) / sizeof(*rows) == 0 FAULT_REACHES(X), "a row whose fault is gone");
#undef X

enum fault_reach fault_reach(const char *name) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (str_eq(rows[i].fault->name, name))
            return rows[i].reach;
    assert(!"a fault that the table does not have");
    return REACH_SHARED;
}
