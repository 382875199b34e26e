/* Puts values in the place of {names}. */
#include "base/str.h"
#include "harness/scenario/expand/sweep.h"

#include <string.h>

static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";

struct vars {
    struct arena *arena;
    const struct yaml *all;
    struct diagnostics *d;
    bool *used;           /* in their order */
    size_t bytes, values; /* put in so far */
};

/* The variable that "{name}" at the beginning of s means, NULL: none; *ret_len of all of it. */
static const struct yaml *find(const struct vars *v, const char *s, size_t *ret_len) {
    size_t n = strspn(s + 1, letters);
    if (*s != '{' || !n || s[1 + n] != '}')
        return NULL;
    *ret_len = n + 2;
    const struct yaml *found = NULL;
    size_t i = 0;
    yaml_each(it, v->all) {
        bool same = strlen(it->key) == n && strncmp(it->key, s + 1, n) == 0;
        v->used[i++] |= same;
        if (same && !found)
            found = it;
    }
    return found;
}

static void count(const struct yaml *n, size_t *bytes, size_t *values) {
    *bytes += n->text ? strlen(n->text) : 0;
    ++*values;
    yaml_each(it, n) count(it, bytes, values);
}

/* A variable that stands in many places makes much out of a small file: not more than the file
 * could have said itself. False: it would, which has been said. */
static bool has_room(struct vars *v, const struct yaml *var, struct place p) {
    bool had = v->bytes <= YAML_SIZE_MAX && v->values <= YAML_VALUES_MAX;
    if (had)
        count(var, &v->bytes, &v->values);
    bool has = v->bytes <= YAML_SIZE_MAX && v->values <= YAML_VALUES_MAX;
    if (had && !has)
        diagnostics_add(v->d, p,
                        "{%s}: with it vars put more than 1 MiB or %d values into the file; let it "
                        "stand in fewer places, or be smaller",
                        var->key, YAML_VALUES_MAX);
    return has;
}

/* ${name} is the shell's. */
static void put_into_text(struct vars *v, struct yaml *n) {
    BUF_FINI struct buf text = {0};
    bool found = false;
    for (const char *s = n->text; *s; s++) {
        size_t len = 0;
        const struct yaml *var = s > n->text && s[-1] == '$' ? NULL : find(v, s, &len);
        if (!var) {
            buf_putc(&text, *s);
            continue;
        }
        if (var->type != YAML_SCALAR)
            diagnostics_add(v->d, n->place, "{%s} is %s, which cannot stand within a text",
                            var->key, yaml_type_name(var));
        else if (has_room(v, var, n->place))
            buf_puts(&text, var->text);
        found = true;
        s += len - 1;
    }
    if (found)
        n->text = arena_strdup(v->arena, buf_str(&text));
}

static void put_into(struct vars *v, struct yaml *n) {
    size_t len = 0;
    if (n->type == YAML_SCALAR) {
        const struct yaml *var = find(v, n->text, &len);
        if (!var || n->text[len]) {
            put_into_text(v, n);
            return;
        }
        if (!has_room(v, var, n->place))
            return;
        n->type = var->type;
        n->text = var->text;
        n->quoted = var->quoted;
        n->place = var->place; /* what is wrong with it is wrong there */
        n->first = var->first;
        n->last = var->last;
        n->length = var->length;
        return;
    }
    for (struct yaml *it = n->first; it; it = it->next)
        if (it != v->all)
            put_into(v, it);
}

static bool check_names(const struct yaml *vars, struct diagnostics *d) {
    static const char *const taken[] = {"shared", "disk",     "tmp",    "out",     "seed", "node",
                                        "nodes",  "endpoint", "worker", "address", NULL};
    int before = d->errors;
    yaml_each(it, vars) {
        if (!*it->key || it->key[strspn(it->key, letters)])
            diagnostics_add(d, it->key_place,
                            "vars: \"%s\" must be small letters and _, as it stands in braces",
                            it->key);
        for (size_t i = 0; taken[i]; i++)
            if (str_eq(it->key, taken[i]))
                diagnostics_add(d, it->key_place,
                                "vars: {%s} means something already; choose another name", it->key);
    }
    return d->errors == before;
}

/* Whoever sets a variable that stands nowhere has mistyped it. */
static void check_used(const struct vars *v) {
    size_t n = 0, i = 0;
    const char **own = arena_array(v->arena, const char *, v->all->length + 1);
    yaml_each(it, v->all) if (it->place.line > 0) own[n++] = it->key;
    own[n] = NULL;
    yaml_each(it, v->all) {
        const char *near = n ? str_nearest(it->key, own) : NULL;
        if (!v->used[i++] && it->place.line < 0 &&
            str_starts(v->d->set[-it->place.line - 1], "vars."))
            diagnostics_add(v->d, it->place, "{%s} stands nowhere in the scenario%s%s%s", it->key,
                            near ? "; did you mean vars." : "", near ? near : "", near ? "?" : "");
    }
}

void vars_apply(struct arena *a, struct yaml *root, struct diagnostics *d) {
    const struct yaml *vars = yaml_get(root, "vars");
    if (!vars || yaml_is_null(vars))
        return;
    if (vars->type != YAML_MAP)
        diagnostics_add(d, vars->place, "vars must be a map of names and values, not %s",
                        yaml_type_name(vars));
    else if (check_names(vars, d)) {
        struct vars v = {a, vars, d, arena_array(a, bool, vars->length + 1), 0, 0};
        put_into(&v, root);
        check_used(&v);
    }
}

void vars_read(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
}
