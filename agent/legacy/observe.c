/* Seeing what is there: all of the folder once, then every change, by a wait that etcd answers when
 * there is one. Whatever breaks that is fixed by reading all of it again. */
#include "agent/legacy/state.h"

#include <string.h>

enum { ENDED_MS = 200 };

void observe_advance(struct legacy *l) {
    struct tree_request q = {.verb = TREE_GET, .key = l->rdzv};
    if (l->stage == STAGE_OPEN || !call_may(l, CALL_WATCH))
        return;
    if (l->mirror.known) {
        q.verb = TREE_WAIT;
        q.from_index = l->mirror.index + 1;
    }
    l->puts_before = l->mirror.puts;
    call_send(l, CALL_WATCH, &q);
}

void document_refresh(struct legacy *l) {
    const struct mirror_key *k = mirror_find(&l->mirror, path_active(l));
    if (k ? k->modified == l->doc.modified && strcmp(k->value, l->doc.text) == 0
          : l->doc.status == DOCUMENT_ABSENT)
        return;
    document_read(&l->doc, k ? k->value : NULL, k ? k->modified : 0);
    l->doc_due = false;
    if (l->doc.status == DOCUMENT_STRANGE)
        legacy_exit(l, 1, NULL,
                    "%s holds %.200s, which is no state of torchelastic's rendezvous: another "
                    "program, or a torch that this rankrun does not know, uses the run id %s",
                    path_active(l), l->doc.text, l->config.run_id);
}

static void changed(struct legacy *l, const struct tree_answer *answer) {
    if (answer->n) {
        if (answer->nodes->gone && strcmp(answer->nodes->value, "expire") == 0)
            gang_expired(l, answer->nodes->key);
        mirror_change(&l->mirror, answer->nodes);
        return;
    }
    l->mirror.known = false;
    if (answer->result != TREE_CLEARED)
        l->calls[CALL_WATCH].retry_ns = l->now.monotonic_ns + ENDED_MS * MS;
}

void observe_answered(struct legacy *l, bool waited, const struct tree_answer *answer) {
    bool all = answer->result == TREE_DONE || answer->result == TREE_MISSING;
    if (waited)
        changed(l, answer);
    else if (all && l->puts_before == l->mirror.puts)
        mirror_replace(&l->mirror, answer->nodes, answer->n, answer->index);
    else if (!all)
        l->calls[CALL_WATCH].retry_ns = l->now.monotonic_ns + ENDED_MS * MS;
    if (!waited && l->mirror.known)
        l->doc_due = false;
    l->seen |= l->mirror.known;
    document_refresh(l);
}
