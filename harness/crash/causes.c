#include "harness/crash/causes.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/crash/barriers.h"
#include "harness/crash/search.h"
#include "harness/crash/words.h"
#include "harness/shrink/delta.h"

#include <stdlib.h>
#include <string.h>

struct reasons {
    struct crash_states *states;
    const struct crash_judge *judge;
    struct arena *arena;
    struct found_cause {
        struct crash_cause cause;
        const char *key;
        size_t *states, states_n;
    } * v;
    size_t n;
    size_t *run_of; /* by point: the first of the points around it at which a process's death alone
                       is bad; CRASH_NONE: it is not bad */
};

static const struct crash_change *change_of(const struct reasons *x, size_t i) {
    return &x->states->search->changes.v[i];
}

static const struct disk_operation *operation_of(const struct reasons *x, size_t i) {
    return &x->states->record->v[i];
}

/* ---- what would have been asked for ---- */

/* Where a loss would have been prevented: an fsync of this file, or of this directory. */
struct want {
    bool directory;
    char *path;
};

static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    char *r = mem_strdup(slash ? path : "");
    if (slash)
        r[slash - path] = '\0';
    return r;
}

static struct want want_of(const struct reasons *x, const struct crash_loss *l) {
    const struct disk_operation *o = operation_of(x, l->operation);
    bool names = change_of(x, l->operation)->kind == CHANGE_NAMES;
    const char *path = o->path ? o->path : "";
    bool to = l->part == CRASH_ALL && (o->deed == DISK_RENAME || o->deed == DISK_LINK);
    return (struct want){names, names ? folder_of(to ? o->to : path) : mem_strdup(path)};
}

/* Steps and ranks are numbers in names: what goes wrong with one goes wrong with all. */
static void put_pattern(const char *path, struct buf *out) {
    for (; *path; path++)
        if (*path < '0' || *path > '9')
            buf_putc(out, *path);
        else if (path[1] < '0' || path[1] > '9')
            buf_putc(out, '#');
}

static void put_want(const struct reasons *x, const struct crash_loss *l, struct buf *out) {
    struct want w = want_of(x, l);
    buf_puts(out, w.directory ? "names in " : "bytes of ");
    put_pattern(w.path, out);
    buf_putc(out, '\n');
    free(w.path);
}

/* Every want once, in alphabetical order: what the loss comes to. */
static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char *key_of_losses(const struct reasons *x, const struct crash_way *way) {
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf b = {0};
    size_t n = 0;
    for (size_t i = 0; i < way->losses_n; i++)
        put_want(x, &way->losses[i], &b);
    char **lines = str_split(&a, buf_str(&b), '\n', &n);
    if (n)
        qsort(lines, n, sizeof(*lines), by_text);
    buf_clear(&b);
    for (size_t i = 0; i < n; i++)
        if (*lines[i] && (!i || !str_eq(lines[i], lines[i - 1])))
            buf_printf(&b, "%s\n", lines[i]);
    return arena_strdup(x->arena, buf_str(&b));
}

/* Whether all lines of a are lines of b. */
static bool is_part(const char *a, const char *b) {
    ARENA_FINI struct arena arena = {0};
    for (char **line = str_split(&arena, a, '\n', NULL); *line; line++) {
        char *with = arena_printf(&arena, "%s\n", *line);
        const char *at = strstr(b, with);
        while (at && at != b && at[-1] != '\n')
            at = strstr(at + 1, with);
        if (**line && !at)
            return false;
    }
    return true;
}

/* ---- the same without losses ---- */

static struct crash_way without_losses(const struct crash_way *way) {
    return (struct crash_way){.point = way->point,
                              .death = CRASH_PROCESS,
                              .models = DISK_MODELS_ALL,
                              .rank = -1,
                              .node = ""};
}

static enum crash_verdict ask(struct reasons *x, const struct crash_way *way) {
    size_t i =
        x->judge->may_add ? crash_states_add(x->states, way) : crash_states_seek(x->states, way);
    return i == SIZE_MAX ? CRASH_UNTRIED : x->judge->verdict(x->judge->arg, i, way);
}

