#include "harness/crash/losses.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

uint64_t crash_losses_unit(enum crash_death death) {
    return death == CRASH_POWER ? CRASH_SECTOR : CRASH_PAGE;
}

bool crash_losses_may(const struct crash_moment *m, size_t i, enum crash_part part) {
    const struct crash_promises *p = m->promises;
    if (i < m->changes->had || i >= m->point)
        return false;
    const struct crash_change *g = &m->changes->v[i];
    const struct disk_model *model = crash_promises_model(p, g);
    if (m->node != CRASH_NONE && (g->node != m->node || !(g->disk || model->by_node)))
        return false;
    if (part == CRASH_ALL)
        return crash_promises_changes_names(g) && p->all[i] > m->point;
    if (part == CRASH_REMOVAL)
        return g->kind == CHANGE_NAMES && g->apart && !model->journal && p->removal[i] > m->point;
    return g->kind == CHANGE_WRITE && p->bytes[i] > m->point;
}

static void lose(struct crash_losses *l, size_t i, enum crash_part part, uint64_t from,
                 uint64_t to) {
    mem_push(l->v, l->n) = (struct crash_loss){i, part, from, to};
}

static int by_operation(const void *a, const void *b) {
    const struct crash_loss *x = a, *y = b;
    if (x->operation != y->operation)
        return x->operation < y->operation ? -1 : 1;
    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    return x->from == y->from ? 0 : x->from < y->from ? -1 : 1;
}

/* Of two that are about the same the one that says more; ranges that touch become one. */
static bool joined(struct crash_loss *a, const struct crash_loss *b) {
    if (a->operation != b->operation || a->part != b->part ||
        (a->part == CRASH_BYTES && b->from > a->to))
        return false;
    if (a->part == CRASH_BYTES && b->to > a->to)
        a->to = b->to;
    return true; /* of sizes the smaller one, which comes first */
}

static void sort(struct crash_losses *l) {
    size_t n = 0;
    if (l->n)
        qsort(l->v, l->n, sizeof(*l->v), by_operation);
    for (size_t i = 0; i < l->n; i++)
        if (!n || !joined(&l->v[n - 1], &l->v[i]))
            l->v[n++] = l->v[i];
    l->n = n;
}

/* Takes out what cannot be, and makes the rest canonical. */
static void check(const struct crash_moment *m, struct crash_losses *l) {
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        struct crash_loss x = l->v[i];
        if (!crash_losses_may(m, x.operation, x.part))
            continue;
        const struct crash_change *g = &m->changes->v[x.operation];
        if (x.part == CRASH_BYTES) {
            x.from = x.from > g->at ? x.from : g->at;
            x.to = x.to < g->end ? x.to : g->end;
            if (x.from >= x.to)
                continue;
        } else if (x.part == CRASH_SIZE) {
            if (x.from >= g->end)
                continue;
            x.from = x.from > g->at ? x.from : 0;
            x.to = g->end;
        } else {
            x.from = x.to = 0;
        }
        l->v[n++] = x;
    }
    l->n = n;
}

static void lose_write(const struct crash_moment *m, struct crash_losses *l, size_t i) {
    lose(l, i, CRASH_BYTES, m->changes->v[i].at, m->changes->v[i].end);
    lose(l, i, CRASH_SIZE, 0, m->changes->v[i].end);
}

/* Takes out the losses of operations that `kept` tells of. */
static void spare(const struct crash_moment *m, struct crash_losses *l, size_t disk,
                  size_t last_kept) {
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].part == CRASH_ALL || m->changes->v[l->v[i].operation].disk != disk ||
            m->promises->flushes[l->v[i].operation] > last_kept || last_kept == CRASH_NONE)
            l->v[n++] = l->v[i];
    l->n = n;
}

