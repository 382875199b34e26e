/* The kernel's word, in /proc, that the agent which has started lives in a time of its own. */
#include "harness/run/evidence/evidence.h"

#include "base/str.h"
#include "base/sys/namespace.h"

struct uptime_moved {
    int64_t monotonic_ns, boottime_ns;
};

static void *begin(struct run_entry *a, struct bound *b) {
    return arena_new(&a->owner->engine->arena, struct uptime_moved);
}

static bool read_uptime(const struct bound *b, pid_t pid, struct uptime_moved *u) {
    struct node_uptime there;
    if (!node_uptime_there(b->node, &there))
        return namespace_uptime_of(pid, &u->monotonic_ns, &u->boottime_ns);
    u->monotonic_ns = there.monotonic_ns;
    u->boottime_ns = there.boottime_ns;
    return true;
}

static bool learn(struct run_entry *a, struct bound *b, const struct record *r) {
    struct uptime_moved *u = b->known[EVIDENCE_uptime_moved];
    bool starts = record_is(r, "agent-start") || record_is(r, "store-start");
    return starts && str_eq(r->node, node_plan(b->node)->name) &&
           read_uptime(b, (pid_t)r->pid, u) && (u->monotonic_ns || u->boottime_ns) &&
           evidence_note(b, r);
}

static void put(const struct run_entry *a, struct json_writer *w) {
    const struct uptime_moved *u = a->bound[0].known[EVIDENCE_uptime_moved];
    json_put_i64(w, "monotonic_ns", u->monotonic_ns);
    json_put_i64(w, "boottime_ns", u->boottime_ns);
}

const struct evidence evidence_uptime_moved = {
    .what = "the agent has started with another uptime than the host's",
    .absent = "no agent was seen to start on it with another uptime than the host's",
    .answers = true,
    .begin = begin,
    .learn = learn,
    .felt = evidence_noted,
    .put = put,
};
