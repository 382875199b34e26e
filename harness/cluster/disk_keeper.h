/* disk_keeper: the process beside the harness that serves the disks of all nodes (`rankquake disk
 * FD`), where the plan wants such. It ends, and every mount with it, when its socket closes.
 *
 * Messages (channel.h), one answer {error|null} to each:
 *   harness  mount {node, disk, shared,    keeper  with two mounts, of the node's own disk and of
 *                   losing}                        the directory that all share
 *   harness  off {node}                    what it has not synced is lost, if it is losing
 *   harness  rule {node, own, on, ..}      what disk_rule_put says, on its own disk or the shared one
 *   harness  let-go {node}                 it is about to be killed: who waits for a rule goes on
 *   keeper   struck {node, rule, verdict, does, pid, errno, path}
 *                                          at any time, of each operation that a rule has struck */
#pragma once

#include "base/err.h"

int disk_keeper_run(int control, struct err *err);
