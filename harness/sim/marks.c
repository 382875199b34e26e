/* Marks the places of the core that a seed has reached, for coverage. */
#include "harness/sim/simulation.h"

#include <stdio.h>
#include <string.h>

#define X(name, text) [SIM_MARK_##name] = text,
static const char *const texts[] = {SIM_MARKS(X)};
#undef X

const char *sim_mark_text(enum sim_mark m) {
    return texts[m];
}

void sim_mark(struct sim *c, enum sim_mark m) {
    c->result->marks[m] = true;
}

void sim_mark_if(struct sim *c, enum sim_mark m, bool reached) {
    if (reached)
        sim_mark(c, m);
}

static bool is_writer(const struct sim *c, int node) {
    return c->nodes[node].core && strcmp(rendezvous_uid(c->nodes[node].core), c->written.uid) == 0;
}

void sim_mark_heard(struct sim *c, int node, const struct entry *entries, size_t n) {
    bool newest = n && entries[n - 1].mod_revision >= c->written.revision;
    c->written.heard |= newest && !is_writer(c, node);
}

void sim_mark_refused(struct sim *c, const char *uid, const struct op *op, int64_t sent_ns) {
    if (!op->put || op->key.kind != KEY_ACK || judge_has_session(&c->judge, op->key.inc, uid))
        return;
    const struct judged_member *m = member_find(c->judge.last, c->judge.n_last, uid);
    sim_mark(c, SIM_MARK_ACK_REFUSED);
    sim_mark_if(c, SIM_MARK_CERTIFIED_UNDER_ACK, m && m->gone_ns >= sent_ns);
}

/* One that ends with the job has nobody to tell any more, nor has one that is alone. */
void sim_mark_agent_gone(struct sim *c, int node) {
    bool others = false;
    if (c->judge.head.phase == HEAD_CLOSED || c->written.heard || !is_writer(c, node))
        return;
    for (int i = 0; i < c->n_nodes; i++)
        others |= i != node && c->nodes[i].core;
    sim_mark_if(c, SIM_MARK_COORDINATOR_UNHEARD, others);
}

/* What an agent says of itself serves to know what schedules reach, never to judge. */
void sim_mark_claim(struct sim *c, int node, const char *what) {
    struct sim_node *n = &c->nodes[node];
    if (strcmp(what, CLAIM_LOST) == 0)
        n->leads = false;
    if (strcmp(what, CLAIM_LEAD) != 0)
        return;
    for (int i = 0; i < c->n_nodes; i++)
        if (i != node && c->nodes[i].core && c->nodes[i].leads)
            sim_mark(c, SIM_MARK_TWO_LEADERS);
    n->leads = true;
}

static bool has_put(const struct op *ops, size_t n, enum key_kind kind) {
    for (size_t i = 0; i < n; i++)
        if (ops[i].put && ops[i].key.kind == kind)
            return true;
    return false;
}

/* Who was no standby would have to wait for suspect first. */
static void mark_gone(struct sim *c, const char *uid, const struct op *op) {
    bool new = strcmp(c->times.lead.uid, uid) == 0 && c->times.lead.before[0] &&
               c->now_ns - c->times.lead.since_ns < c->judge.job.timing.suspect_ns / 2;
    if (new && op->value->gone.why == GONE_SILENT && strcmp(op->key.uid, c->times.lead.before) != 0)
        sim_mark(c, SIM_MARK_STANDBY_SUCCESSOR);
}

void sim_mark_txn(struct sim *c, const char *uid, const struct op *ops, size_t n) {
    bool gone = has_put(ops, n, KEY_GONE), lead = has_put(ops, n, KEY_LEAD);
    for (size_t i = 0; i < n; i++) {
        const struct op *op = &ops[i];
        if (op->put && op->key.kind == KEY_HEAD) {
            snprintf(c->written.uid, UID_SIZE, "%s", uid);
            c->written.revision = kv_revision(c->store->kv);
            c->written.heard = false;
        }
        if (op->put && op->key.kind == KEY_GONE && !lead)
            mark_gone(c, uid, op);
        else if (n == 1 && !op->put && op->key.kind == KEY_SESSION && !gone &&
                 c->judge.head.phase != HEAD_CLOSED)
            sim_mark(c, SIM_MARK_EVICTED);
    }
}

static int node_of(const struct sim *c, const char *uid) {
    for (int i = 0; i < c->n_nodes; i++)
        if (c->nodes[i].core && strcmp(rendezvous_uid(c->nodes[i].core), uid) == 0)
            return i;
    return -1;
}

static void mark_round(struct sim *c, const struct head_change *h) {
    const struct judge *j = &c->judge;
    bool costs = j->failed && !h->lost;
    sim_mark_if(c, SIM_MARK_ROUNDS_APART, h->to->brief_rounds > SIM_BRIEF_ROUNDS);
    sim_mark_if(c, SIM_MARK_GUARD_FAILED, costs && c->written.by_guard);
    sim_mark_if(c, SIM_MARK_STORE_REMINDED, h->recalls);
    for (int i = 0; i < j->n_last; i++)
        sim_mark_if(c, SIM_MARK_DONE_TWICE_FORMED, j->last[i].succeeded);
    for (int i = 0; i < j->n_form && c->schedule->spares; i++)
        sim_mark_if(c, SIM_MARK_STANDBY_TAKEN, judge_is_spare(j, h, j->form[i].uid));
    if (!j->n_last)
        return;
    sim_mark_if(c, SIM_MARK_LATE_JOINER, j->n_form > j->n_last);
    for (int i = 0; i < j->n_form && j->n_last == j->job.max; i++) {
        bool survives = member_find(j->last, j->n_last, j->form[i].uid);
        int node = survives ? -1 : node_of(c, j->form[i].uid);
        if (node >= 0 && c->nodes[node].shown.booted_ns < j->run_ns)
            sim_mark(c, SIM_MARK_SPARE_PROMOTED);
    }
}

static void mark_closed(struct sim *c, const struct head_change *h) {
    const struct judge *j = &c->judge;
    if (h->to->outcome != OUTCOME_FAILED)
        return;
    if (h->settles)
        sim_mark(c, SIM_MARK_BUDGET_SPENT);
    else if (j->job.max_free_rounds && j->free_rounds == j->job.max_free_rounds)
        sim_mark(c, SIM_MARK_FREE_ROUNDS_SPENT);
    sim_mark_if(c, SIM_MARK_GANG_CLOSED, !h->settles && h->to->failure.node[0]);
}

void sim_mark_head(struct sim *c, const struct head_change *h) {
    for (int i = 0; h->anew && i < c->n_nodes; i++) {
        const struct judged_group *g = &c->nodes[i].shown.group;
        sim_mark_if(c, SIM_MARK_STORE_OUTLIVED, g->alive && g->former);
    }
    sim_mark_if(c, SIM_MARK_LOST_AND_FAILED, h->settles && c->judge.failed && h->lost);
    if (h->to->phase == HEAD_RUN)
        mark_round(c, h);
    else if (h->to->phase == HEAD_CLOSED)
        mark_closed(c, h);
    c->written.by_guard = h->to->failure.rank < 0;
}
