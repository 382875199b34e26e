#include "harness/explore/world.h"

#include <stdio.h>
#include <string.h>

/* The judge looks at the store's history and at the machines, and knows nothing of the cores. It
 * counts restarts, members and certificates itself, and is plain data: a part of the state. */

static struct judged_member *find(struct judged_member *m, int n, const char *uid) {
    for (int i = 0; i < n; i++)
        if (strcmp(m[i].uid, uid) == 0)
            return &m[i];
    return NULL;
}

static bool exists(struct world *w, const struct key *key, union value *ret) {
    char text[KEY_SIZE], end[KEY_SIZE];
    struct arena a = {0};
    struct kv_txn_result r = {0};
    key_format(key, "job", text, end);
    struct kv_op op = {.kind = KV_RANGE, .key = kv_string(text), .range_end = kv_string(end)};
    kv_txn(w->store->kv, &(struct kv_txn){.success = &op, .n_success = 1}, &a, &r, NULL);
    bool there = r.results[0].n_pairs > 0;
    if (there && ret)
        memcpy(ret, r.results[0].pairs[0].value.data, r.results[0].pairs[0].value.len);
    arena_fini(&a);
    return there;
}

static struct key like(const struct key *of, enum key_kind kind, const char *uid) {
    struct key key = {.kind = kind};
    memcpy(key.inc, of->inc, sizeof(key.inc));
    memcpy(key.uid, uid, strlen(uid));
    return key;
}

static bool has_session(struct world *w, const struct key *of, const char *uid) {
    struct key key = like(of, KEY_SESSION, uid);
    return exists(w, &key, NULL);
}

static bool holds_lead(struct world *w, const struct key *of, const char *uid) {
    union value v;
    struct key key = like(of, KEY_LEAD, "");
    return exists(w, &key, &v) && strcmp(v.lead.uid, uid) == 0;
}

/* --- certificates, acks, dones --- */

static void judge_gone(struct world *w, const char *uid) {
    struct judged_member *m = find(w->judge.last, w->judge.n_last, uid);
    for (int i = 0; i < w->config->agents; i++) {
        const struct workers *g = &w->nodes[i].workers;
        if (g->alive && strcmp(g->uid, uid) == 0)
            world_violation(w,
                            "CONTRACT: gone/%s is written while n%d has workers of it, round %lld",
                            uid, i, (long long)g->round);
    }
    if (m && !m->said)
        m->gone_first = true;
}

static void judge_ack(struct world *w, const struct op *op) {
    struct judged_member *m = find(w->judge.last, w->judge.n_last, op->key.uid);
    if (op->key.round != w->judge.last_round)
        return;
    for (int i = 0; i < w->config->agents; i++) {
        const struct workers *g = &w->nodes[i].workers;
        if (g->alive && g->round <= op->key.round && strcmp(g->uid, op->key.uid) == 0)
            world_violation(w, "CONTRACT: %s acks round %lld with a living worker", op->key.uid,
                            (long long)op->key.round);
    }
    if (!m)
        return;
    m->said = true;
    m->fenced |= op->value->ack.why == ACK_FENCED;
}

static void judge_done(struct world *w, const struct op *op) {
    struct judged_member *m = find(w->judge.last, w->judge.n_last, op->key.uid);
    if (op->key.round != w->judge.last_round || !m)
        return;
    m->said = true;
    if (!m->succeeded)
        world_violation(w, "I6: %s says done, but its workers did not all succeed", op->key.uid);
}

/* --- head --- */

struct forming {
    struct world *w;
    const struct op *op;
    int n;
};

static void form_see(void *arg, const struct kv_pair *p) {
    struct forming *f = arg;
    struct judge *j = &f->w->judge;
    struct key key;
    struct plan_value place;
    if (!key_parse(p->key.data, p->key.len, "job", &key) || key.kind != KEY_PLAN ||
        strcmp(key.pid, f->op->value->head.pid) != 0)
        return;
    if (f->n++ >= MEMBERS_MAX)
        return;
    struct judged_member *m = &j->form[j->n_form++];
    memcpy(&place, p->value.data, sizeof(place));
    memcpy(m->uid, key.uid, sizeof(m->uid));
    m->rank = place.group_rank;
}

static void form_read(struct world *w, const struct op *op) {
    struct forming f = {w, op, 0};
    w->judge.n_form = 0;
    memset(w->judge.form, 0, sizeof(w->judge.form));
    kv_each(w->store->kv, form_see, &f);
    if (f.n != op->value->head.n)
        world_violation(w, "I2: head names a plan of %d, which has %d entries", op->value->head.n,
                        f.n);
}

