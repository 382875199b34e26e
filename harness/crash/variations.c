/* What may have been lost at one point. Where there are no more ways than the bound allows, all of
 * them; else those from which most is learnt: everything, the bytes of each file, each name, each
 * write, each write in part, pairs; and what is left of the bound is drawn. Later operations come
 * first: what is lost alone among older ones was tried at their own points. */
#include "base/mem.h"
#include "base/rand.h"
#include "harness/crash/barriers.h"
#include "harness/crash/search.h"

#include <stdlib.h>
#include <string.h>

enum { PAIR_NAMES = 6, LATEST = 32, ALL_MAX = 1 << 20, DRAWN_MAX = 1 << 16 };
/* Some 64 MB. Past them long lists are left out, as if beyond the bound. */
enum { LOSSES_MAX = 1 << 21, LOSSES_SHORT = 32 };

struct variations {
    struct crash_search *search;
    struct crash_moment moment;
    struct crash_way way; /* all but its losses */
    size_t left;          /* so many more may be taken */
    size_t taken;
    struct crash_index seen; /* losses, by hash */
    size_t *names, names_n;  /* what may be lost: changes of names and shapes */
    size_t *writes, writes_n;
    size_t *files, files_n; /* inodes of the writes */
    struct crash_losses draft;
};

static const struct crash_change *change(const struct variations *x, size_t i) {
    return &x->moment.changes->v[i];
}

static void lose(struct variations *x, size_t i, enum crash_part part, uint64_t from, uint64_t to) {
    mem_push(x->draft.v, x->draft.n) = (struct crash_loss){i, part, from, to};
}

static void lose_name(struct variations *x, size_t i) {
    lose(x, i, CRASH_ALL, 0, 0);
}

static void lose_write(struct variations *x, size_t i, bool size_too) {
    lose(x, i, CRASH_BYTES, 0, UINT64_MAX);
    if (size_too)
        lose(x, i, CRASH_SIZE, 0, 0);
}

/* inode: of this file alone; CRASH_NONE: of all. */
static void lose_writes(struct variations *x, size_t inode, size_t but, bool size_too) {
    for (size_t k = 0; k < x->writes_n; k++)
        if (x->writes[k] != but && (inode == CRASH_NONE || change(x, x->writes[k])->inode == inode))
            lose_write(x, x->writes[k], size_too);
}

static void lose_names(struct variations *x, size_t but) {
    for (size_t k = 0; k < x->names_n; k++)
        if (x->names[k] != but)
            lose_name(x, x->names[k]);
}

static uint64_t hash_losses(const struct crash_losses *l) {
    uint64_t h = l->n;
    for (size_t i = 0; i < l->n; i++) {
        uint64_t v[4] = {l->v[i].operation, l->v[i].part, l->v[i].from, l->v[i].to};
        h = crash_index_hash(h, v, sizeof(v));
    }
    return h;
}

/* The draft is one way more, unless it comes to one that was taken; empties it. Losses of equal
 * hashes are taken for equal here: at worst one way is not looked at. */
static void emit(struct variations *x, enum crash_class class) {
    size_t at = 0;
    if (!x->left) {
        x->draft.n = 0;
        return;
    }
    crash_losses_close(&x->moment, &x->draft);
    bool long_one = x->search->losses > LOSSES_MAX && x->draft.n > LOSSES_SHORT;
    uint64_t h = hash_losses(&x->draft);
    if (!long_one && crash_index_next(&x->seen, h, &at) == SIZE_MAX) {
        crash_index_put(&x->seen, h, 0);
        x->way.losses = x->draft.v;
        x->way.losses_n = x->draft.n;
        crash_search_add(x->search, &x->way, class);
        x->left--;
        x->taken++;
    }
    x->draft.n = 0;
}

/* ---- all of them ---- */

static uint64_t units(const struct variations *x, size_t i) {
    const struct crash_change *g = change(x, i);
    return (g->end - 1) / x->moment.unit - g->at / x->moment.unit + 1;
}

/* Whether it matters how far the file has grown by it. */
static bool sized(const struct variations *x, size_t write) {
    const struct crash_change *g = change(x, write);
    bool is = crash_promises_model(x->moment.promises, g)->size != SIZE_IS_BYTES;
    if (!is || g->end > g->size_was)
        return is;
    for (size_t k = 0; k < x->writes_n && x->writes[k] < write; k++) {
        const struct crash_change *w = change(x, x->writes[k]);
        if (w->inode == g->inode && w->end > w->size_was)
            return true;
    }
    for (size_t k = 0; k < x->names_n && x->names[k] < write; k++)
        if (change(x, x->names[k])->kind == CHANGE_SHAPE &&
            change(x, x->names[k])->inode == g->inode)
            return true;
    return false;
}

