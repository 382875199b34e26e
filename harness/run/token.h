/* token: what a program shows the store of the run. */
#pragma once

#include "harness/run/engine.h"

/* NAME=value, of the run's own store; NULL: it has none, or was told one. */
const char *token_entry(const struct engine *e);
/* The token alone; "": it has none. */
const char *token_of(const struct engine *e);
/* The environment of a program that may ask that store, beside the agents; NULL: the harness's own.
 */
const char *const *token_env(const struct engine *e, struct arena *a);
/* The same for rankquake ask, which shows it where the URL is that store's. */
const char *const *token_env_for(const struct engine *e, struct arena *a, const char *url);
