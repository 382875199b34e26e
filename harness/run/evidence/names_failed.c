/* Questions for names that the resolver on the wire did not answer as it should. */
#include "harness/run/evidence/frames_done.h"

EVIDENCE_IS_DONE_SINCE(names_failed, NAME_FAILED, links_begin_one_way,
                       "the resolver on the wire did not say the address of a name",
                       "nobody there asked the resolver for such a name meanwhile");
