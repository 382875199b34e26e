/* directory: what lies in the job's directory of checkpoints, as evidence. */
#pragma once

#include "harness/run/engine.h"

bool directory_is_listed(const struct engine *e); /* a command is still listing it */
/* Workers that begin now wait: it is listed, or looked at once more before a new round. */
bool directory_holds_workers(const struct engine *e);
