/* Frames that were passed on twice. */
#include "harness/run/evidence/frames_done.h"

EVIDENCE_IS_DONE(frames_duplicated, DUPLICATED, "the wire passed frames on twice",
                 "no frame came twice: too few came for the share of them that does");
