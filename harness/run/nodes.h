/* nodes: the cluster of a run and the programs on it. */
#pragma once

#include "harness/run/engine.h"

/* Starts the job when every node is up and every store answers. */
void nodes_look_ready(struct engine *e);