static void find_runs(struct reasons *x) {
    const struct crash_search *s = x->states->search;
    size_t n = s->changes.record->n, run = CRASH_NONE;
    x->run_of = mem_array(size_t, n + 1);
    for (size_t i = 0; i <= n; i++)
        x->run_of[i] = CRASH_NONE;
    for (size_t point = s->ask.from; point <= s->ask.to; point++) {
        struct crash_way way = without_losses(&(struct crash_way){.point = point});
        size_t i = crash_states_seek(x->states, &way);
        bool bad = i != SIZE_MAX && x->judge->verdict(x->judge->arg, i, &way) == CRASH_BAD;
        run = !bad ? CRASH_NONE : run == CRASH_NONE ? point : run;
        x->run_of[point] = run;
    }
}

/* ---- what came behind it ---- */

static bool is_lost(const struct crash_way *way, size_t i) {
    for (size_t k = 0; k < way->losses_n; k++)
        if (way->losses[k].operation == i)
            return true;
    return false;
}

static bool is_step(const struct reasons *x, size_t i) {
    enum disk_deed deed = operation_of(x, i)->deed;
    return change_of(x, i)->kind == CHANGE_NAMES ||
           (deed == DISK_MARK && !barriers_is(operation_of(x, i)));
}

static size_t last_loss(const struct crash_way *way, const struct crash_loss **ret) {
    *ret = &way->losses[way->losses_n - 1];
    return (*ret)->operation;
}

/* What came too early: the last change of names, or word of the job, that is there behind what was
 * lost; else anything; CRASH_NONE where nothing came. */
static size_t step_behind(const struct reasons *x, const struct crash_way *way) {
    const struct crash_loss *l;
    size_t lost = last_loss(way, &l);
    for (size_t i = way->point; i-- > lost + 1;)
        if (is_step(x, i) && !is_lost(way, i))
            return i;
    return CRASH_NONE;
}

/* The run of points that a way belongs to: all it does is to make it longer, until a sync. */
static size_t run_of(const struct reasons *x, const struct crash_way *way) {
    size_t run = x->run_of[way->point];
    if (way->taken && run == CRASH_NONE)
        run = x->run_of[way->point + 1];
    if (way->losses_n && run == CRASH_NONE && step_behind(x, way) == CRASH_NONE)
        run = x->run_of[way->losses[0].operation];
    return run;
}

/* The same in another save is the same. */
static const char *key_of_process(const struct reasons *x, const char *when, size_t operation) {
    BUF_FINI struct buf words = {0}, b = {0};
    crash_words_operation(operation_of(x, operation), &words);
    buf_printf(&b, "a process %s ", when);
    put_pattern(buf_str(&words), &b);
    buf_putc(&b, '\n');
    return arena_strdup(x->arena, buf_str(&b));
}

/* Whoever died before it did what was lost: then too the others went on to what is bad. */
static bool bad_before_it(struct reasons *x, const struct crash_way *way) {
    if (!way->others_go_on || !way->losses_n)
        return false;
    const struct disk_operation *o = operation_of(x, way->losses[0].operation);
    struct crash_way died = without_losses(&(struct crash_way){.point = way->losses[0].operation});
    died.rank = o->rank;
    died.pid = o->pid;
    died.others_go_on = true;
    size_t i = crash_states_seek(x->states, &died);
    return i != SIZE_MAX && x->judge->verdict(x->judge->arg, i, &died) == CRASH_BAD;
}

static const char *key_of(struct reasons *x, const struct crash_way *way) {
    size_t run = run_of(x, way);
    if (run != CRASH_NONE && !way->others_go_on)
        return run ? key_of_process(x, "after", run - 1) : "a process before all\n";
    if ((way->others_go_on && !way->losses_n) || bad_before_it(x, way))
        return "one process of several\n";
    if (way->taken)
        return key_of_process(x, "within", way->point);
    return key_of_losses(x, way);
}

/* ---- the smallest loss ---- */

struct reduction_of {
    struct delta delta;
    struct reasons *x;
    struct crash_way best;
    struct crash_losses losses; /* of best */
    bool changed;
};

