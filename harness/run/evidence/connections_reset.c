/* Connections whose ends were told that they are reset. */
#include "harness/run/evidence/frames_done.h"

EVIDENCE_IS_DONE(connections_reset, RESET, "the wire reset connections",
                 "no connection was reset: nobody said anything meanwhile");
