/* Compares the places of those who were not in the last round with what they are and when they came.
 */
#include "harness/invariants/judge.h"

#include <string.h>

enum class { RETURNED, NEW, SPARE };

static enum class class_of(const struct judge *j, const struct judged_member *m) {
    if (m->want == WANT_STANDBY) return SPARE;
    for (int i = 0; i < j->n_last;
         i++) if (m->node >= 0 && j->last[i].node == m->node) return RETURNED;
    return NEW;
}

static bool is_before(const struct judge *j, const struct judged_member *a,
                      const struct judged_member *b) {
    enum class x = class_of(j, a), y = class_of(j, b);
    return x != y ? x < y : a->created < b->created;
}

static bool is_newcomer(const struct judge *j, const struct judged_member *m) {
    return m->created && !member_find(j->last, j->n_last, m->uid);
}

static void judge_order(struct judge *j) {
    for (int i = 0; i < j->n_form; i++)
        for (int k = 0; k < i && is_newcomer(j, &j->form[i]); k++) {
            const struct judged_member *a = &j->form[i], *b = &j->form[k];
            if (!is_newcomer(j, b))
                continue;
            judge_risk(j, INVARIANT_newcomers);
            if ((a->rank < b->rank) != is_before(j, a, b))
                invariant_broken(j, &invariant_newcomers,
                                 "%s and %s are newcomers, and their ranks %d and %d are not in "
                                 "the order of their coming",
                                 a->uid, b->uid, a->rank, b->rank);
        }
}

/* What who decides knows at least: the head before, and those who are taken. */
static int64_t known_revision(const struct judge *j) {
    int64_t known = j->head.revision;
    for (int i = 0; i < j->n_form; i++)
        known = j->form[i].created > known ? j->form[i].created : known;
    return known;
}

static void judge_waiting(struct judge *j, const struct judged_member *m) {
    int least = j->n_last > j->job.min ? j->n_last : j->job.min;
    int room = m->want == WANT_STANDBY && least < j->job.max ? least : j->job.max;
    if (j->n_form < room)
        invariant_broken(j, &invariant_newcomers,
                         "%s is there and is left out of a round of %d, with room for %d", m->uid,
                         j->n_form, room);
    for (int i = 0; i < j->n_form; i++)
        if (is_newcomer(j, &j->form[i]) && is_before(j, m, &j->form[i]))
            invariant_broken(j, &invariant_newcomers,
                             "%s waits, and %s, which is behind it, is taken", m->uid,
                             j->form[i].uid);
}

/* With fixed ranks it is their numbers that count. */
static void on_head(struct judge *j, const struct head_change *h) {
    if (!j->times || h->to->phase != HEAD_FORM || j->job.seated)
        return;
    int64_t known = known_revision(j);
    judge_order(j);
    for (size_t i = 0; i < j->times->n_joins; i++) {
        struct judged_member m = {0};
        if (strcmp(j->times->joins[i].inc, h->key->inc) != 0 ||
            member_find(j->form, j->n_form, j->times->joins[i].uid))
            continue;
        memcpy(m.uid, j->times->joins[i].uid, sizeof(m.uid));
        judge_look(j, h->key->inc, &m);
        if (is_newcomer(j, &m) && m.created <= known) {
            judge_risk(j, INVARIANT_newcomers);
            judge_waiting(j, &m);
        }
    }
}

const struct invariant invariant_newcomers = {
    .name = "newcomers",
    .number = "I3",
    .summary = "nodes that are back come before new ones, new ones before spares, each in turn",
    .text = "Behind the survivors a round has the nodes that were in the last one and are back, "
            "then those that were not, then spares, each in the order of their joining; who is "
            "behind another in that order is not taken before it; and nobody who was there when "
            "the decision was made is left out while there is room, a spare while the round would "
            "be smaller than min or than the last one.",
    .check = "rank_order",
    .on_head = on_head,
};
