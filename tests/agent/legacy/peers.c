#include "tests/agent/legacy/peers.h"

#include "agent/legacy/document.h"
#include "base/base64.h"
#include "base/str.h"

#include <inttypes.h>
#include <string.h>

static int draw(const struct peers *p, int n) {
    return (int)rand_below(p->chance, (uint64_t)n);
}

/* One of so many is strange. */
static bool odd(const struct peers *p, int of) {
    return p->strange && draw(p, of) == 0;
}

static void put(const struct peers *p, struct arena *a, const char *key, const char *value,
                int64_t ttl_s) {
    struct tree_request q = {.verb = TREE_PUT,
                             .key = arena_printf(a, "%s/%s", p->rdzv, key),
                             .value = value,
                             .ttl_s = ttl_s};
    tree_model_do(p->tree, p->now_ns, &q, a);
}

static void drop(const struct peers *p, struct arena *a, const char *key) {
    struct tree_request q = {.verb = TREE_DELETE, .key = key};
    tree_model_do(p->tree, p->now_ns, &q, a);
}

static void put_state(const struct peers *p, struct arena *a, const char *text) {
    put(p, a, "active_version", text, draw(p, 3) ? 0 : 10);
}

static void edit(const struct peers *p, struct arena *a, const struct document *d,
                 const struct document_edit *e) {
    BUF_FINI struct buf b = {0};
    document_write(d, e, &b);
    put_state(p, a, buf_str(&b));
}

/* ---- the state ---- */

static void make_state(const struct peers *p, struct arena *a) {
    const char *count = tree_model_get(p->tree, arena_printf(a, "%s/version_counter", p->rdzv));
    int64_t version = 0;
    if (draw(p, 3) == 0) {
        put(p, a, "active_version", "{\"status\": \"setup\"}", 5);
        return;
    }
    if (!count || !str_to_i64(count, 0, INT64_MAX - 1, &version))
        return;
    put(p, a, "version_counter", arena_printf(a, "%" PRId64, version + 1), 0);
    put_state(p, a,
              arena_printf(a,
                           "{\"status\": \"joinable\", \"version\": \"%" PRId64
                           "\", \"participants\": []}",
                           version + 1));
}

/* A torchrun adds its number, and nothing else. */
static void join_unmarked(const struct peers *p, struct arena *a, const struct document *d) {
    const char *list = strstr(d->text, "\"participants\":"), *end = list ? strchr(list, ']') : NULL;
    if (!end)
        return;
    put_state(
        p, a,
        arena_printf(a, "%.*s%s%d%s", (int)(end - d->text), d->text, d->n ? ", " : "", d->n, end));
}

static void join(const struct peers *p, struct arena *a, const struct document *d) {
    struct document_edit e = {.add_rank = d->n, .waiting = -1, .uid = "peer"};
    if (p->torchrun) {
        join_unmarked(p, a, d);
        return;
    }
    e.uid = arena_printf(a, "peer%d", draw(p, 100));
    e.node = draw(p, 4) ? arena_printf(a, "p%d", d->n) : NULL;
    e.host = draw(p, 3) ? NULL : arena_printf(a, "p%d.example 192.0.2.%d", d->n, d->n);
    edit(p, a, d, &e);
}

/* There is a place for the agent, as a rule. */
static void act_joinable(const struct peers *p, struct arena *a, const struct document *d,
                         int own) {
    static const struct document_edit freeze = {
        .status = "frozen", .add_rank = -1, .begin_keep_alives = true, .waiting = -1};
    bool spares = draw(p, 12) == 0;
    if (d->n && (own >= 0 || spares) && draw(p, 3) == 0)
        edit(p, a, d, &freeze);
    else if (d->n + (own < 0 && !spares) < p->max + odd(p, 8))
        join(p, a, d);
}

static const char *rank_key(const struct peers *p, struct arena *a, const struct document *d,
                            int rank) {
    return arena_printf(a, "%s/v_%" PRId64 "/rank_%d", p->rdzv, d->version, rank);
}

static void act_frozen(const struct peers *p, struct arena *a, const struct document *d, int own) {
    for (int i = 0; i < d->n; i++) {
        struct document_edit e = {.add_rank = -1, .waiting = -1};
        e.add_keep_alive = rank_key(p, a, d, i);
        if (document_has_keep_alive(d, e.add_keep_alive) || (i == own && !odd(p, 20)))
            continue;
        if (d->confirmed + 1 == d->n) {
            e.status = "final";
            e.waiting = odd(p, 10) ? 1 : 0;
        }
        put(p, a, e.add_keep_alive + strlen(p->rdzv) + 1, "", draw(p, 3) ? 10000 : 10);
        edit(p, a, d, &e);
        return;
    }
}

/* ---- what they tell ---- */

static void tell(const struct peers *p, struct arena *a, int64_t version, const char *key,
                 const char *value) {
    put(p, a, arena_printf(a, "v_%" PRId64 "/kv/%s", version, base64_coded(a, key)),
        odd(p, 40) ? "no base64!" : base64_coded(a, value), 0);
}

