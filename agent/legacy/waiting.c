/* A round is there and we are not, or no more, in it: we say so, and take its state away when it
 * has ended. Torchrun does that as soon as one member's key is missing, and asks for who waits
 * every five seconds, so members of it are given the life of a key to notice; among our own kind
 * all keys must be gone, which they are when all workers are dead. */
#include "agent/legacy/state.h"

#include <string.h>

enum { HOLD_S = 7 }; /* longer than torchrun's monitor interval */

static bool is_missing(void *arg, const char *key) {
    return !mirror_find(&((struct legacy *)arg)->mirror, key);
}

static bool is_there(void *arg, const char *key) {
    return mirror_find(&((struct legacy *)arg)->mirror, key);
}

bool waiting_missing(struct legacy *l) {
    return document_any_keep_alive(&l->doc, is_missing, l);
}

static bool hold(void *arg, const char *key) {
    struct legacy *l = arg;
    if (!is_missing(l, key))
        return false;
    flow_put(l, key, "", HOLD_S);
    return true;
}

/* Whoever sees the count first will look for a missing key at once: there must be none until all
 * have seen it. */
static void announce(struct legacy *l) {
    struct document_edit e = {.add_rank = -1, .waiting = l->doc.waiting + 1};
    if (!document_is_pure(&l->doc) && l->doc.waiting == 0 &&
        document_any_keep_alive(&l->doc, hold, l))
        return;
    l->announced_version = l->doc.version;
    flow_edit(l, &e, 0);
}

static void destroy(struct legacy *l) {
    struct tree_request q = {.verb = TREE_DELETE, .key = path_active(l), .compare = l->doc.text};
    flow_send(l, FLOW_STATE, &q);
}

/* The own key of the round that we have left: among our kind taken away, else left to end. */
static bool drop_own(struct legacy *l, bool pure) {
    struct tree_request q = {.verb = TREE_DELETE, .key = l->alive.key};
    if (!l->alive.key)
        return false;
    if (pure) {
        q.key = arena_strdup(&l->arena, q.key);
        flow_send(l, FLOW_DROP, &q);
    }
    alive_forget(l);
    return pure;
}

static bool spare(struct legacy *l) {
    bool member = l->left_version == l->doc.version;
    bool full = l->doc.n >= l->config.max && l->doc.waiting == 0;
    if (member || !full || waiting_missing(l))
        return false;
    if (!l->told_spare)
        legacy_log(l, "run \"%s\" has its %d nodes; this one waits as a spare", l->config.run_id,
                   l->config.max);
    l->told_spare = true;
    return true;
}

void waiting_advance(struct legacy *l) {
    bool pure = document_is_pure(&l->doc);
    if (spare(l))
        return;
    if (l->announced_version != l->doc.version) {
        announce(l);
        return;
    }
    if (drop_own(l, pure))
        return;
    if (pure ? !document_any_keep_alive(&l->doc, is_there, l) : waiting_missing(l))
        destroy(l);
}
