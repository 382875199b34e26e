/* Frames that later ones may have overtaken. */
#include "harness/run/evidence/frames_done.h"

EVIDENCE_IS_DONE(frames_reordered, REORDERED, "the wire passed frames on behind later ones",
                 "no frame was held back: too few came for the share of them that is");
