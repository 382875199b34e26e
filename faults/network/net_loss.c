/* Loses frames on the wire, one by one or in bursts. */
#include "faults/network/traffic.h"

#include "base/str.h"

#include <errno.h>

/* The share of all lies between those of the two states, and the link cannot become bad more often
 * than with each frame. */
static int check_states(const struct fault_args *a, const struct impairment *how, struct err *err) {
    const char *share = fault_arg(a, "share", "1%");
    if (how->burst == 1 && (how->good_ppm || how->bad_ppm < 1000000))
        return err_say(err, -EINVAL,
                       "burst: with 1 there is no bad state that could lose %s of the frames; give "
                       "one of 2 or more",
                       fault_arg(a, "bad", "100%"));
    if (how->loss_ppm < how->good_ppm || how->loss_ppm > how->bad_ppm)
        return err_say(err, -EINVAL, "share: %s of all is not between good and bad", share);
    double bad = (double)(how->loss_ppm - how->good_ppm),
           good = (double)(how->bad_ppm - how->loss_ppm);
    if (how->burst > 1 && good > 0 && bad > good * (double)how->burst)
        return err_say(err, -EINVAL,
                       "share: %s cannot be had with bursts of %lld; give longer ones", share,
                       (long long)how->burst);
    return 0;
}

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    int r = fault_share(a, "share", "1%", &ret->loss_ppm, err);
    r = r ? r : fault_count(a, "burst", "1", 1, 10000, &ret->burst, err);
    r = r ? r : fault_share(a, "bad", "100%", &ret->bad_ppm, err);
    if (r == 0 && !str_eq(fault_arg(a, "good", "0%"), "0%"))
        r = fault_share(a, "good", "0%", &ret->good_ppm, err);
    return r ? r : check_states(a, ret, err);
}

FAULT_IMPAIRS(read_args)

const struct fault fault_net_loss = {
    .name = "net-loss",
    .summary = "frames between groups of nodes are lost, each for itself or several in a row",
    .effects = EFFECT_IMPAIRS_NETWORK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_WIRE,
    .where = FAULT_IN_HARNESS,
    .profile = true,
    .evidence = EVIDENCE(frames_lost),
    .params =
        (const struct fault_param[]){
            {"share", "string", "1%", "how many of all frames are lost"},
            {"burst", "int", "1",
             "for how many in a row, on average, the link is bad (Gilbert-Elliott); 1: each is "
             "drawn "
             "for itself"},
            {"bad", "string", "100%", "how many are lost while the link is bad"},
            {"good", "string", "0%", "how many are lost while it is good"},
            FAULT_TRAFFIC_PARAMS,
            {0}},
    .undo = "the wire passes every frame again",
    .blast = "TCP sends again what was lost, later each time; UDP loses it",
    .example = "{when: {step: 20}, fault: net-loss, on: n2, with: {share: 5%}, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
