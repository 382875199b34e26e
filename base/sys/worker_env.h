/* worker_env: what a launcher gives its workers, of all that stands in an environment. */
#pragma once

#include <stdbool.h>

/* entry: NAME=value. The rest of an environment is nobody's business. */
bool worker_env_is_told(const char *entry);