static double two_to(uint64_t n) {
    double r = 1;
    for (uint64_t i = 0; i < n && i < 1000; i++)
        r *= 2;
    return r;
}

static double ways_of_write(const struct variations *x, size_t i) {
    return two_to(units(x, i)) * (sized(x, i) ? (double)units(x, i) + 1 : 1);
}

static double ways_of_name(const struct variations *x, size_t i) {
    return crash_losses_may(&x->moment, i, CRASH_REMOVAL) ? 3 : 2;
}

/* Names that are there are the first `kept`. */
static bool is_free(const struct variations *x, size_t write, size_t kept) {
    const struct crash_promises *p = x->moment.promises;
    return (kept == x->names_n || p->needs[write] <= x->names[kept]) &&
           (!kept || p->flushes[write] > x->names[kept - 1]);
}

/* Names are lost in order: those of one journal. */
static bool one_journal(const struct variations *x) {
    bool any = x->names_n ? false : x->moment.promises->model->journal;
    for (size_t k = 0; k < x->names_n; k++) {
        const struct crash_change *g = change(x, x->names[k]);
        if (!crash_promises_model(x->moment.promises, g)->journal ||
            g->disk != change(x, x->names[0])->disk)
            return false;
        any = true;
    }
    return any;
}

/* Which of several journals has lost how much is not counted out. */
static bool several_journals(const struct variations *x) {
    bool any = false;
    for (size_t k = 0; k < x->names_n; k++)
        any |= crash_promises_model(x->moment.promises, change(x, x->names[k]))->journal;
    return any && !one_journal(x);
}

static double count(const struct variations *x) {
    double all = 0, one = 1;
    if (one_journal(x)) {
        for (size_t kept = 0; kept <= x->names_n; kept++, all += one, one = 1)
            for (size_t k = 0; k < x->writes_n; k++)
                one *= is_free(x, x->writes[k], kept) ? ways_of_write(x, x->writes[k]) : 1;
        return all;
    }
    for (size_t k = 0; k < x->names_n; k++)
        one *= ways_of_name(x, x->names[k]);
    for (size_t k = 0; k < x->writes_n; k++)
        one *= ways_of_write(x, x->writes[k]);
    return one;
}

/* An odometer: each name and each write is a wheel. */
struct wheel {
    size_t operation;
    uint64_t first, at, n;
};

static void turn_name(struct variations *x, const struct wheel *w) {
    if (w->at == 1)
        lose_name(x, w->operation);
    if (w->at == 2)
        lose(x, w->operation, CRASH_REMOVAL, 0, 0);
}

static void turn_write(struct variations *x, const struct wheel *w) {
    uint64_t n = units(x, w->operation), first = change(x, w->operation)->at / x->moment.unit;
    uint64_t size = w->at >> n;
    for (uint64_t u = 0; u < n; u++)
        if (w->at >> u & 1)
            lose(x, w->operation, CRASH_BYTES, (first + u) * x->moment.unit,
                 (first + u + 1) * x->moment.unit);
    if (size)
        lose(x, w->operation, CRASH_SIZE, size == 1 ? 0 : (first + size - 1) * x->moment.unit, 0);
}

static void turn(struct variations *x, struct wheel *w, size_t n) {
    for (bool more = true; more;) {
        for (size_t i = 0; i < n; i++)
            if (change(x, w[i].operation)->kind == CHANGE_WRITE)
                turn_write(x, &w[i]);
            else
                turn_name(x, &w[i]);
        emit(x, CRASH_DRAWN);
        more = false;
        for (size_t i = 0; i < n && !more; i++) {
            more = ++w[i].at < w[i].n;
            w[i].at = more ? w[i].at : w[i].first;
        }
    }
}

