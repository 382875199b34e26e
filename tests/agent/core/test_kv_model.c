/* Random requests to a store, and the same to a plain model of it: two lists that are searched from end to end. All that can
 * be asked is compared after every step. */
#include "agent/core/kv_state.h"
#include "base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define B(s)                                                                                       \
    { s, sizeof(s) - 1 }
enum { SEEDS = 150, STEPS = 120, KEYS = 14, EVENTS_MAX = 8192, LEASES_MAX = 256, WATCHES = 12 };
enum { COMPARES_MAX = 4, OPS_MAX = 6, VALUE_SIZE = 24 };

/* In order; some longer than what is hashed at once, some each other's beginnings. */
static const struct kv_bytes keys[KEYS] = {
    B("\0"),        B("\0\0"),      B("a"),
    B("a\0"),       B("ab"),        B("abcdefgh"),
    B("abcdefgh1"), B("abcdefgh2"), B("abcdefghijklmnopq"),
    B("b"),         B("k/1"),       B("k/2"),
    B("\xff"),      B("\xff\xff"),
};
static const struct kv_bytes ends[] = {B(""),  B("\0"), B("ab"),  B("abcdefgh2"),
                                       B("b"), B("k0"), B("\xff")};

struct model_event {
    int key;
    bool deleted;
    char value[VALUE_SIZE];
    int64_t create, mod, version, lease;
};
struct model_lease {
    int64_t id, ttl_ns, ends_ns;
};
struct model_watch {
    struct kv_watch *w;
    struct kv_bytes from, end;
    int64_t next;
    bool behind, ready;
};

static struct kv *kv;
static struct arena arena;
static struct rand chance;
static int64_t now_ns;
static struct model {
    struct model_event now[KEYS]; /* version 0: there is none */
    struct model_event events[EVENTS_MAX];
    size_t first, n; /* of the events: those before the first are forgotten */
    size_t history_max;
    int64_t revision, compacted;
    struct model_lease leases[LEASES_MAX];
    size_t n_leases;
    struct model_watch watches[WATCHES];
} m;

static int draw(int n) {
    return (int)rand_below(&chance, (uint64_t)n);
}

/* ---- what the model says ---- */

static bool has(struct kv_bytes key, struct kv_bytes from, struct kv_bytes end) {
    size_t n = key.len < from.len ? key.len : from.len;
    int c = memcmp(key.data, from.data, n);
    bool same = c == 0 && key.len == from.len;
    if (!end.len)
        return same;
    if (c < 0 || (c == 0 && key.len < from.len))
        return false;
    if (end.len == 1 && !end.data[0])
        return true;
    n = key.len < end.len ? key.len : end.len;
    c = memcmp(key.data, end.data, n);
    return c < 0 || (c == 0 && key.len < end.len);
}

static int count(struct kv_bytes from, struct kv_bytes end) {
    int n = 0;
    for (int i = 0; i < KEYS; i++)
        n += m.now[i].version && has(keys[i], from, end);
    return n;
}

static void note(struct model_event e) {
    assert_true(m.n < EVENTS_MAX);
    m.events[m.n++] = e;
    for (int i = 0; i < WATCHES; i++) {
        struct model_watch *w = &m.watches[i];
        if (!w->w || !has(keys[e.key], w->from, w->end) || e.mod < w->next)
            continue;
        w->next = w->behind ? w->next : e.mod;
        w->behind = w->ready = true;
    }
}

static void forget(int64_t revision) {
    m.compacted = revision;
    while (m.first < m.n && m.events[m.first].mod < revision)
        m.first++;
}

static void trim(void) {
    size_t n = m.n - m.first, cut = n - m.history_max + m.history_max / 4;
    if (n > m.history_max)
        forget(m.events[m.first + (cut < n ? cut : n - 1)].mod);
}

static void put_key(int key, struct kv_bytes value, int64_t lease) {
    struct model_event *e = &m.now[key];
    e->create = e->version ? e->create : m.revision + 1;
    *e = (struct model_event){.key = key,
                              .create = e->create,
                              .mod = m.revision + 1,
                              .version = e->version + 1,
                              .lease = lease};
    memcpy(e->value, value.data, value.len);
    note(*e);
}