/* A prefix of names and sizes is there, and bytes only behind what they need. */
static void close_journal(const struct crash_moment *m, struct crash_losses *l, size_t disk) {
    size_t lost = m->point, last_kept = CRASH_NONE;
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].part == CRASH_ALL && l->v[i].operation < lost &&
            m->changes->v[l->v[i].operation].disk == disk)
            lost = l->v[i].operation;
    for (size_t i = m->changes->had; i < m->point; i++) {
        const struct crash_change *g = &m->changes->v[i];
        if (g->disk != disk)
            continue;
        if (crash_promises_changes_names(g)) {
            if (i < lost)
                last_kept = i;
            else if (i > lost)
                lose(l, i, CRASH_ALL, 0, 0);
        } else if (lost < m->point && g->kind == CHANGE_WRITE && m->promises->needs[i] > lost)
            lose_write(m, l, i);
    }
    spare(m, l, disk, last_kept);
}

static void close_journals(const struct crash_moment *m, struct crash_losses *l) {
    for (size_t disk = 0; disk < m->changes->disks_n; disk++)
        if (crash_promises_model(m->promises, &(struct crash_change){.disk = disk})->journal)
            close_journal(m, l, disk);
}

/* ---- sectors and pages ---- */

struct stale {
    struct crash_run *v; /* parts of a file, in whole units, that are older than they might be */
    size_t n;
    size_t node;
};

static uint64_t down(uint64_t at, uint64_t unit) {
    return at / unit * unit;
}

static uint64_t up(uint64_t at, uint64_t unit) {
    return down(at + unit - 1, unit);
}

static bool is_stale(const struct stale *s, uint64_t at) {
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].at <= at && at < s->v[i].at + s->v[i].size)
            return true;
    return false;
}

static void refresh(struct stale *s, uint64_t from, uint64_t to) {
    size_t n = s->n;
    for (size_t i = 0; i < n; i++) {
        uint64_t a = s->v[i].at, b = a + s->v[i].size;
        if (b <= from || a >= to)
            continue;
        s->v[i].size = a < from ? from - a : 0;
        if (b > to)
            (void)(mem_push(s->v, s->n) = (struct crash_run){.at = to, .size = b - to});
    }
    n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].size)
            s->v[n++] = s->v[i];
    s->n = n;
}

static void grow_stale(struct stale *s, uint64_t from, uint64_t to) {
    refresh(s, from, to);
    if (s->n && s->v[s->n - 1].at + s->v[s->n - 1].size == from)
        s->v[s->n - 1].size = to - s->v[s->n - 1].at;
    else
        (void)(mem_push(s->v, s->n) = (struct crash_run){.at = from, .size = to - from});
}

/* A unit that a write covers in part holds what was there before, too. */
static void follow(const struct crash_moment *m, struct crash_losses *l, const struct stale *s,
                   size_t i, uint64_t unit_at) {
    const struct crash_change *g = &m->changes->v[i];
    uint64_t from = g->at > unit_at ? g->at : unit_at;
    uint64_t end = unit_at + m->unit, to = g->end < end ? g->end : end;
    bool whole = g->at <= unit_at && (g->end >= end || g->end >= g->size_was);
    if (!whole && is_stale(s, unit_at))
        lose(l, i, CRASH_BYTES, from, to);
}