/* With a journal the first `kept` names are there, and no other. */
static void all_with(struct variations *x, size_t kept) {
    bool journal = one_journal(x);
    struct wheel *w = mem_array(struct wheel, x->names_n + x->writes_n);
    size_t n = 0;
    for (size_t k = 0; k < x->names_n && !journal; k++)
        w[n++] = (struct wheel){x->names[k], 0, 0, (uint64_t)ways_of_name(x, x->names[k])};
    if (journal && kept < x->names_n)
        w[n++] = (struct wheel){x->names[kept], 1, 1, 2}; /* the others go with it */
    for (size_t k = 0; k < x->writes_n; k++)
        if (!journal || is_free(x, x->writes[k], kept))
            w[n++] = (struct wheel){x->writes[k], 0, 0, (uint64_t)ways_of_write(x, x->writes[k])};
    turn(x, w, n);
    free(w);
}

/* ---- the telling ones ---- */

/* Of many the last are looked at one by one. */
static size_t latest(size_t n) {
    return n > LATEST ? n - LATEST : 0;
}

static void take_whole(struct variations *x) {
    enum crash_class all =
        crash_search_commits(x->search, x->moment.point) ? CRASH_AT_COMMIT : CRASH_ALL_LOST;
    lose_names(x, CRASH_NONE);
    lose_writes(x, CRASH_NONE, CRASH_NONE, true);
    emit(x, all);
    emit(x, CRASH_PREFIX); /* nothing lost */
    for (int size_too = 1; size_too >= 0; size_too--) {
        for (size_t k = x->files_n; x->left && k-- > latest(x->files_n);) {
            lose_writes(x, x->files[k], CRASH_NONE, size_too);
            emit(x, CRASH_NO_CONTENTS);
        }
        lose_writes(x, CRASH_NONE, CRASH_NONE, size_too);
        emit(x, CRASH_NO_CONTENTS);
    }
}

static void take_names(struct variations *x) {
    for (size_t k = x->names_n; x->left && k-- > latest(x->names_n);) {
        lose_name(x, x->names[k]);
        emit(x, CRASH_NO_NAMES);
        lose(x, x->names[k], CRASH_REMOVAL, 0, 0);
        emit(x, CRASH_NO_NAMES);
        lose_names(x, x->names[k]);
        lose_writes(x, CRASH_NONE, CRASH_NONE, true);
        emit(x, CRASH_ONE);
        lose_name(x, x->names[k]);
        lose_writes(x, CRASH_NONE, CRASH_NONE, true);
        emit(x, CRASH_ONE);
    }
}

static void take_writes(struct variations *x) {
    for (size_t k = x->writes_n; x->left && k-- > latest(x->writes_n);) {
        for (int size_too = 1; size_too >= 0; size_too--) {
            lose_write(x, x->writes[k], size_too);
            emit(x, CRASH_ONE);
        }
        lose_writes(x, change(x, x->writes[k])->inode, x->writes[k], true);
        emit(x, CRASH_ONE);
    }
}

/* Only [from, to) of a write is there, and the file has grown to `size`. */
static void tear(struct variations *x, size_t i, uint64_t from, uint64_t to, uint64_t size) {
    const struct crash_change *g = change(x, i);
    if (from >= to || (from <= g->at && to >= g->end))
        return;
    if (from > g->at)
        lose(x, i, CRASH_BYTES, g->at, from);
    if (to < g->end)
        lose(x, i, CRASH_BYTES, to, g->end);
    if (size < g->end)
        lose(x, i, CRASH_SIZE, size, g->end);
    emit(x, CRASH_TORN);
}

static void take_torn(struct variations *x) {
    uint64_t unit = x->moment.unit;
    for (size_t k = x->writes_n; x->left && k-- > latest(x->writes_n);) {
        const struct crash_change *g = change(x, x->writes[k]);
        uint64_t first = (g->at / unit + 1) * unit, last = (g->end - 1) / unit * unit;
        uint64_t half = (g->at + (g->end - g->at) / 2) / unit * unit;
        tear(x, x->writes[k], g->at, half, half);
        tear(x, x->writes[k], g->at, half, g->end);
        tear(x, x->writes[k], g->at, first, first);
        tear(x, x->writes[k], g->at, last, last);
        tear(x, x->writes[k], g->at, last, g->end);
        tear(x, x->writes[k], first, g->end, g->end);
    }
}

