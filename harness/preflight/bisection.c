#include "harness/preflight/bisection.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct bisection {
    bisection_fn *well;
    void *arg;
    size_t good; /* one that has done it well; n: none is known yet */
    size_t n;
};

/* One alone is tried beside one that is good. */
static bool is_well(struct bisection *b, const size_t *v, size_t n) {
    size_t two[2] = {v[0], b->good};
    return n == 1 ? b->well(b->arg, two, 2) : b->well(b->arg, v, n);
}

static bool can_ask(const struct bisection *b, size_t n) {
    return n > 1 || b->good < b->n;
}

/* Two have failed, and nobody is known to be good: a third is tried beside each. */
static size_t tell_two(struct bisection *b, const size_t *v, size_t *ret) {
    size_t third = 0;
    while (third == v[0] || third == v[1])
        third++;
    size_t one[2] = {v[0], third}, other[2] = {v[1], third};
    bool first = third < b->n && b->well(b->arg, one, 2);
    bool second = third < b->n && b->well(b->arg, other, 2);
    if (first == second) {
        memcpy(ret, v, 2 * sizeof(*v));
        return 2;
    }
    ret[0] = first ? v[1] : v[0];
    return 1;
}

/* v have failed together. */
static size_t narrow(struct bisection *b, const size_t *v, size_t n, size_t *ret) {
    size_t half = n / 2;
    const size_t *parts[2] = {v, v + half}, sizes[2] = {half, n - half};
    if (n == 1) {
        ret[0] = v[0];
        return 1;
    }
    if (n == 2 && b->good == b->n)
        return tell_two(b, v, ret);
    /* The larger first: when it is well there is one to try single ones beside. */
    for (int i = 1; i >= 0; i--) {
        if (!can_ask(b, sizes[i]))
            continue;
        if (!is_well(b, parts[i], sizes[i]))
            return narrow(b, parts[i], sizes[i], ret);
        b->good = parts[i][0];
    }
    memcpy(ret, v, n * sizeof(*v)); /* only together, or nobody to try them beside */
    return n;
}

size_t bisection_find(size_t n, bisection_fn *well, void *arg, size_t *ret) {
    struct bisection b = {.well = well, .arg = arg, .good = n, .n = n};
    size_t *all = mem_array(size_t, n);
    for (size_t i = 0; i < n; i++)
        all[i] = i;
    size_t found = narrow(&b, all, n, ret);
    free(all);
    return found;
}
