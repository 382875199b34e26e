/* The end of an agent: what others must know is written, for as long as that may take, then it
 * exits. A run that is closed stays so: who comes later is told. */
#include "agent/legacy/state.h"

#include <string.h>

#define PART_NS (5 * S)

void legacy_leave_begin(struct legacy *l, enum part_why why) {
    l->stage = STAGE_PART;
    l->part = why;
    l->part_ns = l->now.monotonic_ns + PART_NS;
    legacy_claim(l, why == PART_LEFT ? CLAIM_LEAVE : CLAIM_CLOSED, l->round.version);
}

/* Closed, and no worker of ours lives. */
void legacy_leave_closed(struct legacy *l) {
    const char *id = l->config.run_id, *end = document_end(&l->doc);
    bool took_part = l->round.version != 0;
    if (end && end[0])
        legacy_exit(l, 1, NULL, "run \"%s\" failed: %s", id, end);
    else if (end)
        legacy_exit(l, 0, NULL, "run \"%s\" has ended, it succeeded%s", id,
                    took_part ? "" : "; no worker was started");
    else
        legacy_exit(l, 1, NULL,
                    "the rendezvous of run \"%s\" is closed: %s ended the job; use another "
                    "--rdzv-id for a new one",
                    id, took_part ? "an agent of torchrun" : "a run of that name");
}

static void legacy_leave_exit(struct legacy *l) {
    const char *id = l->config.run_id;
    if (l->part == PART_DONE) {
        legacy_exit(l, 0, NULL, "%s", "");
    } else if (l->part == PART_LEFT) {
        legacy_exit(l, 128 + l->signo, NULL, "left run \"%s\" on signal %d before the outcome", id,
                    l->signo);
    } else if (l->part == PART_LOST) {
        legacy_exit(l, 1, NULL, "run \"%s\" failed: %s", id, gang_end(l, l->round.lost_node));
    } else {
        int max = l->config.max_restarts;
        const char *spent = l->spent < max ? "; others had ended the run already"
                            : max ? arena_printf(&l->arena, "; max_restarts %d is used up", max)
                                  : "";
        legacy_exit(l, 1, &l->group.failure, "run \"%s\" failed: %s%s", id,
                    failure_text(&l->arena, &l->group.failure), spent);
    }
}

/* Others may have taken the state away to begin anew: a run that has failed is closed all the same, or they
 * would go on, and end it otherwise. */
static bool close_run(struct legacy *l) {
    struct document_edit e = {.status = "closed", .add_rank = -1, .waiting = -1};
    e.end = l->part == PART_FAILED ? failure_text(&l->arena, &l->group.failure)
            : l->part == PART_LOST ? gang_end(l, l->round.lost_node)
            : l->part == PART_LEFT ? gang_end(l, l->config.node)
                                   : "";
    bool gone = l->doc.status == DOCUMENT_ABSENT && l->part == PART_DONE;
    if (gone || l->doc.status == DOCUMENT_CLOSED)
        return false;
    flow_edit(l, &e, 0);
    return true;
}

/* So that those who stay begin anew at once, rather than when they find that we are silent. */
static bool say_left(struct legacy *l) {
    struct document_edit e = {.add_rank = -1, .waiting = l->doc.waiting + 1};
    struct tree_request q = {.verb = TREE_DELETE};
    int64_t version = l->round.version;
    if (l->doc.status != DOCUMENT_FINAL || l->doc.version != version || !l->alive.key ||
        l->round.n == 1)
        return false;
    if (l->doc.waiting == 0 && l->announced_version != version) {
        l->announced_version = version;
        flow_edit(l, &e, 0);
        return true;
    }
    if (!document_is_pure(&l->doc))
        return false;
    q.key = arena_strdup(&l->arena, l->alive.key);
    alive_forget(l);
    flow_send(l, FLOW_DROP, &q);
    return true;
}

/* Who leaves a round that others are in takes a gang with it. */
static bool breaks_gang(const struct legacy *l) {
    return l->config.on_node_loss == NODE_LOSS_GANG && l->round.version &&
           l->doc.version == l->round.version;
}

/* True when something was asked for. Torchrun's agents that are done wait for every member's word, even for one that
 * has failed; our own take that word for an end that is well, so they must see before that it is not. */
static bool write_end(struct legacy *l) {
    if (l->part == PART_LEFT && !breaks_gang(l))
        return say_left(l);
    return l->part == PART_DONE ? barrier_finish(l) || close_run(l)
                                : close_run(l) || barrier_finish(l);
}

void legacy_leave_advance(struct legacy *l) {
    legacy_wake_at(l, l->part_ns);
    if (l->now.monotonic_ns >= l->part_ns) {
        legacy_leave_exit(l);
        return;
    }
    if (l->doc_due || !call_may(l, CALL_FLOW))
        return;
    if (!write_end(l))
        legacy_leave_exit(l);
}
