/* The table, in the order of enum fault_evidence. */
#include "harness/run/evidence/evidence.h"

#define X(name) extern const struct evidence evidence_##name;
#include "faults/evidence.h"
#undef X

const struct evidence *const evidences[EVIDENCES_N] = {
#define X(name) &evidence_##name,
#include "faults/evidence.h"
#undef X
};
