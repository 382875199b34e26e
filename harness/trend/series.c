#include "harness/trend/series.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/trend/change.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- which there are ---- */

bool series_is_wanted(const struct series_wanted *w, const char *measure) {
    if (w->measures && *w->measures)
        return str_in(measure, w->measures);
    return str_eq(measure, "job") || str_ends(measure, "/recover");
}

static struct trend_series *find(struct series_list *s, const struct trend_entry *e,
                                 const char *measure) {
    for (size_t i = 0; i < s->n; i++) {
        struct trend_series *x = &s->v[i];
        if (str_eq(x->measure, measure) && str_eq(x->scenario, e->scenario) &&
            str_eq(x->launcher, e->launcher) && str_eq(x->machine, e->origin.machine))
            return x;
    }
    mem_push(s->v, s->n) = (struct trend_series){.scenario = e->scenario,
                                                 .launcher = e->launcher,
                                                 .machine = e->origin.machine,
                                                 .measure = measure};
    return &s->v[s->n - 1];
}

static void add(struct trend_series *s, const struct trend_entry *e, double value) {
    size_t n = s->n;
    mem_push(s->values, n) = value;
    mem_push(s->runs, s->n) = e;
}

static int by_name(const void *a, const void *b) {
    const struct trend_series *x = a, *y = b;
    int r = strcmp(x->scenario, y->scenario);
    r = r ? r : strcmp(x->launcher, y->launcher);
    r = r ? r : strcmp(x->machine, y->machine);
    return r ? r : strcmp(x->measure, y->measure);
}

void series_list_make(struct series_list *ret, const struct logbook *l,
                      const struct series_wanted *w) {
    *ret = (struct series_list){0};
    for (size_t i = 0; i < l->n; i++) {
        const struct trend_entry *e = l->v[i];
        if (!trend_entry_passed(e) || (w->branch && !str_eq(w->branch, e->origin.branch)) ||
            (w->scenario && !str_eq(w->scenario, e->scenario)))
            continue;
        for (size_t k = 0; k < e->n; k++)
            if (series_is_wanted(w, e->v[k].name) && e->v[k].value > 0)
                add(find(ret, e, e->v[k].name), e, e->v[k].value);
    }
    for (size_t i = 0; i < ret->n; i++)
        ret->v[i].bad = ret->v[i].n;
    if (ret->n)
        qsort(ret->v, ret->n, sizeof(struct trend_series), by_name);
}

void series_list_fini(struct series_list *s) {
    for (size_t i = 0; i < s->n; i++) {
        free(s->v[i].runs);
        free(s->v[i].values);
    }
    free(s->v);
    arena_fini(&s->arena);
    *s = (struct series_list){0};
}

/* ---- where it became worse ---- */

static bool begins_commit(const struct trend_series *s, size_t i) {
    return i > 0 && !str_eq(s->runs[i]->origin.commit, s->runs[i - 1]->origin.commit);
}

/* More goodput is better: all else is a time. */
static double as_time(const struct trend_series *s, size_t i) {
    return str_eq(s->measure, "goodput") ? 1 / s->values[i] : s->values[i];
}

/* Those from `from` up to `end` against those before. */
static struct gate_finding ask(const struct trend_series *s, size_t from, size_t end, double level,
                               const struct gate_options *o) {
    struct gate_run *v = mem_array(struct gate_run, end + 1);
    struct gate_options asked = *o;
    struct gate_finding f;
    asked.level = level;
    for (size_t i = 0; i < end; i++)
        v[i] = (struct gate_run){.time_ns = s->runs[i]->time_ns,
                                 .ms = as_time(s, i),
                                 .calibration_ms = s->runs[i]->calibration_ms,
                                 .mine = i >= from};
    gate_compare(&f, v, end, &asked);
    gate_settle(&f, 1, &asked);
    free(v);
    return f;
}

/* The commit in about [from, end) from which on it is the most. */
static size_t place(const struct trend_series *s, size_t from, size_t end) {
    double *v = mem_array(double, end - from + 1), p;
    for (size_t i = from; i < end; i++)
        v[i - from] = as_time(s, i);
    size_t at = from + change_find(v, end - from, &p);
    free(v);
    while (at > 0 && !begins_commit(s, at))
        at--;
    return at;
}

void series_find_bad(struct trend_series *s, const struct gate_options *o) {
    size_t asked = 0, runs = o->runs;
    s->bad = s->n;
    for (size_t i = runs; i + runs <= s->n; i++)
        asked += begins_commit(s, i);
    for (size_t i = runs; i + runs <= s->n; i++) {
        if (!begins_commit(s, i))
            continue;
        struct gate_finding f = ask(s, i, i + runs, o->level / (double)asked, o);
        if (f.answer != GATE_SLOWER)
            continue;
        size_t at = place(s, i - runs, i + 2 * runs < s->n ? i + 2 * runs : s->n);
        s->bad = at ? at : i;
        s->why = f;
        return;
    }
}

void series_put_value(const char *measure, double value, struct buf *out) {
    if (str_eq(measure, "goodput"))
        buf_printf(out, "%.1f %%", value);
    else if (value < 9.95)
        buf_printf(out, "%.2f ms", value);
    else if (value < 9999.5)
        buf_printf(out, "%.0f ms", value);
    else
        buf_printf(out, "%.2f s", value / 1e3);
}
