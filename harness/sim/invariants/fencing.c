#include "harness/sim/invariants/judging.h"

#include <string.h>

static void on_put(struct sim *c, const char *uid, const struct op *op) {
    if (!sim_judge_has_session(c, &op->key, uid))
        invariant_broken(c, &invariant_fencing, "%s writes key kind %d without a session", uid,
                         op->key.kind);
}

/* Numbers of rounds are left out only where there were later ones under an incarnation of before.
 */
static bool is_legal(const struct sim *c, const struct head_value *h) {
    const struct judge *j = &c->judge;
    enum head_phase from = j->has_head ? j->head.phase : HEAD_NONE;
    bool leaps = h->round > j->head.round && h->round <= c->rounds + 1;
    switch (h->phase) {
    case HEAD_FORM:
        return from != HEAD_CLOSED && (leaps || h->round == j->head.round + 1) &&
               h->last_round == j->head.last_round;
    case HEAD_RUN:
        return from == HEAD_FORM && h->round == j->head.round && h->last_round == h->round;
    case HEAD_END:
        return from == HEAD_RUN && h->round == j->head.round;
    case HEAD_CLOSED:
        return from != HEAD_CLOSED && h->round == j->head.round;
    case HEAD_NONE:
        break;
    }
    return false;
}

static bool holds_lead(struct sim *c, const struct key *like, const char *uid) {
    union value v;
    struct key key = {.kind = KEY_LEAD};
    memcpy(key.inc, like->inc, sizeof(key.inc));
    return judge_key(c, key, &v) && strcmp(v.lead.uid, uid) == 0;
}

/* An END is written by anybody who has a session, all else by the coordinator. */
static void on_head(struct sim *c, const struct head_change *h) {
    const struct judge *j = &c->judge;
    bool own_end = h->to->phase == HEAD_END && sim_judge_has_session(c, h->key, h->uid);
    for (int i = 0; h->anew && i < c->n_nodes; i++)
        if (c->nodes[i].group.alive && !c->nodes[i].group.former)
            invariant_broken(c, &invariant_fencing,
                             "a new job begins while n%d has workers of the old one", i);
    if (!is_legal(c, h->to))
        invariant_broken(c, &invariant_fencing,
                         "head goes from phase %d of round %lld to phase %d of round %lld",
                         j->head.phase, (long long)j->head.round, h->to->phase,
                         (long long)h->to->round);
    if (!own_end && !holds_lead(c, h->key, h->uid))
        invariant_broken(c, &invariant_fencing,
                         "%s writes head (phase %d) and is not the coordinator", h->uid,
                         h->to->phase);
}

const struct invariant invariant_fencing = {
    .name = "fencing",
    .number = "I7",
    .summary = "what is written under a lost session or lead, or to an old head, is refused",
    .text = "Acks, dones and the lead are written by who has a session at that moment; head goes "
            "on by legal steps only, written by who holds the lead at that moment (the end of a "
            "round by any session); and a new job begins when no worker of the old one lives.",
    .kinds = 1u << KEY_ACK | 1u << KEY_DONE | 1u << KEY_LEAD,
    .on_put = on_put,
    .on_head = on_head,
};
