/* Frames in which a bit was changed. */
#include "harness/run/evidence/frames_done.h"

EVIDENCE_IS_DONE(
    frames_corrupted, CORRUPTED, "the wire changed a bit in frames",
    "no frame was changed: too few came that carry something for the share of them that is");
