/* doctor_hosts: what `doctor --provider` says of hosts that nodes could run on. */
#pragma once

#include "harness/verbs.h"

/* --provider, --hosts, --hostfile, --ssh, --format. Returns the exit code: EXIT_PASS when each of the
 * hosts can be used, EXIT_SKIPPED when one cannot. */
int doctor_hosts(const struct arguments *a);
