#include "harness/sim/invariants/judging.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The judge looks at the store's history and at the machines, and knows nothing of the cores. It
 * counts restarts, members and certificates itself; what must hold of them is asked in invariants/,
 * before they are counted. */

void sim_violation(struct sim *c, const char *fmt, ...) {
    va_list ap;
    if (c->result->violated)
        return;
    c->result->violated = true;
    c->result->ended_ns = c->now_ns;
    va_start(ap, fmt);
    vsnprintf(c->result->text, sizeof(c->result->text), fmt, ap);
    va_end(ap);
}

static int64_t key_read(struct sim *c, const struct key *key, union value *ret) {
    char text[KEY_SIZE], end[KEY_SIZE];
    struct kv_txn_result r = {0};
    arena_clear(&c->arena);
    key_format(key, "job", text, end);
    struct kv_op op = {.kind = KV_RANGE, .key = kv_string(text), .range_end = kv_string(end)};
    kv_txn(c->kv, &(struct kv_txn){.success = &op, .n_success = 1}, &c->arena, &r, NULL);
    int64_t version = r.results[0].n_pairs ? r.results[0].pairs[0].version : 0;
    if (version && ret)
        memcpy(ret, r.results[0].pairs[0].value.data, r.results[0].pairs[0].value.len);
    return version;
}

bool judge_key(struct sim *c, struct key key, union value *ret) {
    return key_read(c, &key, ret) > 0;
}

int64_t judge_version(struct sim *c, struct key key) {
    return key_read(c, &key, NULL);
}

bool sim_judge_has_session(struct sim *c, const struct key *like, const char *uid) {
    struct key key = {.kind = KEY_SESSION};
    memcpy(key.inc, like->inc, sizeof(key.inc));
    memcpy(key.uid, uid, strlen(uid) + 1);
    return judge_key(c, key, NULL);
}

/* --- certificates, acks, dones --- */

/* Whoever loses its session does not hear how the round went that it had failed in. */
static void count_lost(struct sim *c, const char *uid) {
    for (int i = 0; i < c->n_nodes; i++)
        c->nodes[i].unsure += c->nodes[i].core && strcmp(c->nodes[i].group.uid, uid) == 0;
}

static void count_put(struct sim *c, const struct op *op) {
    struct judge *j = &c->judge;
    struct last_member *m = member_find(j->last, j->n_last, op->key.uid);
    if (op->key.kind == KEY_GONE)
        count_lost(c, op->key.uid);
    if (!m)
        return;
    if (op->key.kind == KEY_GONE) {
        m->gone_first |= !m->said;
        m->gone_ns = c->now_ns;
    } else if (op->key.round == j->head.last_round) {
        m->said = true;
        m->fenced |= op->key.kind == KEY_ACK && op->value->ack.why == ACK_FENCED;
        m->failed |= op->key.kind == KEY_ACK && op->value->ack.why == ACK_FAILED;
    }
}

static void count_join(struct sim *c, const struct key *key) {
    if (c->n_joins == c->cap_joins) {
        c->cap_joins = c->cap_joins ? c->cap_joins * 2 : 16;
        c->joins = realloc(c->joins, c->cap_joins * sizeof(*c->joins));
        if (!c->joins)
            abort(); /* out of memory */
    }
    struct join *join = &c->joins[c->n_joins++];
    join->at_ns = c->now_ns;
    memcpy(join->uid, key->uid, sizeof(join->uid));
    memcpy(join->inc, key->inc, sizeof(join->inc));
}

/* Nobody who coordinates was kept from it: by a fault, or by what a watch says 4 s later. */
static bool was_seen(const struct sim *c) {
    int64_t since_ns = c->enough.since_ns, struck_ns = c->struck_until_ns;
    int64_t slow_ns = (c->schedule->late ? 5000 : 1000) * SIM_MS;
    return c->now_ns >= (since_ns > struck_ns ? since_ns : struck_ns) + slow_ns;
}

