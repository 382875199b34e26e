/* What only the simulation and the exploration make: a launcher has one store, and no second one. */
#include "agent/core/kv_state.h"

#include "base/mem.h"

#include <string.h>

static void copy_leases(struct kv *to, const struct kv *from) {
    to->n_leases = to->cap_leases = from->n_leases;
    to->leases = mem_array(struct kv_lease, from->n_leases + 1);
    if (from->n_leases)
        memcpy(to->leases, from->leases, from->n_leases * sizeof(*to->leases));
}

static struct kv_record *record_copy(struct kv *kv, const struct kv_record *from) {
    struct kv_bytes value = {from->bytes + from->key_len, from->value_len};
    struct kv_record *r = kv_record_new(kv, kv_record_key(from), value);
    r->deleted = from->deleted;
    r->create_revision = from->create_revision;
    r->mod_revision = from->mod_revision;
    r->version = from->version;
    r->lease = from->lease;
    return r;
}

/* Records belong to their store, so that each may give its memory back as it likes; one that is in
 * the array and in the history is one in the copy too. */
struct kv *kv_copy(const struct kv *from) {
    struct kv *kv = kv_new(from->seed, from->history_max);
    kv->revision = from->revision;
    kv->compact_revision = from->compact_revision;
    for (size_t i = 0; i < from->n; i++)
        kv_place_insert(kv, i, record_copy(kv, from->sorted[i]));
    for (size_t i = 0; i < from->history.n; i++) {
        const struct kv_record *old = from->history.records[from->history.first + i];
        size_t at = kv_place_of(kv, kv_record_key(old));
        bool newest = kv_is_at(kv, at, kv_record_key(old)) && from->sorted[at] == old;
        struct kv_record *r = newest ? kv_record_ref(kv->sorted[at]) : record_copy(kv, old);
        kv_log_push(&kv->history, r);
        kv_record_unref(kv, r);
    }
    copy_leases(kv, from);
    return kv;
}