/* I3: within bounds; who was in the last round comes first, and in the same order. */
static void judge_membership(struct world *w) {
    struct judge *j = &w->judge;
    if (j->n_form < w->config->min || j->n_form > w->config->max)
        world_violation(w, "I3: a round of %d nodes, bounds %d:%d", j->n_form, w->config->min,
                        w->config->max);
    for (int i = 0; i < j->n_form; i++) {
        struct judged_member *a = find(j->last, j->n_last, j->form[i].uid);
        for (int k = 0; k < j->n_form; k++) {
            struct judged_member *b = find(j->last, j->n_last, j->form[k].uid);
            bool before = j->form[i].rank < j->form[k].rank;
            if (k != i && b && before && (!a || a->rank > b->rank))
                world_violation(w, "I3: %s is ranked before the survivor %s", j->form[i].uid,
                                j->form[k].uid);
        }
    }
}

/* I1 in the store, and I4: a failed round costs one if nobody was lost in it, else nothing. */
static void judge_settlement(struct world *w, const struct head_value *h) {
    struct judge *j = &w->judge;
    bool lost = false;
    for (int i = 0; i < j->n_last; i++) {
        const struct judged_member *m = &j->last[i];
        if (!m->said && !m->gone_first)
            world_violation(w, "I1: round %lld is settled without a certificate of %s",
                            (long long)j->last_round, m->uid);
        lost |= m->gone_first || m->fenced;
    }
    j->restarts += j->failed && !lost;
    if (h->restarts != j->restarts)
        world_violation(w, "I4: %d restarts are written, %d rounds have failed", h->restarts,
                        j->restarts);
}

static void judge_run(struct world *w, const struct op *op) {
    struct judge *j = &w->judge;
    const struct head_value *h = &op->value->head;
    judge_settlement(w, h);
    judge_membership(w);
    if (h->restarts > w->config->max_restarts)
        world_violation(w, "I4: round %lld runs after %d restarts of %d", (long long)h->round,
                        h->restarts, w->config->max_restarts);
    for (int i = 0; i < j->n_form; i++) {
        struct key key = like(&op->key, KEY_ACK, j->form[i].uid);
        key.round = j->last_round;
        if (!exists(w, &key, NULL))
            world_violation(w, "I1: round %lld runs without the ack of %s", (long long)h->round,
                            key.uid);
    }
    memcpy(j->last, j->form, sizeof(j->last));
    j->n_last = j->n_form;
    j->failed = false;
    j->rounds++;
}

static void judge_closed(struct world *w, const struct head_value *h) {
    struct judge *j = &w->judge;
    j->outcome = h->outcome;
    if (h->outcome == OUTCOME_SUCCEEDED) {
        if (j->phase != HEAD_RUN)
            world_violation(w, "I6: succeeded outside a round");
        for (int i = 0; i < j->n_last; i++)
            if (!j->last[i].succeeded)
                world_violation(w, "I6: closed as succeeded, but the workers of %s did not succeed",
                                j->last[i].uid);
    } else if (h->failure.uid[0]) {
        judge_settlement(w, h);
        if (h->restarts <= w->config->max_restarts)
            world_violation(w, "I6: failed with %d restarts of %d", h->restarts,
                            w->config->max_restarts);
    }
}

static bool is_legal(const struct judge *j, const struct head_value *h) {
    enum head_phase from = j->has_head ? j->phase : HEAD_NONE;
    switch (h->phase) {
    case HEAD_FORM:
        return from != HEAD_CLOSED && h->round == j->round + 1 && h->last_round == j->last_round;
    case HEAD_RUN:
        return from == HEAD_FORM && h->round == j->round && h->last_round == h->round;
    case HEAD_END:
        return from == HEAD_RUN && h->round == j->round;
    case HEAD_CLOSED:
        return from != HEAD_CLOSED && h->round == j->round;
    case HEAD_NONE:
        break;
    }
    return false;
}

/* I5: a round that did not run is proposed anew because somebody came or went: each at first, and
 * with every fault one that is lost and comes back. */
static void judge_proposal(struct world *w, const struct head_value *h) {
    int most = w->config->agents + 2 * w->config->together + 1;
    if (h->round - h->last_round > most)
        world_violation(w, "I5: round %lld is proposed, and none has run since round %lld",
                        (long long)h->round, (long long)h->last_round);
}