static const char *role_info(const struct peers *p, struct arena *a, int rank) {
    static const char *const strange[] = {"no JSON", "{}", "[]", "{\"local_world_size\": 0}",
                                          "{\"local_world_size\": 100001}"};
    if (odd(p, 12))
        return strange[draw(p, 5)];
    if (draw(p, 30) == 0)
        return "{\"local_world_size\": 100000}";
    const char *role = draw(p, 2) ? "default" : "other";
    int slots = 1 + draw(p, 3);
    const char *finds = draw(p, 3) ? "true" : "false";
    return arena_printf(
        a, "{\"role\": \"%s\", \"rank\": %d, \"local_world_size\": %d, \"finds_master\": %s}", role,
        rank, slots, finds);
}

static void tell_master(const struct peers *p, struct arena *a, const struct document *d) {
    static const char *const ports[] = {"0", "65536", "-1", "none", "65535", "1"};
    const char *addr = odd(p, 10) ? arena_printf(a, "%0*d", 120 + draw(p, 20), 7) : "peer.example";
    if (draw(p, 2))
        tell(p, a, d->version, "MASTER_ADDR", addr);
    else
        tell(p, a, d->version, "MASTER_PORT", odd(p, 5) ? ports[draw(p, 6)] : "29500");
}

static void tell_end(const struct peers *p, struct arena *a, const struct document *d, int rank) {
    static const char prefix[] = "torchelastic/agent/terminal_state";
    if (!p->newer) {
        tell(p, a, d->version, arena_printf(a, "%s%d", prefix, rank), "1");
        return;
    }
    const char *counts[] = {"1", "2", "3", "1000001", "x"};
    if (draw(p, 3))
        tell(p, a, d->version, arena_printf(a, "%s/num_members", prefix),
             counts[odd(p, 4) ? draw(p, 5) : draw(p, 3)]);
    else
        tell(p, a, d->version, arena_printf(a, "%s/last_member", prefix), "<val_ignored>");
}

static void act_final(const struct peers *p, struct arena *a, const struct document *d, int own) {
    int rank = d->n ? draw(p, d->n) : 0;
    struct document_edit wait = {.add_rank = -1, .waiting = d->waiting + 1};
    int what = draw(p, 24);
    if (what < 9 && rank != own)
        tell(p, a, d->version,
             arena_printf(a, "torchelastic/role_info%s%d", p->newer ? "/" : "", rank),
             role_info(p, a, rank));
    else if (what < 16 && own != 0)
        tell_master(p, a, d);
    else if (what < 20 && rank != own)
        tell_end(p, a, d, rank);
    else if (what == 20 && !p->calm)
        edit(p, a, d, &wait);
    else if (what == 21 && rank != own && !(p->calm && own >= 0))
        drop(p, a, rank_key(p, a, d, rank));
    else if (what == 23 && !p->calm && draw(p, 6) == 0)
        drop(p, a, rank_key(p, a, d, own < 0 ? 0 : own));
    else if (what == 22 && odd(p, 3))
        drop(p, a, arena_printf(a, "%s/active_version", p->rdzv));
}

static void close_run(const struct peers *p, struct arena *a, const struct document *d) {
    static const char *const ends[] = {NULL, NULL, "", "rank 3 failed of something"};
    struct document_edit e = {.status = "closed", .add_rank = -1, .waiting = -1};
    e.end = ends[draw(p, 4)];
    edit(p, a, d, &e);
}

/* No member would do that. */
static void do_harm(const struct peers *p, struct arena *a, const struct document *d, int own) {
    switch (draw(p, 5)) {
    case 0:
        put(p, a, "version_counter", draw(p, 2) ? "many" : "-1", 0);
        break;
    case 1:
        put_state(p, a, draw(p, 2) ? "{\"status\": \"melting\"}" : "no JSON");
        break;
    case 2:
        drop(p, a, rank_key(p, a, d, own < 0 ? 0 : own));
        break;
    case 3:
        put(p, a, "version_counter", "0", 0);
        break;
    default:
        drop(p, a, arena_printf(a, "%s/active_version", p->rdzv));
    }
}

void peers_act(const struct peers *p, const char *own_uid) {
    ARENA_FINI struct arena a = {0};
    struct document d = {0};
    document_read(&d, tree_model_get(p->tree, arena_printf(&a, "%s/active_version", p->rdzv)), 1);
    int own = document_rank(&d, own_uid);
    if (odd(p, 60))
        do_harm(p, &a, &d, own);
    else if (d.status > DOCUMENT_SETUP && d.status < DOCUMENT_CLOSED &&
             draw(p, p->calm ? 600 : 90) == 0)
        close_run(p, &a, &d);
    else if (d.status <= DOCUMENT_SETUP && draw(p, 20) == 0)
        make_state(p, &a);
    else if (d.status == DOCUMENT_JOINABLE)
        act_joinable(p, &a, &d, own);
    else if (d.status == DOCUMENT_FROZEN)
        act_frozen(p, &a, &d, own);
    else if (d.status == DOCUMENT_FINAL)
        act_final(p, &a, &d, own);
    document_fini(&d);
}
