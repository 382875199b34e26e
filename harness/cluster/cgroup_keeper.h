/* cgroup_keeper: a process that takes away the control groups of a run when its harness has ended,
 * however that did. It ends when its socket to the harness closes. While the harness is there and
 * says nothing (dead_man.h), all who are in one are let go, and it is removed.
 *
 * Messages (channel.h): {made: path, from: path, dead_man: ns} before one is made, with the place
 * from which processes are put into it; {gone: path} once it is taken away; {beat: true}. */
#pragma once

#include "base/err.h"

/* Serves the socket until it closes; then kills what is in the control groups that are not gone, and
 * removes them. Returns 0, or a -errno when one of them stays. */
int cgroup_keeper_run(int control, struct err *err);
