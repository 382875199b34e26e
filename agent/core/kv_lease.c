/* A rendezvous has one lease per run: a short array is searched quicker than anything else. */
#include "agent/core/kv_state.h"

#include "base/rand.h"

#include <stdlib.h>

enum { TTL_MAX_S = 9000000 };

static struct kv_lease *lease_find(const struct kv *kv, int64_t id) {
    for (size_t i = 0; i < kv->n_leases; i++)
        if (kv->leases[i].id == id)
            return &kv->leases[i];
    return NULL;
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
    kv->leases[kv->n_leases++] = (struct kv_lease){*ret_id, ttl_ns, now_ns + ttl_ns, false};
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

/* A lease that ends, and its place among those that do. */
struct kv_lease_ending {
    int64_t lease;
    size_t order;
};

static int compare_ending(const void *a, const void *b) {
    int64_t p = ((const struct kv_lease_ending *)a)->lease,
            q = ((const struct kv_lease_ending *)b)->lease;
    return (p > q) - (p < q);
}

/* A record that goes with its lease. */
struct leased {
    size_t lease, order;
    struct kv_record *record;
};

static int compare_leased(const void *a, const void *b) {
    const struct leased *p = a, *q = b;
    int c = (p->lease > q->lease) - (p->lease < q->lease);
    return c ? c : (p->order > q->order) - (p->order < q->order);
}

/* Takes them out of the array, in one go however many leases there are. */
static size_t take_leased(struct kv *kv, const struct kv_lease_ending *endings, size_t n,
                          struct leased *ret) {
    size_t kept = 0, taken = 0;
    for (size_t i = 0; i < kv->n; i++) {
        struct kv_record *r = kv->sorted[i];
        struct kv_lease_ending key = {.lease = r->lease};
        const struct kv_lease_ending *e =
            r->lease ? bsearch(&key, endings, n, sizeof(key), compare_ending) : NULL;
        if (e)
            ret[taken++] = (struct leased){e->order, i, r};
        else
            kv->sorted[kept++] = r;
    }
    kv->n = kept;
    return taken;
}

/* Deletes what each of these leases holds, in one revision each. */
static void delete_leased(struct kv *kv, const int64_t *leases, size_t n) {
    struct leased *gone = malloc((kv->n + 1) * sizeof(*gone));
    struct kv_lease_ending *endings = malloc((n + 1) * sizeof(*endings));
    if (!gone || !endings)
        abort();
    for (size_t i = 0; i < n; i++)
        endings[i] = (struct kv_lease_ending){leases[i], i};
    qsort(endings, n, sizeof(*endings), compare_ending);
    size_t taken = take_leased(kv, endings, n, gone);
    free(endings);
    qsort(gone, taken, sizeof(*gone), compare_leased);
    for (size_t i = 0; i < taken; i++) {
        kv_record_delete(kv, gone[i].record, kv->revision + 1);
        if (i + 1 == taken || gone[i + 1].lease != gone[i].lease) {
            kv->revision++;
            kv_watch_trim(kv);
        }
    }
    free(gone);
}

int kv_lease_revoke(struct kv *kv, int64_t id, struct err *err) {
    struct kv_lease *l = lease_find(kv, id);
    if (!l)
        return err_say(err, KV_LEASE_NOT_FOUND, "%s", kv_text(KV_LEASE_NOT_FOUND));
    *l = kv->leases[--kv->n_leases];
    delete_leased(kv, &id, 1);
    return 0;
}

static int compare_ids(const void *a, const void *b) {
    int64_t p = ((const struct kv_lease *)a)->id, q = ((const struct kv_lease *)b)->id;
    return (p > q) - (p < q);
}

static int compare_kept(const void *a, const void *b) {
    const struct kv_lease *p = a, *q = b;
    int64_t p_ns = p->ends_ns - p->ttl_ns, q_ns = q->ends_ns - q->ttl_ns;
    int c = (p->spared > q->spared) - (p->spared < q->spared);
    return c ? c : p_ns != q_ns ? (p_ns > q_ns) - (p_ns < q_ns) : compare_ids(a, b);
}

static void mark_spared(struct kv *kv, bool (*spares)(struct kv_bytes key)) {
    qsort(kv->leases, kv->n_leases, sizeof(*kv->leases), compare_ids);
    for (size_t i = 0; i < kv->n_leases; i++)
        kv->leases[i].spared = false;
    for (size_t i = 0; i < kv->n; i++) {
        const struct kv_record *r = kv->sorted[i];
        struct kv_lease key = {.id = r->lease};
        struct kv_lease *l =
            r->lease ? bsearch(&key, kv->leases, kv->n_leases, sizeof(key), compare_ids) : NULL;
        if (l && !l->spared)
            l->spared = spares(kv_record_key(r));
    }
}

size_t kv_lease_drop(struct kv *kv, size_t n, bool (*spares)(struct kv_bytes key)) {
    size_t dropped = 0;
    mark_spared(kv, spares);
    qsort(kv->leases, kv->n_leases, sizeof(*kv->leases), compare_kept);
    while (dropped < n && dropped < kv->n_leases && !kv->leases[dropped].spared)
        dropped++;
    int64_t *ids = malloc((dropped + 1) * sizeof(*ids));
    if (!ids)
        abort();
    for (size_t i = 0; i < dropped; i++)
        ids[i] = kv->leases[i].id;
    kv->n_leases -= dropped;
    memmove(kv->leases, kv->leases + dropped, kv->n_leases * sizeof(*kv->leases));
    delete_leased(kv, ids, dropped);
    free(ids);
    return dropped;
}

/* So many at a time: each look through the keys is for all of them. */
enum { EXPIRE_MAX = 1024 };

static size_t take_expired(struct kv *kv, int64_t now_ns, int64_t ret[EXPIRE_MAX]) {
    size_t n = 0;
    for (size_t i = 0; i < kv->n_leases && n < EXPIRE_MAX;) {
        struct kv_lease *l = &kv->leases[i];
        if (l->ends_ns > now_ns) {
            i++;
            continue;
        }
        ret[n++] = l->id;
        *l = kv->leases[--kv->n_leases];
    }
    return n;
}

int64_t kv_lease_expire(struct kv *kv, int64_t now_ns) {
    int64_t next_ns = INT64_MAX, expired[EXPIRE_MAX];
    for (size_t n; (n = take_expired(kv, now_ns, expired)) > 0;)
        delete_leased(kv, expired, n);
    for (size_t i = 0; i < kv->n_leases; i++)
        next_ns = kv->leases[i].ends_ns < next_ns ? kv->leases[i].ends_ns : next_ns;
    return next_ns;
}
