#include "faults/network/traffic.h"

#include "base/str.h"
#include "faults/mechanism/wire_rules.h"
#include "faults/shape.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* "store,data" as a set of planes; 0: a word that is none. */
static unsigned planes_of(const char *text) {
    static const struct {
        const char *name;
        unsigned planes;
    } words[] = {{"all", PLANE_ALL},
                 {"store", PLANE_STORE},
                 {"bootstrap", PLANE_BOOTSTRAP},
                 {"ssh", PLANE_SSH},
                 {"data", PLANE_DATA}};
    unsigned planes = 0;
    while (text) {
        size_t n = strcspn(text, ","), i = 0;
        while (i < 5 && (strlen(words[i].name) != n || strncmp(words[i].name, text, n) != 0))
            i++;
        if (i == 5)
            return 0;
        planes |= words[i].planes;
        text = text[n] ? text + n + 1 : NULL;
    }
    return planes;
}

int fault_planes(const struct fault_args *a, struct err *err) {
    const char *text = fault_arg(a, "planes", "all");
    unsigned planes = planes_of(text);
    if (!planes)
        return err_say(
            err, -EINVAL,
            "planes: \"%s\" is not a plane; write store, bootstrap, data, ssh or all, or "
            "several as in store,data",
            text);
    return (int)planes;
}

void fault_groups(const struct target *t, const struct fault_args *a, char *ret, size_t size) {
    const char *groups = fault_arg(a, "groups", NULL), *names = fault_arg(a, "names", NULL);
    if (groups)
        snprintf(ret, size, "%s", groups);
    else
        snprintf(ret, size, "%s|%s", t->name, names ? names : "*");
}

static int direction_of(const struct fault_args *a, struct err *err) {
    static const char *const words[] = {
        [DIRECTION_BOTH] = "both", [DIRECTION_FROM] = "from", [DIRECTION_TO] = "to"};
    const char *text = fault_arg(a, "direction", "both");
    for (int i = 0; i < 3; i++)
        if (str_eq(text, words[i]))
            return i;
    return err_say(err, -EINVAL, "direction: \"%s\" is none; write both, from or to", text);
}

static int64_t groups_in(const char *text) {
    int64_t n = 1;
    for (; *text; text++)
        n += *text == '|';
    return n;
}

int fault_between(const struct fault_args *a, struct impairment *ret, struct err *err) {
    const char *word = fault_arg(a, "shape", NULL), *groups = fault_arg(a, "groups", NULL);
    int direction = direction_of(a, err), shape = word ? shape_of(word, err) : -1;
    if (direction < 0 || (word && shape < 0))
        return -EINVAL;
    if (shape == SHAPE_RING && direction != DIRECTION_BOTH)
        return err_say(err, -EINVAL, "direction: a ring has no first group; leave %s out",
                       fault_arg(a, "direction", "both"));
    ret->direction = direction;
    if (shape == SHAPE_RING && groups) {
        ret->ring = groups_in(groups);
        ret->ring_reach = shape_ring_reach((int)ret->ring);
    }
    return 0;
}

/* ---- an impairment ---- */

int fault_impairment(const struct fault_args *a, fault_impairment_fn *read, struct impairment *ret,
                     struct err *err) {
    struct impairment how = {.seed = a ? (int64_t)a->seed : 0};
    int planes = fault_planes(a, err), r = planes < 0 ? planes : read(a, &how, err);
    r = r ? r : fault_between(a, &how, err);
    if (r)
        return r;
    how.planes = planes;
    *ret = how;
    return 0;
}

/* As it is in its i'th step. Between whom it is does not change. */
static int impairment_of(const struct fault_args *a, size_t i, fault_impairment_fn *read,
                         struct impairment *ret, struct err *err) {
    if (!a || !a->steps_n)
        return fault_impairment(a, read, ret, err);
    const struct fault_args then = {.v = a->steps[i].v, .n = a->steps[i].n, .seed = a->seed};
    int r = fault_impairment(&then, read, ret, err);
    ret->from_ns = a->steps[i].at_ns;
    ret->until_ns = i + 1 < a->steps_n ? a->steps[i + 1].at_ns : 0;
    return r ? r : fault_between(a, ret, err);
}

int fault_impair(const struct target *t, const struct fault_args *a, fault_impairment_fn *read,
                 bool on, struct err *err) {
    char groups[FAULT_GROUPS_MAX];
    struct impairment how[FAULT_STEPS_MAX];
    size_t n = a && a->steps_n ? a->steps_n : 1;
    for (size_t i = 0; i < n && i < FAULT_STEPS_MAX; i++) {
        int r = impairment_of(a, i, read, &how[i], err);
        if (r)
            return r;
    }
    fault_groups(t, a, groups, sizeof(groups));
    return t->ops->impair(t->node, groups, how, n, on, err);
}
