/* host_facts: what a helper's host is made of, as far as a run on it depends on it. */
#pragma once

#include "base/json.h"

/* Puts {kernel, machine, cpus, memory, free, gpus, uptime_ns, address, network, jobs}: memory and the room
 * that is left on the file system of temporary files in bytes, uptime by CLOCK_BOOTTIME, the IPv4
 * address at which ssh has reached it, else the first of a card of its own, the number of its
 * network namespace, and jobs: [{pid, uid}], the first rankruns that are at work there. */
void host_facts_put(struct json_writer *w);