/* candidate: struct crash_losses, not closed. */
static enum delta_answer try_losses(void *arg, void *candidate) {
    struct reduction_of *d = arg;
    struct crash_losses *l = candidate;
    const struct crash_search *s = d->x->states->search;
    for (size_t i = 0; i < DISK_MODELS_N; i++) {
        if (!(d->best.models >> i & 1))
            continue;
        struct crash_moment m = {&s->changes, &s->promises[i], d->best.point,
                                 crash_losses_unit(d->best.death), crash_search_node(s, &d->best)};
        struct crash_way way = d->best;
        crash_losses_close(&m, l);
        way.losses = l->v;
        way.losses_n = l->n;
        way.models = 1U << i;
        if (crash_search_lost(&way) >= crash_search_lost(&d->best) || ask(d->x, &way) != CRASH_BAD)
            return DELTA_OTHER;
        struct crash_losses old = d->losses;
        d->losses = *l;
        *l = old;
        d->best.losses = d->losses.v;
        d->best.losses_n = d->losses.n;
        d->best.models = way.models;
        d->changed = true;
        return DELTA_SAME;
    }
    return DELTA_OTHER;
}

static size_t lost_n(void *arg) {
    return crash_search_lost(&((const struct reduction_of *)arg)->best);
}

/* Parts are operations. What goes with others comes back when the rest is closed: then nothing was
 * won, and the next are asked about. */
static size_t without(void *arg, size_t left, size_t many) {
    struct reduction_of *d = arg;
    size_t from = left > many ? left - many : 0, part = 0;
    struct crash_losses l = {0};
    for (size_t i = 0; i < d->losses.n; i++) {
        part += i && d->losses.v[i].operation != d->losses.v[i - 1].operation;
        if (part < from || part >= left)
            mem_push(l.v, l.n) = d->losses.v[i];
    }
    delta_try(&d->delta, &l);
    free(l.v);
    return from < lost_n(d) ? from : lost_n(d);
}

static void fewer(void *arg) {
    struct reduction_of *d = arg;
    delta_halves(&d->delta, lost_n, without);
}

/* The earliest point at which the same is bad, as far as that was tried. */
static void earlier(struct reasons *x, struct crash_way *way) {
    struct crash_way w = *way;
    for (w.point = way->losses[way->losses_n - 1].operation + 1; w.point < way->point; w.point++) {
        w.models = crash_states_models(x->states, &w) & way->models;
        size_t i = w.models ? crash_states_seek(x->states, &w) : SIZE_MAX;
        if (i == SIZE_MAX || x->judge->verdict(x->judge->arg, i, &w) != CRASH_BAD)
            continue;
        *way = w;
        return;
    }
}

/* The way with as few losses as can be, in the arena. */
static struct crash_way smallest(struct reasons *x, const struct crash_way *way) {
    static void (*const passes[])(void *) = {fewer, NULL};
    struct reduction_of d = {.delta = {.try = try_losses}, .x = x, .best = *way};
    d.delta.arg = &d;
    for (size_t i = 0; i < way->losses_n; i++)
        mem_push(d.losses.v, d.losses.n) = way->losses[i];
    d.best.losses = d.losses.v;
    if (way->death != CRASH_PROCESS)
        delta_run(&d.delta, passes, 4);
    struct crash_loss *l = arena_array(x->arena, struct crash_loss, d.losses.n + 1);
    if (d.losses.n)
        memcpy(l, d.losses.v, d.losses.n * sizeof(*l));
    d.best.losses = l;
    free(d.losses.v);
    if (d.best.losses_n && !d.best.others_go_on)
        earlier(x, &d.best);
    d.best.models = crash_states_models(x->states, &d.best) & x->states->search->ask.models;
    return d.best;
}

/* ---- the sentence ---- */

static size_t too_early(const struct reasons *x, const struct crash_way *way) {
    const struct crash_loss *l;
    size_t step = step_behind(x, way), lost = last_loss(way, &l);
    for (size_t i = way->point; step == CRASH_NONE && i-- > lost + 1;)
        if (change_of(x, i)->kind == CHANGE_WRITE || change_of(x, i)->kind == CHANGE_SHAPE)
            return i;
    return step;
}

