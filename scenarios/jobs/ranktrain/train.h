/* train: one worker's life, from its data to the model's hash. */
#pragma once

#include "scenarios/jobs/ranktrain/options.h"

#include "base/err.h"

/* Trains as the options say and prints progress (rank 0) on stdout; the last line is
 * "model <64 hex>". Returns 0; -ECANCELED, with err untouched, when SIGTERM asked it to end (the
 * signal is then blocked and still pending); else an error. When ret_stuck is set, what it names
 * did not end: leave by _exit. Call it once. */
int train_run(const struct ranktrain_options *o, struct err *ret_stuck, struct err *err);
