/* Resets of the target that did not reach its peers. */
#include "harness/run/evidence/frames_done.h"

EVIDENCE_IS_DONE(resets_swallowed, HUSHED, "the wire swallowed the resets of its connections",
                 "no reset came to the wire: it had no connection with another node");
