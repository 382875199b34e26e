/* evaluate: `ranktrain evaluate`, a program of its own beside a training: follows a directory of
 * checkpoints and says of each how good its model is on the test set, which is all the data that it
 * holds. */
#pragma once

#include "scenarios/jobs/ranktrain/options.h"

#include "base/err.h"

/* What evaluate can be told, on the command line behind the word; the rest of the options are
 * taken and mean nothing here. As options_parse. */
int evaluate_parse(int argc, char **argv, struct ranktrain_options *ret, struct err *err);

/* Until a checkpoint of --max-steps has been read, or SIGTERM: 0; or an error. */
int evaluate_run(const struct ranktrain_options *o, struct err *err);
