/* answers: what a probe of the user's is answered. */
#pragma once

#include "tests/harness/checks/wrongs.h"

#define PROBED "probed"

static const struct wrong answers[] = {
    {"probe",
     FAIL,
     "served, before the first fault",
     PROBED,
     {{"\"answer\"", "\"t\":1040500000", "true", "false"}}},
    {"probe",
     FAIL,
     "served, after the last recovery",
     PROBED,
     {{"\"answer\"", "\"t\":1130500000", "true", "false"}}},
    {"probe",
     UNKNOWN,
     "served was not answered before",
     PROBED,
     {{"\"answer\"", "\"t\":1040500000", "", NULL}}},
    {"probe",
     UNKNOWN,
     "served was not answered after",
     PROBED,
     {{"\"answer\"", "\"t\":1130500000", "", NULL}}},
    /* What is asked while the fault lasts, or of something else, does not count. */
    {"probe",
     PASS,
     "1 answers before, 1 while faults lasted, 1 after",
     PROBED,
     {{"\"answer\"", "\"t\":1074500000", "\"took", "\"node\":\"n0\",\"took"}}},
    {"probe",
     UNKNOWN,
     "served was not answered before",
     PROBED,
     {{"\"answer\"", NULL, "\"user\"", "\"job\""}}},
};
enum { ANSWERS = sizeof(answers) / sizeof(*answers) };
