#include "harness/invariants/judge.h"

#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define TELL(hook, ...)                                                                            \
    do {                                                                                           \
        for (size_t k = 0; invariants[k]; k++)                                                     \
            if (invariants[k]->hook && is_asked(j, invariants[k]))                                 \
                invariants[k]->hook(__VA_ARGS__);                                                  \
    } while (0)

static inline bool is_asked(const struct judge *j, const struct invariant *i) {
    return !j->set_back || i->outlasts;
}

void invariant_broken(struct judge *j, const struct invariant *i, const char *fmt, ...) {
    char text[400], whole[480];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    snprintf(whole, sizeof(whole), "%s %s: %s", i->number, i->name, text);
    j->ops->broken(j->world, whole);
}

/* --- looks --- */

struct judged_member *member_find(struct judged_member *m, int n, const char *uid) {
    int low = 0, high = n;
    while (low < high) {
        int mid = low + (high - low) / 2, order = strcmp(m[mid].uid, uid);
        if (order == 0)
            return &m[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

static void each_key(const struct judge *j, const struct store_key *key,
                     void (*see)(void *arg, const struct kv_pair *pair), void *arg) {
    char text[KEY_SIZE], end[KEY_SIZE];
    key_format(key, j->job.run_id, text, end);
    kv_each_in(j->kv, kv_string(text), kv_string(end), see, arg);
}

struct store_key judge_key_of(enum key_kind kind, const char *inc, const char *uid) {
    struct store_key key = {.kind = kind};
    str_copy(key.inc, sizeof(key.inc), inc);
    str_copy(key.uid, sizeof(key.uid), uid);
    return key;
}

struct judge_found {
    union value *ret;
    int64_t version, created;
};

static void found(void *arg, const struct kv_pair *p) {
    struct judge_found *f = arg;
    f->version = p->version;
    f->created = p->create_revision;
    if (f->ret)
        memcpy(f->ret, p->value.data, p->value.len);
}

int64_t judge_key(const struct judge *j, const struct store_key *key, union value *ret) {
    struct judge_found f = {.ret = ret};
    each_key(j, key, found, &f);
    return f.version;
}

static int64_t created(const struct judge *j, const struct store_key *key) {
    struct judge_found f = {0};
    each_key(j, key, found, &f);
    return f.created;
}

bool judge_has_session(const struct judge *j, const char *inc, const char *uid) {
    struct store_key key = judge_key_of(KEY_SESSION, inc, uid);
    return judge_key(j, &key, NULL);
}

void judge_look(const struct judge *j, const char *inc, struct judged_member *m) {
    struct store_key member = judge_key_of(KEY_MEMBER, inc, m->uid);
    struct store_key session = judge_key_of(KEY_SESSION, inc, m->uid);
    union value v;
    bool known = judge_key(j, &member, &v);
    m->node = known && v.member.node[0] ? atoi(v.member.node + 1) : -1;
    m->want = known ? v.member.want : WANT_MEMBER;
    m->created = created(j, &session);
}

int64_t judge_settled_ns(const struct judge *j) {
    return j->ops->quiet_ns(j->world) + j->job.timing.suspect_ns + 1000 * JUDGE_MS;
}

bool judge_is_lost(const struct judge *j, const char *inc) {
    for (int i = 0; i < j->n_last; i++)
        if (j->last[i].gone_first || !judge_has_session(j, inc, j->last[i].uid))
            return true;
    return false;
}

struct judged_node *judge_node_of(const struct judge *j, const char *uid) {
    for (int i = 0; i < j->n_nodes; i++)
        if (strcmp(judge_group(j, i)->uid, uid) == 0)
            return judge_node(j, i);
    return NULL;
}

bool judge_is_spare(const struct judge *j, const struct head_change *h, const char *uid) {
    union value v;
    struct store_key key = judge_key_of(KEY_MEMBER, h->key->inc, uid);
    return judge_key(j, &key, &v) && v.member.want == WANT_STANDBY &&
           !member_find(j->last, j->n_last, uid);
}

bool judge_waits_for_workers(const struct judge *j, int node) {
    const struct judged_node *n = judge_node(j, node);
    int64_t moment_ns = 2 * j->job.timing.hb_ns;
    bool woken = n->stopped_until_ns && j->now_ns - n->stopped_until_ns < moment_ns;
    return n->group.reaped_ns > j->now_ns - (woken ? moment_ns : 0);
}

bool judge_is_spent(const struct judge *j) {
    return j->job.max_free_rounds && j->free_rounds >= j->job.max_free_rounds;
}

bool judge_is_led_since(const struct judge *j, int64_t since_ns) {
    const char *holder = j->times->lead.uid;
    if (!*holder || j->times->lead.since_ns > since_ns || !judge_has_session(j, j->inc, holder))
        return false;
    for (int i = 0; i < j->n_nodes; i++) {
        const char *uid = j->ops->session(j->world, i);
        const struct judged_node *n = judge_node(j, i);
        if (uid && strcmp(uid, holder) == 0)
            return n->stopped_until_ns <= since_ns && n->stall_until_ns <= since_ns;
    }
    return false;
}

/* --- certificates, acks, dones --- */

/* Whoever loses its session does not hear how the round went that it had failed in. */
static void count_lost(struct judge *j, const char *uid) {
    for (int i = 0; i < j->n_nodes; i++)
        if (strcmp(judge_group(j, i)->uid, uid) == 0 && j->ops->session(j->world, i))
            judge_node(j, i)->unsure++;
}

static void count_certificate(struct judge *j, const struct op *op) {
    struct judged_member *m = member_find(j->last, j->n_last, op->key.uid);
    if (j->times)
        j->times->certified_ns = j->now_ns;
    if (op->key.kind == KEY_GONE)
        count_lost(j, op->key.uid);
    if (!m)
        return;
    if (op->key.kind == KEY_GONE) {
        m->gone_first |= !m->said;
        m->gone_ns = j->now_ns;
    } else if (op->key.round == j->head.last_round) {
        m->said = true;
        m->fenced |= op->key.kind == KEY_ACK && op->value->ack.why == ACK_FENCED;
        m->failed |= op->key.kind == KEY_ACK && op->value->ack.why == ACK_FAILED;
    }
}

/* --- times --- */

static void count_lead(struct judge *j, const char *to) {
    struct judged_times *t = j->times;
    memcpy(t->lead.before, t->lead.uid, UID_SIZE);
    str_copy(t->lead.uid, UID_SIZE, to);
    t->lead.since_ns = j->now_ns;
    t->lead.vacant_ns = t->lead.absent_ns;
    t->lead.silent_ns = t->lead.beat_ns;
    t->lead.absent_ns = 0;
    t->lead.beat_ns = j->now_ns;
}

static void count_join(struct judge *j, const struct store_key *key) {
    struct judged_times *t = j->times;
    if (t->n_joins == t->cap_joins) {
        t->cap_joins = t->cap_joins ? t->cap_joins * 2 : 16;
        t->joins = realloc(t->joins, t->cap_joins * sizeof(*t->joins));
        if (!t->joins)
            abort(); /* out of memory */
    }
    struct judged_join *join = &t->joins[t->n_joins++];
    join->at_ns = j->now_ns;
    memcpy(join->uid, key->uid, sizeof(join->uid));
    memcpy(join->inc, key->inc, sizeof(join->inc));
}

/* Nobody who coordinates was kept from it: by a fault, or by a watch that tells late. */
static bool was_seen(const struct judge *j) {
    int64_t since_ns = j->times->enough.since_ns, struck_ns = j->times->struck_until_ns;
    return j->now_ns >= (since_ns > struck_ns ? since_ns : struck_ns) + j->job.unseen_ns;
}

static void one_more(void *arg, const struct kv_pair *p) {
    ++*(int *)arg;
}

/* A coordinator may not have noticed that there were enough for a moment. */
static void count_sessions(struct judge *j, const struct store_key *like, bool joins) {
    struct judged_times *t = j->times;
    struct store_key key = judge_key_of(KEY_SESSION, like->inc, "");
    int n = 0;
    bool other = strcmp(t->enough.inc, like->inc) != 0;
    if (other && !joins)
        return;
    if (other)
        t->enough.few_ns = j->now_ns;
    t->enough.now &= !other;
    memcpy(t->enough.inc, like->inc, sizeof(t->enough.inc));
    key.scope = KEYS_ALL;
    each_key(j, &key, one_more, &n);
    bool enough = n >= j->job.min;
    if (enough && !t->enough.now)
        t->enough.since_ns = j->now_ns;
    else if (!enough && t->enough.now && was_seen(j))
        t->enough.few_ns = j->now_ns;
    t->enough.now = enough;
}

static void count_times(struct judge *j, const struct op *op) {
    if (op->key.kind == KEY_MEMBER || (op->key.kind == KEY_SESSION && !op->put))
        count_sessions(j, &op->key, op->put);
    if (op->key.kind == KEY_SESSION && strcmp(op->key.uid, j->times->lead.uid) == 0)
        *(op->put ? &j->times->lead.beat_ns : &j->times->lead.absent_ns) = j->now_ns;
    if (op->key.kind == KEY_MEMBER && op->put)
        count_join(j, &op->key);
    else if (op->key.kind == KEY_LEAD && op->put)
        count_lead(j, op->value->lead.uid);
}

/* --- head --- */

static void form_see(void *arg, const struct kv_pair *p) {
    struct judge *j = arg;
    struct plan_value place;
    struct store_key own;
    if (j->n_form == j->n_nodes)
        return;
    struct judged_member *m = &j->form[j->n_form++];
    memset(m, 0, sizeof(*m));
    key_parse(p->key.data, p->key.len, j->job.run_id, &own);
    memcpy(m->uid, own.uid, sizeof(m->uid));
    memcpy(&place, p->value.data, sizeof(place));
    m->rank = place.group_rank;
    if (j->times)
        judge_look(j, own.inc, m);
}

static void form_read(struct judge *j, const struct head_change *h) {
    struct store_key key = judge_key_of(KEY_PLAN, h->key->inc, "");
    key.scope = KEYS_ALL;
    memcpy(key.pid, h->to->pid, sizeof(key.pid));
    j->n_form = 0;
    each_key(j, &key, form_see, j);
}

/* What agents bring from a store of before is for the same attempt; another has its own budget. */
static bool may_recall(struct judge *j) {
    union value cur;
    return j->wiped.happened && judge_key(j, &(struct store_key){.kind = KEY_CUR}, &cur) &&
           !cur.cur.former[0];
}

/* A failed round costs one if nobody was lost in it, else nothing. */
static void settle(struct judge *j, struct head_change *h) {
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
                 h->to->restarts <= j->wiped.restarts + (j->failed && !h->lost) && may_recall(j);
    if (h->recalls)
        h->restarts = h->to->restarts;
}

/* Whose workers failed, if the agent that began them is still the node's. */
static void count_own(struct judge *j) {
    for (int i = 0; i < j->n_last; i++)
        for (int k = 0; k < j->n_nodes; k++) {
            struct judged_node *n = judge_node(j, k);
            if (j->last[i].failed && n->group.life == n->life &&
                strcmp(n->group.uid, j->last[i].uid) == 0)
                n->restarts++;
        }
}

enum { HOUR_S = 3600 };

/* There is no clock in the store: the hour is over when a head says so, and it is. */
static void count_free(struct judge *j, const struct head_change *h) {
    int64_t least_ns = HOUR_S / 100 * 98 * 1000 * JUDGE_MS;
    if (!j->n_last || (!h->to->free_age_ms && j->now_ns >= j->free_since_ns + least_ns)) {
        j->free_since_ns = j->now_ns;
        j->free_rounds = 0;
    }
}

static void count_run(struct judge *j, const struct head_change *h, bool costs) {
    if (costs)
        count_own(j);
    else
        j->free_rounds += j->n_last > 0;
    j->run_restarts = h->to->restarts;
    memcpy(j->wiped.last_token, h->to->token, sizeof(j->wiped.last_token));
    memcpy(j->last, j->form, (size_t)j->n_form * sizeof(*j->form));
    j->n_last = j->n_form;
    j->failed = false;
    j->run_ns = j->now_ns;
    j->run_over_ns = 0;
}

/* Its workers are to end from now on. */
static void count_over(struct judge *j) {
    j->run_over_ns = j->now_ns;
    for (int i = 0; i < j->n_nodes; i++) {
        struct judged_group *g = judge_group(j, i);
        if (g->alive && g->round == j->head.round && !g->over_ns)
            g->over_ns = j->now_ns;
    }
}

static void count_closed(struct judge *j, const struct head_value *to) {
    j->outcome = to->outcome;
    if (j->times)
        j->times->failure = to->failure;
}

static void count_head(struct judge *j, const struct head_change *h) {
    const struct head_value *to = h->to;
    bool costs = h->settles && j->failed && !h->lost;
    j->restarts = h->restarts;
    if (j->head.phase == HEAD_RUN && to->phase != HEAD_RUN)
        count_over(j);
    if (to->cause == CAUSE_FAILURE && to->round > j->failure_round)
        j->failure_round = to->round;
    if (to->phase == HEAD_FORM && j->head.phase == HEAD_RUN)
        j->failed = false;
    else if (to->phase == HEAD_END)
        j->failed = to->cause == CAUSE_FAILURE;
    else if (to->phase == HEAD_RUN)
        count_run(j, h, costs);
    else if (to->phase == HEAD_CLOSED)
        count_closed(j, to);
    j->has_head = true;
    j->head = (struct judged_head){.round = to->round,
                                   .last_round = to->last_round,
                                   .phase = to->phase,
                                   .restarts = to->restarts,
                                   .brief_rounds = to->brief_rounds,
                                   .revision = kv_revision(j->kv),
                                   .at_ns = j->now_ns};
    j->latest_round = to->round > j->latest_round ? to->round : j->latest_round;
}

/* The most that an agent may remember of what the store has not any more; also of an attempt that
 * another one has replaced, if the agent was kept from hearing of it. */
static void wiped_note(struct judge *j) {
    if (j->head.restarts > j->wiped.restarts)
        j->wiped.restarts = j->head.restarts;
}

/* The store forgets a job a minute after its last agent; who comes then begins a new one. */
static bool is_anew(struct judge *j, const char *inc) {
    bool replaces = j->has_head;
    if (strcmp(j->inc, inc) == 0)
        return false;
    wiped_note(j);
    str_copy(j->inc, sizeof(j->inc), inc);
    j->ended[j->outcome] = true;
    j->outcome = OUTCOME_NONE;
    j->has_head = j->failed = false;
    j->head = (struct judged_head){0};
    j->start = (struct judged_start){0};
    j->restarts = j->run_restarts = j->free_rounds = j->n_last = j->n_form = 0;
    j->run_ns = j->run_over_ns = j->free_since_ns = 0;
    return replaces;
}

static void judge_head(struct judge *j, const struct op *op) {
    struct head_change h = {.key = &op->key, .to = &op->value->head};
    h.anew = is_anew(j, op->key.inc);
    if (h.to->phase == HEAD_FORM)
        form_read(j, &h);
    settle(j, &h);
    if (h.to->phase == HEAD_RUN)
        count_free(j, &h);
    TELL(on_head, j, &h);
    j->ops->head(j->world, &h);
    count_head(j, &h);
}

static void judge_put(struct judge *j, const struct op *op) {
    for (size_t i = 0; invariants[i]; i++)
        if (invariants[i]->kinds & 1u << op->key.kind && is_asked(j, invariants[i]))
            invariants[i]->on_put(j, op);
}

void judge_txn(struct judge *j, const char *uid, const struct op *ops, size_t n) {
    j->writer = uid;
    for (size_t i = 0; i < n; i++) {
        const struct op *op = &ops[i];
        if (j->times)
            count_times(j, op);
        if (!op->put)
            continue;
        enum key_kind kind = op->key.kind;
        bool certifies = kind == KEY_GONE || kind == KEY_ACK || kind == KEY_DONE;
        if (certifies || kind == KEY_LEAD || kind == KEY_CUR)
            judge_put(j, op);
        if (certifies)
            count_certificate(j, op);
        else if (kind == KEY_HEAD)
            judge_head(j, op);
    }
    j->writer = NULL;
}

/* --- a store that forgets --- */

bool judge_is_former(const struct judge *j, const struct round_spec *s) {
    return j->wiped.happened && strcmp(s->token, j->wiped.token) == 0;
}

void judge_wiped(struct judge *j) {
    bool ran = j->has_head && j->head.last_round;
    j->wiped.happened = true;
    if (ran) {
        j->wiped.round = j->head.last_round;
        j->wiped.least = j->run_restarts;
        wiped_note(j);
        memcpy(j->wiped.token, j->wiped.last_token, sizeof(j->wiped.token));
    }
    for (int i = 0; i < j->n_nodes; i++) {
        struct judged_node *n = judge_node(j, i);
        if (ran)
            n->wiped_life = n->group.round == j->wiped.round ? n->group.life : 0;
        n->group.former = n->group.alive;
    }
}

void judge_set_back(struct judge *j) {
    j->set_back = true;
}

void judge_heard(struct judge *j, int node, const char *uid, int64_t revision) {
    struct judged_node *n = judge_node(j, node);
    if (strcmp(n->heard.uid, uid) != 0) {
        str_copy(n->heard.uid, sizeof(n->heard.uid), uid);
        n->heard.revision = 0;
    }
    n->heard.revision = revision > n->heard.revision ? revision : n->heard.revision;
}

int64_t judge_known(const struct judge *j, int node, const char *uid) {
    const struct judged_node *n = judge_node(j, node);
    return *uid && strcmp(n->heard.uid, uid) == 0 ? n->heard.revision : 0;
}

void judge_strange(struct judge *j, int node, int64_t revision, int64_t known) {
    struct judged_node *n = judge_node(j, node);
    bool is_first = !n->strange_ns;
    n->strange_ns = is_first ? j->now_ns : n->strange_ns;
    TELL(on_strange, j, node, revision, known);
}

void judge_expired(struct judge *j) {
    if (!j->has_head || judge_key(j, &(struct store_key){.kind = KEY_CUR}, NULL))
        return;
    TELL(on_forgotten, j);
    judge_wiped(j);
}

/* --- machines and agents --- */

static void count_first_start(struct judge *j, const struct round_spec *s) {
    j->start = (struct judged_start){.round = s->round,
                                     .world = s->world,
                                     .group_world = s->group_world,
                                     .master_port = s->master_port,
                                     .restart_count = s->restart_count};
    str_copy(j->start.master_addr, sizeof(j->start.master_addr), s->master_addr);
    str_copy(j->start.token, sizeof(j->start.token), s->token);
    memset(j->ranks, 0, (size_t)j->n_ranks * sizeof(*j->ranks));
}

void judge_start(struct judge *j, int node, const struct round_spec *s) {
    if (judge_is_former(j, s))
        return;
    if (s->round > j->start.round)
        count_first_start(j, s);
    TELL(on_start, j, node, s);
    for (int i = s->rank_base; i < s->rank_base + s->local_world; i++)
        if (i >= 0 && i < j->n_ranks)
            j->ranks[i] = true;
}

void judge_stop(struct judge *j, int node, const struct judged_stop *s) {
    TELL(on_stop, j, node, s);
}

void judge_ended(struct judge *j, int node) {
    TELL(on_ended, j, node);
}

void judge_success(struct judge *j, const char *uid, int64_t round) {
    struct judged_member *m = member_find(j->last, j->n_last, uid);
    if (m && round == j->head.last_round)
        m->succeeded = true;
}

void judge_answered(struct judge *j, int node, bool denied) {
    struct judged_node *n = judge_node(j, node);
    n->wrote |= !denied;
    if (!denied || !n->denied_ns)
        n->denied_ns = denied ? j->now_ns : 0;
    if (denied)
        TELL(on_denied, j, node);
}

void judge_exit(struct judge *j, int node, int code) {
    TELL(on_exit, j, node, code);
}

void judge_claim(struct judge *j, int node, const char *what, int64_t round) {
    struct judged_group *g = judge_group(j, node);
    TELL(on_claim, j, node, what, round);
    if (strcmp(what, CLAIM_FENCED) == 0 && g->round == round)
        g->told_fenced = true;
}

void judge_failure(struct judge *j, int node, int64_t round) {
    TELL(on_failure, j, node, round);
}

void judge_said(struct judge *j, int node, const char *text) {
    TELL(on_said, j, node, text);
}

void judge_end(struct judge *j, bool over, bool late) {
    TELL(on_end, j, over, late);
}

void judge_fini(struct judge *j) {
    if (j->times)
        free(j->times->joins);
}

/* --- as a part of a state --- */

static void see_text(struct canonical *c, const char *text) {
    canonical_bytes(c, text, strlen(text) + 1);
}

static void see_members(struct canonical *c, const struct judged_member *m, int n) {
    c->hash = canonical_mix(c->hash, (uint64_t)n);
    for (int i = 0; i < n; i++) {
        see_text(c, m[i].uid);
        c->hash = canonical_mix(c->hash, (uint64_t)m[i].rank << 4 | (uint64_t)m[i].said << 3 |
                                             (uint64_t)m[i].gone_first << 2 |
                                             (uint64_t)m[i].fenced << 1 | m[i].succeeded);
    }
}

void judge_canonical(const struct judge *j, struct canonical *seen) {
    const struct judged_start *s = &j->start;
    const uint64_t words[] = {j->has_head,
                              j->failed,
                              j->outcome,
                              j->head.phase,
                              (uint64_t)j->head.round,
                              (uint64_t)j->head.last_round,
                              (uint64_t)j->head.restarts,
                              (uint64_t)j->restarts,
                              (uint64_t)s->round,
                              (uint64_t)s->world,
                              (uint64_t)s->group_world,
                              (uint64_t)s->master_port,
                              (uint64_t)s->restart_count};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        seen->hash = canonical_mix(seen->hash, words[i]);
    see_text(seen, j->inc);
    see_text(seen, s->master_addr);
    see_text(seen, s->token);
    see_members(seen, j->last, j->n_last);
    see_members(seen, j->form, j->n_form);
    canonical_bytes(seen, j->ranks, (size_t)j->n_ranks * sizeof(*j->ranks));
}
