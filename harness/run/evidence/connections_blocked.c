/* Requests to connect that got no answer. */
#include "harness/run/evidence/frames_done.h"

EVIDENCE_IS_DONE(connections_blocked, BLOCKED, "the wire dropped requests to connect",
                 "no request to connect was dropped: nobody wanted to connect meanwhile");
