/* The disk's own word, which is ours, of each write that it has made in part. */
#include "harness/run/evidence/disk_done.h"

EVIDENCE_IS_DISK(disk_shortened, DISK_CUTS, true, "the disk has written less than it was given",
                 "no program of the node has given the disk more at once than it was to write");
