/* Which operations of a record make one save, and what the job resumes from when it is whole. */
#include "harness/verbs/crashpoints/crashing.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/crash/barriers.h"
#include "harness/crash/folder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SAVES_TRIED = 2, QUIET_TIMES = 20 };
static const int64_t quiet_ns = 5000000;

static bool changes(const struct disk_operation *o) {
    return o->deed != DISK_HAD && o->deed != DISK_OPEN && o->deed != DISK_CLOSE &&
           o->deed != DISK_SYNC_RANGE && o->deed != DISK_MARK;
}

static bool is_mark(const struct disk_operation *o, const char *what) {
    return o->deed == DISK_MARK && str_starts(o->path, what);
}

static int64_t step_of(const struct disk_operation *o) {
    const char *space = strrchr(o->path, ' ');
    int64_t step = -1;
    return space && str_to_i64(space + 1, 0, INT64_MAX, &step) ? step : -1;
}

/* ---- by what the job tells, by quiet ---- */

static int by_size(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Much longer than most pauses between two operations. */
static int64_t find_quiet(const struct disk_record *r) {
    int64_t *gaps = mem_array(int64_t, r->n + 1), last_ns = 0, quiet = quiet_ns;
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (!changes(&r->v[i]))
            continue;
        if (last_ns)
            gaps[n++] = r->v[i].t_ns - last_ns;
        last_ns = r->v[i].t_ns;
    }
    qsort(gaps, n, sizeof(*gaps), by_size);
    if (n && QUIET_TIMES * gaps[n / 2] > quiet)
        quiet = QUIET_TIMES * gaps[n / 2];
    free(gaps);
    return quiet;
}

static bool tells_begin(const struct disk_record *r) {
    for (size_t i = 0; i < r->n; i++)
        if (is_mark(&r->v[i], "checkpoint-begin "))
            return true;
    return false;
}

/* It ends something. It is recorded when it has returned, so how long the disk took for it looks like a
 * pause before it. */
static bool is_sync(const struct disk_operation *o) {
    return o->deed == DISK_SYNC || o->deed == DISK_SYNC_DATA || o->deed == DISK_SYNC_ALL;
}

static bool begins(const struct crashing *c, bool told, int64_t quiet, size_t i, int64_t last_ns) {
    const struct disk_operation *o = &c->record.v[i];
    if (o->deed == DISK_HAD)
        return false;
    if (told)
        return is_mark(o, "checkpoint-begin ");
    return changes(o) && !is_sync(o) && (!last_ns || o->t_ns - last_ns > quiet);
}

static void add_save(struct crashing *c, size_t from) {
    c->saves[c->saves_n++] = (struct save){.from = from, .step = -1};
}

static bool save_changes(const struct crashing *c, const struct save *s) {
    for (size_t i = s->from; i < s->to; i++)
        if (changes(&c->record.v[i]))
            return true;
    return false;
}

/* Where it ends, and from where on it is whole: as the job says, else with its last operation. */
static void measure(struct crashing *c) {
    size_t kept = 0;
    for (size_t i = 0; i < c->saves_n; i++) {
        struct save *s = &c->saves[i];
        s->to = i + 1 < c->saves_n ? c->saves[i + 1].from : c->record.n;
        s->whole = s->to;
        for (size_t k = s->from; k < s->to; k++)
            if (is_mark(&c->record.v[k], "checkpoint-commit ")) {
                s->whole = k + 1;
                s->step = step_of(&c->record.v[k]);
            }
        if (save_changes(c, s))
            c->saves[kept++] = *s;
    }
    c->saves_n = kept;
}

/* ---- the files of the last one ---- */

static bool has(const char **v, size_t n, const char *path) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(v[i], path))
            return true;
    return false;
}

/* Files that the last save has written, by the names that they have at the end. */
struct final_files {
    struct crashing *c;
    const struct save *last;
    const char **v;
    size_t n;
};

static int add_final(void *arg, const struct crash_entry *e) {
    struct final_files *f = arg;
    const struct disk_record *r = &f->c->record;
    if (e->kind != CRASH_FILE)
        return 0;
    for (size_t i = f->last->from; i < f->last->to; i++) {
        const struct disk_operation *o = &r->v[i];
        const char *name = o->deed == DISK_RENAME ? o->to : o->path;
        size_t len = strlen(name);
        bool own = str_eq(name, e->path) || (o->deed == DISK_RENAME && o->directory &&
                                             str_starts(e->path, name) && e->path[len] == '/');
        if (changes(o) && own && !has(f->v, f->n, e->path)) {
            mem_push(f->v, f->n) = arena_strdup(&f->c->arena, e->path);
            return 0;
        }
    }
    return 0;
}

