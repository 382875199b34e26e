/* The kernel's word that a process has ended. */
#include "harness/run/evidence/evidence.h"

#include "base/str.h"

#include <sys/wait.h>

/* Whether it ended as one does whom this fault has ended; nobody may know how it ended. */
static bool ended_so(const struct planned_entry *pa, const struct record *r) {
    int status = pa->fault->status ? pa->fault->status(&pa->args) : -1;
    if (status == FAULT_STATUS_FAILED)
        return json_get_i64(r->fields, "code", -1) != 0;
    if (status < 0 || json_get_bool(r->fields, "unknown", false))
        return true;
    if (WIFSIGNALED(status))
        return json_get_i64(r->fields, "signal", 0) == WTERMSIG(status);
    return json_get_i64(r->fields, "code", -1) == WEXITSTATUS(status);
}

static bool shows(const struct bound *b, const struct planned_entry *pa, const struct record *r) {
    if (b->target.kind == TARGET_NODE)
        return record_is(r, "node-down") && str_eq(r->node, node_plan(b->node)->name) &&
               !str_eq(record_text(r, "why"), "end"); /* of the run, not by a fault */
    bool exit =
        record_is(r, "worker-exit") || record_is(r, "agent-exit") || record_is(r, "store-exit");
    return exit && r->source == SOURCE_KERNEL && r->pid == b->target.pid && ended_so(pa, r);
}

static bool learn(struct run_entry *a, struct bound *b, const struct record *r) {
    return shows(b, a->plan, r) && evidence_note(b, r);
}

const struct evidence evidence_target_exit = {
    .what = "the target has ended",
    .absent = "it was not seen to end as one does whom this fault ends",
    .learn = learn,
    .felt = evidence_noted,
};
