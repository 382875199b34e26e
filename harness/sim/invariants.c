#include "harness/sim/simulation.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The judge looks at the store's history and at the machines, and knows nothing of the cores. It
 * counts restarts, members and certificates itself. */

void sim_violation(struct sim *c, const char *fmt, ...) {
    va_list ap;
    if (c->result->violated)
        return;
    c->result->violated = true;
    va_start(ap, fmt);
    vsnprintf(c->result->text, sizeof(c->result->text), fmt, ap);
    va_end(ap);
}

static struct last_member *find(struct last_member *m, int n, const char *uid) {
    for (int i = 0; i < n; i++)
        if (strcmp(m[i].uid, uid) == 0)
            return &m[i];
    return NULL;
}

static bool exists(struct sim *c, struct key key, union value *ret) {
    char text[KEY_SIZE], end[KEY_SIZE];
    struct arena a = {0};
    struct kv_txn_result r = {0};
    key_format(&key, "job", text, end);
    struct kv_op op = {.kind = KV_RANGE, .key = kv_string(text), .range_end = kv_string(end)};
    kv_txn(c->kv, &(struct kv_txn){.success = &op, .n_success = 1}, &a, &r, NULL);
    bool there = r.results[0].n_pairs > 0;
    if (there && ret)
        memcpy(ret, r.results[0].pairs[0].value.data, r.results[0].pairs[0].value.len);
    arena_fini(&a);
    return there;
}

static bool holds_lead(struct sim *c, const struct key *like, const char *uid) {
    union value v;
    struct key key = {.kind = KEY_LEAD};
    memcpy(key.inc, like->inc, sizeof(key.inc));
    return exists(c, key, &v) && strcmp(v.lead.uid, uid) == 0;
}

bool sim_judge_has_session(struct sim *c, const struct key *like, const char *uid) {
    struct key key = {.kind = KEY_SESSION};
    memcpy(key.inc, like->inc, sizeof(key.inc));
    memcpy(key.uid, uid, UID_SIZE);
    return exists(c, key, NULL);
}

/* --- certificates, acks, dones --- */

/* CONTRACT: a certified session has no worker. */
static void judge_gone(struct sim *c, const char *uid) {
    struct last_member *m = find(c->judge.last, c->judge.n_last, uid);
    for (int i = 0; i < c->n_nodes; i++) {
        const struct group_model *g = &c->nodes[i].group;
        if (g->alive && strcmp(g->uid, uid) == 0)
            sim_violation(c,
                          "CONTRACT: gone/%s is written while n%d has workers of it (round %lld)",
                          uid, i, (long long)g->round);
    }
    if (m && !m->said)
        m->gone_first = true;
}

static void judge_ack(struct sim *c, const struct op *op) {
    struct last_member *m = find(c->judge.last, c->judge.n_last, op->key.uid);
    if (op->key.round != c->judge.head.last_round)
        return;
    for (int i = 0; i < c->n_nodes; i++) {
        const struct group_model *g = &c->nodes[i].group;
        if (g->alive && g->round <= op->key.round && strcmp(g->uid, op->key.uid) == 0)
            sim_violation(c, "CONTRACT: %s acks round %lld with a living worker", op->key.uid,
                          (long long)op->key.round);
    }
    if (!m)
        return;
    m->said = true;
    m->fenced |= op->value->ack.why == ACK_FENCED;
}

static void judge_done(struct sim *c, const struct op *op) {
    struct last_member *m = find(c->judge.last, c->judge.n_last, op->key.uid);
    if (op->key.round != c->judge.head.last_round || !m)
        return;
    m->said = true;
    if (!m->succeeded)
        sim_violation(c, "I6: %s says done, but its workers did not all succeed", op->key.uid);
}

/* --- head --- */

static void form_read(struct sim *c, const struct op *op) {
    struct judge *j = &c->judge;
    struct key key = {.kind = KEY_PLAN, .scope = KEYS_ALL};
    char text[KEY_SIZE], end[KEY_SIZE];
    struct arena a = {0};
    struct kv_txn_result r = {0};
    memcpy(key.inc, op->key.inc, sizeof(key.inc));
    memcpy(key.pid, op->value->head.pid, sizeof(key.pid));
    key_format(&key, "job", text, end);
    struct kv_op range = {.kind = KV_RANGE, .key = kv_string(text), .range_end = kv_string(end)};
    kv_txn(c->kv, &(struct kv_txn){.success = &range, .n_success = 1}, &a, &r, NULL);
    j->n_form = 0;
    for (size_t i = 0; i < r.results[0].n_pairs && i < SIM_AGENTS_MAX; i++) {
        struct kv_pair *p = &r.results[0].pairs[i];
        struct last_member *m = &j->form[j->n_form++];
        struct plan_value place;
        struct key own;
        memset(m, 0, sizeof(*m));
        key_parse(p->key.data, p->key.len, "job", &own);
        memcpy(m->uid, own.uid, sizeof(m->uid));
        memcpy(&place, p->value.data, sizeof(place));
        m->rank = place.group_rank;
    }
    if (j->n_form != op->value->head.n)
        sim_violation(c, "I2: head names a plan of %d, which has %d entries", op->value->head.n,
                      j->n_form);
    arena_fini(&a);
}

