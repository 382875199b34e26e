/* Delays frames on the wire. */
#include "faults/network/traffic.h"

#include "base/str.h"

#include <errno.h>

/* What is in flight takes memory: no network is as slow as that. */
static const int64_t delay_max_ns = 60000000000;

static int read_kind(const struct fault_args *a, int64_t *ret, struct err *err) {
    static const char *const words[] = {
        [JITTER_UNIFORM] = "uniform", [JITTER_NORMAL] = "normal", [JITTER_PARETO] = "pareto"};
    const char *text = fault_arg(a, "distribution", "uniform");
    for (int i = 0; i < 3; i++)
        if (str_eq(text, words[i])) {
            *ret = i;
            return 0;
        }
    return err_say(err, -EINVAL, "distribution: \"%s\" is none; write uniform, normal or pareto",
                   text);
}

/* Nothing arrives before it was sent: a bell that is too wide would be another. */
static int check_jitter(const struct fault_args *a, const struct impairment *how, struct err *err) {
    const char *jitter = fault_arg(a, "jitter", "0s"), *delay = fault_arg(a, "delay", "100ms");
    bool normal = how->jitter_kind == JITTER_NORMAL, pareto = how->jitter_kind == JITTER_PARETO;
    int64_t most = normal ? how->delay_ns / 3 : pareto ? delay_max_ns : how->delay_ns;
    if (how->jitter_ns >= 0 && how->jitter_ns <= most)
        return 0;
    return err_say(err, -EINVAL, "jitter: %s is more than %s", jitter,
                   pareto   ? "60s"
                   : normal ? "a third of the delay, which normal needs"
                            : delay);
}

static int read_args(const struct fault_args *a, struct impairment *ret, struct err *err) {
    const char *jitter = fault_arg(a, "jitter", "0s");
    int r = fault_duration(a, "delay", "100ms", delay_max_ns, &ret->delay_ns, err);
    if (r == 0)
        r = str_to_duration_ns(jitter, &ret->jitter_ns, err);
    r = r ? r : read_kind(a, &ret->jitter_kind, err);
    return r ? r : check_jitter(a, ret, err);
}

FAULT_IMPAIRS(read_args)

const struct fault fault_net_delay = {
    .name = "net-delay",
    .summary = "frames between groups of nodes, or one node and all others, arrive late",
    .effects = EFFECT_IMPAIRS_NETWORK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_WIRE,
    .where = FAULT_IN_HARNESS,
    .profile = true,
    .evidence = EVIDENCE(frames_delayed),
    .params =
        (const struct fault_param[]){
            {"delay", "duration", "100ms", "how late each frame arrives, in each direction"},
            {"jitter", "duration", "0s", "by how much more or less, drawn for each frame"},
            {"distribution", "string", "uniform",
             "of the jitter: uniform, at most that; normal, that is the standard deviation; "
             "pareto: "
             "never less, more by that on average, a few by much"},
            FAULT_TRAFFIC_PARAMS,
            {0}},
    .undo = "the wire passes frames at once again; what is in flight arrives when it is due",
    .blast = "every round trip takes twice the delay longer; nobody is told",
    .example = "{when: {step: 20}, fault: net-delay, on: n2, with: {delay: 100ms}, for: 5s}",
    .check = check,
    .inject = inject,
    .recover = recover,
};