static void delete_key(int key, int64_t revision) {
    m.now[key].version = 0;
    note((struct model_event){.key = key, .deleted = true, .mod = revision});
}

static struct model_lease *lease_of(int64_t id) {
    for (size_t i = 0; i < m.n_leases; i++)
        if (m.leases[i].id == id)
            return &m.leases[i];
    return NULL;
}

/* ---- pairs and events ---- */

static void same_bytes(struct kv_bytes a, struct kv_bytes b) {
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
}

static void same_pair(const struct kv_pair *p, const struct model_event *e, bool keys_only) {
    same_bytes(p->key, keys[e->key]);
    same_bytes(p->value, kv_string(keys_only || e->deleted ? "" : e->value));
    assert_true(p->create_revision == e->create && p->mod_revision == e->mod);
    assert_true(p->version == e->version && p->lease == e->lease);
}

static void see_pair(void *arg, const struct kv_pair *pair) {
    int *at = arg;
    while (*at < KEYS && !m.now[*at].version)
        ++*at;
    assert_true(*at < KEYS);
    same_pair(pair, &m.now[(*at)++], false);
}

static void see_event(void *arg, const struct kv_event *event) {
    size_t *at = arg;
    assert_true(*at < m.n);
    assert_int_equal(event->deleted, m.events[*at].deleted);
    same_pair(&event->pair, &m.events[(*at)++], false);
}

static size_t size_of(const struct model_event *e) {
    return sizeof(struct kv_record) + keys[e->key].len + strlen(e->value);
}

static bool is_newest(const struct model_event *e) {
    return m.now[e->key].version && m.now[e->key].mod == e->mod;
}

static void same_history_from(void) {
    size_t sum = 0, i = m.n, bytes = (size_t)draw(4000);
    while (i > m.first && sum + size_of(&m.events[i - 1]) <= bytes)
        sum += size_of(&m.events[--i]);
    assert_int_equal(kv_history_from(kv, bytes), i == m.n      ? m.revision
                                                 : i > m.first ? m.events[i].mod
                                                               : m.compacted);
}

/* All that the store tells of itself; nothing is held by an answer. */
static void same_store(void) {
    int at = 0;
    size_t event = m.first, memory = 0;
    assert_true(kv_revision(kv) == m.revision && kv_compact_revision(kv) == m.compacted);
    assert_int_equal(kv_count(kv), count(keys[0], ends[1]));
    assert_int_equal(kv_lease_count(kv), m.n_leases);
    kv_each(kv, see_pair, &at);
    assert_int_equal(count(keys[0], ends[1]), kv_count(kv));
    kv_each_event(kv, 0, see_event, &event);
    assert_int_equal(event, m.n);
    for (int i = 0; i < KEYS; i++)
        memory += m.now[i].version ? size_of(&m.now[i]) : 0;
    for (size_t i = m.first; i < m.n; i++)
        memory += is_newest(&m.events[i]) ? 0 : size_of(&m.events[i]);
    assert_int_equal(kv_memory(kv), memory);
    same_history_from();
}

/* ---- a transaction ---- */

struct asked {
    struct kv_compare compares[COMPARES_MAX];
    struct kv_op ops[2][OPS_MAX];
    int key[2][OPS_MAX]; /* of a put */
    char values[2][OPS_MAX][VALUE_SIZE];
    struct kv_txn txn;
};

static struct kv_bytes draw_key(void) {
    return draw(80) ? keys[draw(KEYS)] : ends[0];
}

static struct kv_bytes draw_end(void) {
    return ends[draw(2) ? 0 : draw(sizeof(ends) / sizeof(*ends))];
}

static int64_t draw_lease(void) {
    return draw(3) ? 0 : m.n_leases && draw(10) ? m.leases[draw((int)m.n_leases)].id : 77777;
}

