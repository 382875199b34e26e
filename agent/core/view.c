/* The coordinator's view: the whole incarnation at one revision. */
#include "agent/core/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static size_t member_place(const struct view *v, const char *uid) {
    size_t low = 0, high = v->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (strcmp(v->members[mid]->uid, uid) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct member *view_find(const struct view *v, const char *uid) {
    size_t i = member_place(v, uid);
    return i < v->n && strcmp(v->members[i]->uid, uid) == 0 ? v->members[i] : NULL;
}

static void *grow(void *array, size_t n, size_t *cap, size_t size) {
    if (n < *cap)
        return array;
    *cap = *cap ? *cap * 2 : 8;
    array = realloc(array, *cap * size);
    if (!array)
        abort();
    return array;
}

static struct member *member_get(struct view *v, const char *uid) {
    struct member *m = view_find(v, uid);
    if (m)
        return m;
    m = calloc(1, sizeof(*m));
    if (!m)
        abort();
    memcpy(m->uid, uid, strlen(uid));
    m->rank_now = m->rank_last = -1;
    v->members = grow(v->members, v->n, &v->cap, sizeof(*v->members));
    size_t i = member_place(v, uid);
    memmove(v->members + i + 1, v->members + i, (v->n - i) * sizeof(*v->members));
    v->members[i] = m;
    v->n++;
    return m;
}

const struct round_plan *view_plan(const struct view *v, const char *pid) {
    for (size_t i = 0; i < v->n_plans; i++)
        if (strcmp(v->plans[i].pid, pid) == 0)
            return &v->plans[i];
    return NULL;
}

static struct round_plan *plan_get(struct view *v, const char *pid) {
    struct round_plan *p = (struct round_plan *)view_plan(v, pid);
    if (p)
        return p;
    v->plans = grow(v->plans, v->n_plans, &v->cap_plans, sizeof(*v->plans));
    p = &v->plans[v->n_plans++];
    memset(p, 0, sizeof(*p));
    memcpy(p->pid, pid, sizeof(p->pid));
    return p;
}

static void plan_drop(struct view *v, size_t i) {
    free(v->plans[i].entries);
    v->plans[i] = v->plans[--v->n_plans];
}

void view_fini(struct view *v) {
    for (size_t i = 0; i < v->n; i++)
        free(v->members[i]);
    while (v->n_plans)
        plan_drop(v, 0);
    free(v->members);
    free(v->plans);
    memset(v, 0, sizeof(*v));
}

/* --- one key --- */

static void apply_session(struct view *v, struct member *m, const struct entry *e, int64_t now_ns) {
    if (e->deleted || !m->session || m->created != e->create_revision) {
        v->dirty = true;
        m->joined_ns = now_ns;
    }
    if (!m->session || now_ns - m->heard_ns > v->gap_ns)
        m->beats_since_ns = now_ns;
    m->session = !e->deleted;
    m->created = e->deleted ? 0 : e->create_revision;
    m->beat_revision = e->deleted ? 0 : e->mod_revision;
    m->heard_ns = now_ns;
    m->excused = false;
}

static void apply_plan(struct view *v, const struct entry *e) {
    v->dirty = true;
    if (e->deleted) {
        /* Plans go whole: the first of its entries to go takes it along. */
        for (size_t i = 0; i < v->n_plans; i++)
            if (strcmp(v->plans[i].pid, e->key.pid) == 0)
                plan_drop(v, i);
        return;
    }
    struct round_plan *p = plan_get(v, e->key.pid);
    struct member *m = member_get(v, e->key.uid);
    for (size_t i = 0; i < p->n; i++)
        if (p->entries[i].member == m)
            return;
    p->entries = grow(p->entries, p->n, &p->cap, sizeof(*p->entries));
    p->entries[p->n++] = (struct plan_entry){m, e->value->plan};
}

static void apply_head(struct view *v, const struct entry *e) {
    int64_t last = v->head.last_round;
    v->dirty = true;
    v->head_revision = e->deleted ? 0 : e->mod_revision;
    if (e->deleted)
        memset(&v->head, 0, sizeof(v->head));
    else
        v->head = e->value->head;
    if (v->head.last_round == last)
        return;
    for (size_t i = 0; i < v->n; i++) {
        v->members[i]->acked = false;
        v->members[i]->done = false;
    }
}

static void apply_report(struct view *v, struct member *m, const struct entry *e) {
    if (e->key.round != v->head.last_round || e->deleted)
        return;        /* of an older round, or cleaned away */
    v->changed = true; /* nobody's place */
    if (e->key.kind == KEY_ACK) {
        m->acked = true;
        m->ack_revision = e->create_revision;
        m->ack = e->value->ack;
    } else {
        m->done = true;
        m->done_revision = e->create_revision;
    }
}

static void apply_gone(struct view *v, struct member *m, const struct entry *e) {
    v->changed = true; /* nobody's place */
    m->gone = !e->deleted;
    m->gone_revision = e->deleted ? 0 : e->mod_revision;
}

static void apply_member(struct view *v, struct member *m, const struct entry *e) {
    v->dirty = true;
    m->known = !e->deleted;
    if (!e->deleted)
        m->value = e->value->member;
}

static void apply(struct view *v, const struct entry *e, int64_t now_ns) {
    switch (e->key.kind) {
    case KEY_MEMBER:
        apply_member(v, member_get(v, e->key.uid), e);
        break;
    case KEY_SESSION:
        apply_session(v, member_get(v, e->key.uid), e, now_ns);
        break;
    case KEY_GONE:
        apply_gone(v, member_get(v, e->key.uid), e);
        break;
    case KEY_LEAD:
        v->dirty = true;
        v->lead_revision = e->deleted ? 0 : e->mod_revision;
        break;
    case KEY_PLAN:
        apply_plan(v, e);
        break;
    case KEY_HEAD:
        apply_head(v, e);
        break;
    case KEY_ACK:
    case KEY_DONE:
        apply_report(v, member_get(v, e->key.uid), e);
        break;
    case KEY_CUR:
    case KEY_QUARANTINE:
    case KEY_INCARNATION:
        break;
    }
}

void view_apply(struct view *v, const struct entry *e, int64_t now_ns) {
    if (e->mod_revision < v->revision)
        return;
    v->revision = e->mod_revision;
    apply(v, e, now_ns);
}

/* --- all keys --- */

void view_load(struct view *v, const struct entry *entries, size_t n, int64_t revision,
               int64_t now_ns) {
    struct view old = *v;
    memset(v, 0, sizeof(*v));
    v->gap_ns = old.gap_ns;
    /* Head first: acks and dones are of its last round, whatever their place among the keys. */
    for (size_t i = 0; i < n; i++)
        if (entries[i].key.kind == KEY_HEAD)
            apply(v, &entries[i], now_ns);
    for (size_t i = 0; i < n; i++)
        if (entries[i].key.kind != KEY_HEAD)
            apply(v, &entries[i], now_ns);
    for (size_t i = 0; i < v->n; i++) {
        struct member *m = v->members[i];
        const struct member *before = view_find(&old, m->uid);
        m->heard_ns = now_ns;
        m->joined_ns = m->beats_since_ns = now_ns;
        if (before && before->beat_revision == m->beat_revision) {
            m->heard_ns = before->heard_ns;
            m->excused = before->excused;
        }
        if (before && before->created == m->created)
            m->joined_ns = before->joined_ns;
    }
    v->revision = revision;
    v->dirty = true;
    view_fini(&old);
}

static bool was_in_last(const struct view *v, const char *node) {
    for (size_t i = 0; i < v->n; i++) {
        const struct member *m = v->members[i];
        if (m->rank_last >= 0 && m->known && strcmp(m->value.node, node) == 0)
            return true;
    }
    return false;
}

void view_settle(struct view *v) {
    if (!v->dirty)
        return;
    const struct round_plan *now = view_plan(v, v->head.pid),
                            *last = view_plan(v, v->head.last_pid);
    v->dirty = false;
    v->changed = true;
    for (size_t i = 0; i < v->n; i++)
        v->members[i]->rank_now = v->members[i]->rank_last = -1;
    for (size_t i = 0; now && v->head.pid[0] && i < now->n; i++) {
        now->entries[i].member->place = now->entries[i].value;
        now->entries[i].member->rank_now = now->entries[i].value.group_rank;
    }
    for (size_t i = 0; last && v->head.last_pid[0] && i < last->n; i++)
        last->entries[i].member->rank_last = last->entries[i].value.group_rank;
    for (size_t i = 0; v->head.last_round && i < v->n; i++) {
        struct member *m = v->members[i];
        m->returned = m->session && m->rank_last < 0 && was_in_last(v, m->value.node);
    }
}
