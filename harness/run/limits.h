/* limits: while a run stands still because somebody wants it to, no limit runs. */
#pragma once

#include "harness/run/engine.h"

void limits_stop(struct engine *e);
void limits_go_on(struct engine *e); /* each is put off by as long as it stood still */
