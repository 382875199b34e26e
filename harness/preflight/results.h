/* results: what operators have measured with programs of others, taken in as probes: nccl-tests,
 * fio, DCGM's diagnosis, SuperBench's summary. Pure. */
#pragma once

#include "harness/preflight/probe.h"

/* Finds out which program's it is, judges it as that program does, and adds its figures as members.
 * Returns the program's name, or NULL: err says what is known. */
const char *results_read(const char *text, size_t len, struct probe_answer *ret,
                         struct json_writer *figures, struct err *err);
