/* Questions for names that the resolver on the wire answered with a wrong address. */
#include "harness/run/evidence/frames_done.h"

EVIDENCE_IS_DONE_SINCE(names_wrong, NAME_WRONG, links_begin_one_way,
                       "the resolver on the wire said a wrong address of a name",
                       "nobody there asked the resolver for such a name meanwhile");