static void draw_op(struct asked *r, int branch, int i) {
    struct kv_op *op = &r->ops[branch][i];
    int kind = draw(5), key = draw(KEYS);
    *op = (struct kv_op){.kind = kind < 3   ? KV_PUT
                                 : kind < 4 ? KV_RANGE
                                            : KV_DELETE,
                         .key = draw_key()};
    if (op->kind != KV_PUT) {
        op->range_end = draw_end();
        op->prev_kv = op->kind == KV_DELETE && draw(2);
        op->limit = op->kind == KV_RANGE && draw(2) ? draw(5) : 0;
        op->revision = op->kind == KV_RANGE && !draw(3) ? m.revision - 1 + draw(8) / 3 : 0;
        op->keys_only = op->kind == KV_RANGE && !draw(4);
        op->count_only = op->kind == KV_RANGE && !draw(4);
        return;
    }
    snprintf(r->values[branch][i], VALUE_SIZE, "%.*s", draw(12), "value of something");
    r->key[branch][i] = key;
    op->key = op->key.len ? keys[key] : op->key;
    op->value = kv_string(r->values[branch][i]);
    op->lease = draw_lease();
    op->prev_kv = draw(2);
}

static int64_t draw_number(const struct kv_compare *c) {
    const struct model_event *e = &m.now[draw(KEYS)];
    for (int i = 0; i < KEYS; i++) /* most ask about what is there */
        if (m.now[i].version && has(keys[i], c->key, c->range_end))
            e = &m.now[i];
    int64_t is = c->target == KV_VERSION  ? e->version
                 : c->target == KV_CREATE ? e->create
                 : c->target == KV_MOD    ? e->mod
                                          : e->lease;
    return draw(4) ? (e->version ? is : 0) + draw(3) - 1 : 0;
}

static void draw_compare(struct kv_compare *c) {
    *c = (struct kv_compare){.target = (enum kv_target)draw(5),
                             .relation = (enum kv_relation)draw(4),
                             .key = draw_key(),
                             .range_end = draw_end()};
    if (c->target == KV_VALUE)
        c->value = kv_string(m.now[draw(KEYS)].value);
    else
        c->number = draw_number(c);
}

static void draw_request(struct asked *r) {
    *r = (struct asked){.txn = {.compares = r->compares,
                                .n_compares = (size_t)(draw(2) ? 0 : draw(COMPARES_MAX)),
                                .success = r->ops[0],
                                .failure = r->ops[1],
                                .n_success = (size_t)draw(OPS_MAX),
                                .n_failure = (size_t)draw(OPS_MAX)}};
    for (size_t i = 0; i < r->txn.n_compares; i++)
        draw_compare(&r->compares[i]);
    for (size_t i = 0; i < r->txn.n_success; i++)
        draw_op(r, 0, (int)i);
    for (size_t i = 0; i < r->txn.n_failure; i++)
        draw_op(r, 1, (int)i);
}

static bool holds_for(const struct kv_compare *c, const struct model_event *e) {
    int64_t is = c->target == KV_VERSION  ? e->version
                 : c->target == KV_CREATE ? e->create
                 : c->target == KV_MOD    ? e->mod
                                          : e->lease;
    int order = c->target == KV_VALUE ? strcmp(e->value, c->value.data)
                                      : (is > c->number) - (is < c->number);
    return c->relation == KV_EQUAL     ? order == 0
           : c->relation == KV_GREATER ? order > 0
           : c->relation == KV_LESS    ? order < 0
                                       : order != 0;
}

static bool holds(const struct kv_compare *c) {
    static const struct model_event none;
    if (!count(c->key, c->range_end))
        return c->target != KV_VALUE && holds_for(c, &none);
    for (int i = 0; i < KEYS; i++)
        if (m.now[i].version && has(keys[i], c->key, c->range_end) && !holds_for(c, &m.now[i]))
            return false;
    return true;
}

static int check_said(const struct kv_op *ops, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!ops[i].key.len)
            return KV_EMPTY_KEY;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            if (i != k && ops[i].kind == KV_PUT && ops[k].kind != KV_RANGE &&
                has(ops[i].key, ops[k].key, ops[k].range_end))
                return KV_DUPLICATE_KEY;
    return 0;
}

static int check_now(const struct kv_op *ops, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (ops[i].kind == KV_RANGE && ops[i].revision > m.revision)
            return KV_FUTURE_REVISION;
        if (ops[i].kind == KV_RANGE && ops[i].revision && ops[i].revision < m.revision)
            return KV_COMPACTED;
        if (ops[i].kind == KV_PUT && ops[i].lease && !lease_of(ops[i].lease))
            return KV_LEASE_NOT_FOUND;
    }
    return 0;
}

