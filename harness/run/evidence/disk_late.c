/* The disk's own word, which is ours, of each answer that is so no more. */
#include "harness/run/evidence/disk_done.h"

EVIDENCE_IS_DISK(disk_late, DISK_LATE, true,
                 "the node was shown what another one had changed before, as it was",
                 "no program of the node has looked at what another node had just changed");