/* A coordinator may not have noticed that there were enough for a moment. */
static void count_sessions(struct sim *c, const struct key *like, bool joins) {
    struct key key = {.kind = KEY_SESSION, .scope = KEYS_ALL};
    char text[KEY_SIZE], end[KEY_SIZE];
    struct arena a = {0};
    struct kv_txn_result r = {0};
    bool other = strcmp(c->enough.inc, like->inc) != 0;
    if (other && !joins)
        return;
    if (other)
        c->enough.few_ns = c->now_ns;
    c->enough.now &= !other;
    memcpy(c->enough.inc, like->inc, sizeof(c->enough.inc));
    memcpy(key.inc, like->inc, sizeof(key.inc));
    key_format(&key, "job", text, end);
    struct kv_op range = {.kind = KV_RANGE, .count_only = true};
    range.key = kv_string(text);
    range.range_end = kv_string(end);
    kv_txn(c->kv, &(struct kv_txn){.success = &range, .n_success = 1}, &a, &r, NULL);
    bool enough = r.results[0].count >= c->min;
    arena_fini(&a);
    if (enough && !c->enough.now)
        c->enough.since_ns = c->now_ns;
    else if (!enough && c->enough.now && was_seen(c))
        c->enough.few_ns = c->now_ns;
    c->enough.now = enough;
}

/* --- head --- */