static int check(const struct kv_txn *t, bool *ret_succeeded) {
    int rc = 0;
    *ret_succeeded = true;
    for (size_t i = 0; i < t->n_compares; i++)
        rc = t->compares[i].key.len ? rc : KV_EMPTY_KEY;
    rc = rc ? rc : check_said(t->success, t->n_success);
    rc = rc ? rc : check_said(t->failure, t->n_failure);
    for (size_t i = 0; i < t->n_compares && !rc; i++)
        *ret_succeeded &= holds(&t->compares[i]);
    return rc               ? rc
           : *ret_succeeded ? check_now(t->success, t->n_success)
                            : check_now(t->failure, t->n_failure);
}

static size_t cost_of(const struct kv_op *ops, size_t n) {
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        size_t all = ops[i].kind == KV_PUT || ops[i].count_only
                         ? 1
                         : 1 + (size_t)count(ops[i].key, ops[i].range_end);
        sum += ops[i].limit && (size_t)ops[i].limit < all ? (size_t)ops[i].limit : all;
    }
    return sum;
}

static void same_cost(const struct kv_txn *t) {
    size_t sum = 0, success = cost_of(t->success, t->n_success),
           failure = cost_of(t->failure, t->n_failure);
    for (size_t i = 0; i < t->n_compares; i++)
        sum += 1 + (size_t)count(t->compares[i].key, t->compares[i].range_end);
    assert_int_equal(kv_txn_cost(kv, t), sum + (success > failure ? success : failure));
}

/* What an answer shows, as it was when it was asked for. */
struct shown {
    struct kv_op_result *result;
    struct model_event pairs[KEYS];
    size_t n;
    bool keys_only;
};

static void same_shown(const struct shown *s) {
    assert_int_equal(s->result->n_pairs, s->n);
    for (size_t i = 0; i < s->n; i++) {
        struct kv_pair pair = kv_result_pair(s->result, i);
        same_pair(&pair, &s->pairs[i], s->keys_only);
    }
}

/* Does the operation in the model, and compares what was answered; what is held is looked at later. */
static bool same_op(const struct kv_op *op, int key, struct shown *s) {
    int n = count(op->key, op->range_end),
        most = op->limit > 0 && op->limit < n ? (int)op->limit : n;
    bool shows = op->kind == KV_RANGE ? !op->count_only : op->prev_kv;
    assert_int_equal(s->result->kind, op->kind);
    assert_int_equal(s->result->count, op->kind == KV_PUT ? 0 : n);
    assert_int_equal(s->result->more, op->kind == KV_RANGE && shows && most < n);
    s->keys_only = op->kind == KV_RANGE && op->keys_only;
    for (int i = 0; i < KEYS && shows && (int)s->n < most; i++)
        if (m.now[i].version && has(keys[i], op->key, op->range_end))
            s->pairs[s->n++] = m.now[i];
    if (op->kind == KV_PUT)
        put_key(key, op->value, op->lease);
    for (int i = 0; i < KEYS && op->kind == KV_DELETE; i++)
        if (m.now[i].version && has(keys[i], op->key, op->range_end))
            delete_key(i, m.revision + 1);
    return op->kind == KV_PUT || (op->kind == KV_DELETE && n);
}

static void step_txn(void) {
    struct asked r;
    struct kv_txn_result result = {0};
    struct kv_hold hold = {0};
    struct shown shown[OPS_MAX] = {0};
    struct err err = {0};
    bool succeeded, changed = false, held = draw(2);
    draw_request(&r);
    same_cost(&r.txn);
    int rc = check(&r.txn, &succeeded);
    assert_int_equal(held ? kv_txn_hold(kv, &r.txn, &arena, &hold, &result, &err)
                          : kv_txn(kv, &r.txn, &arena, &result, &err),
                     rc);
    if (rc) {
        assert_string_equal(err.msg, kv_text(rc));
        return;
    }
    int branch = succeeded ? 0 : 1;
    assert_int_equal(result.succeeded, succeeded);
    assert_int_equal(result.n_results, succeeded ? r.txn.n_success : r.txn.n_failure);
    for (size_t i = 0; i < result.n_results; i++) {
        shown[i].result = &result.results[i];
        changed |= same_op(&r.ops[branch][i], r.key[branch][i], &shown[i]);
    }
    m.revision += changed;
    assert_int_equal(result.revision, m.revision);
    if (changed)
        trim();
    for (size_t i = 0; i < result.n_results; i++)
        same_shown(&shown[i]);
    kv_release(kv, &hold);
    assert_true(!hold.n && !hold.records);
}

