/* Who waits at a moment until faults are in force, by other means than an event: in a system call,
 * or with a request to the store that is kept on the wire. It goes on when no entry needs it any
 * more. */
#include "harness/run/entry.h"

#include "base/mem.h"

enum { TAG_OF_TIMELINE = 0, TAG_OF_RELEASED = -1 }; /* entries have others */

static bool is_same(const struct waiting *a, const struct waiting *b) {
    return a->node == b->node && (a->node ? a->call.id == b->call.id : a->request == b->request);
}

static void hold(struct timeline *t, const struct waiting *who, int tag) {
    mem_push(t->waiting, t->waiting_n) = *who;
    t->waiting[t->waiting_n - 1].tag = tag;
}

void entry_hold(struct run_entry *a, const struct waiting *who) {
    hold(a->owner, who, a->tag);
}

void timeline_hold(struct timeline *t, const struct waiting *who) {
    hold(t, who, TAG_OF_TIMELINE);
}

static bool waits_still(const struct timeline *t, const struct waiting *who) {
    for (size_t i = 0; i < t->waiting_n; i++)
        if (is_same(&t->waiting[i], who))
            return true;
    return false;
}

/* The first of this tag, of all or of one that waits; waiting_n: there is none. */
static size_t find(const struct timeline *t, int tag, const struct waiting *who) {
    size_t i = 0;
    while (i < t->waiting_n && (t->waiting[i].tag != tag || (who && !is_same(&t->waiting[i], who))))
        i++;
    return i;
}

static struct waiting take(struct timeline *t, size_t at) {
    struct waiting w = t->waiting[at];
    t->waiting[at] = t->waiting[--t->waiting_n];
    return w;
}

bool timeline_unhold(struct timeline *t, const struct waiting *who) {
    take(t, find(t, TAG_OF_TIMELINE, who));
    return waits_still(t, who);
}

static void let_go(struct timeline *t, const struct waiting *w) {
    if (w->node)
        node_pass(w->node, &w->call);
    else
        cluster_pass_request(t->engine->cluster, w->request);
}

void entry_release(struct run_entry *a) {
    struct timeline *t = a->owner;
    observer_release(t->engine->observer, a->tag);
    /* What is heard now may make its caller wait for the same entry again. */
    for (size_t i = 0; i < t->waiting_n; i++)
        if (t->waiting[i].tag == a->tag)
            t->waiting[i].tag = TAG_OF_RELEASED;
    for (size_t at; (at = find(t, TAG_OF_RELEASED, NULL)) < t->waiting_n;) {
        struct waiting w = take(t, at);
        bool heard = w.unheard && timeline_called(t->engine, w.node, &w.call);
        if (!heard && !waits_still(t, &w))
            let_go(t, &w);
    }
}