/* Two of the latest names, or one and the bytes of a file, or the bytes of two files. */
static void take_pairs(struct variations *x) {
    size_t first = x->names_n > PAIR_NAMES ? x->names_n - PAIR_NAMES : 0;
    for (size_t k = x->names_n; x->left && k-- > first;) {
        for (size_t f = x->files_n; x->left && f-- > latest(x->files_n);) {
            lose_name(x, x->names[k]);
            lose_writes(x, x->files[f], CRASH_NONE, true);
            emit(x, CRASH_PAIR);
        }
        for (size_t j = k; j-- > first;) {
            lose_name(x, x->names[k]);
            lose_name(x, x->names[j]);
            emit(x, CRASH_PAIR);
        }
    }
    for (size_t f = x->files_n; x->left && f-- > latest(x->files_n) + 1;) {
        lose_writes(x, x->files[f], CRASH_NONE, true);
        lose_writes(x, x->files[f - 1], CRASH_NONE, true);
        emit(x, CRASH_PAIR);
    }
}

static void draw_write(struct variations *x, struct rand *r, size_t i) {
    const struct crash_change *g = change(x, i);
    uint64_t unit = x->moment.unit;
    uint64_t cut = (g->at / unit + rand_below(r, units(x, i) + 1)) * unit;
    switch (rand_below(r, 4)) {
    case 0:
        lose(x, i, CRASH_BYTES, 0, cut);
        break;
    case 1:
        lose(x, i, CRASH_BYTES, cut, UINT64_MAX);
        break;
    default:
        lose(x, i, CRASH_BYTES, 0, UINT64_MAX);
    }
    if (rand_below(r, 2))
        lose(x, i, CRASH_SIZE, rand_below(r, 2) ? cut : 0, 0);
}

static void draw(struct variations *x, struct rand *r) {
    uint64_t of_ten = 1 + rand_below(r, 9);
    bool journal = one_journal(x);
    size_t kept = rand_below(r, x->names_n + 1);
    for (size_t k = 0; k < x->names_n; k++)
        if (journal ? k >= kept : rand_below(r, 10) < of_ten)
            lose_name(x, x->names[k]);
    for (size_t k = 0; k < x->writes_n; k++)
        if (rand_below(r, 10) < of_ten)
            draw_write(x, r, x->writes[k]);
    emit(x, CRASH_DRAWN);
}

static void take_drawn(struct variations *x) {
    struct rand r;
    uint64_t seed[] = {x->search->ask.seed, x->moment.point, x->moment.unit, x->way.models};
    rand_init(&r, crash_index_hash(0, seed, sizeof(seed)));
    size_t tries = x->left < DRAWN_MAX ? x->left * 2 : DRAWN_MAX;
    for (; x->left && tries; tries--)
        draw(x, &r);
}

static void take_telling(struct variations *x) {
    take_whole(x);
    take_names(x);
    take_writes(x);
    take_torn(x);
    take_pairs(x);
}

/* ---- one point ---- */

static void look_around(struct variations *x) {
    bool *met = mem_array(bool, x->moment.changes->inodes_n);
    x->names_n = x->writes_n = x->files_n = 0;
    for (size_t i = x->moment.changes->had; i < x->moment.point; i++) {
        if (crash_losses_may(&x->moment, i, CRASH_ALL) ||
            crash_losses_may(&x->moment, i, CRASH_REMOVAL))
            (void)(mem_push(x->names, x->names_n) = i);
        if (!crash_losses_may(&x->moment, i, CRASH_BYTES))
            continue;
        (void)(mem_push(x->writes, x->writes_n) = i);
        if (!met[change(x, i)->inode])
            (void)(mem_push(x->files, x->files_n) = change(x, i)->inode);
        met[change(x, i)->inode] = true;
    }
    free(met);
}

/* One kind of death, with `bound` ways at most. Returns how many there are. */
static double take(struct variations *x, enum crash_death death, size_t bound) {
    x->way.death = death;
    x->moment.unit = crash_losses_unit(death);
    x->left = bound;
    double all = count(x);
    take_telling(x);
    if (all > (double)bound || all > ALL_MAX || several_journals(x)) {
        take_drawn(x);
        return all;
    }
    x->left = SIZE_MAX;
    for (size_t kept = one_journal(x) ? 0 : x->names_n; kept <= x->names_n; kept++)
        all_with(x, kept);
    return 0; /* none is left out */
}

static struct variations begin(struct crash_search *s, size_t point, size_t model, size_t node) {
    /* Where only shared files were changed all rows say the same of them. */
    bool all = s->changes.volumes && !s->changes.own_disks_used;
    struct variations x = {.search = s,
                           .moment = {&s->changes, &s->promises[model], point, CRASH_PAGE, node},
                           .way = {.point = point,
                                   .models = all ? s->ask.models : 1U << model,
                                   .rank = -1,
                                   .node = node == CRASH_NONE ? "" : s->changes.nodes[node]}};
    look_around(&x);
    return x;
}