/* ---- leases ---- */

static void step_grant(void) {
    int64_t id = draw(2) ? 0 : 1 + draw(20), ttl_s = draw(30) ? draw(8) : 9000000 + draw(2),
            given = 0;
    int rc = id && lease_of(id) ? KV_LEASE_EXISTS : ttl_s > 9000000 ? KV_LEASE_TTL_TOO_LARGE : 0;
    struct err err = {0};
    assert_int_equal(kv_lease_grant(kv, id, ttl_s, now_ns, &given, &err), rc);
    if (rc) {
        assert_string_equal(err.msg, kv_text(rc));
        return;
    }
    assert_true(given > 0 && (!id || given == id) && !lease_of(given) && m.n_leases < LEASES_MAX);
    int64_t ttl_ns = (ttl_s ? ttl_s : 1) * 1000000000;
    m.leases[m.n_leases++] = (struct model_lease){given, ttl_ns, now_ns + ttl_ns};
}

static void step_keepalive(void) {
    int64_t id = m.n_leases && draw(5) ? m.leases[draw((int)m.n_leases)].id : 77777, ttl_s = 0;
    struct model_lease *l = lease_of(id);
    struct err err = {0};
    assert_int_equal(kv_lease_keepalive(kv, id, now_ns, &ttl_s, &err), l ? 0 : KV_LEASE_NOT_FOUND);
    assert_string_equal(err.msg, l ? "" : kv_text(KV_LEASE_NOT_FOUND));
    assert_int_equal(ttl_s, l ? l->ttl_ns / 1000000000 : 0);
    if (l)
        l->ends_ns = now_ns + l->ttl_ns;
}

static void see_new(void *arg, const struct kv_event *event) {
    struct model_event *e = &((struct model_event *)arg)[m.n++];
    int key = 0;
    while (key < KEYS && !(keys[key].len == event->pair.key.len &&
                           !memcmp(keys[key].data, event->pair.key.data, keys[key].len)))
        key++;
    *e = (struct model_event){.key = key, .mod = event->pair.mod_revision};
    assert_true(event->deleted && key < KEYS);
}

/* These leases have ended: what each of them held went in a revision of its own, by key. Which went first is not promised. */
static void ended(const struct model_lease *gone, size_t n) {
    static struct model_event news[EVENTS_MAX];
    size_t begin = m.n, i = 0;
    m.n = 0;
    kv_each_event(kv, m.revision + 1, see_new, news);
    size_t all = m.n;
    m.n = begin;
    for (size_t l = 0; l < n; l++)
        assert_false(kv_lease_exists(kv, gone[l].id));
    while (i < all) {
        int64_t lease = m.now[news[i].key].lease, revision = m.revision + 1;
        for (int key = 0; key < KEYS; key++)
            if (m.now[key].version && m.now[key].lease == lease) {
                assert_true(i < all && news[i].key == key && news[i].mod == revision);
                i++;
                delete_key(key, revision);
            }
        m.revision++;
        trim();
        size_t found = 0;
        for (size_t l = 0; l < n; l++)
            found += gone[l].id == lease;
        assert_int_equal(found, 1);
    }
    for (size_t l = 0; l < n; l++)
        for (int key = 0; key < KEYS; key++)
            assert_false(m.now[key].version && m.now[key].lease == gone[l].id);
}

