#include "harness/verbs/selection.h"

#include "agent/base/str.h"
#include "harness/verbs.h"

#include <stdlib.h>

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
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 16;
        s->v = realloc(s->v, s->cap * sizeof(*s->v));
        if (!s->v)
            abort(); /* out of memory */
    }
    s->v[s->n] = (struct selected){0};
    return &s->v[s->n++];
}

const char *const *sets_join(struct arena *a, const char *const *point, const char *const *sets) {
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

static int plan_one(struct selection *s, struct selected *x, struct diagnostics *d) {
    uint64_t own = x->scenario->has_seed ? x->scenario->seed : 1;
    x->seed_first = s->has_seed ? s->seed_first : own;
    x->seed_last = s->has_seed ? s->seed_last : own;
    x->plan = plan_make(x->scenario, x->seed_first, d);
    return x->plan ? 0 : EXIT_USAGE_ERROR;
}

static int read_point(struct selection *s, const char *file, const char *const *point) {
    struct diagnostics d = {0};
    const char **sets = (const char **)sets_join(&s->arena, point, s->sets);
    for (const char **t = sets; *t; t++)
        *t = arena_strdup(&s->arena, *t); /* the sweep goes */
    struct scenario *scenario = scenario_load(file, (const char *const *)sets, &d);
    int r = scenario ? 0 : EXIT_USAGE_ERROR;
    if (scenario && is_wanted(s, scenario)) {
        struct selected *x = add(s);
        *x = (struct selected){
            .file = file, .sets = (const char *const *)sets, .scenario = scenario};
        r = plan_one(s, x, &d);
    } else {
        scenario_free(scenario);
    }
    fputs(buf_str(&d.out), stderr);
    diagnostics_fini(&d);
    return r;
}

static int read_file(struct selection *s, const char *file) {
    struct sweep *points = scenario_sweep(file, s->sets);
    int r = 0;
    for (size_t i = 0; i < points->n && r == 0; i++)
        r = read_point(s, file, points->v[i]);
    sweep_free(points);
    return r;
}

int selection_read(struct selection *s, const struct scenario_files *files) {
    int code = 0;
    for (size_t i = 0; i < files->n; i++)
        code |= read_file(s, files->v[i]);
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
    arena_fini(&s->arena);
}
