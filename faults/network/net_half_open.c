/* Takes a node's TCP connections from it, and keeps from its peers that they are gone.
 *
 * The kernel that is told to forget a connection sends its peer a RST, which the wire swallows: it
 * must do so before. A peer that says something is told by a RST of its own, as of any connection
 * that a host does not know, unless that is swallowed too. */
#include "faults/network/traffic.h"

#include "base/str.h"

#include <errno.h>
#include <stdio.h>

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    const char *quiet = fault_arg(a, "quiet", "false");
    if (!str_eq(quiet, "true") && !str_eq(quiet, "false"))
        return err_say(err, -EINVAL, "quiet: %s is neither true nor false", quiet);
    int planes = fault_planes(a, err);
    if (planes < 0)
        return planes;
    *ret = (struct impairment){
        .planes = planes, .direction = DIRECTION_FROM, .hushes = str_eq(quiet, "true") ? 2 : 1};
    return 0;
}

static int check(const struct fault_args *a, struct err *err) {
    struct impairment how;
    return read_args(a, &how, err);
}

static int hush(const struct target *t, const struct impairment *how, bool on, struct err *err) {
    char groups[FAULT_GROUPS_MAX];
    snprintf(groups, sizeof(groups), "%s|*", t->name);
    return t->ops->impair(t->node, groups, how, 1, on, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    struct impairment how;
    int r = read_args(a, &how, err);
    r = r ? r : hush(t, &how, true, err);
    if (r)
        return r;
    r = t->ops->forget_connections(t->node, (unsigned)how.planes, err);
    if (r < 0)
        hush(t, &how, false, NULL);
    return r < 0 ? r : 0;
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    struct impairment how;
    int r = read_args(a, &how, err);
    return r ? r : hush(t, &how, false, err);
}

const struct fault fault_net_half_open = {
    .name = "net-half-open",
    .summary = "a node forgets its TCP connections with others, who go on believing in them",
    .effects = EFFECT_IMPAIRS_NETWORK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_WIRE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(connections_forgotten) | EVIDENCE(resets_swallowed),
    .params =
        (const struct fault_param[]){
            {"planes", "string", "all",
             "of which connections: store, bootstrap (MASTER_PORT), data (the rest) or all"},
            {"quiet", "bool", "false",
             "peers that send are not told either: also a RST that answers them is swallowed, as "
             "long as the fault lasts"},
            {0}},
    .undo = "the wire passes resets again; the connections stay forgotten",
    .blast =
        "programs of the node get ECONNABORTED; its peers learn of it when they send, or, with "
        "quiet, by their own timeouts",
    .example = "{when: {step: 20}, fault: net-half-open, on: n2, with: {planes: data}, for: 2s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
