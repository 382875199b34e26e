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

bool evidence_note(struct bound *b, const struct record *r) {
    bool first = !b->exit_ns;
    b->exit_ns = first ? r->t_ns : b->exit_ns;
    return first;
}

bool evidence_noted(struct bound *b) {
    return b->exit_ns;
}