static void put_asked(const struct reasons *x, const struct crash_loss *l, struct buf *out) {
    struct want w = want_of(x, l);
    buf_printf(out, "fsync of %s%s",
               !*w.path      ? "the directory itself"
               : w.directory ? "directory "
                             : "",
               w.path);
    free(w.path);
}

static void put_the(const struct reasons *x, size_t i, struct buf *out) {
    const struct disk_operation *o = operation_of(x, i);
    buf_puts(out, o->deed == DISK_MARK && !barriers_is(o) ? "" : "the ");
    crash_words_operation(o, out);
}

static void put_numbered(const struct reasons *x, size_t i, struct buf *out) {
    put_the(x, i, out);
    buf_printf(out, " (operation %zu)", crash_words_number(x->states, i));
}

static void say_process(const struct reasons *x, const struct crash_way *way, struct buf *out) {
    const struct disk_record *record = x->states->record;
    size_t point = way->point;
    if (way->taken) {
        buf_puts(out, "death within ");
        put_the(x, point, out);
    } else if (way->others_go_on) {
        crash_words_death(x->states, way, out);
        buf_puts(out, " before its ");
        crash_words_operation(&record->v[point], out);
        buf_puts(out, ", while the others went on");
    } else if (point > x->states->search->changes.had) {
        buf_puts(out, "death after ");
        put_the(x, point - 1, out);
        buf_puts(out, point < record->n ? " and before " : "");
        if (point < record->n)
            put_the(x, point, out);
    } else {
        buf_puts(out, "death before the first operation");
    }
    buf_puts(out, ": ");
}

static void say_losses(const struct reasons *x, const struct crash_way *way, struct buf *out) {
    const struct crash_loss *l;
    size_t early = too_early(x, way), lost = last_loss(way, &l);
    if (early != CRASH_NONE) {
        crash_words_operation(operation_of(x, early), out);
        buf_puts(out, " before ");
        put_asked(x, l, out);
    } else {
        buf_puts(out, "no ");
        put_asked(x, l, out);
        buf_puts(out, " after ");
        crash_words_operation(operation_of(x, lost), out);
    }
    buf_puts(out, ": after ");
    crash_words_death(x->states, way, out);
    buf_putc(out, ' ');
}

static const char *sentence(const struct reasons *x, const struct crash_way *way) {
    BUF_FINI struct buf b = {0};
    if (way->losses_n)
        say_losses(x, way, &b);
    else
        say_process(x, way, &b);
    crash_words_look(x->states, way, &b);
    return arena_strdup(x->arena, buf_str(&b));
}

static const char *missing(const struct reasons *x, const struct crash_way *way) {
    BUF_FINI struct buf b = {0};
    const struct crash_loss *l;
    if (way->others_go_on) {
        crash_words_death(x->states, way, &b);
        return arena_printf(x->arena,
                            "a wait of the others for %s; if they do wait there, this cannot "
                            "happen, and what settles it is the event barrier, told by each rank "
                            "just before it waits",
                            buf_str(&b) + strlen("the death of "));
    }
    if (!way->losses_n)
        return NULL;
    size_t lost = last_loss(way, &l), early = too_early(x, way);
    buf_puts(&b, "no ");
    put_asked(x, l, &b);
    if (early == CRASH_NONE) {
        buf_puts(&b, " after ");
        put_numbered(x, lost, &b);
    } else {
        buf_puts(&b, " between ");
        put_numbered(x, lost, &b);
        buf_puts(&b, " and ");
        put_numbered(x, early, &b);
    }
    return arena_strdup(x->arena, buf_str(&b));
}

static void add_step(struct crash_cause *c, size_t *steps, size_t i) {
    if (!c->steps_n || steps[c->steps_n - 1] != i)
        steps[c->steps_n++] = i;
}

