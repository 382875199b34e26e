#include "agent/core/kv_state.h"

#include "agent/base/rand.h"

#include <stdlib.h>

/* A rendezvous has one lease per run: a short array is searched quicker than anything else. */

enum { TTL_MAX_S = 9000000 };

static struct kv_lease *lease_find(const struct kv *kv, int64_t id) {
    for (size_t i = 0; i < kv->n_leases; i++)
        if (kv->leases[i].id == id)
            return &kv->leases[i];
    return NULL;
}

void kv_lease_copy(struct kv *to, const struct kv *from) {
    to->n_leases = to->cap_leases = from->n_leases;
    to->leases = malloc((from->n_leases + 1) * sizeof(*to->leases));
    if (!to->leases)
        abort();
    if (from->n_leases)
        memcpy(to->leases, from->leases, from->n_leases * sizeof(*to->leases));
}

bool kv_lease_exists(const struct kv *kv, int64_t id) {
    return lease_find(kv, id) != NULL;
}

size_t kv_lease_count(const struct kv *kv) {
    return kv->n_leases;
}

static int64_t id_draw(struct kv *kv) {
    struct rand r;
    int64_t id;
    do {
        rand_init(&r, kv->seed++);
        id = (int64_t)(rand_u64(&r) >> 1);
    } while (!id || lease_find(kv, id));
    return id;
}

int kv_lease_grant(struct kv *kv, int64_t id, int64_t ttl_s, int64_t now_ns, int64_t *ret_id,
                   struct err *err) {
    if (id && lease_find(kv, id))
        return err_say(err, KV_LEASE_EXISTS, "%s", kv_text(KV_LEASE_EXISTS));
    if (ttl_s > TTL_MAX_S)
        return err_say(err, KV_LEASE_TTL_TOO_LARGE, "%s", kv_text(KV_LEASE_TTL_TOO_LARGE));
    if (kv->n_leases == kv->cap_leases) {
        kv->cap_leases = kv->cap_leases ? kv->cap_leases * 2 : 4;
        kv->leases = realloc(kv->leases, kv->cap_leases * sizeof(*kv->leases));
        if (!kv->leases)
            abort();
    }
    int64_t ttl_ns = (ttl_s < 1 ? 1 : ttl_s) * 1000000000;
    *ret_id = id ? id : id_draw(kv);
    kv->leases[kv->n_leases++] = (struct kv_lease){*ret_id, ttl_ns, now_ns + ttl_ns};
    return 0;
}

int kv_lease_keepalive(struct kv *kv, int64_t id, int64_t now_ns, int64_t *ret_ttl_s,
                       struct err *err) {
    struct kv_lease *l = lease_find(kv, id);
    if (!l)
        return err_say(err, KV_LEASE_NOT_FOUND, "%s", kv_text(KV_LEASE_NOT_FOUND));
    l->ends_ns = now_ns + l->ttl_ns;
    *ret_ttl_s = l->ttl_ns / 1000000000;
    return 0;
}

int kv_lease_revoke(struct kv *kv, int64_t id, struct err *err) {
    struct kv_lease *l = lease_find(kv, id);
    if (!l)
        return err_say(err, KV_LEASE_NOT_FOUND, "%s", kv_text(KV_LEASE_NOT_FOUND));
    *l = kv->leases[--kv->n_leases];
    kv_delete_leased(kv, id);
    return 0;
}

int64_t kv_lease_expire(struct kv *kv, int64_t now_ns) {
    int64_t next_ns = INT64_MAX;
    for (size_t i = 0; i < kv->n_leases;) {
        struct kv_lease *l = &kv->leases[i];
        if (l->ends_ns <= now_ns) {
            kv_lease_revoke(kv, l->id, NULL);
            continue;
        }
        next_ns = l->ends_ns < next_ns ? l->ends_ns : next_ns;
        i++;
    }
    return next_ns;
}
