#include "harness/verbs/trend/wanted.h"

int wanted_read(const struct arguments *a, struct series_wanted *ret, struct gate_options *ret_o) {
    int64_t runs = GATE_RUNS, slower = 10;
    *ret = (struct series_wanted){.branch = arguments_value(a, "--branch"),
                                  .scenario = arguments_value(a, "--scenario"),
                                  .measures = (const char *const *)arguments_all(a, "--measure")};
    /* With fewer than 5 of each, chance alone brings every order too often. */
    int bad = arguments_number(a, "--runs", 5, GATE_BASE_MAX / 2, &runs);
    bad = bad ? bad : arguments_number(a, "--slower", 1, 1000, &slower);
    *ret_o =
        (struct gate_options){.runs = (size_t)runs, .level = 0.005, .slower = (double)slower / 100};
    return bad;
}
