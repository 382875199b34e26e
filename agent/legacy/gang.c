/* A gang: the run ends with the first member of a round that is lost, or leaves, before all are done.
 *
 * Members take their keys away when they begin anew, and have said before that they will: a key that is
 * missing while nobody waits is that of a lost one. Where somebody has seen its workers fail first, all
 * begin anew meanwhile; then it is the key that expires and was not taken away. In a round with a
 * torchrun keys are left to expire by everybody, so only the first holds. */
#include "agent/legacy/state.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

static bool is_gang(const struct legacy *l) {
    return l->config.on_node_loss == NODE_LOSS_GANG && !l->round.lost;
}

/* The number behind the last _ of .../v_3/rank_1 is the member's. */
static void note(struct legacy *l, const char *key) {
    const char *number = strrchr(key, '_');
    int rank = number ? atoi(number + 1) : -1;
    const char *node = document_node(&l->doc, rank);
    l->round.lost = true;
    str_copy(l->round.lost_node, sizeof(l->round.lost_node),
             *node ? node : arena_printf(&l->arena, "of group rank %d", rank));
}

static bool is_missing(void *arg, const char *key) {
    struct legacy *l = arg;
    if (mirror_find(&l->mirror, key))
        return false;
    note(l, key);
    return true;
}

/* Before the first there is none: a final state has a version. */
static bool is_of_round(const struct legacy *l) {
    return l->doc.status == DOCUMENT_FINAL && l->doc.version == l->round.version;
}

void gang_look(struct legacy *l) {
    if (is_gang(l) && l->alive.key && is_of_round(l) && l->doc.waiting == 0)
        document_any_keep_alive(&l->doc, is_missing, l);
}

void gang_expired(struct legacy *l, const char *key) {
    if (is_gang(l) && l->round.pure && is_of_round(l) && document_has_keep_alive(&l->doc, key) &&
        !(l->alive.key && strcmp(key, l->alive.key) == 0))
        note(l, key);
}

const char *gang_end(struct legacy *l, const char *node) {
    return arena_printf(
        &l->arena, "node %.100s was lost or left, and --on-node-loss=gang ends the run with it",
        node);
}