/* I3: within bounds; who was in the last round comes first, and in the same order. */
static void judge_membership(struct sim *c) {
    struct judge *j = &c->judge;
    if (j->n_form < c->min || j->n_form > c->max)
        sim_violation(c, "I3: a round of %d nodes, bounds %d:%d", j->n_form, c->min, c->max);
    for (int i = 0; i < j->n_form; i++) {
        struct last_member *a = find(j->last, j->n_last, j->form[i].uid);
        for (int k = 0; k < j->n_form; k++) {
            struct last_member *b = find(j->last, j->n_last, j->form[k].uid);
            bool before = j->form[i].rank < j->form[k].rank;
            if (k != i && b && before && (!a || a->rank > b->rank))
                sim_violation(c, "I3: %s is ranked before the survivor %s", j->form[i].uid,
                              j->form[k].uid);
        }
    }
}

/* I1 in the store, and I4: a failed round costs one if nobody was lost in it, else nothing. */
static void judge_settlement(struct sim *c, const struct head_value *h) {
    struct judge *j = &c->judge;
    bool lost = false;
    for (int i = 0; i < j->n_last; i++) {
        struct last_member *m = &j->last[i];
        if (!m->said && !m->gone_first)
            sim_violation(c, "I1: round %lld is settled without a certificate of %s",
                          (long long)j->head.last_round, m->uid);
        lost |= m->gone_first || m->fenced;
    }
    j->restarts += j->failed && !lost;
    if (j->failed && lost)
        sim_mark(c, SIM_MARK_LOST_AND_FAILED);
    if (h->restarts != j->restarts)
        sim_violation(c, "I4: %d restarts are written, %d rounds have failed", h->restarts,
                      j->restarts);
}

static void judge_run(struct sim *c, const struct op *op) {
    struct judge *j = &c->judge;
    const struct head_value *h = &op->value->head;
    judge_settlement(c, h);
    judge_membership(c);
    if (h->restarts > c->max_restarts)
        sim_violation(c, "I4: round %lld runs after %d restarts of %d", (long long)h->round,
                      h->restarts, c->max_restarts);
    for (int i = 0; i < j->n_form; i++) {
        struct key key = {.kind = KEY_ACK, .round = j->head.last_round};
        memcpy(key.inc, op->key.inc, sizeof(key.inc));
        memcpy(key.uid, j->form[i].uid, UID_SIZE);
        if (!exists(c, key, NULL))
            sim_violation(c, "I1: round %lld runs without the ack of %s", (long long)h->round,
                          key.uid);
    }
    sim_mark_round(c);
    memcpy(j->last, j->form, sizeof(j->last));
    j->n_last = j->n_form;
    j->failed = false;
    j->run_ns = c->now_ns;
    c->result->rounds++;
}

static void judge_closed(struct sim *c, const struct head_value *h) {
    struct judge *j = &c->judge;
    c->result->outcome = h->outcome == OUTCOME_SUCCEEDED ? SIM_SUCCEEDED : SIM_FAILED;
    if (h->outcome == OUTCOME_SUCCEEDED) {
        if (j->head.phase != HEAD_RUN)
            sim_violation(c, "I6: succeeded outside a round");
        for (int i = 0; i < j->n_last; i++)
            if (!j->last[i].succeeded)
                sim_violation(c, "I6: closed as succeeded, but the workers of %s did not succeed",
                              j->last[i].uid);
    } else if (h->failure.uid[0]) {
        judge_settlement(c, h);
        sim_mark(c, SIM_MARK_BUDGET_SPENT);
        if (h->restarts <= c->max_restarts)
            sim_violation(c, "I6: failed with %d restarts of %d", h->restarts, c->max_restarts);
    }
}

