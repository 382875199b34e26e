/* The kernel's word, of each system call that it handed to us, or each operation on a disk of ours. */
#include "harness/run/evidence/disk_done.h"

EVIDENCE_IS_DISK(disk_stuck, DISK_STICKS, false, "an operation on the disk hangs",
                 "no program of the node has done to the disk what was to hang");
