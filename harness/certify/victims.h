/* victims: what became of the nodes, and of the racks, that were struck by faults. All of it follows from the scenarios of a
 * certificate. */
#pragma once

#include "base/json.h"

#define VICTIMS_NODES "nodes"
#define VICTIMS_RACKS "racks"

/* An array with the key, which is one of both: of each victim, by name, the runs in which it was one, how many of them passed,
 * the median, the least and the most of its recoveries in microseconds (-1: it had none), and in what it is slower than its
 * peers: of the same fault of the same scenario, with at least three victims, its median lies further from that of all than
 * 3 times the median distance (MAD), and is slower by a tenth and 200 ms at least. A rack is a victim once in a run, of however
 * many of its nodes. */
void victims_put(const struct json *scenarios, struct json_writer *w, const char *key);
