/* power_keeper: a process that runs the operator's commands by which one host loses its power and has
 * it again (cluster.power), and gives it back when its harness has ended, however that did. It ends when
 * its socket to the harness closes.
 *
 * Messages (channel.h), each a command to be run:
 *   harness  begin {off:[word..], on:[word..], within: ns, provider, ssh, host, program, log} with the
 *            file that takes what the commands print; log: its name, for people
 *   harness  off {}     keeper  off {error|null}: the command has ended; nothing is known of the host
 *   harness  on {}      keeper  on {error|null, hello members}: it has, and the host's helper answers */
#pragma once

#include "base/err.h"

/* Serves the socket until it closes; where `off` was said and no `on` has come of use since, runs the
 * command of `on` once more. Returns 0 or a -errno: the host may be off. */
int power_keeper_run(int control, struct err *err);
