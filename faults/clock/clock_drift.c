/* The wall clock of a node is too fast, or too slow. */
#include "faults/clock/wall.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int read_args(const struct fault_args *a, struct clock_shift *ret, struct err *err) {
    const char *text = fault_arg(a, "rate", "1.01");
    char *end;
    double rate = strtod(text, &end);
    bool is_number = strspn(text, "0123456789.") == strlen(text) && *text && !*end;
    if (!is_number || rate < 0.01 || rate > 100 || fabs(rate - 1) < 1e-6)
        return err_say(
            err, -EINVAL,
            "rate: \"%s\" is none; write 0.01 to 100, as in 1.01, which gains a second in "
            "a hundred; 1 is right",
            text);
    ret->drift_ppb = llround((rate - 1) * 1e9);
    return 0;
}

FAULT_SHIFTS(read_args)

const struct fault fault_clock_drift = {
    .name = "clock-drift",
    .summary = "the wall clock of a node runs too fast or too slow from now on",
    .effects = EFFECT_MOVES_CLOCK | EFFECT_SILENT | EFFECT_LASTING,
    .targets = TARGET_NODE,
    .needs = FAULT_NEEDS_PRELOAD,
    .where = FAULT_IN_HARNESS,
    .evidence = EVIDENCE(clock_drifting),
    .params = (const struct fault_param[]){{"rate", "string", "1.01",
                                            "seconds that it counts in one: 1.01 gains, 0.5 loses"},
                                           {0}},
    .undo = "the clock jumps back to the right time",
    .blast = "what is measured by the wall clock: durations, rates, deadlines that come too early",
    .example = "{when: {step: 20}, fault: clock-drift, with: {rate: 1.5}, on: n1, for: 10s}",
    .check = check,
    .inject = inject,
    .recover = wall_recover,
};
