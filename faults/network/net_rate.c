/* Makes the link between groups of nodes slow. */
#include "faults/network/traffic.h"

#include "base/str.h"

#include <errno.h>

/* Another rate for one direction, which must be one that the fault is about. */
static int read_own(const struct fault_args *a, const char *key, const char *not_with,
                    int64_t *ret_bit_s, struct err *err) {
    const char *rate = fault_arg(a, key, NULL), *direction = fault_arg(a, "direction", "both");
    if (!rate)
        return 0;
    if (str_eq(direction, not_with))
        return err_say(err, -EINVAL, "%s: %s is of the other direction than direction: %s", key,
                       rate, direction);
    return fault_rate(a, key, rate, ret_bit_s, err);
}

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    int r = fault_rate(a, "rate", "10mbit", &ret->rate_bit_s, err);
    r = r ? r : read_own(a, "rate_in", "from", &ret->rate_in_bit_s, err);
    r = r ? r : read_own(a, "rate_out", "to", &ret->rate_out_bit_s, err);
    return r ? r : fault_count(a, "queue", "1000000", 2000, 60000000, &ret->queue_bytes, err);
}

FAULT_IMPAIRS(read_args)

const struct fault fault_net_rate = {
    .name = "net-rate",
    .summary = "all that groups of nodes send each other shares a slow link, in each direction one",
    .effects = EFFECT_IMPAIRS_NETWORK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_WIRE,
    .where = FAULT_IN_HARNESS,
    .profile = true,
    .evidence = EVIDENCE(frames_throttled),
    .params =
        (const struct fault_param[]){
            {"rate", "string", "10mbit", "bits a second: 500kbit, 10mbit, 1gbit"},
            {"rate_in", "string", "(rate)",
             "the same for what the first group, or the target, is sent"},
            {"rate_out", "string", "(rate)", "the same for what it sends"},
            {"queue", "int", "1000000",
             "how many bytes wait before the link; what comes beyond is dropped"},
            FAULT_TRAFFIC_PARAMS,
            {0}},
    .undo = "the wire passes frames at once again; those that wait arrive when they are due",
    .blast = "large messages take long; small ones wait behind them",
    .example = "{when: {step: 20}, fault: net-rate, on: n2, with: {rate: 5mbit}, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
