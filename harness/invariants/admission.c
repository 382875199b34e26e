/* Watches who waits while a round runs and there is room. */
#include "harness/invariants/judge.h"

#include <string.h>

/* A coordinator that is gone is noticed and replaced, and its successor notices who else is. */
#define ADMITTED_NS (3000 * JUDGE_MS)

static bool waits_in_vain(struct judge *j, const struct judged_join *join, const char *inc) {
    struct store_key member = judge_key_of(KEY_MEMBER, inc, join->uid);
    union value v;
    return strcmp(join->inc, inc) == 0 && j->now_ns >= join->at_ns + ADMITTED_NS &&
           !member_find(j->last, j->n_last, join->uid) && judge_has_session(j, inc, join->uid) &&
           judge_key(j, &member, &v) && v.member.want == WANT_MEMBER;
}

/* Asked when the first of a round is done: until then it could have been formed again. */
static void on_put(struct judge *j, const struct op *op) {
    if (!j->times || j->head.phase != HEAD_RUN || op->key.round != j->head.round ||
        j->n_last >= j->job.max || judge_is_spent(j))
        return;
    int64_t quiet_ns = j->ops->quiet_ns(j->world);
    if (j->now_ns < (quiet_ns > j->run_ns ? quiet_ns : j->run_ns) + ADMITTED_NS)
        return;
    for (int i = 0; i < j->n_last; i++)
        if (j->last[i].said)
            return;
    judge_risk(j, INVARIANT_admission);
    for (size_t i = 0; i < j->times->n_joins; i++)
        if (waits_in_vain(j, &j->times->joins[i], op->key.inc))
            invariant_broken(j, &invariant_admission,
                             "%s came at %.3f s and is not taken into round %lld of %d nodes",
                             j->times->joins[i].uid, (double)j->times->joins[i].at_ns / 1e9,
                             (long long)op->key.round, j->n_last);
}

/* How long ago it came; INT64_MAX: nobody knows. */
static int64_t here_ns(const struct judge *j, const char *uid) {
    for (size_t i = j->times->n_joins; i--;)
        if (strcmp(j->times->joins[i].uid, uid) == 0)
            return j->now_ns - j->times->joins[i].at_ns;
    return INT64_MAX;
}

/* A running round is ended for newcomers only when they have been there for admit, by a clock that
 * may run 1 % fast. */
static void on_head(struct judge *j, const struct head_change *h) {
    if (!j->times || h->to->phase != HEAD_FORM || j->head.phase != HEAD_RUN ||
        judge_is_lost(j, h->key->inc))
        return;
    judge_risk(j, INVARIANT_admission);
    for (int i = 0; i < j->n_form; i++)
        if (!member_find(j->last, j->n_last, j->form[i].uid) &&
            here_ns(j, j->form[i].uid) < j->job.admit_ns / 100 * 98)
            invariant_broken(j, &invariant_admission,
                             "%s is taken into a running job as soon as it comes", j->form[i].uid);
}

const struct invariant invariant_admission = {
    .name = "admission",
    .number = "I5",
    .summary = "who comes while a round runs is taken in, as long as there is room",
    .text =
        "When no fault lasts and no message is lost, and a round with fewer than max nodes runs "
        "for 3 seconds in which nobody is done, no session is left out of it that has existed "
        "for as long. Nor is a round ended for one that came less than admit ago.",
    .kinds = 1u << KEY_DONE,
    .on_put = on_put,
    .on_head = on_head,
};
