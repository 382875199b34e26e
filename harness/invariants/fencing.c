/* Compares each write that the store takes with the session and the lead it was made under. */
#include "harness/invariants/judge.h"

#include <string.h>

static void on_put(struct judge *j, const struct op *op) {
    if (!judge_has_session(j, op->key.inc, j->writer))
        invariant_broken(j, &invariant_fencing, "%s writes key kind %d without a session",
                         j->writer, op->key.kind);
}

/* Numbers of rounds are left out only where there were later ones under an incarnation of before.
 */
static bool is_legal(const struct judge *j, const struct head_value *h) {
    enum head_phase from = j->has_head ? j->head.phase : HEAD_NONE;
    bool leaps = h->round > j->head.round && h->round <= j->latest_round + 1;
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

static bool holds_lead(struct judge *j, const struct head_change *h) {
    union value v;
    struct store_key key = judge_key_of(KEY_LEAD, h->key->inc, "");
    return judge_key(j, &key, &v) && strcmp(v.lead.uid, j->writer) == 0;
}

/* An END is written by anybody who has a session, all else by the coordinator. */
static void on_head(struct judge *j, const struct head_change *h) {
    judge_risk(j, INVARIANT_fencing);
    bool own_end = h->to->phase == HEAD_END && judge_has_session(j, h->key->inc, j->writer);
    if (h->anew && !j->wiped.happened && !j->others)
        invariant_broken(j, &invariant_fencing,
                         "a new job begins, though the store has not forgotten the old one");
    for (int i = 0; h->anew && i < j->n_nodes; i++)
        if (judge_group(j, i)->alive && !judge_group(j, i)->former)
            invariant_broken(j, &invariant_fencing,
                             "a new job begins while n%d has workers of the old one", i);
    if (!is_legal(j, h->to))
        invariant_broken(j, &invariant_fencing,
                         "head goes from phase %d of round %lld to phase %d of round %lld",
                         j->head.phase, (long long)j->head.round, h->to->phase,
                         (long long)h->to->round);
    if (!own_end && !holds_lead(j, h))
        invariant_broken(j, &invariant_fencing,
                         "%s writes head (phase %d) and is not the coordinator", j->writer,
                         h->to->phase);
}

const struct invariant invariant_fencing = {
    .name = "fencing",
    .number = "I7",
    .summary = "what is written under a lost session or lead, or to an old head, is refused",
    .text = "Acks, dones and the lead are written by who has a session at that moment; head goes "
            "on by legal steps only, written by who holds the lead at that moment (the end of a "
            "round by any session); and a new job begins when the store has forgotten the old one "
            "or an agent of another attempt has come, and no worker of the old one lives.",
    .kinds = 1u << KEY_ACK | 1u << KEY_DONE | 1u << KEY_LEAD,
    .on_put = on_put,
    .on_head = on_head,
};
