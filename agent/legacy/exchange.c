/* What the members of a final state tell each other before they start: how many workers each has,
 * of which rank 0's node publishes where the master is. Torchrun calls these keys a store.
 *
 * Torchrun's master is rank 0's host by its full name, whether the others know that or not. Here a
 * host that has one says so in the state; in a round of rankrun agents alone each looks it up and
 * tells whether it found it, and only then the master is published: the name where all have found
 * it, else the address. */
#include "agent/legacy/state.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/str.h"

#include <string.h>

const char *exchange_get(struct legacy *l, const char *key) {
    const struct mirror_key *k = mirror_find(&l->mirror, path_kv(l, l->round.version, key));
    return k ? base64_plain(&l->arena, k->value) : NULL;
}

void exchange_put(struct legacy *l, const char *key, const char *value) {
    flow_put(l, path_kv(l, l->round.version, key), base64_coded(&l->arena, value), 0);
}

void exchange_add(struct legacy *l, const char *key, int64_t value) {
    const char *path = path_kv(l, l->round.version, key);
    const struct mirror_key *k = mirror_find(&l->mirror, path);
    const char *text = arena_printf(&l->arena, "%lld", (long long)value);
    struct tree_request q = {.verb = TREE_PUT,
                             .key = path,
                             .value = base64_coded(&l->arena, text),
                             .compare = k ? arena_strdup(&l->arena, k->value) : NULL,
                             .exist = k ? TREE_ANY : TREE_ABSENT};
    flow_send(l, FLOW_ADD, &q);
}

static bool put_if_absent(struct legacy *l, const char *key, const char *value) {
    if (exchange_get(l, key))
        return false;
    exchange_put(l, key, value);
    return true;
}

static const char *ranked(struct legacy *l, const char *fmt, int rank) {
    return arena_printf(&l->arena, "torchelastic/role_info%s%d", fmt, rank);
}

/* Python's json.dumps, which torchrun's readers do not insist on. */
static const char *own_info(struct legacy *l) {
    BUF_FINI struct buf b = {0};
    struct json_writer w = {.out = &b};
    json_object(&w, NULL);
    json_put_string(&w, "role", l->config.role);
    json_put_i64(&w, "rank", l->round.rank);
    json_put_i64(&w, "local_world_size", l->config.slots);
    if (l->round.host[0])
        json_put_bool(&w, "finds_master", l->round.is_found);
    json_end_object(&w);
    return arena_strdup(&l->arena, buf_str(&b));
}

struct info {
    const char *role;
    int64_t slots;
    bool finds_master;
};

/* Of one member; a torch from 2.4 on has a slash before the rank. False: not told yet, or not to be
 * used. */
static bool read_info(struct legacy *l, int rank, struct info *ret) {
    const char *text = exchange_get(l, ranked(l, "/", rank));
    struct err err;
    l->round.newer |= text && rank != l->round.rank;
    if (!text)
        text = exchange_get(l, ranked(l, "", rank));
    if (!text)
        return false;
    const struct json *j = json_parse(&l->arena, text, strlen(text), &err);
    ret->role = json_get_string(j, "role", "");
    ret->slots = json_get_i64(j, "local_world_size", 0);
    ret->finds_master = json_get_bool(j, "finds_master", false);
    if (ret->slots >= 1 && ret->slots <= 100000)
        return true;
    legacy_exit(l, 1, NULL,
                "node %d of round %lld tells of itself %.200s: no role_info of a torch "
                "that is known here",
                rank, (long long)l->round.version, text);
    return false;
}

/* All of them are looked at, also when one is missing: of a newer torch one must know soon. */
static bool read_all(struct legacy *l, struct info *infos) {
    bool all = true;
    for (int i = 0; i < l->round.n; i++)
        all &= read_info(l, i, &infos[i]);
    return all;
}

/* Where the workers of a node begin among all, and among those of its role. */
static void place(const struct legacy_round *r, const struct info *infos, int rank,
                  struct legacy_round *ret) {
    ret->rank_base = ret->world = ret->role_rank_base = ret->role_world = 0;
    for (int i = 0; i < r->n; i++) {
        int slots = (int)infos[i].slots;
        int of_role = str_eq(infos[i].role, infos[rank].role) ? slots : 0;
        ret->world += slots;
        ret->role_world += of_role;
        ret->rank_base += i < rank ? slots : 0;
        ret->role_rank_base += i < rank ? of_role : 0;
    }
}

/* From torch 2.4 on rank 0's agent tells all others their ranks. */
static bool assign(struct legacy *l, const struct info *infos) {
    struct legacy_round p;
    if (!l->round.newer || l->round.rank != 0)
        return false;
    for (int i = 0; i < l->round.n; i++) {
        place(&l->round, infos, i, &p);
        if (put_if_absent(l, arena_printf(&l->arena, "torchelastic/assigned_ranks/%d", i),
                          arena_printf(&l->arena, "[%d, %d, %d, %d]", p.rank_base, p.world,
                                       p.role_rank_base, p.role_world)))
            return true;
    }
    return false;
}

