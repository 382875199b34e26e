/* What agent/core/canonical.h says of a core is true of any job. Of the jobs that are searched here
 * more is known: a number that is compared with nothing in them is left out. */
#include "base/mem.h"
#include "harness/explore/world.h"

#include "agent/core/state.h"

#include <stdlib.h>
#include <string.h>

/* Acks, dones and certificates are compared with those of the same member alone (budget.c): in
 * which order two members report is no part of a state. A certificate is also compared with what a
 * coordinator has seen. */
static uint64_t reports_of(const char *uid) {
    return canonical_mix(canonical_beats_of(uid), 1);
}

/* Which of its revisions are ever asked for depends on the key. */
void likeness_revisions(struct canonical *c, const struct store_key *key, int64_t create,
                        int64_t mod) {
    switch (key->kind) {
    case KEY_SESSION:
        canonical_order(c, CANONICAL_REVISION, create);
        canonical_order(c, canonical_beats_of(key->uid), mod);
        break;
    case KEY_ACK:
    case KEY_DONE:
        canonical_order(c, reports_of(key->uid), create);
        break;
    case KEY_GONE:
        canonical_order(c, reports_of(key->uid), mod);
        canonical_order(c, CANONICAL_REVISION, mod);
        break;
    case KEY_CUR:
    case KEY_HEAD:
    case KEY_LEAD:
        canonical_order(c, CANONICAL_REVISION, mod);
        break;
    case KEY_MEMBER: /* as that of its session */
    case KEY_PLAN:
    case KEY_QUARANTINE:
    case KEY_INCARNATION:
        break;
    }
}

static void pair_see(void *arg, const struct kv_pair *p) {
    struct canonical *c = arg;
    struct store_key key;
    union value value;
    if (!key_parse(p->key.data, p->key.len, "job", &key))
        return;
    memset(&value, 0, sizeof(value));
    memcpy(&value, p->value.data, p->value.len);
    canonical_key(c, &key);
    canonical_value(c, key.kind, &value);
    likeness_revisions(c, &key, p->create_revision, p->mod_revision);
}

void likeness_store(struct kv *kv, struct canonical *seen) {
    kv_each(kv, pair_see, seen);
}

static uint64_t order(int64_t a, int64_t b) {
    return a < b ? 1 : a == b ? 2 : 3;
}

/* Instead of when a member reported: in which order. What is heard later is later than all. */
static void member_hide(struct member *m, struct canonical *seen) {
    int64_t ack = m->acked ? m->ack_revision : 0, done = m->done ? m->done_revision : 0;
    seen->hash =
        canonical_mix(seen->hash, order(m->gone_revision, ack) |
                                      order(m->gone_revision, done) << 2 | order(ack, done) << 4);
    m->gone_revision = m->ack_revision = m->done_revision = 0;
}

/* Since when a coordinator leads matters before the first round alone. */
static void coordinator_hide(struct coordinator *c) {
    if (c->view.head.last_round)
        c->since_ns = 0;
}

void likeness_core(const struct rendezvous *r, uint64_t ids, struct canonical *seen) {
    struct rendezvous shown = *r;
    struct view *v = &shown.coordinator.view;
    struct member *members = mem_array(struct member, v->n + 1);
    struct member **all = mem_array(struct member *, v->n + 1);
    for (size_t i = 0; i < v->n; i++) {
        members[i] = *v->members[i];
        all[i] = &members[i];
        member_hide(all[i], seen);
    }
    v->members = all;
    coordinator_hide(&shown.coordinator);
    rendezvous_canonical(&shown, ids, seen);
    free(members);
    free(all);
}
