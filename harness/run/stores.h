/* stores: whether the nodes that are there for the store answer. */
#pragma once

#include "harness/run/engine.h"

bool stores_ready(const struct engine *e); /* all of them */