static bool is_legal(const struct judge *j, const struct head_value *h) {
    enum head_phase from = j->has_head ? j->head.phase : HEAD_NONE;
    switch (h->phase) {
    case HEAD_FORM:
        return from != HEAD_CLOSED && h->round == j->head.round + 1 &&
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

/* The store forgets a job a minute after its last agent; who comes then begins a new one. */
static void judge_anew(struct sim *c, const char *inc) {
    struct judge *j = &c->judge;
    for (int i = 0; j->has_head && i < c->n_nodes; i++)
        if (c->nodes[i].group.alive)
            sim_violation(c, "I7: a new job begins while n%d has workers of the old one", i);
    memset(j, 0, sizeof(*j));
    snprintf(j->inc, sizeof(j->inc), "%s", inc);
    c->result->outcome = SIM_NONE;
}

/* I7: only a legal step, by the coordinator; an END by anybody who has a session. */
static void judge_head(struct sim *c, const char *uid, const struct op *op) {
    struct judge *j = &c->judge;
    const struct head_value *h = &op->value->head;
    bool own_end = h->phase == HEAD_END && sim_judge_has_session(c, &op->key, uid);
    if (strcmp(j->inc, op->key.inc) != 0)
        judge_anew(c, op->key.inc);
    if (!is_legal(j, h))
        sim_violation(c, "I7: head goes from phase %d of round %lld to phase %d of round %lld",
                      j->head.phase, (long long)j->head.round, h->phase, (long long)h->round);
    if (!own_end && !holds_lead(c, &op->key, uid))
        sim_violation(c, "I7: %s writes head (phase %d) and is not the coordinator", uid, h->phase);
    if (h->restarts < j->head.restarts)
        sim_violation(c, "I4: restarts go back from %d to %d", j->head.restarts, h->restarts);
    if (h->phase == HEAD_FORM) {
        if (j->head.phase == HEAD_RUN)
            j->failed = false;
        form_read(c, op);
    } else if (h->phase == HEAD_END) {
        j->failed = h->cause == CAUSE_FAILURE;
    } else if (h->phase == HEAD_RUN) {
        judge_run(c, op);
    } else if (h->phase == HEAD_CLOSED) {
        judge_closed(c, h);
    }
    j->has_head = true;
    j->head = *h;
}

void sim_judge_txn(struct sim *c, const char *uid, const struct op *ops, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const struct op *op = &ops[i];
        enum key_kind kind = op->key.kind;
        if (!op->put)
            continue;
        if ((kind == KEY_ACK || kind == KEY_DONE || kind == KEY_LEAD) &&
            !sim_judge_has_session(c, &op->key, uid))
            sim_violation(c, "I7: %s writes key kind %d without a session", uid, kind);
        if (kind == KEY_GONE)
            judge_gone(c, op->key.uid);
        if (kind == KEY_ACK)
            judge_ack(c, op);
        if (kind == KEY_DONE)
            judge_done(c, op);
        if (kind == KEY_HEAD)
            judge_head(c, uid, op);
    }
}

/* --- machines --- */

static void judge_first_start(struct sim *c, const struct round_spec *s) {
    struct judge *j = &c->judge;
    j->facts = *s;
    memset(j->ranks, 0, sizeof(j->ranks));
    snprintf(j->master_addr, sizeof(j->master_addr), "%s", s->master_addr);
    snprintf(j->token, sizeof(j->token), "%s", s->token);
}

static void judge_ranks(struct sim *c, const struct round_spec *s) {
    struct judge *j = &c->judge;
    for (int i = s->rank_base; i < s->rank_base + s->local_world; i++) {
        if (i >= s->world || j->ranks[i])
            sim_violation(c, "I2: rank %d of round %lld is given twice or is outside of %d", i,
                          (long long)s->round, s->world);
        j->ranks[i] = true;
    }
}

/* I1: nothing of another round lives. I2: all of a round are told the same. */
void sim_judge_start(struct sim *c, int node, const struct round_spec *s) {
    struct judge *j = &c->judge;
    for (int i = 0; i < c->n_nodes; i++) {
        const struct group_model *g = &c->nodes[i].group;
        if (g->alive && (g->round != s->round || i == node))
            sim_violation(c, "I1: n%d starts round %lld while n%d has workers of round %lld", node,
                          (long long)s->round, i, (long long)g->round);
    }
    if (s->round < j->facts.round)
        sim_violation(c, "I1: n%d starts round %lld after round %lld", node, (long long)s->round,
                      (long long)j->facts.round);
    if (s->round > j->facts.round)
        judge_first_start(c, s);
    const struct round_spec *f = &j->facts;
    if (f->world != s->world || f->group_world != s->group_world ||
        f->master_port != s->master_port || f->restart_count != s->restart_count ||
        strcmp(j->master_addr, s->master_addr) != 0 || strcmp(j->token, s->token) != 0)
        sim_violation(c, "I2: n%d is told something else about round %lld than the first one", node,
                      (long long)s->round);
    judge_ranks(c, s);
}

void sim_judge_success(struct sim *c, const char *uid, int64_t round) {
    struct last_member *m = find(c->judge.last, c->judge.n_last, uid);
    if (m && round == c->judge.head.last_round)
        m->succeeded = true;
}

/* I6: who ends by itself ends with the outcome; a leaver with its signal. */
void sim_judge_exit(struct sim *c, int node, int code) {
    enum sim_outcome o = c->result->outcome;
    bool fits = (code == 0 && o == SIM_SUCCEEDED) || (code == 1 && o == SIM_FAILED) ||
                (c->nodes[node].signaled && code == 128 + 15);
    if (!fits)
        sim_violation(c, "I6: the agent of n%d ends with %d, the outcome is %d", node, code, o);
}
