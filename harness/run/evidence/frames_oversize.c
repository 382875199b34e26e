/* Frames that were too long for the path. */
#include "harness/run/evidence/frames_done.h"

EVIDENCE_IS_DONE(frames_oversize, OVERSIZE, "the wire dropped frames as too long",
                 "no frame was too long: nobody had so much to say at once");
