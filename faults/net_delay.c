/* Delays frames on the wire. */
#include "faults/fault.h"

#include "base/str.h"
#include "faults/traffic.h"

#include <errno.h>

/* What is in flight takes memory: no network is as slow as that. */
static const int64_t delay_max_ns = 60000000000;

static int impairment_of(const struct fault_args *a, struct impairment *ret, struct err *err) {
    struct impairment how = {.seed = a ? a->seed : 0};
    int planes = fault_planes(a, err);
    if (planes < 0)
        return planes;
    how.planes = (unsigned)planes;
    const char *delay = fault_arg(a, "delay", "100ms"), *jitter = fault_arg(a, "jitter", "0s");
    int r = str_to_duration_ns(delay, &how.delay_ns, err);
    if (r == 0)
        r = str_to_duration_ns(jitter, &how.jitter_ns, err);
    if (r)
        return r;
    if (how.delay_ns <= 0 || how.delay_ns > delay_max_ns)
        return err_say(err, -EINVAL, "delay: %s is none; write one of up to 60s, as in 100ms",
                       delay);
    if (how.jitter_ns < 0 || how.jitter_ns > how.delay_ns)
        return err_say(err, -EINVAL, "jitter: %s is more than the delay of %s", jitter, delay);
    *ret = how;
    return 0;
}

static int check(const struct fault_args *a, struct err *err) {
    struct impairment how;
    return impairment_of(a, &how, err);
}

static int impair(const struct target *t, const struct fault_args *a, bool on, struct err *err) {
    char groups[FAULT_GROUPS_MAX];
    struct impairment how;
    int r = impairment_of(a, &how, err);
    if (r)
        return r;
    fault_groups(t, a, groups, sizeof(groups));
    return t->ops->impair(t->node, groups, &how, on, err);
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return impair(t, a, true, err);
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    return impair(t, a, false, err);
}

const struct fault fault_net_delay = {
    .name = "net-delay",
    .summary = "frames between groups of nodes, or one node and all others, arrive late",
    .effects = EFFECT_IMPAIRS_NETWORK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_WIRE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(frames_delayed),
    .params =
        (const struct fault_param[]){
            {"delay", "duration", "100ms", "how late each frame arrives, in each direction"},
            {"jitter", "duration", "0s", "by how much more or less, drawn for each frame"},
            {"groups", "groups", "(the target, and everybody else)",
             "between whom, as in n0,n1|n2; instead of on; the store is named store"},
            {"planes", "string", "all",
             "what is late: store, bootstrap (MASTER_PORT), data (the rest) or all; store,data"},
            {0}},
    .undo = "the wire passes frames at once again; what is in flight arrives when it is due",
    .blast = "every round trip takes twice the delay longer; nobody is told",
    .example = "{when: {step: 20}, fault: net-delay, on: n2, with: {delay: 100ms}, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
