#include "harness/scenario/expand/include.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/scenario/load.h"

#include <stdlib.h>
#include <string.h>

enum { INCLUDES_MAX = 32 };

/* A file, and the one that includes it. */
struct chain {
    const char *file;
    const struct chain *up;
};

/* ---- two trees into one ---- */

static bool is_its_own(const char *key) {
    static const char *const keys[] = {"scenario", "about", "source", "tags", "include", NULL};
    for (int i = 0; keys[i]; i++)
        if (str_eq(keys[i], key))
            return true;
    return false;
}

static void take_out(struct yaml *map, const struct yaml *child) {
    struct yaml *before = NULL;
    for (struct yaml *n = map->first; n != child; n = n->next)
        before = n;
    *(before ? &before->next : &map->first) = child->next;
    if (map->last == child)
        map->last = before;
    map->length--;
}

/* Puts what only base has into own. A key that own gives as nothing is gone from both. */
static void put_under(struct arena *a, struct yaml *own, const struct yaml *base, bool top) {
    yaml_each(it, base) {
        struct yaml *mine = yaml_get(own, it->key);
        if (top && is_its_own(it->key))
            continue;
        if (!mine) {
            struct yaml *copy = arena_new(a, struct yaml);
            *copy = *it;
            copy->next = NULL;
            yaml_put(own, copy);
            copy->key_place = it->key_place;
        } else if (yaml_is_null(mine)) {
            take_out(own, mine);
        } else if (mine->type == YAML_MAP && it->type == YAML_MAP) {
            put_under(a, mine, it, false);
        }
    }
}

/* ---- files ---- */

const char *include_beside(struct arena *a, const char *file, const char *name) {
    const char *slash = strrchr(file, '/');
    return *name == '/' || !slash ? name
                                  : arena_printf(a, "%.*s/%s", (int)(slash - file), file, name);
}

static bool is_in(const struct chain *c, const char *file) {
    char real[4096], other[4096];
    if (!realpath(file, real))
        return false;
    for (; c; c = c->up)
        if (realpath(c->file, other) && str_eq(real, other))
            return true;
    return false;
}

bool include_begin_file(struct diagnostics *d, const char *file, struct place p) {
    if (d->included_n == INCLUDES_MAX)
        return diagnostics_add(d, p, "more than %d files are included", INCLUDES_MAX);
    if (!d->included)
        d->included = mem_array(struct included, INCLUDES_MAX);
    d->included[d->included_n++] = (struct included){.file = mem_strdup(file)};
    d->reading = d->included_n;
    return true;
}

static void resolve(struct arena *a, struct yaml *root, const struct chain *c,
                    struct diagnostics *d);

/* The tree of an included file, with what that includes; NULL after adding the error. */
static struct yaml *read_included(struct arena *a, const char *name, struct place p,
                                  const struct chain *up, struct diagnostics *d) {
    struct chain c = {include_beside(a, up->file, name), up};
    int before = d->reading;
    struct buf *source;
    if (is_in(up, c.file)) {
        diagnostics_add(d, p, "include: %s includes itself", name);
        return NULL;
    }
    if (!include_begin_file(d, c.file, p))
        return NULL;
    source = diagnostics_source(d, d->reading);
    struct yaml *root = NULL;
    if (source_read_into(c.file, source, p, arena_printf(a, "include: %s ", name), d))
        root = yaml_parse(a, buf_str(source), source->len, 0, d);
    if (root && (root->type != YAML_MAP || yaml_get(root, "suite"))) {
        diagnostics_add(d, p, "include: %s is %s, not a map of a scenario's keys", name,
                        root->type == YAML_MAP ? "a suite" : yaml_type_name(root));
        root = NULL;
    }
    if (root)
        resolve(a, root, &c, d);
    d->reading = before;
    return root;
}

/* From the last to the first, for the later has the last word. */
static void include_from(struct arena *a, struct yaml *root, const struct yaml *list, size_t i,
                         const struct chain *c, struct diagnostics *d) {
    const struct yaml *it = list->first;
    for (size_t k = 0; k < i; k++)
        it = it->next;
    if (it->type != YAML_SCALAR || yaml_is_null(it)) {
        diagnostics_add(d, it->place, "include must be a file or a list of files; this is %s",
                        yaml_type_name(it));
        return;
    }
    const struct yaml *base = read_included(a, it->text, it->place, c, d);
    if (base)
        put_under(a, root, base, true);
}

static void resolve(struct arena *a, struct yaml *root, const struct chain *c,
                    struct diagnostics *d) {
    struct yaml *n = yaml_get(root, "include");
    if (!n)
        return;
    struct yaml one = *n, alone = {.type = YAML_LIST, .first = &one, .length = 1};
    one.next = NULL;
    const struct yaml *list = n->type == YAML_LIST ? n : &alone;
    for (size_t i = list->length; i-- > 0;)
        include_from(a, root, list, i, c, d);
}

struct yaml *include_read(struct arena *a, const char *file, struct diagnostics *d) {
    int before = d->errors;
    struct yaml *root = NULL;
    if (source_read(file, d))
        root = yaml_parse(a, buf_str(&d->source), d->source.len, 0, d);
    if (root && root->type == YAML_MAP && !yaml_get(root, "suite"))
        resolve(a, root, &(struct chain){file, NULL}, d);
    return d->errors > before ? NULL : root;
}

void include_check(const struct yaml *root, struct diagnostics *d) {
    const struct yaml *n = yaml_get(root, "include");
    if (n && n->place.line < 0)
        diagnostics_add(d, n->place,
                        "files are included before anything is set; name another file, "
                        "or write a small one that includes both");
}

void include_ignore(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
}
