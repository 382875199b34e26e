/* Who is to be in the next round, and in which order. Survivors of the last round come first, in
 * their order: rank 0 is the longest-serving one. Then nodes that were in it and are back - their
 * disk has the state -, then all others in the order of their joining. What is over max waits. In a
 * job with fixed ranks each has its seat; who comes for one that is taken waits too.
 *
 * A spare (--standby) waits even below max: it is taken up to min, or up to the size of the last
 * round when that has lost somebody. Once it was in a round it is a member like any other. */
#include "agent/core/state.h"

#include <stdlib.h>
#include <string.h>

enum candidate_class { SEATED, SURVIVOR, RETURNED, NEW, SPARE };

struct candidate {
    struct member *member;
    enum candidate_class class;
    int64_t order;
};

static int compare_candidates(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Within a seat a survivor of the last round is before all others. */
static struct candidate seated(struct member *m) {
    int64_t order = (int64_t)m->value.seat << 40;
    return (struct candidate){m, SEATED, order + (m->rank_last >= 0 ? 0 : m->created)};
}

static struct candidate candidate_of(struct member *m) {
    if (m->value.seat)
        return seated(m);
    if (m->rank_last >= 0)
        return (struct candidate){m, SURVIVOR, m->rank_last};
    if (m->value.want == WANT_STANDBY)
        return (struct candidate){m, SPARE, m->created};
    return (struct candidate){m, m->returned ? RETURNED : NEW, m->created};
}

/* A merge sort: the C library's may allocate and is not the same everywhere. */
static void sort(struct candidate *c, size_t n, struct candidate *scratch) {
    if (n < 2)
        return;
    size_t half = n / 2, i = 0, j = half, k = 0;
    sort(c, half, scratch);
    sort(c + half, n - half, scratch);
    while (i < half || j < n) {
        bool left = j == n || (i < half && compare_candidates(&c[i], &c[j]) <= 0);
        scratch[k++] = left ? c[i++] : c[j++];
    }
    memcpy(c, scratch, n * sizeof(*c));
}

/* Of the candidates in their order, the last of them spares. */
static size_t limit(const struct rendezvous *r, size_t n, size_t spares) {
    size_t members = n - spares, max = (size_t)r->cur.max, least = (size_t)r->cur.min;
    size_t last = (size_t)r->coordinator.view.head.last_n;
    least = last > least ? last : least;
    n = members < least && n > least ? least : members < least ? n : members;
    return n < max ? n : max;
}

/* Most often who lives is who is in the plan: then there is nobody to be chosen or put in order,
 * and a thousand acks cost no thousand sorts. */
static bool as_planned(struct rendezvous *r, struct wanted *ret) {
    const struct view *v = &r->coordinator.view;
    bool planned = v->head.phase == HEAD_FORM || v->head.phase == HEAD_RUN;
    for (size_t i = 0; planned && i < v->n; i++) {
        const struct member *m = v->members[i];
        planned = (m->session && m->known) == (m->rank_now >= 0) && m->rank_now < v->head.n;
        ret->n += m->rank_now >= 0;
    }
    if (!planned || ret->n != (size_t)v->head.n)
        return false;
    ret->members = arena_array(&r->arena, struct member *, ret->n);
    for (size_t i = 0; i < v->n; i++)
        if (v->members[i]->rank_now >= 0)
            ret->members[v->members[i]->rank_now] = v->members[i];
    return true;
}

/* Before the first round, while there are fewer than min, they are only counted. */
static bool too_few(const struct rendezvous *r, struct wanted *ret) {
    const struct view *v = &r->coordinator.view;
    size_t n = 0;
    if (v->head.phase != HEAD_NONE)
        return false;
    for (size_t i = 0; i < v->n; i++) {
        const struct member *m = v->members[i];
        if (m->session && m->known && (m->value.seat || m->value.want == WANT_STANDBY))
            return false;
        n += m->session && m->known;
    }
    ret->n = n;
    return n < (size_t)r->cur.min;
}

struct wanted membership_wanted(struct rendezvous *r) {
    const struct view *v = &r->coordinator.view;
    struct wanted few = {0}, planned = {0};
    if (too_few(r, &few))
        return few;
    if (as_planned(r, &planned))
        return planned;
    struct candidate *c = arena_array(&r->arena, struct candidate, 2 * v->n + 1);
    struct wanted w = {0};
    size_t n = 0, spares = 0;
    for (size_t i = 0; i < v->n; i++) {
        struct member *m = v->members[i];
        if (!m->session || !m->known)
            continue;
        c[n++] = candidate_of(m);
        spares += c[n - 1].class == SPARE;
    }
    sort(c, n, c + v->n);
    size_t most = limit(r, n, spares);
    w.members = arena_array(&r->arena, struct member *, n);
    for (size_t i = 0; i < n && w.n < most; i++) {
        struct member *m = c[i].member;
        if (m->value.seat && w.n && w.members[w.n - 1]->value.seat == m->value.seat)
            w.doubled = m->value.seat;
        else
            w.members[w.n++] = m;
    }
    return w;
}

static bool remembers(const struct rendezvous *r, const struct member *m) {
    return m->known && m->value.past.inc[0] && !r->cur.former[0];
}

static const struct past *latest_past(const struct rendezvous *r) {
    const struct view *v = &r->coordinator.view;
    const struct past *latest = NULL;
    for (size_t i = 0; i < v->n; i++)
        if (remembers(r, v->members[i]) &&
            (!latest || v->members[i]->value.past.round > latest->round))
            latest = &v->members[i]->value.past;
    return latest;
}

/* Who has joined again has no worker of before: so when all of that round have, nobody else can. */
struct memory membership_memory(const struct rendezvous *r) {
    const struct view *v = &r->coordinator.view;
    const struct past *latest = latest_past(r);
    struct memory ret = {0};
    int here = 0;
    if (!latest)
        return ret;
    ret.round = latest->round;
    for (size_t i = 0; i < v->n; i++) {
        const struct member *m = v->members[i];
        const struct past *p = &m->value.past;
        if (!remembers(r, m))
            continue;
        ret.restarts = p->restarts > ret.restarts ? p->restarts : ret.restarts;
        ret.missing |= strcmp(p->inc, latest->inc) != 0;
        here += m->session && p->member && p->round == latest->round;
    }
    ret.missing |= here < latest->n;
    return ret;
}

/* In RUN a member that is done may go: its loss undoes nothing. */
bool membership_lost(const struct view *v) {
    for (size_t i = 0; i < v->n; i++) {
        const struct member *m = v->members[i];
        bool excused = v->head.phase == HEAD_RUN && m->done;
        if (m->rank_now >= 0 && !m->session && !excused)
            return true;
    }
    return false;
}

const struct member *membership_missed(const struct view *v) {
    for (size_t i = 0; i < v->n; i++) {
        const struct member *m = v->members[i];
        if (m->rank_last >= 0 && !m->session && !m->done)
            return m;
    }
    return NULL;
}

bool membership_newcomers(const struct wanted *w, int64_t *ret_joined_ns) {
    bool any = false;
    *ret_joined_ns = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct member *m = w->members[i];
        if (m->rank_now >= 0)
            continue;
        any = true;
        *ret_joined_ns = m->joined_ns > *ret_joined_ns ? m->joined_ns : *ret_joined_ns;
    }
    return any;
}
