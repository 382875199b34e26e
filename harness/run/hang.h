/* hang: what everything that lives is doing, written down in DIR/hang before it is ended. */
#pragma once

#include "harness/run/engine.h"

/* Takes some tens of milliseconds, seconds at most; false: it could not be written. */
bool hang_look(struct engine *e);
