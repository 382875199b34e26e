#include "reports/curve/curve.h"

#include "base/mem.h"
#include "base/str.h"
#include "reports/story.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct curve_report *const curve_reports[] = {
#define X(name) &curve_##name,
    CURVE_REPORTS(X)
#undef X
        NULL};

const struct curve_report *curve_report_find(const char *name) {
    for (size_t i = 0; curve_reports[i]; i++)
        if (str_eq(curve_reports[i]->name, name))
            return curve_reports[i];
    return NULL;
}

/* ---- reading runs ---- */

/* KEY=VALUE without the quotes that YAML wants around "50%". */
static const char *unquoted(struct arena *a, const char *set) {
    const char *value = strchr(set, '=');
    size_t n = value ? strlen(value) : 0;
    if (n < 3 || value[1] != '"' || value[n - 1] != '"')
        return arena_strdup(a, set);
    return arena_printf(a, "%.*s=%.*s", (int)(value - set), set, (int)(n - 3), value + 2);
}

/* The overrides of a run, in the arena, NULL-ended; the seed is no value of a sweep. */
static const char **sets_of(struct arena *a, const struct recorded_run *run) {
    const struct json *set = run->history->n ? record_get(run->history->records[0], "set") : NULL;
    const char **v = arena_array(a, const char *, (set ? set->length : 0) + 1);
    size_t n = 0;
    json_each(it, set) if (!str_starts(json_string(it, ""), "seed=")) v[n++] =
        unquoted(a, json_string(it, ""));
    return v;
}

static void take_times(struct curve_run *r, const struct recorded_run *run) {
    struct incidents is;
    double lost = 0;
    bool ended = false;
    incidents_load(&is, run->history, run->rounds);
    for (size_t i = 0; i < is.n; i++) {
        double ms = (double)is.v[i]->recover_ns / 1e6;
        ended |= is.v[i]->ended_round;
        if (is.v[i]->recover_ns >= 0 && !(r->y[CURVE_RECOVERY] >= ms))
            r->y[CURVE_RECOVERY] = ms;
    }
    for (size_t i = 0; i + 1 < run->rounds->n; i++) {
        int64_t again = story_steps_again(run->rounds->v[i], run->rounds->v[i + 1]);
        lost += again > 0 ? (double)again : 0;
    }
    if (ended)
        r->y[CURVE_LOST_WORK] = lost;
    incidents_fini(&is);
}

void curve_add(struct curve *c, const struct recorded_run *run, const char *dir) {
    const struct goodput *g = &run->verdict->goodput;
    const char ***sets = c->sets;
    size_t n = c->n;
    struct curve_run r = {
        .value = "", .dir = dir, .exit_code = run->verdict->exit_code, .y = {NAN, NAN, NAN}};
    if (run->history->n)
        r.seed = record_i64(run->history->records[0], "seed", 1);
    if (goodput_is_known(g))
        r.y[CURVE_GOODPUT] = g->percent;
    take_times(&r, run);
    if (!c->name) {
        const char *name = run->scenario->name;
        c->name = arena_strndup(&c->arena, name, strcspn(name, "."));
        c->about = arena_strdup(&c->arena, run->scenario->about ? run->scenario->about : "");
    }
    mem_push(c->runs, c->n) = r;
    mem_push(sets, n) = sets_of(&c->arena, run);
    c->sets = sets;
}

/* ---- values ---- */

bool curve_number(const char *text, double *ret) {
    static const struct {
        const char *unit;
        double worth;
    } units[] = {{"", 1},       {"%", 1},      {"us", 1e3}, {"ms", 1e6},   {"s", 1e9},
                 {"m", 60e9},   {"h", 3600e9}, {"bit", 1},  {"kbit", 1e3}, {"mbit", 1e6},
                 {"gbit", 1e9}, {"k", 1e3},    {"M", 1e6},  {"G", 1e9}};
    char *end;
    double number = strtod(text, &end);
    if (end == text || !isfinite(number))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (str_eq(end, units[i].unit)) {
            *ret = number * units[i].worth;
            return true;
        }
    return false;
}

/* The value of a key among the overrides; the last one counts. "": it is not there. */
static const char *value_of(const char *const *sets, const char *key, size_t n) {
    const char *found = "";
    for (; *sets; sets++)
        if (strncmp(*sets, key, n) == 0 && (*sets)[n] == '=')
            found = *sets + n + 1;
    return found;
}

