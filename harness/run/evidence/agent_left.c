/* The kernel's word that an agent which was asked to leave has ended as one does that leaves: what
 * ends its node later is something else. */
#include "harness/run/evidence/evidence.h"

#include "base/str.h"

#include <signal.h>

struct agent_leaving {
    pid_t pid;
    bool seen;
};

static void *begin(struct run_entry *a, struct bound *b) {
    struct agent_leaving *l = arena_new(&a->owner->engine->arena, struct agent_leaving);
    l->pid = node_program_pid(b->node);
    return l;
}

/* Other launchers than ours end with what they like. */
static bool is_leave(const struct run_entry *a, const struct record *r) {
    const char *launcher = a->owner->engine->plan->scenario->job.launcher;
    return !record_is(r, "agent-exit") || !str_eq(launcher, "rankrun") ||
           record_i64(r, "code", 0) == 128 + SIGTERM || record_i64(r, "signal", 0) == SIGTERM;
}

static bool learn(struct run_entry *a, struct bound *b, const struct record *r) {
    struct agent_leaving *l = b->known[EVIDENCE_agent_left];
    bool exit = record_is(r, "agent-exit") || record_is(r, "store-exit");
    if (!exit || r->source != SOURCE_KERNEL || r->pid != l->pid || !is_leave(a, r))
        return false;
    l->seen = true;
    return true;
}

static bool felt(struct bound *b) {
    const struct agent_leaving *l = b->known[EVIDENCE_agent_left];
    return l->seen;
}

const struct evidence evidence_agent_left = {
    .what = "the agent has ended as one that leaves",
    .absent = "its agent was not seen to end as one that leaves, with 143",
    .begin = begin,
    .learn = learn,
    .felt = felt,
};
