#include "harness/judge/stands.h"

#include "base/rand.h"

#include <stdlib.h>
#include <string.h>

enum {
    FEW_CLOCKS = 4,
    DRAWN = 8,
    EVEN = 64,
    CLOSE = 192,
    ALL_MAX = (1 << FEW_CLOCKS) + 2 * 64 + DRAWN + EVEN + CLOSE
};

struct stand_choice {
    struct stands *ret;
    struct arena *arena;
    const struct clocks *clocks;
    const struct history *history;
    struct rand rand;
};

static double *add(struct stand_choice *c) {
    return c->ret->v[c->ret->n++] = arena_array(c->arena, double, c->clocks->n);
}

/* ---- the ends ---- */

/* Each of few clocks at either end, in every choice. */
static void every_choice(struct stand_choice *c) {
    for (unsigned late = 0; late < 1u << c->clocks->n; late++) {
        double *share = add(c);
        for (size_t i = 0; i < c->clocks->n; i++)
            share[i] = late >> i & 1;
    }
}

/* Two numbers differ in a bit: for each bit those that have it are late, and then those that lack it. */
static void every_pair(struct stand_choice *c) {
    for (unsigned late = 0; late < 2; late++) {
        double *all = add(c);
        for (size_t i = 0; i < c->clocks->n; i++)
            all[i] = late;
        for (unsigned bit = 0; (c->clocks->n - 1) >> bit; bit++) {
            double *share = add(c);
            for (size_t i = 0; i < c->clocks->n; i++)
                share[i] = (i >> bit & 1) == late;
        }
    }
    for (int k = 0; k < DRAWN; k++) {
        double *share = add(c);
        for (size_t i = 0; i < c->clocks->n; i++)
            share[i] = (double)rand_below(&c->rand, 2);
    }
}

/* ---- in between ---- */

/* Each clock once in each of EVEN equal parts of its bound, in an order of its own. */
static void evenly(struct stand_choice *c) {
    size_t first = c->ret->n, order[EVEN];
    for (size_t k = 0; k < EVEN; k++)
        add(c);
    for (size_t i = 0; i < c->clocks->n; i++) {
        for (size_t k = 0; k < EVEN; k++) {
            size_t to = (size_t)rand_below(&c->rand, k + 1);
            order[k] = order[to];
            order[to] = k;
        }
        for (size_t k = 0; k < EVEN; k++)
            c->ret->v[first + k][i] = ((double)order[k] + 0.5) / EVEN;
    }
}

/* Records by whose stamp they bear and by their kind. */
struct sort {
    size_t first, n; /* in `at` of the sorts */
};

struct sorts {
    size_t *at; /* places of records in the history */
    struct sort *v;
    size_t n;
};

/* qsort has no argument of its own. */
struct sorted_record {
    size_t at;
    int32_t of;
    const char *kind;
};

static int by_sort(const void *a, const void *b) {
    const struct sorted_record *x = a, *y = b;
    if (x->of != y->of)
        return x->of < y->of ? -1 : 1;
    int order = strcmp(x->kind, y->kind);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

static void sort_all(struct sorts *s, struct stand_choice *c) {
    size_t n = c->history->n;
    struct sorted_record *all = arena_array(c->arena, struct sorted_record, n);
    for (size_t i = 0; i < n; i++)
        all[i] = (struct sorted_record){i, c->clocks->of[i], c->history->records[i]->kind};
    qsort(all, n, sizeof(*all), by_sort);
    s->at = arena_array(c->arena, size_t, n);
    s->v = arena_array(c->arena, struct sort, n);
    for (size_t i = 0; i < n; i++) {
        s->at[i] = all[i].at;
        if (!i || all[i].of != all[i - 1].of || strcmp(all[i].kind, all[i - 1].kind) != 0)
            s->v[s->n++] = (struct sort){.first = i};
        s->v[s->n - 1].n++;
    }
}

static int32_t clock_of(const struct sorts *s, const struct stand_choice *c, size_t sort) {
    return c->clocks->of[s->at[s->v[sort].first]];
}

/* One of a kind of this clock's, or of any that is not this clock's. Every history has both kinds, or
 * after some tries it does not matter. */
static size_t draw(const struct sorts *s, struct stand_choice *c, int32_t clock, bool own) {
    size_t sort = 0;
    for (int tries = 0; tries < 64; tries++) {
        sort = (size_t)rand_below(&c->rand, s->n);
        if ((clock_of(s, c, sort) == clock) == own)
            break;
    }
    return s->at[s->v[sort].first + (size_t)rand_below(&c->rand, s->v[sort].n)];
}

/* Where its clock must stand for it to be a little before or behind another moment: by a microsecond,
 * or twice as much, and so on, up to a second. */
static double share_near(struct stand_choice *c, size_t own, size_t other) {
    const struct clocks *k = c->clocks;
    int64_t width = k->latest_ns[own] - k->earliest_ns[own];
    int64_t near_ns = INT64_C(1000) << rand_below(&c->rand, 21);
    int64_t to_ns =
        clocks_moment(k, c->history, other, 0.5) + (rand_below(&c->rand, 2) ? near_ns : -near_ns);
    double share = width ? (double)(to_ns - k->earliest_ns[own]) / (double)width : 0.5;
    return share < 0 || share > 1 ? rand_unit(&c->rand) : share;
}

static void closely(struct stand_choice *c) {
    struct sorts s = {0};
    sort_all(&s, c);
    for (int i = 0; i < CLOSE; i++) {
        double *share = add(c);
        for (size_t k = 0; k < c->clocks->n; k++) {
            size_t own = draw(&s, c, (int32_t)k, true);
            share[k] = share_near(c, own, draw(&s, c, (int32_t)k, false));
        }
    }
}

void stands_choose(struct stands *ret, struct arena *a, const struct clocks *c,
                   const struct history *h) {
    struct stand_choice choice = {.ret = ret, .arena = a, .clocks = c, .history = h};
    rand_init(&choice.rand, c->n);
    *ret = (struct stands){.v = arena_array(a, double *, ALL_MAX)};
    if (!c->n)
        return;
    if (c->n <= FEW_CLOCKS)
        every_choice(&choice);
    else
        every_pair(&choice);
    if (clocks_most_ns(c) <= STANDS_WIDE_NS)
        return;
    evenly(&choice);
    closely(&choice);
}
