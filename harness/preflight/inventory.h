/* inventory: what this host is made of and runs, as far as a certificate hangs on it: not what
 * changes by itself (load, free room, uptime). */
#pragma once

#include "base/json.h"

/* An object: host, machine, kernel, libc, system, processors, memory_mb, driver, gpus, nics,
 * programs. What cannot be told is "". */
void inventory_put(struct json_writer *w, const char *key);
