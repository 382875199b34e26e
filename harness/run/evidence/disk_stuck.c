/* The kernel's word, of each system call that it handed to us. */
#include "harness/run/evidence/disk_done.h"

EVIDENCE_IS_DISK(disk_stuck, DISK_STICKS, "an operation on the disk hangs",
                 "no program of the node has done to the disk what was to hang");