static size_t whole_state(struct crashing *c, size_t point) {
    struct crash_way way = {.point = point,
                            .death = CRASH_PROCESS,
                            .models = c->models ? c->models : disk_models_default,
                            .rank = -1,
                            .node = ""};
    return crash_states_add(&c->states, &way);
}

static size_t find_finals(struct crashing *c) {
    struct final_files f = {.c = c, .last = &c->saves[c->saves_n - 1]};
    size_t state = whole_state(c, c->record.n);
    if (state != SIZE_MAX)
        crash_states_walk(&c->states, state, add_final, &f);
    c->unseen = state == SIZE_MAX || !str_eq(c->states.v[state].hash, c->whole);
    c->finals = arena_array(&c->arena, const char *, f.n + 1);
    for (size_t i = 0; i < f.n; i++)
        c->finals[i] = f.v[i];
    free(f.v);
    return state;
}

/* What the baseline has left of them, out of the record. */
static int sum_finals(struct crashing *c, size_t state, struct err *err) {
    const char *path = arena_printf(&c->arena, "%s/scratch/final", c->out.path);
    int r = folder_make(&c->out, "scratch/final", 0755, err);
    r = r ? r : crash_folder_write(&c->states, state, path, err);
    if (r == 0)
        crashing_sum(c, path, c->baseline.sum);
    folder_remove(&c->out, "scratch/final", NULL);
    return r;
}

/* ---- all ---- */

static int say_none(const struct crashing *c) {
    if (c->scenario) {
        fprintf(stderr,
                "rankquake crashpoints: the job wrote nothing into {shared} or a node's "
                "{disk}, so there is no save to try: it is to keep its checkpoints there\n");
        return EXIT_INCONCLUSIVE;
    }
    fprintf(stderr,
            "rankquake crashpoints: the command wrote nothing into %s, so there is no save to "
            "try: --dir DIR names the directory in which it keeps its checkpoints%s\n",
            c->dir,
            c->across ? "; it renamed files into it from elsewhere, which is one --dir with both"
                      : "");
    return EXIT_INCONCLUSIVE;
}

static void choose(struct crashing *c) {
    size_t n = c->all ? c->saves_n : SAVES_TRIED;
    c->first = c->saves_n > n ? c->saves_n - n : 0;
    size_t last = c->saves_n - 1;
    if (c->saves_asked > 0)
        c->first = last = (size_t)c->saves_asked - 1;
    c->from = c->saves[c->first].from;
    c->to = c->saves[last].to;
}

/* Of several ranks one tells that a save begins, and another may have begun by then: what comes before
 * the first such word belongs to it. */
static void part(struct crashing *c) {
    bool told = tells_begin(&c->record), before = told;
    int64_t quiet = find_quiet(&c->record), last_ns = 0;
    for (size_t i = 0; i < c->record.n; i++) {
        bool begin = begins(c, told, quiet, i, last_ns);
        if (c->saves_n == 0 ? begin || changes(&c->record.v[i]) : begin && !before)
            add_save(c, i);
        before &= !begin;
        if (changes(&c->record.v[i]))
            last_ns = c->record.v[i].t_ns;
    }
}

int crashing_find_saves(struct crashing *c) {
    c->saves = arena_array(&c->arena, struct save, c->record.n + 2);
    part(c);
    measure(c);
    if (c->saves_n == 0)
        return say_none(c);
    if (c->saves_asked > (int64_t)c->saves_n)
        return verb_usage_error(c->arguments->verb, "--save %" PRId64 ": there are %zu",
                                c->saves_asked, c->saves_n);
    choose(c);
    struct err err = {0};
    size_t *wholes = arena_array(&c->arena, size_t, c->saves_n);
    for (size_t i = 0; i < c->saves_n; i++)
        wholes[i] = c->saves[i].whole;
    struct crash_ask ask = {.record = &c->record,
                            .from = c->from,
                            .to = c->to,
                            .deaths = c->deaths,
                            .models = c->models,
                            .shared = c->shared_model,
                            .states_max = (size_t)c->states_max,
                            .seed = (uint64_t)c->seed,
                            .wholes = wholes,
                            .wholes_n = c->saves_n,
                            .together = !barriers_known(&c->record)};
    if (crash_states_find(&ask, &c->states, &err) != 0)
        return verb_broken(c->arguments->verb, &err);
    size_t state = find_finals(c);
    if (state != SIZE_MAX && sum_finals(c, state, &err) != 0)
        return verb_broken(c->arguments->verb, &err);
    return 0;
}

/* ---- anchors ---- */