static void form_read(struct sim *c, const struct op *op) {
    struct judge *j = &c->judge;
    struct key key = {.kind = KEY_PLAN, .scope = KEYS_ALL};
    char text[KEY_SIZE], end[KEY_SIZE];
    struct kv_txn_result r = {0};
    arena_clear(&c->arena);
    memcpy(key.inc, op->key.inc, sizeof(key.inc));
    memcpy(key.pid, op->value->head.pid, sizeof(key.pid));
    key_format(&key, "job", text, end);
    struct kv_op range = {.kind = KV_RANGE, .key = kv_string(text), .range_end = kv_string(end)};
    kv_txn(c->kv, &(struct kv_txn){.success = &range, .n_success = 1}, &c->arena, &r, NULL);
    j->n_form = 0;
    for (size_t i = 0; i < r.results[0].n_pairs && i < (size_t)c->n_nodes; i++) {
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
}

/* What agents bring from a store of before is for the same attempt; another has its own budget. */
static bool may_recall(struct sim *c) {
    union value cur;
    return c->wiped.happened && judge_key(c, (struct key){.kind = KEY_CUR}, &cur) &&
           !cur.cur.former[0];
}

/* A failed round costs one if nobody was lost in it, else nothing. */
static void settle(struct sim *c, struct head_change *h) {
    const struct judge *j = &c->judge;
    h->settles =
        h->to->phase == HEAD_RUN || (h->to->phase == HEAD_CLOSED &&
                                     h->to->outcome != OUTCOME_SUCCEEDED && h->to->failure.uid[0]);
    h->restarts = j->restarts;
    if (!h->settles)
        return;
    for (int i = 0; i < j->n_last; i++)
        h->lost |= j->last[i].gone_first || j->last[i].fenced;
    h->restarts += j->failed && !h->lost;
    h->recalls = h->to->restarts > h->restarts &&
                 h->to->restarts <= c->wiped.restarts + (j->failed && !h->lost) && may_recall(c);
    if (h->recalls)
        h->restarts = h->to->restarts;
    if (j->failed && h->lost)
        sim_mark(c, SIM_MARK_LOST_AND_FAILED);
}

/* Whose workers failed, if the agent that began them is still the node's. */
static void count_own(struct sim *c) {
    const struct judge *j = &c->judge;
    for (int i = 0; i < j->n_last; i++)
        for (int k = 0; k < c->n_nodes; k++) {
            const struct group_model *g = &c->nodes[k].group;
            if (j->last[i].failed && g->life == c->nodes[k].life &&
                strcmp(g->uid, j->last[i].uid) == 0)
                c->nodes[k].restarts++;
        }
}

static void count_run(struct sim *c, const struct head_change *h, bool costs) {
    struct judge *j = &c->judge;
    sim_mark_round(c);
    sim_mark_if(c, SIM_MARK_ROUNDS_APART, h->to->brief_rounds > SIM_BRIEF_ROUNDS);
    sim_mark_if(c, SIM_MARK_GUARD_FAILED, costs && j->head.failure.rank < 0);
    if (costs)
        count_own(c);
    else
        j->free_rounds += j->n_last > 0;
    if (h->recalls)
        sim_mark(c, SIM_MARK_STORE_REMINDED);
    j->run_restarts = h->to->restarts;
    memcpy(j->last_token, h->to->token, sizeof(j->last_token));
    memcpy(j->last, j->form, (size_t)j->n_form * sizeof(*j->form));
    j->n_last = j->n_form;
    j->failed = false;
    j->run_ns = c->now_ns;
    const struct traffic *t = &c->traffic;
    sim_say(c, 0,
            "ROUND %lld runs with %d nodes: %lld store operations, %lld messages, %lld watch "
            "events, %lld bytes",
            (long long)j->head.round, j->n_form, (long long)t->operations, (long long)t->messages,
            (long long)t->events, (long long)t->bytes);
    c->traffic = (struct traffic){0};
    if (!c->result->rounds++)
        c->result->steady_ns = c->now_ns;
}

static void count_head(struct sim *c, const struct head_change *h) {
    struct judge *j = &c->judge;
    bool costs = h->settles && j->failed && !h->lost;
    j->restarts = h->restarts;
    if (h->to->phase == HEAD_FORM && j->head.phase == HEAD_RUN)
        j->failed = false;
    else if (h->to->phase == HEAD_END)
        j->failed = h->to->cause == CAUSE_FAILURE;
    else if (h->to->phase == HEAD_RUN)
        count_run(c, h, costs);
    else if (h->to->phase == HEAD_CLOSED)
        c->result->outcome = h->to->outcome == OUTCOME_SUCCEEDED ? SIM_SUCCEEDED : SIM_FAILED;
    bool failed = h->to->phase == HEAD_CLOSED && h->to->outcome == OUTCOME_FAILED;
    if (failed && h->to->failure.node[0] && !h->settles)
        sim_mark(c, SIM_MARK_GANG_CLOSED);
    if (failed && h->settles)
        sim_mark(c, SIM_MARK_BUDGET_SPENT);
    else if (failed && c->max_free_rounds && j->free_rounds == c->max_free_rounds)
        sim_mark(c, SIM_MARK_FREE_ROUNDS_SPENT);
    j->has_head = true;
    j->head = *h->to;
    c->rounds = h->to->round > c->rounds ? h->to->round : c->rounds;
}

/* The most that an agent may remember of what the store has not any more; also of an attempt that
 * another one has replaced, if the agent was kept from hearing of it. */
static void wiped_note(struct sim *c) {
    int restarts = c->judge.head.restarts;
    c->wiped.restarts = restarts > c->wiped.restarts ? restarts : c->wiped.restarts;
}

/* The store forgets a job a minute after its last agent; who comes then begins a new one. */
static bool is_anew(struct sim *c, const char *inc) {
    struct judge *j = &c->judge;
    bool replaces = j->has_head;
    if (strcmp(j->inc, inc) == 0)
        return false;
    wiped_note(c);
    *j = (struct judge){.last = j->last, .form = j->form, .ranks = j->ranks};
    snprintf(j->inc, sizeof(j->inc), "%s", inc);
    c->ended[c->result->outcome] = true;
    c->result->outcome = SIM_NONE;
    return replaces;
}

static void judge_head(struct sim *c, const char *uid, const struct op *op) {
    struct head_change h = {.uid = uid, .key = &op->key, .to = &op->value->head};
    h.anew = is_anew(c, op->key.inc);
    for (int i = 0; h.anew && i < c->n_nodes; i++)
        if (c->nodes[i].group.alive && c->nodes[i].group.former)
            sim_mark(c, SIM_MARK_STORE_OUTLIVED);
    if (h.to->phase == HEAD_FORM)
        form_read(c, op);
    settle(c, &h);
    for (size_t i = 0; invariants[i]; i++)
        if (invariants[i]->on_head)
            invariants[i]->on_head(c, &h);
    count_head(c, &h);
}

/* --- what the rest of the room tells --- */

static void judge_put(struct sim *c, const char *uid, const struct op *op) {
    for (size_t i = 0; invariants[i]; i++)
        if (invariants[i]->kinds & 1u << op->key.kind)
            invariants[i]->on_put(c, uid, op);
}

void sim_judge_txn(struct sim *c, const char *uid, const struct op *ops, size_t n) {
    const unsigned counted = 1u << KEY_GONE | 1u << KEY_ACK | 1u << KEY_DONE;
    const unsigned judged = counted | 1u << KEY_LEAD;
    sim_mark_txn(c, uid, ops, n);
    for (size_t i = 0; i < n; i++) {
        const struct op *op = &ops[i];
        if (op->key.kind == KEY_MEMBER || (op->key.kind == KEY_SESSION && !op->put))
            count_sessions(c, &op->key, op->put);
        if (!op->put)
            continue;
        if (judged & 1u << op->key.kind)
            judge_put(c, uid, op);
        if (counted & 1u << op->key.kind)
            count_put(c, op);
        else if (op->key.kind == KEY_MEMBER)
            count_join(c, &op->key);
        else if (op->key.kind == KEY_HEAD)
            judge_head(c, uid, op);
    }
}

/* The newest round of a store that was wiped may still be begun by who had heard of it. */
bool sim_judge_is_former(const struct sim *c, const struct round_spec *s) {
    return c->wiped.happened && strcmp(s->token, c->wiped.token) == 0;
}

static void count_lives(struct sim *c) {
    for (int i = 0; i < c->n_nodes; i++) {
        const struct group_model *g = &c->nodes[i].group;
        c->nodes[i].wiped_life = g->round == c->wiped.round ? g->life : 0;
    }
}

void sim_judge_wiped(struct sim *c) {
    const struct judge *j = &c->judge;
    c->wiped.happened = true;
    if (j->has_head && j->head.last_round) {
        c->wiped.round = j->head.last_round;
        c->wiped.least = j->run_restarts;
        wiped_note(c);
        memcpy(c->wiped.token, j->last_token, sizeof(j->last_token));
        count_lives(c);
    }
    for (int i = 0; i < c->n_nodes; i++)
        c->nodes[i].group.former = c->nodes[i].group.alive;
}

void sim_leases_expire(struct sim *c) {
    int64_t before = kv_revision(c->kv);
    kv_lease_expire(c->kv, c->now_ns);
    if (kv_revision(c->kv) == before || !c->judge.has_head ||
        judge_key(c, (struct key){.kind = KEY_CUR}, NULL))
        return;
    for (size_t i = 0; invariants[i]; i++)
        if (invariants[i]->on_forgotten)
            invariants[i]->on_forgotten(c);
    sim_judge_wiped(c);
}

static void count_first_start(struct sim *c, const struct round_spec *s) {
    struct judge *j = &c->judge;
    j->facts = *s;
    memset(j->ranks, 0, (size_t)c->n_nodes * SIM_WORKERS * sizeof(*j->ranks));
    snprintf(j->master_addr, sizeof(j->master_addr), "%s", s->master_addr);
    snprintf(j->token, sizeof(j->token), "%s", s->token);
}

void sim_judge_start(struct sim *c, int node, const struct round_spec *s) {
    struct judge *j = &c->judge;
    if (sim_judge_is_former(c, s))
        return;
    if (s->round > j->facts.round)
        count_first_start(c, s);
    for (size_t i = 0; invariants[i]; i++)
        if (invariants[i]->on_start)
            invariants[i]->on_start(c, node, s);
    for (int i = s->rank_base; i < s->rank_base + s->local_world; i++)
        if (i >= 0 && i < c->n_nodes * SIM_WORKERS)
            j->ranks[i] = true;
}

void sim_judge_answered(struct sim *c, int node, bool denied) {
    struct sim_node *n = &c->nodes[node];
    n->wrote |= !denied;
    if (!denied || !n->denied_ns)
        n->denied_ns = denied ? c->now_ns : 0;
    for (size_t i = 0; denied && invariants[i]; i++)
        if (invariants[i]->on_denied)
            invariants[i]->on_denied(c, node);
}

void sim_judge_stop(struct sim *c, int node) {
    for (size_t i = 0; invariants[i]; i++)
        if (invariants[i]->on_stop)
            invariants[i]->on_stop(c, node);
}

void sim_judge_success(struct sim *c, const char *uid, int64_t round) {
    struct last_member *m = member_find(c->judge.last, c->judge.n_last, uid);
    if (m && round == c->judge.head.last_round)
        m->succeeded = true;
}

void sim_judge_claim(struct sim *c, int node, const char *what, int64_t round) {
    struct group_model *g = &c->nodes[node].group;
    if (strcmp(what, CLAIM_FENCED) == 0 && g->round == round)
        g->told_fenced = true;
}

void sim_judge_failure(struct sim *c, int node, int64_t round) {
    for (size_t i = 0; invariants[i]; i++)
        if (invariants[i]->on_failure)
            invariants[i]->on_failure(c, node, round);
}

void sim_judge_exit(struct sim *c, int node, int code) {
    sim_mark_if(c, SIM_MARK_STORE_FULL_LONG, code == 69 && c->nodes[node].denied_ns);
    for (size_t i = 0; invariants[i]; i++)
        if (invariants[i]->on_exit)
            invariants[i]->on_exit(c, node, code);
}

void sim_judge_end(struct sim *c, bool over) {
    for (size_t i = 0; invariants[i]; i++)
        if (invariants[i]->on_end)
            invariants[i]->on_end(c, over);
}