/* I7: only a legal step, by the coordinator; an END by anybody who has a session. */
static void judge_head(struct world *w, const char *uid, const struct op *op) {
    struct judge *j = &w->judge;
    const struct head_value *h = &op->value->head;
    bool own_end = h->phase == HEAD_END && has_session(w, &op->key, uid);
    if (!j->inc[0])
        memcpy(j->inc, op->key.inc, sizeof(j->inc));
    if (strcmp(j->inc, op->key.inc) != 0)
        world_violation(w, "I7: head is written in another incarnation");
    if (!is_legal(j, h))
        world_violation(w, "I7: head goes from phase %d of round %lld to phase %d of round %lld",
                        j->phase, (long long)j->round, h->phase, (long long)h->round);
    if (!own_end && !holds_lead(w, &op->key, uid))
        world_violation(w, "I7: %s writes head (phase %d) and is not the coordinator", uid,
                        h->phase);
    if (h->restarts < j->written)
        world_violation(w, "I4: restarts go back from %d to %d", j->written, h->restarts);
    if (h->phase == HEAD_FORM) {
        if (j->phase == HEAD_RUN)
            j->failed = false;
        judge_proposal(w, h);
        form_read(w, op);
    } else if (h->phase == HEAD_END) {
        j->failed = h->cause == CAUSE_FAILURE;
    } else if (h->phase == HEAD_RUN) {
        judge_run(w, op);
    } else if (h->phase == HEAD_CLOSED) {
        judge_closed(w, h);
    }
    j->has_head = true;
    j->phase = h->phase;
    j->round = h->round;
    j->last_round = h->last_round;
    j->written = h->restarts;
}

void judge_txn(struct world *w, const char *uid, const struct op *ops, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const struct op *op = &ops[i];
        enum key_kind kind = op->key.kind;
        if (!op->put)
            continue;
        if ((kind == KEY_ACK || kind == KEY_DONE || kind == KEY_LEAD) &&
            !has_session(w, &op->key, uid))
            world_violation(w, "I7: %s writes key kind %d without a session", uid, kind);
        if (kind == KEY_GONE)
            judge_gone(w, op->key.uid);
        if (kind == KEY_ACK)
            judge_ack(w, op);
        if (kind == KEY_DONE)
            judge_done(w, op);
        if (kind == KEY_HEAD)
            judge_head(w, uid, op);
    }
}

/* --- machines --- */

static void judge_first_start(struct judge *j, const struct round_spec *s) {
    j->started = s->round;
    j->world = s->world;
    j->group_world = s->group_world;
    j->master_port = s->master_port;
    j->restart_count = s->restart_count;
    j->ranks = 0;
    memset(j->token, 0, sizeof(j->token));
    memset(j->master_addr, 0, sizeof(j->master_addr));
    snprintf(j->token, sizeof(j->token), "%s", s->token);
    snprintf(j->master_addr, sizeof(j->master_addr), "%s", s->master_addr);
}

/* CONTRACT: whoever has a certificate starts none. I1: nothing of another round lives. I2: all of a
 * round are told the same. */
void judge_start(struct world *w, int node, const char *uid, const struct round_spec *s) {
    struct judge *j = &w->judge;
    struct key head = {.kind = KEY_HEAD};
    memcpy(head.inc, j->inc, sizeof(head.inc));
    struct key gone = like(&head, KEY_GONE, uid);
    if (exists(w, &gone, NULL))
        world_violation(w, "CONTRACT: n%d starts round %lld as %s, which has a certificate", node,
                        (long long)s->round, uid);
    for (int i = 0; i < w->config->agents; i++) {
        const struct workers *g = &w->nodes[i].workers;
        if (g->alive && (g->round != s->round || i == node))
            world_violation(w, "I1: n%d starts round %lld while n%d has workers of round %lld",
                            node, (long long)s->round, i, (long long)g->round);
    }
    if (s->round < j->started)
        world_violation(w, "I1: n%d starts round %lld after round %lld", node, (long long)s->round,
                        (long long)j->started);
    if (s->round > j->started)
        judge_first_start(j, s);
    if (j->world != s->world || j->group_world != s->group_world ||
        j->master_port != s->master_port || j->restart_count != s->restart_count ||
        strcmp(j->master_addr, s->master_addr) != 0 || strcmp(j->token, s->token) != 0)
        world_violation(w, "I2: n%d is told something else about round %lld than the first one",
                        node, (long long)s->round);
    for (int i = s->rank_base; i < s->rank_base + s->local_world; i++) {
        if (i >= s->world || (j->ranks >> i & 1))
            world_violation(w, "I2: rank %d of round %lld is given twice or is outside of %d", i,
                            (long long)s->round, s->world);
        j->ranks |= 1u << i;
    }
}

void judge_success(struct world *w, const char *uid, int64_t round) {
    struct judged_member *m = find(w->judge.last, w->judge.n_last, uid);
    if (m && round == w->judge.last_round)
        m->succeeded = true;
}

/* I6: who ends by itself ends with the outcome, a leaver with its signal; who could not reach the
 * store does not know. */
void judge_exit(struct world *w, int node, int code) {
    enum head_outcome o = w->judge.outcome;
    bool fits = (code == 0 && o == OUTCOME_SUCCEEDED) || (code == 1 && o == OUTCOME_FAILED) ||
                (w->nodes[node].signaled && code == 128 + 15) || (code == 69 && w->judge.was_cut);
    if (!fits)
        world_violation(w, "I6: the agent of n%d ends with %d, the outcome is %d", node, code, o);
}