int64_t crashing_necessary(const struct crashing *c, const struct crash_way *way) {
    int64_t step = -1;
    for (size_t i = 0; i < c->saves_n; i++)
        if ((c->saves[i].whole <= way->point ||
             crash_states_did(&c->states, way, c->saves[i].whole - 1)) &&
            c->saves[i].attempt.how == ATTEMPT_ENDED && c->saves[i].attempt.resumed > step)
            step = c->saves[i].attempt.resumed;
    return step;
}

static int say_does_not_resume(const struct crashing *c, const struct resumption *o) {
    fprintf(stderr,
            "rankquake crashpoints: the %s does not resume by itself from a directory with a "
            "whole checkpoint (%s), so nothing else was tried. Its last lines:\n%s\n",
            c->scenario ? "job" : "command", o->how == ATTEMPT_HUNG ? "it hangs" : "it fails",
            o->why);
    return EXIT_INCONCLUSIVE;
}

/* The first of those that may be met: the ones that are tried, and those before that may be kept. */
enum { ANCHORS_MAX = 6 };

static bool same(const struct crashing *c, const struct resumption *a, const struct resumption *b) {
    const char *x = attempt_result(c, a), *y = attempt_result(c, b);
    return *x && str_eq(x, y);
}

static void keep_anchors(struct crashing *c, const struct trial_ask *asks,
                         const struct resumption *got, size_t begin, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct save *s = &c->saves[begin + i];
        s->attempt = got[i];
        c->tells_steps |= got[i].resumed > 0;
        if (asks[i].state < c->states.n)
            c->trials[asks[i].state] = got[i];
    }
}

/* A job that is not the same when it does the same again cannot be compared. */
static int compare_again(struct crashing *c, const struct trial_ask *last) {
    struct resumption again = {0};
    const struct resumption *o = &c->saves[c->saves_n - 1].attempt;
    c->comparable = *attempt_result(c, &c->baseline);
    if (!c->comparable || same(c, o, &c->baseline) || o->how != ATTEMPT_ENDED)
        return 0;
    if (!crashing_try(c, last, &again, 1))
        return EXIT_INTERRUPTED;
    c->comparable = same(c, o, &again);
    return 0;
}

/* It went on from an older step than the one of which it had said that all is there. */
static bool fell_back(const struct save *s, const struct resumption *o) {
    return o->how == ATTEMPT_ENDED && o->resumed < s->step;
}

/* A job that says too early that all is there: what it left when it had done all of the save is
 * taken, and that it was too early is found. Where it goes on from an older step meanwhile, its word
 * holds from when it was given. */
static bool try_ends(struct crashing *c, struct trial_ask *asks, struct resumption *got,
                     size_t begin, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct save *s = &c->saves[begin + i];
        bool bad = got[i].how == ATTEMPT_FAILED || got[i].how == ATTEMPT_HUNG;
        bool older = fell_back(s, &got[i]);
        if (!(bad || older) || s->whole == s->to)
            continue;
        struct trial_ask ask = {whole_state(c, s->to), "", NULL};
        struct resumption at_end = {0};
        if (!crashing_try(c, &ask, &at_end, 1))
            return false;
        if (at_end.how != ATTEMPT_ENDED || (older && fell_back(s, &at_end)))
            continue;
        s->whole = older ? s->whole : s->to;
        asks[i] = ask;
        got[i] = at_end;
    }
    return true;
}

int crashing_try_anchors(struct crashing *c) {
    struct trial_ask asks[ANCHORS_MAX] = {{0}};
    struct resumption got[ANCHORS_MAX] = {{0}};
    size_t begin = c->saves_n > ANCHORS_MAX ? c->saves_n - ANCHORS_MAX : 0, n = c->saves_n - begin;
    bool any = false;
    for (size_t i = 0; i < n; i++)
        asks[i] = (struct trial_ask){whole_state(c, c->saves[begin + i].whole), "", NULL};
    if (!crashing_try(c, asks, got, n) || !try_ends(c, asks, got, begin, n))
        return EXIT_INTERRUPTED;
    c->trials_n = c->states.n;
    c->trials = mem_array(struct resumption, c->trials_n + 1);
    keep_anchors(c, asks, got, begin, n);
    for (size_t i = 0; i < n; i++) {
        if (got[i].how == ATTEMPT_BROKEN) {
            fprintf(stderr, "rankquake crashpoints: %s\n", got[i].why);
            return EXIT_BROKEN;
        }
        any |= got[i].how == ATTEMPT_ENDED;
    }
    if (!any && got[n - 1].how == ATTEMPT_NONE) {
        fprintf(stderr, "rankquake crashpoints: the budget was spent before anything was tried: "
                        "--budget 30m gives more\n");
        return EXIT_INCONCLUSIVE;
    }
    return any ? compare_again(c, &asks[n - 1]) : say_does_not_resume(c, &got[n - 1]);
}
