#include "harness/crash/search.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/crash/barriers.h"

#include <stdlib.h>
#include <string.h>

size_t crash_search_node(const struct crash_search *s, const struct crash_way *way) {
    if (!way->node || !*way->node)
        return CRASH_NONE;
    for (size_t i = 0; i < s->changes.nodes_n; i++)
        if (str_eq(s->changes.nodes[i], way->node))
            return i;
    return CRASH_NONE;
}

bool crash_search_commits(const struct crash_search *s, size_t point) {
    if (point <= s->changes.had)
        return false;
    enum disk_deed deed = s->changes.record->v[point - 1].deed;
    if (barriers_is(&s->changes.record->v[point - 1]))
        return point == s->changes.record->n;
    return point == s->changes.record->n || deed == DISK_SYNC || deed == DISK_SYNC_DATA ||
           deed == DISK_SYNC_ALL || deed == DISK_RENAME || deed == DISK_EXCHANGE ||
           deed == DISK_LINK || deed == DISK_MARK;
}

/* ---- ways of a state ---- */

static bool same_losses(const struct crash_way *a, const struct crash_way *b) {
    if (a->losses_n != b->losses_n)
        return false;
    for (size_t i = 0; i < a->losses_n; i++)
        if (a->losses[i].operation != b->losses[i].operation ||
            a->losses[i].part != b->losses[i].part || a->losses[i].from != b->losses[i].from ||
            a->losses[i].to != b->losses[i].to)
            return false;
    return true;
}

static bool same_victim(const struct crash_way *a, const struct crash_way *b) {
    return a->point == b->point && a->others_go_on == b->others_go_on && a->rank == b->rank &&
           a->pid == b->pid && a->taken == b->taken && str_eq(a->node, b->node);
}

size_t crash_search_lost(const struct crash_way *way) {
    size_t n = 0;
    for (size_t i = 0; i < way->losses_n; i++)
        n += !i || way->losses[i].operation != way->losses[i - 1].operation;
    return n;
}

/* 0: whole; 1: zeros are left; 2: part of a write is there. */
static int ragged(const struct crash_search *s, const struct crash_way *way) {
    int r = 0;
    for (size_t i = 0; i < way->losses_n; i++) {
        const struct crash_loss *l = &way->losses[i];
        const struct crash_change *g = &s->changes.v[l->operation];
        if (l->part == CRASH_BYTES && (l->from > g->at || l->to < g->end))
            return 2;
        bool sized = i + 1 < way->losses_n && l[1].operation == l->operation;
        if (l->part == CRASH_BYTES && g->end > g->size_was && !sized)
            r = 1;
    }
    return r;
}

static int order(size_t a, size_t b) {
    return a == b ? 0 : a < b ? -1 : 1;
}

static bool is_of_node(const struct crash_way *way) {
    return way->node && *way->node;
}

int crash_search_compare(const struct crash_search *s, const struct crash_way *a,
                         const struct crash_way *b) {
    int r = order(crash_search_lost(a), crash_search_lost(b));
    r = r ? r : ragged(s, a) - ragged(s, b);
    r = r ? r : (int)a->others_go_on - (int)b->others_go_on;
    r = r ? r : order(a->taken > 0, b->taken > 0);
    r = r ? r
          : (a->death == CRASH_PROCESS ? 0 : (int)!is_of_node(a)) -
                (b->death == CRASH_PROCESS ? 0 : (int)!is_of_node(b));
    r = r ? r : (int)a->death - (int)b->death;
    return r ? r : order(a->point, b->point);
}

/* As small, but for where and how. */
static bool no_larger(const struct crash_way *a, const struct crash_way *b) {
    return crash_search_lost(a) <= crash_search_lost(b) && a->losses_n <= b->losses_n;
}

static bool is_known(struct crash_found *f, const struct crash_way *way) {
    for (size_t i = 0; i < f->state.ways_n; i++) {
        struct crash_way *w = &f->ways[i];
        if (!same_victim(w, way) || w->death > way->death)
            continue;
        if ((w->models & way->models) == way->models && no_larger(w, way))
            return true;
        if (w->death == way->death && same_losses(w, way)) {
            w->models |= way->models;
            return true;
        }
    }
    return false;
}

static void drop_larger(struct crash_found *f, const struct crash_way *way) {
    size_t n = 0;
    for (size_t i = 0; i < f->state.ways_n; i++) {
        struct crash_way *w = &f->ways[i];
        if (same_victim(w, way) && w->death >= way->death && no_larger(way, w))
            w->models &= ~way->models;
        if (w->models)
            f->ways[n++] = *w;
    }
    f->state.ways_n = n;
}

static void add_way(struct crash_search *s, struct crash_found *f, const struct crash_way *way) {
    struct crash_way w = *way;
    if (is_known(f, way))
        return;
    drop_larger(f, way);
    s->losses += w.losses_n;
    if (w.losses_n) {
        struct crash_loss *l = arena_array(&s->arena, struct crash_loss, w.losses_n);
        memcpy(l, way->losses, w.losses_n * sizeof(*l));
        w.losses = l;
    }
    mem_push(f->ways, f->state.ways_n) = w;
    for (size_t i = f->state.ways_n - 1;
         i && crash_search_compare(s, &f->ways[i - 1], &f->ways[i]) > 0; i--) {
        w = f->ways[i];
        f->ways[i] = f->ways[i - 1];
        f->ways[i - 1] = w;
    }
    f->state.ways = f->ways;
}

/* ---- states ---- */

static size_t by_seen(const struct crash_search *s, uint64_t *ret_hash) {
    const struct crash_image *m = &s->image;
    size_t at = 0, i, bytes = m->seen_n * sizeof(*m->seen);
    *ret_hash = crash_index_hash(0, m->seen, bytes);
    while ((i = crash_index_next(&s->by_seen, *ret_hash, &at)) != CRASH_NONE)
        if (s->v[i].seen_n == m->seen_n && (!bytes || !memcmp(s->v[i].seen, m->seen, bytes)))
            return i;
    return CRASH_NONE;
}

static size_t add_state(struct crash_search *s, uint64_t seen_hash) {
    struct crash_found f = {.seen_n = s->image.seen_n, .nth = s->n};
    f.seen = mem_array(size_t, f.seen_n);
    if (f.seen_n)
        memcpy(f.seen, s->image.seen, f.seen_n * sizeof(*f.seen));
    f.state.class = CRASH_CLASSES_N;
    mem_push(s->v, s->n) = f;
    crash_index_put(&s->by_seen, seen_hash, s->n - 1);
    return s->n - 1;
}

static size_t find(struct crash_search *s, const struct crash_way *way, bool add) {
    uint64_t seen_hash;
    crash_image_build(&s->image, way);
    size_t i = by_seen(s, &seen_hash);
    return i != CRASH_NONE || !add ? i : add_state(s, seen_hash);
}

void crash_search_hash(struct crash_search *s, size_t state) {
    struct crash_state *x = &s->v[state].state;
    crash_image_build(&s->image, s->v[state].ways);
    crash_image_hash(&s->image, x->hash, &x->bytes);
}

size_t crash_search_seek(struct crash_search *s, const struct crash_way *way) {
    return find(s, way, false);
}

size_t crash_search_add(struct crash_search *s, const struct crash_way *way,
                        enum crash_class class) {
    size_t i = find(s, way, true);
    s->ways++;
    if (s->v[i].state.class > class)
        s->v[i].state.class = class;
    add_way(s, &s->v[i], way);
    return i;
}
