#include "harness/scenario/expand/sweep.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "harness/scenario/expand/include.h"
#include "harness/scenario/load.h"

#include <stdlib.h>
#include <string.h>

enum { POINTS_MAX = 1000, KEYS_MAX = 100, TEXT_MAX = 16 << 20 };

/* Either a map of keys and lists, all with all, or a list of maps that have the same keys. */
struct axes {
    const struct yaml *sweep;
    size_t keys, points;
};

/* ---- what the file says ---- */

static bool say_too_many(struct place place, struct diagnostics *d) {
    return diagnostics_add(d, place, "sweep makes more than %d runs; take some out", POINTS_MAX);
}

/* What put_value makes of it, about. */
static size_t text_of(const struct yaml *n) {
    size_t bytes = 8 + (n->text ? strlen(n->text) : 0) + (n->key ? strlen(n->key) : 0);
    yaml_each(it, n) bytes += text_of(it);
    return bytes;
}

/* Every run has a text of every key: a value of a map stands in many. */
static bool fits(const struct axes *x, struct diagnostics *d) {
    size_t bytes = x->sweep->type == YAML_LIST ? text_of(x->sweep) : 0;
    yaml_each(it, x->sweep->type == YAML_MAP ? x->sweep : NULL) bytes +=
        x->points / it->length * text_of(it);
    if (x->keys > KEYS_MAX)
        diagnostics_add(d, x->sweep->place, "sweep has more than %d keys", KEYS_MAX);
    else if (bytes > TEXT_MAX)
        diagnostics_add(d, x->sweep->place,
                        "sweep: its values are too long for %zu runs; give long ones a name under "
                        "vars, and take some out",
                        x->points);
    else
        return true;
    return false;
}

static bool read_matrix(const struct yaml *n, struct axes *x, struct diagnostics *d) {
    x->keys = n->length;
    x->points = 1;
    yaml_each(it, n) {
        if (it->type != YAML_LIST || !it->length)
            return diagnostics_add(
                d, it->place, "sweep: %s must be a list of the values to run with, such as [1, 2]",
                it->key);
        x->points *= it->length;
        if (x->points > POINTS_MAX)
            return say_too_many(n->place, d);
    }
    return true;
}

static bool read_rows(const struct yaml *n, struct axes *x, struct diagnostics *d) {
    x->keys = n->first->length;
    x->points = n->length;
    if (x->points > POINTS_MAX)
        return say_too_many(n->place, d);
    yaml_each(row, n) {
        bool same = row->type == YAML_MAP && row->length == x->keys && row->length;
        yaml_each(it, same ? row : NULL) same &= yaml_get(n->first, it->key) != NULL;
        if (!same)
            return diagnostics_add(
                d, row->place,
                "sweep: every item must be a map of values, all of them of the same "
                "keys, such as {job.max_restarts: 1}");
    }
    return true;
}

/* False: there is none, or (d->errors) a wrong one. */
static bool axes_read(const struct yaml *root, struct axes *ret, struct diagnostics *d) {
    const struct yaml *n = yaml_get(root, "sweep");
    ret->sweep = n;
    if (!n || yaml_is_null(n))
        return false;
    if (n->type == YAML_MAP && n->length)
        return read_matrix(n, ret, d) && fits(ret, d);
    if (n->type == YAML_LIST && n->length)
        return read_rows(n, ret, d) && fits(ret, d);
    return diagnostics_add(d, n->place,
                           "sweep must be a map of keys and the values to run with, such as "
                           "{job.max_restarts: [1, 2]}, not %s",
                           n->length ? yaml_type_name(n) : "empty");
}

static const struct yaml *item(const struct yaml *list, size_t i) {
    const struct yaml *it = list->first;
    while (i--)
        it = it->next;
    return it;
}

static const char *axes_key(const struct axes *x, size_t k) {
    return item(x->sweep->type == YAML_MAP ? x->sweep : x->sweep->first, k)->key;
}

/* The last key is the one that changes first. */
static const struct yaml *axes_value(const struct axes *x, size_t point, size_t k) {
    if (x->sweep->type == YAML_LIST)
        return yaml_get(item(x->sweep, point), axes_key(x, k));
    const struct yaml *values = item(x->sweep, k);
    for (const struct yaml *it = values->next; it; it = it->next)
        point /= it->length;
    return item(values, point % values->length);
}

/* ---- as text ---- */