static void find_steps(const struct reasons *x, struct crash_cause *c) {
    const struct crash_way *way = c->way;
    size_t *steps = arena_array(x->arena, size_t, way->losses_n + 3);
    size_t had = x->states->search->changes.had;
    c->steps = steps;
    for (size_t k = 0; k < way->losses_n; k++)
        add_step(c, steps, way->losses[k].operation);
    size_t early = way->losses_n ? too_early(x, way) : CRASH_NONE;
    if (early != CRASH_NONE)
        add_step(c, steps, early);
    if (!way->losses_n && way->point > had)
        add_step(c, steps, way->point - 1);
    if (!way->losses_n && (way->taken || way->others_go_on))
        add_step(c, steps, way->point);
}

/* ---- all of them ---- */

static void attach(struct found_cause *f, size_t state) {
    for (size_t i = 0; i < f->states_n; i++)
        if (f->states[i] == state)
            return;
    mem_push(f->states, f->states_n) = state;
}

static struct found_cause *known(const struct reasons *x, const char *key) {
    for (size_t i = 0; i < x->n; i++)
        if (is_part(x->v[i].key, key))
            return &x->v[i];
    return NULL;
}

static void add_cause(struct reasons *x, size_t state, const struct crash_way *bad) {
    const char *key = key_of(x, bad);
    struct found_cause *f = known(x, key);
    if (f) {
        attach(f, state);
        return;
    }
    struct crash_way *way = arena_new(x->arena, struct crash_way);
    *way = smallest(x, bad);
    key = key_of(x, way);
    f = known(x, key);
    if (!f) {
        size_t own = way->losses_n == bad->losses_n ? state : crash_states_seek(x->states, way);
        mem_push(x->v, x->n) =
            (struct found_cause){.cause = {.state = own, .way = way}, .key = key};
        f = &x->v[x->n - 1];
    }
    attach(f, f->cause.state);
    attach(f, state);
}

/* The smallest bad way of a state, copied: what it points to may move. */
struct bad_way {
    size_t state;
    struct crash_way way;
};

static int by_size(const void *a, const void *b, void *search) {
    const struct bad_way *v = a, *w = b;
    int r = crash_search_compare(search, &v->way, &w->way);
    return r ? r : v->state < w->state ? -1 : v->state > w->state;
}

static struct bad_way *bad_ways(const struct reasons *x, size_t *ret_n) {
    struct bad_way *v = NULL;
    for (size_t i = 0; i < x->states->n; i++)
        for (size_t k = 0; k < x->states->v[i].ways_n; k++) {
            const struct crash_way *way = &x->states->v[i].ways[k];
            if (x->judge->verdict(x->judge->arg, i, way) != CRASH_BAD)
                continue;
            mem_push(v, *ret_n) = (struct bad_way){i, *way};
            break;
        }
    if (v)
        qsort_r(v, *ret_n, sizeof(*v), by_size, x->states->search);
    return v;
}

static int by_trial(const void *x, const void *y) {
    const struct crash_cause *a = x, *b = y;
    return a->state == b->state ? 0 : a->state < b->state ? -1 : 1;
}

static void show(struct reasons *x, const struct crash_cause **ret, size_t *ret_n) {
    struct crash_cause *v = arena_array(x->arena, struct crash_cause, x->n + 1);
    for (size_t i = 0; i < x->n; i++) {
        struct found_cause *f = &x->v[i];
        size_t *states = arena_array(x->arena, size_t, f->states_n + 1);
        memcpy(states, f->states, f->states_n * sizeof(*states));
        f->cause.states = states;
        f->cause.states_n = f->states_n;
        f->cause.sentence = sentence(x, f->cause.way);
        f->cause.missing = missing(x, f->cause.way);
        find_steps(x, &f->cause);
        v[i] = f->cause;
        free(f->states);
    }
    qsort(v, x->n, sizeof(*v), by_trial);
    *ret = v;
    *ret_n = x->n;
}

void crash_causes_find(struct crash_states *s, const struct crash_judge *judge, struct arena *arena,
                       const struct crash_cause **ret, size_t *ret_n) {
    struct reasons x = {.states = s, .judge = judge, .arena = arena};
    size_t n = 0;
    struct bad_way *bad = bad_ways(&x, &n);
    find_runs(&x);
    for (size_t i = 0; i < n; i++)
        add_cause(&x, bad[i].state, &bad[i].way);
    show(&x, ret, ret_n);
    free(bad);
    free(x.v);
    free(x.run_of);
}
