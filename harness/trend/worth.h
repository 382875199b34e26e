/* worth: which trouble that was never tried is worth a scenario next. */
#pragma once

#include "harness/trend/trouble.h"

struct worth {
    size_t fault; /* its place in faults[] */
    enum trouble_phase phase;
    enum trouble_target target;
};

/* What may be suggested. NULL: anything. */
struct worth_filter {
    bool (*may)(const void *arg, const struct worth *w);
    const void *arg;
};

/* At most n, the most telling first: of each family of faults (process, node, network ...) one before
 * a second one of any; of a family what differs the most from what was tried. Returns how many. */
size_t worth_choose(const struct trouble *t, const struct worth_filter *filter, struct worth *ret,
                    size_t n);
