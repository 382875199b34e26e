/* fleet: one command for the whole job: an agent on each host, by ssh, or directly on this one.
 *
 * What the agents print is shown line by line behind "[host] ". A signal to the launcher goes to
 * every agent; a second one kills the connections, which ends the agents too. When a host cannot be
 * used and too few are left for the job, the others are stopped. When the launcher dies, every far
 * end sees the end of its input, and stops. */
#pragma once

#include "agent/hosts/hosts.h"

#include <stdbool.h>

struct fleet_spec {
    struct hosts hosts;
    int min; /* hosts that the job needs */
    bool
        plain; /* argv is a command of its own on each host, and none is stopped for another's end */
    /* The agent's command line on each host, by host; NULL-ended. */
    const char *const *const *argv;
    const char *variable; /* NAME=value, for each agent's environment; NULL: none */
    const char *ssh;      /* NULL: "ssh -o BatchMode=yes -T"; words, split at blanks */
};

/* Runs the job to its end. Returns its exit code (of plain commands that of the first that failed): 0
 * succeeded, 1 failed, 64 usage, 69 hosts could
 * not be reached, 128 + n when it was ended by signal n; a negative value with err: nothing was
 * started. */
int fleet_run(const struct fleet_spec *s, struct err *err);
