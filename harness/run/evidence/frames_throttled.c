/* Frames that shared a slow link. */
#include "harness/run/evidence/frames_done.h"

EVIDENCE_IS_DONE(frames_throttled, THROTTLED, "frames went by the slow link",
                 "no frame came that would have gone by the slow link");
