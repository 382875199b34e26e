#include "harness/certify/difference.h"

#include "base/printable.h"
#include "base/str.h"

#include <string.h>

struct difference_walk {
    struct arena arena;
    const char *const *left_out;
    void (*told)(void *arg, const struct difference *d);
    void *arg;
    size_t n;
};

static void compare(struct difference_walk *w, const char *path, const struct json *was,
                    const struct json *is);

static void tell(struct difference_walk *w, const char *path, const struct json *was,
                 const struct json *is) {
    struct difference d = {.path = *path ? path : "all of it", .was = was, .is = is};
    w->n++;
    w->told(w->arg, &d);
}

static bool is_left_out(const struct difference_walk *w, const char *key) {
    return w->left_out && str_in(key, w->left_out);
}

static const char *below(struct difference_walk *w, const char *path, const char *key) {
    return *path ? arena_printf(&w->arena, "%s.%s", path, key) : key;
}

static void compare_objects(struct difference_walk *w, const char *path, const struct json *was,
                            const struct json *is) {
    json_each(m, was) if (!is_left_out(w, m->key))
        compare(w, below(w, path, m->key), m, json_get(is, m->key));
    json_each(m, is) if (!is_left_out(w, m->key) && !json_get(was, m->key))
        tell(w, below(w, path, m->key), NULL, m);
}

static const char *name_of(const struct json *j) {
    return json_get_string(j, "name", NULL);
}

/* The k-th of those with this name. */
static const struct json *find_named(const struct json *in, const char *name, size_t k) {
    json_each(m, in) if (str_eq(name_of(m), name) && k-- == 0) return m;
    return NULL;
}

static size_t count_before(const struct json *in, const struct json *of) {
    size_t n = 0;
    json_each(m, in) {
        if (m == of)
            break;
        n += str_eq(name_of(m), name_of(of));
    }
    return n;
}

static const struct json *element(const struct json *in, size_t i) {
    json_each(m, in) if (i-- == 0) return m;
    return NULL;
}

static void compare_arrays(struct difference_walk *w, const char *path, const struct json *was,
                           const struct json *is) {
    size_t i = 0;
    bool named = name_of(json_first(was)) || name_of(json_first(is));
    json_each(m, was) {
        size_t k = named ? count_before(was, m) : i;
        const char *at = named ? below(w, path, name_of(m) ? name_of(m) : "?")
                               : arena_printf(&w->arena, "%s[%zu]", path, i);
        if (named && k)
            at = arena_printf(&w->arena, "%s[%zu]", at, k);
        compare(w, at, m, named ? find_named(is, name_of(m), k) : element(is, i));
        i++;
    }
    i = 0;
    json_each(m, is) {
        bool there = named ? find_named(was, name_of(m), count_before(is, m)) : element(was, i);
        if (!there)
            tell(w,
                 named ? below(w, path, name_of(m) ? name_of(m) : "?")
                       : arena_printf(&w->arena, "%s[%zu]", path, i),
                 NULL, m);
        i++;
    }
}

static bool same_value(const struct json *a, const struct json *b) {
    switch (a->type) {
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return a->boolean == b->boolean;
    case JSON_INT:
        return a->integer == b->integer;
    case JSON_DOUBLE:
        return !(a->number < b->number || a->number > b->number);
    case JSON_STRING:
        return a->length == b->length && memcmp(a->string, b->string, a->length) == 0;
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    return false;
}

static void compare(struct difference_walk *w, const char *path, const struct json *was,
                    const struct json *is) {
    if (!is || was->type != is->type)
        tell(w, path, was, is);
    else if (was->type == JSON_OBJECT)
        compare_objects(w, path, was, is);
    else if (was->type == JSON_ARRAY)
        compare_arrays(w, path, was, is);
    else if (!same_value(was, is))
        tell(w, path, was, is);
}

size_t difference_each(const struct json *was, const struct json *is, const char *const *left_out,
                       void (*told)(void *arg, const struct difference *d), void *arg) {
    struct difference_walk w = {.left_out = left_out, .told = told, .arg = arg};
    compare(&w, "", was, is);
    arena_fini(&w.arena);
    return w.n;
}

void difference_put_value(const struct json *j, struct buf *out) {
    if (!j)
        buf_puts(out, "nothing");
    else if (j->type == JSON_STRING)
        printable_puts(out, j->string);
    else if (j->type == JSON_ARRAY || j->type == JSON_OBJECT)
        buf_printf(out, "%zu %s", j->length, j->type == JSON_ARRAY ? "elements" : "members");
    else if (j->type == JSON_INT)
        buf_printf(out, "%lld", (long long)j->integer);
    else
        buf_puts(out, j->type == JSON_BOOL ? j->boolean ? "yes" : "no" : "nothing");
}
