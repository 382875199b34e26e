#include "harness/sim/invariants/judging.h"

#include <string.h>

/* A coordinator that is gone is noticed and replaced, and its successor notices who else is. */
#define ADMITTED_NS (3000 * SIM_MS)

/* From when on nothing has disturbed anybody. A fault that waits for a transaction may strike at
 * any time of the trouble; stops and stalls outlast it. */
static int64_t quiet_ns(const struct sim *c) {
    const struct sim_schedule *s = c->schedule;
    bool noisy = s->loss || s->late;
    int64_t from_ns = noisy ? s->trouble_ns : 0;
    for (int i = 0; i < s->n_entries; i++) {
        const struct sim_entry *e = &s->entries[i];
        int64_t end_ns = (e->after ? s->trouble_ns : e->at_ns) + e->span_ns;
        if (e->at_ns <= c->now_ns && end_ns > from_ns)
            from_ns = end_ns;
    }
    return from_ns;
}

static bool waits_in_vain(struct sim *c, const struct join *join, const struct key *like) {
    struct key session = *like, member = *like;
    union value v;
    session.kind = KEY_SESSION;
    member.kind = KEY_MEMBER;
    session.round = member.round = 0;
    memcpy(session.uid, join->uid, UID_SIZE);
    memcpy(member.uid, join->uid, UID_SIZE);
    return strcmp(join->inc, like->inc) == 0 && c->now_ns >= join->at_ns + ADMITTED_NS &&
           !member_find(c->judge.last, c->judge.n_last, join->uid) && judge_key(c, session, NULL) &&
           judge_key(c, member, &v) && v.member.want == WANT_MEMBER;
}

/* Asked when the first of a round is done: until then it could have been formed again. */
static void on_put(struct sim *c, const char *uid, const struct op *op) {
    const struct judge *j = &c->judge;
    int64_t quiet = quiet_ns(c), from_ns = quiet > j->run_ns ? quiet : j->run_ns;
    (void)uid;
    if (op->key.kind != KEY_DONE || j->head.phase != HEAD_RUN || op->key.round != j->head.round ||
        j->n_last >= c->max || c->now_ns < from_ns + ADMITTED_NS)
        return;
    if (c->max_free_rounds && j->free_rounds >= c->max_free_rounds)
        return; /* a round more that costs nothing is not to be had */
    for (int i = 0; i < j->n_last; i++)
        if (j->last[i].said)
            return;
    for (size_t i = 0; i < c->n_joins; i++)
        if (waits_in_vain(c, &c->joins[i], &op->key))
            invariant_broken(c, &invariant_admission,
                             "%s came at %.3f s and is not taken into round %lld of %d nodes",
                             c->joins[i].uid, (double)c->joins[i].at_ns / 1e9,
                             (long long)op->key.round, j->n_last);
}

const struct invariant invariant_admission = {
    .name = "admission",
    .number = "I5",
    .summary = "who comes while a round runs is taken in, as long as there is room",
    .text =
        "When no fault lasts and no message is lost, and a round with fewer than max nodes runs "
        "for 3 seconds in which nobody is done, no session is left out of it that has existed "
        "for as long.",
    .kinds = 1u << KEY_DONE,
    .on_put = on_put,
};
