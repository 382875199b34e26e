/* The own rank_<R>. Peers take its absence for the death of the workers, so the guard ends these
 * before etcd can end the key: etcd counts its ttl from when the request arrives, which is after it
 * was sent. */
#include "agent/legacy/state.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define EVERY_NS (2500 * MS)
#define AGAIN_NS (500 * MS)
#define FENCE_NS (9 * S)

void alive_take(struct legacy *l, int64_t version, int rank) {
    struct tree_request q = {.verb = TREE_PUT, .key = path_rank(l, version, rank), .value = ""};
    q.ttl_s = TTL_ALIVE_S;
    alive_forget(l);
    l->alive.key = mem_strdup(q.key);
    l->alive.sent_ns = l->now.boottime_ns;
    flow_send(l, FLOW_ALIVE, &q);
}

void alive_forget(struct legacy *l) {
    free(l->alive.key);
    l->alive = (struct alive){0};
    l->calls[CALL_ALIVE] = (struct call){0}; /* what is still answered is of a key given up */
}

void alive_advance(struct legacy *l) {
    struct alive *a = &l->alive;
    if (!a->deadline_ns || !call_may(l, CALL_ALIVE))
        return;
    legacy_wake_at(l, a->next_ns);
    if (l->now.monotonic_ns < a->next_ns)
        return;
    struct tree_request q = {.verb = TREE_PUT,
                             .key = arena_strdup(&l->arena, a->key), /* may be given up yet */
                             .exist = TREE_PRESENT,
                             .refresh = true,
                             .ttl_s = TTL_ALIVE_S};
    a->sent_ns = l->now.boottime_ns;
    call_send(l, CALL_ALIVE, &q);
}

void alive_renewed(struct legacy *l, const struct tree_answer *answer) {
    struct alive *a = &l->alive;
    if (answer->result == TREE_MISSING && a->deadline_ns) {
        alive_forget(l);
    } else if (answer->result == TREE_DONE) {
        a->deadline_ns = a->sent_ns + FENCE_NS;
        a->next_ns = l->now.monotonic_ns + EVERY_NS;
    } else {
        a->next_ns = l->now.monotonic_ns + AGAIN_NS;
        return;
    }
    if (!a->key || !l->group.there)
        return;
    struct action *d = legacy_add(l, ACTION_DEADLINE);
    l->group.fence_ns = a->deadline_ns;
    d->deadline.fence_ns = a->deadline_ns;
    d->deadline.hard_ns = a->deadline_ns + HARD_AFTER_NS;
}
