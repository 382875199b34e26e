#include "harness/crash/states.h"

#include "base/mem.h"
#include "harness/crash/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const crash_death_names[CRASH_DEATHS_N] = {
    [CRASH_PROCESS] = "process",
    [CRASH_KERNEL] = "kernel",
    [CRASH_POWER] = "power",
};

/* Where there are many points each has fewer. */
static size_t default_per_point(const struct crash_search *s) {
    size_t n = CRASH_PER_POINT * CRASH_POINTS / (s->ask.to - s->ask.from + 1);
    return n > CRASH_PER_POINT       ? CRASH_PER_POINT
           : n < CRASH_PER_POINT_MIN ? CRASH_PER_POINT_MIN
                                     : n;
}

static int ask_all(struct crash_search *s, const struct crash_ask *ask, struct err *err) {
    size_t n = ask->record->n, had = s->changes.had;
    s->ask = *ask;
    s->ask.to = ask->to ? ask->to : n;
    if (s->ask.to > n || s->ask.from > s->ask.to)
        return err_say(err, -EINVAL,
                       "points %zu to %zu are none of a record of %zu operations; take 0 to %zu",
                       ask->from, s->ask.to, n, n);
    s->ask.from = s->ask.from > had ? s->ask.from : had;
    s->ask.to = s->ask.to > had ? s->ask.to : had;
    s->ask.deaths = ask->deaths ? ask->deaths : (1U << CRASH_DEATHS_N) - 1;
    s->ask.models = (ask->models ? ask->models : disk_models_default) & DISK_MODELS_ALL;
    s->ask.per_point = ask->per_point ? ask->per_point : default_per_point(s);
    s->ask.states_max = ask->states_max ? ask->states_max : CRASH_STATES_MAX;
    return 0;
}

static void fini(struct crash_search *s) {
    for (size_t i = 0; i < s->n; i++) {
        free(s->v[i].ways);
        free(s->v[i].seen);
    }
    free(s->v);
    crash_index_fini(&s->by_seen);
    crash_image_fini(&s->image);
    crash_contents_fini(&s->contents);
    crash_changes_fini(&s->changes);
    arena_fini(&s->arena);
    free(s);
}

/* ---- their order ---- */

/* How many of the others are tried for each of a class; the first two go before all. */
static const size_t paces[CRASH_CLASSES_N] = {
    [CRASH_NO_CONTENTS] = 2, [CRASH_NO_NAMES] = 2, [CRASH_ALL_LOST] = 4, [CRASH_ONE] = 3,
    [CRASH_TORN] = 3,        [CRASH_PAIR] = 6,     [CRASH_DRAWN] = 12,
};

static int compare(size_t a, size_t b) {
    return a == b ? 0 : a < b ? -1 : 1;
}

/* Within a class: where something was said to be whole, then the smaller ones. */
static int by_telling(const void *x, const void *y, void *search) {
    const struct crash_found *a = x, *b = y;
    const struct crash_way *v = a->ways, *w = b->ways;
    int r = compare(a->state.class, b->state.class);
    r = r ? r : crash_search_commits(search, w->point) - crash_search_commits(search, v->point);
    r = r ? r : crash_search_compare(search, v, w);
    return r ? r : compare(a->nth, b->nth);
}

static int by_place_then_telling(const void *x, const void *y, void *search) {
    const struct crash_found *a = x, *b = y;
    int r = compare(a->place, b->place);
    return r ? r : by_telling(a, b, search);
}

/* All classes have their turn however little time there is. */
static void shuffle(struct crash_search *s) {
    size_t counts[CRASH_CLASSES_N] = {0};
    if (s->n)
        qsort_r(s->v, s->n, sizeof(*s->v), by_telling, s);
    for (size_t i = 0; i < s->n; i++) {
        unsigned class = s->v[i].state.class;
        size_t nth = counts[class]++;
        s->v[i].place = paces[class] ? s->n + nth * paces[class] : class * s->n / 2;
    }
    if (s->n)
        qsort_r(s->v, s->n, sizeof(*s->v), by_place_then_telling, s);
}

/* No more than were asked for. */
static void order(struct crash_search *s) {
    shuffle(s);
    while (s->n > s->ask.states_max) {
        struct crash_found *f = &s->v[--s->n];
        s->left_out += (double)f->state.ways_n;
        free(f->ways);
        free(f->seen);
    }
    crash_index_clear(&s->by_seen);
    for (size_t i = 0; i < s->n; i++) {
        const struct crash_found *f = &s->v[i];
        crash_index_put(&s->by_seen, crash_index_hash(0, f->seen, f->seen_n * sizeof(*f->seen)), i);
        crash_search_hash(s, i);
    }
}

/* ---- what is shown ---- */

