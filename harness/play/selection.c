#include "harness/play/selection.h"

#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "harness/run/control.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS_MAX = 1000 };

static bool has_tag(const struct scenario *s, const char *tag) {
    for (size_t i = 0; i < s->tags_n; i++)
        if (str_eq(s->tags[i], tag))
            return true;
    return false;
}

static bool is_wanted(const struct selection *s, const struct scenario *x) {
    for (const char *const *t = s->tags; *t; t++)
        if (has_tag(x, **t == '!' ? *t + 1 : *t) == (**t == '!'))
            return false;
    return true;
}

static struct selected *add(struct selection *s) {
    mem_push(s->v, s->n) = (struct selected){0};
    return &s->v[s->n - 1];
}

const char **sets_join(struct arena *a, const char *const *point, const char *const *sets) {
    size_t n = 0, k = 0;
    for (size_t i = 0; point[i]; i++)
        n++;
    for (size_t i = 0; sets && sets[i]; i++)
        n++;
    const char **v = arena_array(a, const char *, n + 1);
    for (; *point; point++)
        v[k++] = *point;
    for (; sets && *sets; sets++)
        v[k++] = *sets;
    return v;
}

const char *const *sets_with_seed(struct arena *a, const char *const *sets, uint64_t seed) {
    const char *set[] = {arena_printf(a, "seed=%llu", (unsigned long long)seed), NULL};
    return sets_join(a, sets, set);
}

bool sets_say(const char *const *sets, const char *key) {
    size_t n = strlen(key);
    for (; sets && *sets; sets++)
        if (str_starts(*sets, key) && (*sets)[n] == '=')
            return true;
    return false;
}

int selected_cache(const struct selected *l, const char *kind, bool by_seed, char *ret,
                   size_t size) {
    char real[PATH_MAX], key[65];
    struct sha256 hash;
    if (!realpath(l->file, real))
        return -errno;
    sha256_init(&hash);
    sha256_update(&hash, real, strlen(real) + 1);
    for (const char *const *s = l->sets; s && *s; s++)
        sha256_update(&hash, *s, strlen(*s) + 1);
    if (by_seed && l->scenario->drawn)
        sha256_update(&hash, &l->plan->seed, sizeof(l->plan->seed));
    sha256_hex(&hash, key);
    return cache_dir(kind, key, ret, size, NULL);
}

static const char *const *includes_of(struct selection *s, const struct diagnostics *d) {
    size_t n = (size_t)d->included_n;
    const char **v = arena_array(&s->arena, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        v[i] = arena_strdup(&s->arena, d->included[i].file);
    return v;
}

static int plan_one(struct selection *s, struct selected *x, uint64_t first, uint64_t last,
                    struct diagnostics *d) {
    x->seed_first = first;
    x->seed_last = last;
    x->said = &s->said;
    x->plan = plan_make(x->scenario, first, d);
    if (x->plan) {
        x->plan->untrusted = s->untrusted;
        x->plan->hosts_said = sets_say(x->sets, "cluster.hosts");
    }
    if (x->plan && s->untrusted)
        plan_refuse_outside(x->plan, d);
    return x->plan && !d->errors ? 0 : EXIT_USAGE_ERROR;
}

/* What is drawn hangs on the seed, so there is a plan for each. */
static int read_seeds(struct selection *s, const struct selected *like, uint64_t first,
                      uint64_t last) {
    int r = 0;
    if (last - first >= SEEDS_MAX)
        return verb_usage_error(s->verb, "%s draws faults: at most %d seeds at once", like->file,
                                SEEDS_MAX);
    for (uint64_t seed = first; seed <= last && r == 0; seed++) {
        ARENA_FINI struct arena a = {0};
        struct diagnostics d = {.within = s->within};
        struct scenario *one = plan_load(like->file, sets_with_seed(&a, like->sets, seed), &d);
        r = EXIT_USAGE_ERROR;
        if (one) {
            struct selected *x = add(s);
            *x = (struct selected){.file = like->file,
                                   .sets = like->sets,
                                   .includes = like->includes,
                                   .scenario = one};
            r = plan_one(s, x, seed, seed, &d);
        }
        fputs(buf_str(&d.out), stderr);
        diagnostics_fini(&d);
    }
    return r;
}

static int take(struct selection *s, struct selected one, struct diagnostics *d) {
    const struct repeat_spec *repeat = &one.scenario->repeat;
    uint64_t own = one.scenario->has_seed ? one.scenario->seed : 1;
    uint64_t first = s->has_seed ? s->seed_first : own, last = s->has_seed ? s->seed_last : own;
    if (repeat->each_seed && !s->counted && first == last)
        last = first + (uint64_t)repeat->runs - 1;
    if (one.scenario->drawn && (s->has_seed || last > first)) {
        scenario_free(one.scenario);
        return read_seeds(s, &one, first, last);
    }
    struct selected *x = add(s);
    *x = one;
    return plan_one(s, x, first, last, d);
}

static int read_point(struct selection *s, const char *file, const char *const *point) {
    struct diagnostics d = {.within = s->within};
    const char **sets = sets_join(&s->arena, point, s->sets);
    for (const char **t = sets; *t; t++)
        *t = arena_strdup(&s->arena, *t); /* the sweep goes */
    struct selected one = {.file = file, .sets = (const char *const *)sets};
    one.scenario = plan_load(file, one.sets, &d);
    one.includes = includes_of(s, &d);
    int r = one.scenario ? 0 : EXIT_USAGE_ERROR;
    if (one.scenario && is_wanted(s, one.scenario))
        r = take(s, one, &d);
    else
        scenario_free(one.scenario);
    fputs(buf_str(&d.out), stderr);
    diagnostics_fini(&d);
    return r;
}

static int read_file(struct selection *s, const char *file, const char *within) {
    s->within = within;
    struct sweep *points = scenario_sweep(file, s->sets, within);
    int r = 0;
    for (size_t i = 0; i < points->n && r == 0; i++)
        r = read_point(s, file, points->v[i]);
    sweep_free(points);
    return r;
}

int selection_read(struct selection *s, const struct scenario_files *files) {
    int code = 0;
    for (size_t i = 0; i < files->n; i++)
        code |= read_file(s, files->v[i], files->within[i]);
    if (code == 0 && !s->n)
        code = verb_usage_error(s->verb, "no scenario has the tags that --tag asks for");
    return code;
}

void selection_fini(struct selection *s) {
    for (size_t i = 0; i < s->n; i++) {
        plan_free(s->v[i].plan);
        scenario_free(s->v[i].scenario);
    }
    free(s->v);
    texts_fini(&s->said);
    arena_fini(&s->arena);
}