static void step_revoke(void) {
    int64_t id = m.n_leases && draw(5) ? m.leases[draw((int)m.n_leases)].id : 77777;
    struct model_lease *l = lease_of(id), gone;
    struct err err = {0};
    assert_int_equal(kv_lease_revoke(kv, id, &err), l ? 0 : KV_LEASE_NOT_FOUND);
    assert_string_equal(err.msg, l ? "" : kv_text(KV_LEASE_NOT_FOUND));
    if (!l)
        return;
    gone = *l;
    *l = m.leases[--m.n_leases];
    ended(&gone, 1);
}

static void step_expire(void) {
    struct model_lease gone[LEASES_MAX];
    size_t n = 0;
    int64_t next_ns = INT64_MAX;
    now_ns += m.n_leases && draw(2) ? m.leases[draw((int)m.n_leases)].ends_ns - now_ns - draw(2)
                                    : draw(1000);
    for (size_t i = 0; i < m.n_leases;) {
        if (m.leases[i].ends_ns <= now_ns) {
            gone[n++] = m.leases[i];
            m.leases[i] = m.leases[--m.n_leases];
            continue;
        }
        next_ns = m.leases[i].ends_ns < next_ns ? m.leases[i].ends_ns : next_ns;
        i++;
    }
    assert_true(kv_lease_expire(kv, now_ns) == next_ns);
    ended(gone, n);
}

static bool spares(struct kv_bytes key) {
    return key.data[0] == 'k';
}

static bool is_spared(const struct model_lease *l) {
    for (int key = 0; key < KEYS; key++)
        if (m.now[key].version && m.now[key].lease == l->id && spares(keys[key]))
            return true;
    return false;
}

/* The one that was kept alive longest ago; n_leases: all are spared. */
static size_t oldest(void) {
    size_t best = m.n_leases;
    for (size_t i = 0; i < m.n_leases; i++) {
        int64_t kept_ns = m.leases[i].ends_ns - m.leases[i].ttl_ns;
        int64_t best_ns =
            best < m.n_leases ? m.leases[best].ends_ns - m.leases[best].ttl_ns : INT64_MAX;
        if (!is_spared(&m.leases[i]) && kept_ns < best_ns)
            best = i;
    }
    return best;
}

static void step_drop(void) {
    struct model_lease gone[LEASES_MAX];
    size_t n = (size_t)draw(4), dropped = 0;
    while (dropped < n && oldest() < m.n_leases) {
        size_t i = oldest();
        gone[dropped++] = m.leases[i];
        m.leases[i] = m.leases[--m.n_leases];
    }
    assert_int_equal(kv_lease_drop(kv, n, spares), dropped);
    ended(gone, dropped);
}

/* ---- watches and the past ---- */

static void step_compact(void) {
    int64_t revision = m.compacted - 1 + draw((int)(m.revision - m.compacted) + 3);
    int rc = revision > m.revision     ? KV_FUTURE_REVISION
             : revision <= m.compacted ? KV_COMPACTED
                                       : 0;
    struct err err = {0};
    assert_int_equal(kv_compact(kv, revision, &err), rc);
    assert_string_equal(err.msg, rc ? kv_text(rc) : "");
    if (!rc)
        forget(revision);
}

static void step_watch(void) {
    struct model_watch *w = &m.watches[draw(WATCHES)];
    if (w->w) {
        w->w = kv_watch_free(w->w);
        return;
    }
    int64_t start = draw(2) ? 0 : m.revision - 8 + draw(12);
    *w = (struct model_watch){.from = keys[draw(KEYS)], .end = draw_end()};
    w->next = start > 0 ? start : m.revision + 1;
    w->behind = w->next < m.compacted;
    for (size_t i = m.first; i < m.n; i++)
        w->behind |= m.events[i].mod >= w->next && has(keys[m.events[i].key], w->from, w->end);
    w->ready = w->behind;
    w->w = kv_watch_new(kv, w->from, w->end, start, w);
    assert_ptr_equal(kv_watch_owner(w->w), w);
}