static void end(struct variations *x) {
    crash_index_fini(&x->seen);
    free(x->names);
    free(x->writes);
    free(x->files);
    free(x->draft.v);
}

static void take_node(struct crash_search *s, size_t point, size_t model, size_t node) {
    bool kernel = s->ask.deaths >> CRASH_KERNEL & 1, power = s->ask.deaths >> CRASH_POWER & 1;
    size_t bound = s->ask.per_point;
    struct variations x = begin(s, point, model, node);
    double all = 0;
    if (kernel)
        all = take(&x, CRASH_KERNEL, power && bound != SIZE_MAX ? bound - bound / 4 : bound);
    if (power)
        all = take(&x, CRASH_POWER,
                   bound == SIZE_MAX ? bound : bound - (x.taken < bound ? x.taken : bound));
    if (all > (double)x.taken)
        s->left_out += all - (double)x.taken;
    end(&x);
}

/* Somebody is about to do something, which he may die before. */
static bool does_next(const struct crash_search *s, size_t point) {
    const struct disk_record *r = s->changes.record;
    return point < r->n && !crash_changes_nothing(&r->v[point]);
}

/* The node dies before its next operation, and the others go on: with nothing lost, with all, with
 * the bytes of a file or a name. */
static void take_node_alone(struct crash_search *s, size_t point, size_t model, size_t node) {
    struct variations x = begin(s, point, model, node);
    x.way.others_go_on = true;
    for (int death = CRASH_KERNEL; death <= CRASH_POWER; death++) {
        if (!(s->ask.deaths >> death & 1))
            continue;
        x.way.death = (enum crash_death)death;
        x.moment.unit = crash_losses_unit(x.way.death);
        x.left = s->ask.per_point;
        take_whole(&x);
        take_names(&x);
    }
    end(&x);
}

static void take_model(struct crash_search *s, size_t point, size_t model, bool barrier) {
    const struct crash_changes *c = &s->changes;
    bool nodes = c->nodes_n > 1 && (c->volumes || s->promises[model].model->by_node);
    if (!barrier)
        take_node(s, point, model, CRASH_NONE);
    for (size_t node = 0; node < c->nodes_n && nodes; node++) {
        if (!*c->nodes[node])
            continue;
        if (!barrier)
            take_node(s, point, model, node);
        if (c->volumes && !s->ask.together && does_next(s, point) && c->v[point].node == node)
            take_node_alone(s, point, model, node);
    }
}

/* A signal that kills ends a long write between two pages. */
static void take_partly(struct crash_search *s, struct crash_way *way) {
    if (way->point == s->changes.record->n || s->changes.v[way->point].kind != CHANGE_WRITE)
        return;
    const struct crash_change *g = &s->changes.v[way->point];
    uint64_t first = (g->at / CRASH_PAGE + 1) * CRASH_PAGE;
    uint64_t last = (g->end - 1) / CRASH_PAGE * CRASH_PAGE;
    uint64_t half = (g->at + (g->end - g->at) / 2) / CRASH_PAGE * CRASH_PAGE;
    uint64_t at[] = {half, first, last};
    for (size_t i = 0; i < 3; i++) {
        if (at[i] <= g->at || at[i] >= g->end)
            continue;
        way->taken = at[i] - g->at;
        crash_search_add(s, way, CRASH_TORN);
    }
    way->taken = 0;
}

static void take_processes(struct crash_search *s, size_t point) {
    struct crash_way way = {
        .point = point, .death = CRASH_PROCESS, .models = DISK_MODELS_ALL, .rank = -1, .node = ""};
    crash_search_add(s, &way, CRASH_PREFIX);
    take_partly(s, &way);
    if (!does_next(s, point) || s->changes.who_n < 2 || s->ask.together)
        return;
    const struct crash_who *who = &s->changes.who[s->changes.v[point].who];
    way.rank = who->rank;
    way.pid = who->pid;
    way.others_go_on = true;
    crash_search_add(s, &way, CRASH_PREFIX);
}

void crash_variations_find(struct crash_search *s, size_t point, bool barrier) {
    if (s->ask.deaths >> CRASH_PROCESS & 1)
        take_processes(s, point);
    bool one = s->changes.volumes && !s->changes.own_disks_used;
    for (size_t i = 0, n = 0; i < DISK_MODELS_N; i++)
        if (s->ask.models >> i & 1 && !(one && n++))
            take_model(s, point, i, barrier);
}