static bool varies(const struct curve *c, const char *key, size_t n) {
    const char ***sets = c->sets;
    for (size_t i = 1; i < c->n; i++)
        if (!str_eq(value_of(sets[i], key, n), value_of(sets[0], key, n)))
            return true;
    return false;
}

static int by_place(const void *pa, const void *pb) {
    const struct curve_run *a = pa, *b = pb;
    if (a->x != b->x)
        return a->x < b->x ? -1 : 1;
    return (a->seed > b->seed) - (a->seed < b->seed);
}

/* Words are drawn in the order in which they came. */
static void place(struct curve *c) {
    c->numbers = true;
    for (size_t i = 0; i < c->n; i++)
        c->numbers &= curve_number(c->runs[i].value, &c->runs[i].x);
    for (size_t i = 0; i < c->n && !c->numbers; i++) {
        c->runs[i].x = (double)i;
        for (size_t k = i; k-- > 0;)
            if (str_eq(c->runs[k].value, c->runs[i].value))
                c->runs[i].x = c->runs[k].x;
    }
    qsort(c->runs, c->n, sizeof(*c->runs), by_place);
    for (size_t i = 0, k = 0; i < c->n && !c->numbers; k++) {
        size_t same = curve_same(c, i);
        for (size_t end = i + same; i < end; i++)
            c->runs[i].x = (double)k;
    }
    double low = c->runs[0].x, high = c->runs[c->n - 1].x;
    c->log = c->numbers && low > 0 && high / low >= 20;
}

int curve_settle(struct curve *c, struct err *err) {
    const char ***sets = c->sets;
    for (size_t i = 0; i < c->n; i++)
        for (const char **s = sets[i]; *s; s++) {
            size_t n = strcspn(*s, "=");
            bool known = c->key && strlen(c->key) == n && strncmp(c->key, *s, n) == 0;
            if (known || !varies(c, *s, n))
                continue;
            if (c->key)
                return err_say(err, -EINVAL,
                               "these runs differ in %s and in %.*s; a curve is of one: give those "
                               "that differ in one of the two",
                               c->key, (int)n, *s);
            c->key = arena_strndup(&c->arena, *s, n);
        }
    if (!c->key)
        return err_say(err, -EINVAL,
                       "these runs differ in no value that was set; give several of one sweep");
    for (size_t i = 0; i < c->n; i++)
        c->runs[i].value = value_of(sets[i], c->key, strlen(c->key));
    place(c);
    return 0;
}

void curve_fini(struct curve *c) {
    free(c->runs);
    free(c->sets);
    arena_fini(&c->arena);
}

/* ---- figures ---- */

const char *curve_title(enum curve_measure m) {
    static const char *const titles[] = {"goodput, % of the control run's pace", "recovery, ms",
                                         "steps made again"};
    return titles[m];
}

bool curve_is_drawn(const struct curve_run *r, enum curve_measure m) {
    return r->exit_code == 0 && isfinite(r->y[m]);
}

bool curve_has(const struct curve *c, enum curve_measure m) {
    for (size_t i = 0; i < c->n; i++)
        if (curve_is_drawn(&c->runs[i], m))
            return true;
    return false;
}

void curve_put_figure(const struct curve_run *r, enum curve_measure m, struct buf *out) {
    static const char *const units[] = {" %", " ms", ""};
    if (curve_is_drawn(r, m))
        buf_printf(out, "%.0f%s", r->y[m], units[m]);
    else
        buf_puts(out, "-");
}

size_t curve_same(const struct curve *c, size_t i) {
    size_t n = 1;
    while (i + n < c->n && c->runs[i + n].x == c->runs[i].x)
        n++;
    return n;
}

static int by_number(const void *pa, const void *pb) {
    double a = *(const double *)pa, b = *(const double *)pb;
    return (a > b) - (a < b);
}

double curve_median(const struct curve *c, size_t i, size_t n, enum curve_measure m) {
    double *v = mem_array(double, n), median = NAN;
    size_t k = 0;
    for (size_t end = i + n; i < end; i++)
        if (curve_is_drawn(&c->runs[i], m))
            v[k++] = c->runs[i].y[m];
    qsort(v, k, sizeof(*v), by_number);
    if (k)
        median = (v[(k - 1) / 2] + v[k / 2]) / 2;
    free(v);
    return median;
}
