/* seen_process: what the kernel of a host shows of a process there, for a harness that cannot look. */
#pragma once

#include "base/json.h"

#include <sys/types.h>

/* Puts {pid, still, waits, thread, state, call, pending, blocked, ignored, caught} as an item of the
 * array that is open: whether every thread is stopped; whether one waits in a call that reads a single
 * byte, or else what the first thread does; signals, a bit each. One that has ended is left out. */
void seen_process_put(struct json_writer *w, pid_t pid);
/* Puts {pid: 0, still} likewise: whether all that descends from the caller is stopped. */
void seen_node_put(struct json_writer *w);
/* Puts {pid, start} as members of the object that is open, by which a process of the host is known. */
void seen_process_put_name(struct json_writer *w, pid_t pid, uint64_t start);
void seen_process_put_name_now(struct json_writer *w, pid_t pid); /* of one that lives */
/* The same, and whoever it may speak for, `above`: [{pid, start}..], its parents up to the caller. */
void seen_process_put_line(struct json_writer *w, pid_t pid);
