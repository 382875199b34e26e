/* Delays frames on the wire. */
#include "faults/network/traffic.h"

#include "base/str.h"

#include <errno.h>

/* What is in flight takes memory: no network is as slow as that. */
static const int64_t delay_max_ns = 60000000000;

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    const char *jitter = fault_arg(a, "jitter", "0s");
    int r = fault_duration(a, "delay", "100ms", delay_max_ns, &ret->delay_ns, err);
    if (r == 0)
        r = str_to_duration_ns(jitter, &ret->jitter_ns, err);
    if (r == 0 && (ret->jitter_ns < 0 || ret->jitter_ns > ret->delay_ns))
        return err_say(err, -EINVAL, "jitter: %s is more than the delay of %s", jitter,
                       fault_arg(a, "delay", "100ms"));
    return r;
}

FAULT_IMPAIRS(read_args)

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
            FAULT_TRAFFIC_PARAMS,
            {0}},
    .undo = "the wire passes frames at once again; what is in flight arrives when it is due",
    .blast = "every round trip takes twice the delay longer; nobody is told",
    .example = "{when: {step: 20}, fault: net-delay, on: n2, with: {delay: 100ms}, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
