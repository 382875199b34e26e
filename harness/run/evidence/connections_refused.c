/* Requests to connect that were refused. */
#include "harness/run/evidence/frames_done.h"

EVIDENCE_IS_DONE(connections_refused, REFUSED, "the wire refused connections",
                 "no connection was refused: nobody wanted to connect meanwhile");
