/* Our own client's reading: what the store kept of its past it says to have compacted. */
#include "harness/run/evidence/store_read.h"

EVIDENCE_IS_READ(revision_gone, "revision", "revision-gone", before != 0 && after != 0,
                 "the revision before is compacted, and was not when it was read before",
                 "the store kept nothing older than its newest revision before");
