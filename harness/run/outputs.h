/* outputs: what the programs of a run print, where somebody wants to know: workers write into files
 * that rankprobe opens for them, agents and the store into those they always have. */
#pragma once

#include "harness/run/engine.h"

/* The folder for the files of a node's workers; NULL: they write where their agent does. */
const char *outputs_dir(struct engine *e, const struct node *n);
void outputs_program(struct engine *e, const struct node *n); /* its log is there */
