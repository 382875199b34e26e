/* The kernel's word, of each system call that it handed to us, or each operation on a disk of ours. */
#include "harness/run/evidence/disk_done.h"

EVIDENCE_IS_DISK(disk_slowed, DISK_WAITS, false, "an operation on the disk was kept waiting",
                 "no program of the node has done to the disk what was to take longer");