/* In the form that --set takes; what was plain and could be a number stays plain. */
static void put_value(const struct yaml *n, struct buf *out) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+";
    struct json_writer w = {.out = out};
    if (yaml_is_null(n))
        buf_puts(out, "null");
    else if (n->type == YAML_SCALAR && !n->quoted && !n->text[strspn(n->text, plain)])
        buf_puts(out, n->text);
    else if (n->type == YAML_SCALAR)
        json_put_string(&w, NULL, n->text);
    if (n->type == YAML_SCALAR)
        return;
    buf_putc(out, n->type == YAML_LIST ? '[' : '{');
    yaml_each(it, n) {
        buf_puts(out, it == n->first ? "" : ", ");
        if (n->type == YAML_MAP) {
            struct json_writer key = {.out = out};
            json_put_string(&key, NULL, it->key);
            buf_puts(out, ": ");
        }
        put_value(it, out);
    }
    buf_putc(out, n->type == YAML_LIST ? ']' : '}');
}

static const char *set_of(struct arena *a, const char *key, const struct yaml *value) {
    BUF_FINI struct buf text = {0};
    buf_printf(&text, "%s=", key);
    put_value(value, &text);
    return arena_strdup(a, buf_str(&text));
}

/* The last override of exactly this key, NULL: there is none. */
static const char *find_set(const char *const *set, const char *key) {
    const char *found = NULL;
    size_t n = strlen(key);
    for (size_t i = 0; set && set[i]; i++)
        if (strncmp(set[i], key, n) == 0 && set[i][n] == '=')
            found = set[i];
    return found;
}

/* ---- one point ---- */

/* ".max_restarts-1": letters, digits and -_ only, as in every name. */
static void put_name(const char *set, struct buf *out) {
    const char *equals = strchr(set, '='), *s = equals;
    while (s > set && s[-1] != '.')
        s--;
    buf_putc(out, '.');
    for (; *s; s++) {
        bool fine = (*s >= '0' && *s <= '9') || ((*s | 32) >= 'a' && (*s | 32) <= 'z') ||
                    (*s && strchr("-_", *s));
        if (fine || s == equals)
            buf_putc(out, fine ? *s : '-');
    }
}

/* The value that the override names if the sweep has it, so that messages show its line. */
static const struct yaml *value_set(struct arena *a, const struct axes *x, size_t k,
                                    const char *set) {
    for (size_t p = 0; p < x->points; p++) {
        const struct yaml *v = axes_value(x, p, k);
        if (str_eq(set_of(a, axes_key(x, k), v), set))
            return v;
    }
    return NULL;
}

const char *sweep_settle(struct arena *a, struct yaml *root, struct diagnostics *d) {
    struct axes x;
    BUF_FINI struct buf name = {0};
    if (!axes_read(root, &x, d))
        return "";
    for (size_t k = 0; k < x.keys; k++) {
        const char *key = axes_key(&x, k), *set = find_set(d->set, key);
        const struct yaml *v = set ? value_set(a, &x, k, set) : axes_value(&x, 0, k);
        put_name(set ? set : set_of(a, key, v), &name);
        if (v)
            override_put(a, root, key, v, d);
    }
    return arena_strdup(a, buf_str(&name));
}

void sweep_read(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
}

/* ---- all of them ---- */

static bool same(const char *const *a, const char *const *b) {
    while (*a && *b && str_eq(*a, *b))
        a++, b++;
    return !*a && !*b;
}

/* Without what is fixed already; two points that differ in nothing else are one. */
static void add_point(struct sweep *s, const struct axes *x, const char *const *set, size_t p) {
    const char **v = arena_array(&s->arena, const char *, x->keys + 1);
    size_t n = 0;
    for (size_t k = 0; k < x->keys; k++)
        if (!find_set(set, axes_key(x, k)))
            v[n++] = set_of(&s->arena, axes_key(x, k), axes_value(x, p, k));
    for (size_t i = 0; i < s->n; i++)
        if (same(s->v[i], v))
            return;
    s->v[s->n++] = v;
}

struct sweep *scenario_sweep(const char *file, const char *const *set, const char *within) {
    struct sweep *s = mem_new(struct sweep);
    struct diagnostics d = {.file = file, .set = set, .within = within};
    struct axes x = {.points = 1};
    struct yaml *root = include_read(&s->arena, file, &d);
    for (int i = 0; root && root->type == YAML_MAP && set && set[i]; i++)
        override_apply(&s->arena, root, set[i], i + 1, &d);
    bool swept = root && axes_read(root, &x, &d);
    s->v = arena_array(&s->arena, const char *const *, x.points + 1);
    for (size_t p = 0; swept && p < x.points; p++)
        add_point(s, &x, set, p);
    if (!swept)
        s->v[s->n++] = arena_array(&s->arena, const char *, 1);
    diagnostics_fini(&d); /* scenario_load says what is wrong */
    return s;
}

struct sweep *sweep_free(struct sweep *s) {
    if (s) {
        struct arena a = s->arena;
        arena_fini(&a);
        free(s);
    }
    return NULL;
}
