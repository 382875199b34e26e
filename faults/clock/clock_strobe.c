/* The wall clock of a node jumps to and fro. */
#include "faults/arguments.h"
#include "faults/clock/wall.h"

static const int64_t period_max_ns = 3600000000000;

static int read_args(const struct fault_args *a, struct clock_shift *ret, struct err *err) {
    int r = wall_by(a, "+5m", &ret->by_ns, err);
    return r ? r : fault_duration(a, "period", "100ms", period_max_ns, &ret->period_ns, err);
}

FAULT_SHIFTS(read_args)

const struct fault fault_clock_strobe = {
    .name = "clock-strobe",
    .summary = "the wall clock of a node jumps to and fro, again and again",
    .effects = EFFECT_MOVES_CLOCK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_PRELOAD,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(clock_strobing),
    .params =
        (const struct fault_param[]){
            {"by", "string", "+5m", "how far it jumps: +5m ahead, -1h back"},
            {"period", "duration", "100ms", "how long it stays wrong, and then right"},
            {0}},
    .undo = "the clock says the right time again",
    .blast =
        "what takes two times for the ends of a span: it is hours long, or ends before it began",
    .example =
        "{when: {step: 20}, fault: clock-strobe, with: {by: 1h, period: 200ms}, on: n1, for: "
        "5s}",
    .check = check,
    .inject = inject,
    .recover = wall_recover,
};