static void show(struct crash_states *ret, struct crash_search *s) {
    struct crash_state *v = (struct crash_state *)ret->v;
    size_t *numbers = (size_t *)ret->order;
    v = realloc(v, (s->n + 1) * sizeof(*v));
    numbers = realloc(numbers, (s->n + 1) * sizeof(*numbers));
    if (!v || !numbers)
        abort();
    for (size_t i = 0; i < s->n; i++) {
        v[i] = s->v[i].state;
        v[i].ways = s->v[i].ways;
        numbers[i] = i;
    }
    ret->v = v;
    ret->n = s->n;
    ret->order = numbers;
    ret->ways = s->ways;
    ret->left_out = s->left_out;
}

int crash_states_find(const struct crash_ask *ask, struct crash_states *ret, struct err *err) {
    struct crash_search *s = mem_new(struct crash_search);
    size_t points = 0;
    crash_changes_find(&s->changes, ask->record, ask->shared);
    int r = ask_all(s, ask, err);
    if (r) {
        fini(s);
        return r;
    }
    s->contents.record = ask->record;
    crash_image_init(&s->image, &s->changes, &s->contents);
    for (size_t i = 0; i < DISK_MODELS_N; i++)
        crash_promises_find(&s->promises[i], &disk_models[i],
                            ask->shared ? &disk_models[ask->shared - 1] : NULL, &s->changes,
                            &s->arena);
    for (size_t point = s->ask.from; point <= s->ask.to; point++) {
        const struct disk_operation *last = point > s->ask.from ? &ask->record->v[point - 1] : NULL;
        bool same = last && crash_changes_nothing(last); /* as it was before */
        if (same && last->deed == DISK_OPEN)
            continue;
        crash_variations_find(s, point, same);
        points += !same;
    }
    order(s);
    *ret = (struct crash_states){.record = ask->record,
                                 .points = points,
                                 .ignored = s->changes.ignored,
                                 .ignored_first = s->changes.ignored_first,
                                 .search = s};
    show(ret, s);
    return 0;
}

void crash_states_fini(struct crash_states *s) {
    if (s->search)
        fini(s->search);
    free((void *)s->v);
    free((void *)s->order);
    *s = (struct crash_states){0};
}

/* ---- states that are asked for ---- */

/* Whether the way's losses are all that follows from them, as a model has it. */
static bool model_allows(struct crash_search *s, const struct crash_way *way, size_t model) {
    struct crash_moment m = {&s->changes, &s->promises[model], way->point,
                             crash_losses_unit(way->death), crash_search_node(s, way)};
    struct crash_losses l = {0};
    for (size_t k = 0; k < way->losses_n; k++)
        mem_push(l.v, l.n) = way->losses[k];
    crash_losses_close(&m, &l);
    bool ok = l.n == way->losses_n;
    for (size_t k = 0; ok && k < l.n; k++)
        ok = l.v[k].operation == way->losses[k].operation && l.v[k].part == way->losses[k].part &&
             l.v[k].from == way->losses[k].from && l.v[k].to == way->losses[k].to;
    free(l.v);
    return ok;
}

unsigned crash_states_models(struct crash_states *s, const struct crash_way *way) {
    const struct crash_changes *c = &s->search->changes;
    size_t n = c->record->n;
    unsigned models = 0;
    bool ok = way->death < CRASH_DEATHS_N && way->point >= c->had && way->point <= n;
    if (ok && way->taken)
        ok = way->point < n && c->v[way->point].kind == CHANGE_WRITE &&
             way->taken <= c->v[way->point].end - c->v[way->point].at;
    if (!ok || way->death == CRASH_PROCESS)
        return ok && !way->losses_n ? DISK_MODELS_ALL : 0;
    for (size_t i = 0; i < DISK_MODELS_N; i++)
        if (model_allows(s->search, way, i))
            models |= 1U << i;
    return models;
}

size_t crash_states_add(struct crash_states *s, const struct crash_way *way) {
    if (!(crash_states_models(s, way) & way->models))
        return SIZE_MAX;
    size_t n = s->search->n, i = crash_search_add(s->search, way, CRASH_DRAWN);
    if (i == n) {
        s->search->v[i].state.found_later = true;
        crash_search_hash(s->search, i);
    }
    show(s, s->search);
    return i;
}

size_t crash_states_seek(struct crash_states *s, const struct crash_way *way) {
    bool may = crash_states_models(s, way) & way->models;
    return may ? crash_search_seek(s->search, way) : SIZE_MAX;
}

bool crash_states_did(const struct crash_states *s, const struct crash_way *way, size_t operation) {
    if (operation < way->point || !way->others_go_on)
        return operation < way->point;
    crash_image_build(&s->search->image, way);
    return s->search->image.went[operation];
}

int crash_states_walk(struct crash_states *s, size_t state,
                      int (*see)(void *arg, const struct crash_entry *e), void *arg) {
    crash_image_build(&s->search->image, s->v[state].ways);
    return crash_image_walk(&s->search->image, see, arg);
}
