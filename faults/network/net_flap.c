/* Cuts the link between groups of nodes over and over. */
#include "faults/network/traffic.h"

#include <errno.h>

static const int64_t period_max_ns = 3600000000000;

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    int r = fault_duration(a, "period", "1s", period_max_ns, &ret->flap_period_ns, err);
    r = r ? r : fault_duration(a, "down", "500ms", period_max_ns, &ret->flap_down_ns, err);
    if (r == 0 && ret->flap_down_ns >= ret->flap_period_ns)
        return err_say(err, -EINVAL, "down: %s is not shorter than the period of %s",
                       fault_arg(a, "down", "500ms"), fault_arg(a, "period", "1s"));
    return r;
}

FAULT_IMPAIRS(read_args)

const struct fault fault_net_flap = {
    .name = "net-flap",
    .summary = "the network between groups of nodes goes away and comes back, again and again",
    .effects = EFFECT_PARTS_NETWORK | EFFECT_IMPAIRS_NETWORK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_SILENCE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(links_cut),
    .params =
        (const struct fault_param[]){
            {"period", "duration", "1s", "from one time that it goes away to the next"},
            {"down", "duration", "500ms", "for how long it is away, first thing in each period"},
            FAULT_TRAFFIC_PARAMS,
            {0}},
    .undo = "the wire passes frames again",
    .blast = "whatever is longer away than a deadline is given up; the rest is slow",
    .example =
        "{when: {step: 20}, fault: net-flap, on: n2, with: {period: 400ms, down: 200ms}, for: 4s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
