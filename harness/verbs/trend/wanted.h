/* wanted: which series a command line asks for, and how they are judged. Private to this folder. */
#pragma once

#include "harness/trend/series.h"
#include "harness/verbs/trend/trend.h"

/* ret->measures is to be freed with free(). 0, or the exit code after saying what is wrong. */
int wanted_read(const struct arguments *a, struct series_wanted *ret, struct gate_options *ret_o);
