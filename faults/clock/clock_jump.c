/* The wall clock of a node jumps. */
#include "faults/clock/wall.h"

static int read_args(const struct fault_args *a, struct clock_shift *ret, struct err *err) {
    return wall_by(a, "+5m", &ret->by_ns, err);
}

FAULT_SHIFTS(read_args)

const struct fault fault_clock_jump = {
    .name = "clock-jump",
    .summary = "the wall clock of a node jumps; its monotonic clock goes on as before",
    .effects = EFFECT_MOVES_CLOCK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_PRELOAD,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(clock_ahead),
    .params =
        (const struct fault_param[]){
            {"by", "string", "+5m", "how far it jumps: +5m ahead, -1h back"}, {0}},
    .undo = "the clock jumps back to the right time",
    .blast = "whatever compares the time of two nodes, or a time with an earlier one: deadlines, "
             "leases, certificates, names of files",
    .example = "{when: {step: 20}, fault: clock-jump, with: {by: -1h}, on: n1}",
    .check = check,
    .inject = inject,
    .recover = wall_recover,
};