static void take(struct model_watch *w, size_t max) {
    struct kv_event *events = NULL;
    size_t n = 0, at = 0;
    if (w->behind && w->next < m.compacted) {
        assert_int_equal(kv_watch_take(w->w, max, &arena, &events, &n), KV_COMPACTED);
        w->w = kv_watch_free(w->w);
        return;
    }
    assert_int_equal(kv_watch_take(w->w, max, &arena, &events, &n), 0);
    size_t i = m.first;
    int64_t last = 0;
    for (; i < m.n; i++) {
        const struct model_event *e = &m.events[i];
        if (e->mod < w->next || !has(keys[e->key], w->from, w->end))
            continue;
        if (max && at >= max && e->mod != last)
            break;
        assert_true(at < n);
        assert_int_equal(events[at].deleted, e->deleted);
        same_pair(&events[at++].pair, e, false);
        last = e->mod;
    }
    assert_int_equal(at, n);
    w->behind = w->ready = i < m.n;
    w->next = w->behind ? last + 1 : m.revision + 1 > w->next ? m.revision + 1 : w->next;
}

static void same_watches(void) {
    bool seen[WATCHES] = {false};
    for (struct kv_watch *w; (w = kv_watch_ready(kv));) {
        struct model_watch *is = kv_watch_owner(w);
        assert_true(is->w == w && is->ready && !seen[is - m.watches]);
        seen[is - m.watches] = true;
    }
    for (int i = 0; i < WATCHES; i++) {
        struct model_watch *w = &m.watches[i];
        if (!w->w)
            continue;
        assert_int_equal(w->ready, seen[i]);
        assert_int_equal(kv_watch_is_behind(w->w), w->behind);
        assert_int_equal(kv_watch_is_lost(w->w), w->behind && w->next < m.compacted);
        w->ready = false;
        if (seen[i] && draw(3))
            take(w, (size_t)draw(4));
    }
}

/* The watches stay behind; the leases come along. */
static void step_copy(void) {
    struct kv *copy = kv_copy(kv);
    for (int i = 0; i < WATCHES; i++)
        m.watches[i].w = kv_watch_free(m.watches[i].w);
    kv_free(kv);
    kv = copy;
}

static void step(void) {
    static void (*const rare[])(void) = {step_grant,  step_grant, step_keepalive, step_revoke,
                                         step_expire, step_drop,  step_compact,   step_watch,
                                         step_watch,  step_watch};
    now_ns += 1 + draw(300000000);
    if (draw(2))
        step_txn();
    else if (draw(60))
        rare[draw(sizeof(rare) / sizeof(*rare))]();
    else
        step_copy();
    same_watches();
    same_store();
    arena_fini(&arena);
}

static void test_random_requests_are_answered_as_a_plain_list_answers_them(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        rand_init(&chance, seed);
        memset(&m, 0, sizeof(m));
        m.revision = m.compacted = 1;
        now_ns = 1;
        m.history_max = draw(2) ? (size_t)(1 + draw(40)) : KV_HISTORY_DEFAULT;
        kv = kv_new(seed, m.history_max);
        for (int i = 0; i < STEPS; i++)
            step();
        kv = kv_free(kv);
    }
}

/* A prefix and its end are a range of what begins with it, and of nothing else. */
static void test_the_end_of_a_prefix_leaves_out_what_does_not_begin_with_it(void **state) {
    (void)state;
    static const char bytes[] = {0, 1, 'a', (char)0xfe, (char)0xff};
    rand_init(&chance, 5);
    for (int i = 0; i < 20000; i++) {
        char prefix[3], key[4], end[3];
        struct kv_bytes p = {prefix, (size_t)(1 + draw(3))}, k = {key, (size_t)(1 + draw(4))};
        for (size_t at = 0; at < p.len; at++)
            prefix[at] = bytes[draw(5)];
        for (size_t at = 0; at < k.len; at++)
            key[at] = at < p.len && draw(3) ? prefix[at] : bytes[draw(5)];
        bool begins = k.len >= p.len && memcmp(key, prefix, p.len) == 0;
        bool last = true; /* nothing but 0xff: its end is that of everything */
        for (size_t at = 0; at < p.len; at++)
            last &= prefix[at] == (char)0xff;
        struct kv_bytes to = kv_prefix_end(p, end);
        assert_int_equal(kv_in_range(k, p, to), last ? kv_compare_bytes(k, p) >= 0 : begins);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_requests_are_answered_as_a_plain_list_answers_them),
        cmocka_unit_test(test_the_end_of_a_prefix_leaves_out_what_does_not_begin_with_it),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
