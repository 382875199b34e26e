/* Switches a node off and on several times. */
#include "faults/arguments.h"
#include "faults/node/power.h"

#include <errno.h>

static const int64_t period_max_ns = 3600000000000;

static int read_args(const struct fault_args *a, struct fault_course *ret, struct err *err) {
    int64_t count;
    int r = fault_count(a, "count", "3", 2, 1000, &count, err);
    r = r ? r : fault_duration(a, "period", "5s", period_max_ns, &ret->every_ns, err);
    r = r ? r : fault_duration(a, "down", "1s", period_max_ns, &ret->lasts_ns, err);
    if (r)
        return r;
    ret->times = (int)count;
    if (ret->lasts_ns < ret->every_ns)
        return 0;
    return err_say(err, -EINVAL, "down: %s is not shorter than the period of %s",
                   fault_arg(a, "down", "1s"), fault_arg(a, "period", "5s"));
}

static int check(const struct fault_args *a, struct err *err) {
    struct fault_course c;
    int r = read_args(a, &c, err);
    return r ? r : power_check(a, err);
}

static void course(const struct fault_args *a, struct fault_course *ret) {
    power_course(a, ret);
    read_args(a, ret, NULL); /* what is wrong is refused by check */
}

static int inject(const struct target *t, const struct fault_args *a, struct err *err) {
    return power_off(t, power_is_silent(a), err);
}

static int recover(const struct target *t, const struct fault_args *a, struct err *err) {
    return power_on(t, power_wants_fresh_disk(a), err);
}

const struct fault fault_node_flap = {
    .name = "node-flap",
    .summary = "a node goes off and comes back, again and again, as on unreliable power",
    .effects = EFFECT_ENDS_NODE | EFFECT_LOUD | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(target_exit) | EVIDENCE(agent_back),
    .params = (const struct fault_param[]){{"count", "int", "3", "how often it goes off"},
                                           {"period", "duration", "5s",
                                            "from one time that it goes off to the next; later "
                                            "where its agent is not back by then"},
                                           {"down", "duration", "1s",
                                            "for how long it is off, first thing in each period"},
                                           POWER_PARAMS,
                                           {0}},
    .undo = "it is on again after `down`; an entry that heals it ends all that is left to come",
    .blast = "its agent, its workers, and the store if it is there; each return may end a round",
    .example =
        "{when: {step: 20}, fault: node-flap, with: {count: 2, period: 3s, down: 500ms}, on: n2}",
    .check = check,
    .course = course,
    .inject = inject,
    .recover = recover,
};
