/* The scheduler's own word, to a client of ours: it gives the node no more jobs, and did before. */
#include "harness/run/evidence/store_read.h"

EVIDENCE_IS_READ_OF(node_drained, true, "drains", "drains", !before && after,
                    "the controller says that the node drains, and did not say so before",
                    "the controller said the same of the node before and after");