static size_t losses_of(const struct crash_losses *l, size_t sorted, size_t operation) {
    size_t low = 0, high = sorted;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (l->v[mid].operation < operation)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void pass_write(const struct crash_moment *m, struct crash_losses *l, struct stale *s,
                       size_t i, size_t sorted) {
    const struct crash_change *g = &m->changes->v[i];
    size_t added = l->n, first = down(g->at, m->unit), last = down(g->end - 1, m->unit);
    if (s->node != CRASH_NONE && s->node != g->node)
        return;
    follow(m, l, s, i, first);
    if (last != first)
        follow(m, l, s, i, last);
    refresh(s, first, up(g->end, m->unit));
    for (size_t k = losses_of(l, sorted, i); k < sorted && l->v[k].operation == i; k++)
        if (l->v[k].part == CRASH_BYTES)
            grow_stale(s, down(l->v[k].from, m->unit), up(l->v[k].to, m->unit));
    for (size_t k = added; k < l->n; k++)
        grow_stale(s, down(l->v[k].from, m->unit), up(l->v[k].to, m->unit));
}

/* From the first loss of one file on. */
static void close_file(const struct crash_moment *m, struct crash_losses *l, size_t first,
                       size_t sorted) {
    const struct crash_change *begin = &m->changes->v[first];
    bool by_node = crash_promises_model(m->promises, begin)->by_node;
    struct stale s = {.node = by_node ? begin->node : CRASH_NONE};
    for (size_t i = first; i < m->point; i = m->changes->v[i].next) {
        const struct crash_change *g = &m->changes->v[i];
        if (g->kind == CHANGE_WRITE)
            pass_write(m, l, &s, i, sorted);
        else if (g->end < g->size_was)
            refresh(&s, up(g->end, m->unit), UINT64_MAX / 2);
    }
    free(s.v);
}

static void close_units(const struct crash_moment *m, struct crash_losses *l) {
    size_t sorted = l->n;
    bool *seen = mem_array(bool, m->changes->inodes_n);
    for (size_t k = 0; k < sorted; k++) {
        size_t inode = m->changes->v[l->v[k].operation].inode;
        if (l->v[k].part != CRASH_BYTES || seen[inode])
            continue;
        seen[inode] = true;
        close_file(m, l, l->v[k].operation, sorted);
    }
    free(seen);
}

/* Where bytes of a write are last there; 0: nowhere. k: its first loss. */
static uint64_t last_there(const struct crash_change *g, const struct crash_losses *l, size_t k) {
    uint64_t end = g->end, operation = l->v[k].operation;
    size_t n = k;
    while (n < l->n && l->v[n].operation == operation && l->v[n].part == CRASH_BYTES)
        n++;
    while (n-- > k)
        if (l->v[n].to >= end)
            end = l->v[n].from;
    return end > g->at ? end : 0;
}

/* It has grown to where bytes are: not into a part that is not there. k: a size. */
static void clip_size(const struct crash_moment *m, struct crash_losses *l, size_t k) {
    const struct crash_change *g = &m->changes->v[l->v[k].operation];
    if (crash_promises_model(m->promises, g)->size == SIZE_IS_BYTES) {
        l->v[k].from = l->v[k].to; /* as if not said */
        return;
    }
    for (size_t i = k; i-- > 0 && l->v[i].operation == l->v[k].operation;)
        if (l->v[i].part == CRASH_BYTES && l->v[i].from < l->v[k].from &&
            l->v[k].from <= l->v[i].to)
            l->v[k].from = l->v[i].from > g->at ? l->v[i].from : 0;
}

static void close_sizes(const struct crash_moment *m, struct crash_losses *l) {
    size_t n = l->n;
    for (size_t k = 0; k < n; k++) {
        const struct crash_loss x = l->v[k];
        const struct crash_change *g = &m->changes->v[x.operation];
        if (crash_promises_model(m->promises, g)->size == SIZE_BY_ITSELF)
            continue;
        if (x.part == CRASH_SIZE)
            clip_size(m, l, k);
        if (x.part != CRASH_BYTES ||
            (k && l->v[k - 1].operation == x.operation && l->v[k - 1].part == CRASH_BYTES))
            continue;
        uint64_t end = last_there(g, l, k);
        if (end < g->end)
            lose(l, x.operation, CRASH_SIZE, end, g->end);
    }
}

void crash_losses_close(const struct crash_moment *m, struct crash_losses *l) {
    check(m, l);
    close_journals(m, l);
    check(m, l);
    sort(l);
    close_units(m, l);
    sort(l);
    close_sizes(m, l);
    check(m, l);
    sort(l);
}
