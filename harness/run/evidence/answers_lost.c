/* Answers of the store that the wire has dropped, each with its connection. */
#include "harness/run/evidence/frames_done.h"

EVIDENCE_IS_DONE(answers_lost, ANSWER_LOST, "the wire dropped answers, and reset their connections",
                 "no answer was lost: the store was not asked to write, it applied nothing, or "
                 "nobody could read along (TLS)");
