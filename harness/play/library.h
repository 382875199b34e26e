/* library: what came with the program: scenarios and their jobs, at home in the tree where it was
 * built (build/bin), or in share/rankquake where it was installed (PREFIX/lib/rankquake). */
#pragma once

#include "base/arena.h"
#include "base/texts.h"

/* The folder that holds scenarios/, without links; in the arena. NULL: it came with none. */
const char *library_folder(struct arena *a);

/* The file or folder of a scenario by the name that people use for it: "smoke",
 * "restart/worker-killed", with .yaml or without, with scenarios/ in front or without; in the arena.
 * NULL: there is none. */
const char *library_find(struct arena *a, const char *name);

/* The paths of all of them below the folder, "scenarios/restart/worker-killed.yaml", in order. */
void library_list(struct texts *ret);
