#include "faults/fault.h"

#include "agent/base/str.h"
#include "faults/mechanism/wire_rules.h"

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

void fault_groups(const struct target *t, const struct fault_args *a, char *ret, size_t size) {
    const char *groups = fault_arg(a, "groups", NULL);
    snprintf(ret, size, groups ? "%s" : "%s|*", groups ? groups : t->name);
}

static int check(const struct fault_args *a, struct err *err) {
    const char *planes = fault_arg(a, "planes", "all");
    if (!planes_of(planes))
        return err_say(err, -EINVAL,
                       "planes: \"%s\" is none; write store, bootstrap, data, ssh or all, or "
                       "several as in store,data",
                       planes);
    return 0;
}

static int part(const struct target *t, const struct fault_args *a, bool on, struct err *err) {
    char groups[FAULT_GROUPS_MAX];
    int r = check(a, err);
    if (r)
        return r;
    fault_groups(t, a, groups, sizeof(groups));
    return t->ops->part(t->node, groups, planes_of(fault_arg(a, "planes", "all")), on, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return part(t, a, true, err);
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    return part(t, a, false, err);
}

const struct fault fault_net_partition = {
    .name = "net-partition",
    .summary = "groups of nodes, or one node and all others, cannot reach each other any more",
    .effects = EFFECT_PARTS_NETWORK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_SILENCE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(links_cut),
    .params =
        (const struct fault_param[]){
            {"groups", "groups", "(the target, and everybody else)",
             "who can still reach whom, as in n0,n1|n2; instead of on; the store is named store"},
            {"planes", "string", "all",
             "what is cut: store, bootstrap (MASTER_PORT), data (the rest) or all; store,data"},
            {0}},
    .undo = "the wire passes the frames again",
    .blast = "a node that loses the store is fenced, and given up by the others after suspect",
    .example = "{when: {step: 20}, fault: net-partition, on: n2, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
