/* infiniband: the ports of InfiniBand and RoCE adapters, as the kernel has them in files, and what of them betrays a job: which
 * it is not told, for such a link loses nothing and is slow. */
#pragma once

#include "base/json.h"

/* Where the kernel has them. */
#define INFINIBAND_ROOT "/sys/class/infiniband"

/* Puts an array: of each port its name ("mlx5_0/1"), layer, state ("ACTIVE"), physical ("LinkUp"), rate_mb_s (Mbit/s; -1: it
 * is not known), and its counters link_downed and symbol_errors, -1 where it has none. Nothing where there is no such root. */
void infiniband_put(const char *root, struct json_writer *w, const char *key);

/* Tells of each port what is wrong with it by itself. Returns how many sentences there were. */
int infiniband_judge(const struct json *ports, void (*fn)(void *arg, const char *sentence),
                     void *arg);

/* The rates of the ports that are active, in order: "200000, 200000"; in the arena. */
const char *infiniband_rates(const struct json *ports, struct arena *a);
