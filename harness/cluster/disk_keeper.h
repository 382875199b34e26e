/* disk_keeper: the process beside the harness that serves the disks of all nodes (`rankquake disk
 * FD`), where the plan wants such. It ends, and every mount with it, when its socket closes.
 *
 * Messages (channel.h), one answer {error|null} to each:
 *   harness  mount {node, disk, shared}    keeper  with two mounts, of the node's own disk and of
 *                                                  the directory that all share
 *   harness  off {node}                    what it has not synced is lost */
#pragma once

#include "base/err.h"

int disk_keeper_run(int control, struct err *err);