/* The name of rank 0's host where all have found it; else the address that its port came with. */
static const char *master_of(struct legacy *l, const struct info *infos) {
    const struct legacy_round *r = &l->round;
    bool all = r->host[0] && infos;
    for (int i = 0; all && i < r->n; i++)
        all = infos[i].finds_master;
    if (!all)
        return r->addr;
    return arena_printf(&l->arena, "%.*s", (int)strcspn(r->host, " "), r->host);
}

/* The port is held bound until the workers start. infos: NULL, or of all members. */
static bool publish_master(struct legacy *l, const struct info *infos) {
    struct legacy_round *r = &l->round;
    if (r->rank != 0 || (exchange_get(l, "MASTER_ADDR") && exchange_get(l, "MASTER_PORT")))
        return false;
    if (!r->addr[0]) {
        if (!r->port_asked)
            legacy_add(l, ACTION_NEED_PORT);
        r->port_asked = true;
        return true;
    }
    return put_if_absent(l, "MASTER_ADDR", master_of(l, infos)) ||
           put_if_absent(l, "MASTER_PORT", arena_printf(&l->arena, "%d", r->port));
}

/* True until it is known whether the name of rank 0's host is known here. */
static bool look_up_master(struct legacy *l) {
    struct legacy_round *r = &l->round;
    if (!r->looks_up) {
        struct action *a = legacy_add(l, ACTION_LOOK_UP);
        a->look_up.host = arena_strdup(&l->arena, r->host);
        a->look_up.round = r->version;
    }
    r->looks_up = true;
    return !r->looked_up;
}

static void start(struct legacy *l, const char *addr, int port) {
    struct legacy_round *r = &l->round;
    struct round_spec *s = arena_new(&l->arena, struct round_spec);
    *s = (struct round_spec){
        .run_id = l->config.run_id,
        .round = r->version,
        .group_rank = r->rank,
        .group_world = r->n,
        .rank_base = r->rank_base,
        .local_world = l->config.slots,
        .world = r->world,
        .role = l->config.role,
        .role_rank_base = r->role_rank_base,
        .role_world = r->role_world,
        .master_addr = addr,
        .master_port = port,
        .restart_count = l->spent,
        .max_restarts = l->config.max_restarts,
        .deadline_required = true,
        .fence_ns = l->alive.deadline_ns,
        .hard_ns = l->alive.deadline_ns + HARD_AFTER_NS,
    };
    l->group = (struct legacy_group){
        .there = true, .ran = true, .workers = l->config.slots, .fence_ns = l->alive.deadline_ns};
    legacy_claim(l, CLAIM_START, r->version);
    legacy_add(l, ACTION_START)->start = s;
}

/* What this node has to tell is told, true: something was asked for. Where the master has no name it
 * comes before all else: a torch from 2.4 on tells nothing of itself before it knows the master. */
static bool tell_own(struct legacy *l) {
    int rank = l->round.rank;
    bool named = l->round.host[0];
    return (named ? look_up_master(l) : publish_master(l, NULL)) ||
           put_if_absent(l, ranked(l, "", rank), own_info(l)) ||
           (l->round.newer && put_if_absent(l, ranked(l, "/", rank), own_info(l)));
}

static void start_if_known(struct legacy *l) {
    const char *addr = exchange_get(l, "MASTER_ADDR"), *text = exchange_get(l, "MASTER_PORT");
    int64_t port = 0;
    if (!addr || !text || l->now.boottime_ns >= l->alive.deadline_ns)
        return; /* in the last case the key is due to be renewed, or lost */
    if (str_to_i64(text, 1, 65535, &port) && strlen(addr) < NAME_SIZE)
        start(l, addr, (int)port);
    else
        legacy_exit(l, 1, NULL, "rank 0's node of round %lld published %.100s:%.20s as the master",
                    (long long)l->round.version, addr, text);
}

void exchange_advance(struct legacy *l) {
    struct info *infos = arena_array(&l->arena, struct info, (size_t)l->round.n);
    if (!call_may(l, CALL_FLOW))
        return;
    bool all = read_all(l, infos);
    if (l->over || tell_own(l) || !all || publish_master(l, infos))
        return;
    place(&l->round, infos, l->round.rank, &l->round);
    const char *fin = arena_printf(&l->arena, "%s.FIN", ranked(l, "", l->round.rank));
    if (!assign(l, infos) && !put_if_absent(l, fin, "FIN"))
        start_if_known(l);
}
