/* directory: what lies in the job's directory of checkpoints, as evidence. */
#pragma once

#include "harness/run/engine.h"

bool directory_is_listed(const struct engine *e); /* a command is still listing it */
