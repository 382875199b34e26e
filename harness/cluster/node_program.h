/* node_program: the program that a helper runs in its node: what it is given, and how it begins. Of this room only. */
#pragma once

#include "base/json.h"
#include "base/arena.h"
#include "base/sys/process.h"
#include "faults/mechanism/call_watch.h"
#include "harness/host/host_clock.h"

/* Of a list of strings; NULL-ended, the arena's. */
const char *const *node_program_strings(struct arena *a, const struct json *list);
/* On another host the program is a user's of that host: what the list does not say is as the helper has it. With a
 * clock that has a page, what makes its programs read that. NULL-ended, the arena's. */
const char *const *node_program_env_of_host(struct arena *a, const struct json *list,
                                            const struct host_clock *wall);
/* Starts it; `spawn` must last until then. argv[0] is looked for where its own PATH says. privileged: it keeps our
 * rights. watch: whose calls wait; of one that watches nothing ret_watch is left as it is, else it is the
 * watch's descriptor, the caller's. Returns 0, or a -errno with a sentence: nothing runs then. */
int node_program_start(const struct process_spawn *spawn, bool privileged,
                       const struct call_watch *watch, struct process *ret, int *ret_watch,
                       struct err *err);
