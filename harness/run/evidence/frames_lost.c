/* Frames that an impairment lost. */
#include "harness/run/evidence/frames_done.h"

EVIDENCE_IS_DONE(frames_lost, LOST, "the wire lost frames",
                 "no frame was lost: too few came for the share of them that is lost");
