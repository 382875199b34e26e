#include "harness/scenario/reader.h"

#include "base/str.h"
#include "harness/scenario/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first section but this one that knows the word: it was written one level too deep or too
 * high. */
static const char *home_of(const struct section * not, const char *word) {
    size_t it = 0;
    const struct section *s = NULL;
    if (strchr(word, '.'))
        return NULL;
    while (keys_find(word, &it, &s))
        if (s != not )
            return s->name;
    return NULL;
}

static void unknown_key(struct reader *r, const struct section *s, const struct yaml *n) {
    const char *near = section_nearest(s, n->key), *home = home_of(s, n->key);
    if (home && (!near || strcmp(near, n->key) != 0))
        diagnostics_add(r->d, n->key_place, "%s has no key \"%s\"; it belongs %s %s", s->name,
                        n->key, str_eq(home, "scenario") ? "at the top level of the" : "under",
                        home);
    else if (near)
        diagnostics_add(r->d, n->key_place, "%s has no key \"%s\"; did you mean \"%s\"?", s->name,
                        n->key, near);
    else
        diagnostics_add(r->d, n->key_place,
                        "%s has no key \"%s\"; `rankquake explain %s` lists those it has", s->name,
                        n->key, s->name);
}

static void read_default(struct reader *r, const struct section *s, const struct key *k,
                         const struct yaml *n, void *out) {
    if (k->required) {
        diagnostics_add(r->d, n ? n->place : (struct place){0}, "%s needs \"%s\"%s%s", s->name,
                        k->name, k->example ? ", for example " : "", k->example ? k->example : "");
    } else if (k->read && k->default_text && *k->default_text != '(') {
        struct yaml v = {.type = YAML_SCALAR, .text = k->default_text, .key = k->name};
        k->read(r, k, &v, out);
    }
}

static void read_value(struct reader *r, const struct key *k, const struct yaml *v, void *out) {
    if (k->place)
        *(struct place *)(void *)((char *)out + k->place) = v->place;
    if (k->said)
        *(bool *)((char *)out + k->said) = true;
    if (k->read)
        k->read(r, k, v, out);
}

void reader_section(struct reader *r, const struct section *s, const struct yaml *n, void *out) {
    if (n && n->type != YAML_MAP && !yaml_is_null(n)) {
        diagnostics_add(r->d, n->place, "%s must be a map, such as {%s: ...}, not %s", s->name,
                        s->keys->name, yaml_type_name(n));
        return;
    }
    yaml_each(it, n) {
        const struct key *k = section_key(s, it->key);
        if (!k)
            unknown_key(r, s, it);
        else if (!k->read)
            diagnostics_add(r->d, it->key_place, "\"%s\" is not built yet", k->name);
    }
    for (const struct key *k = s->keys; k->name; k++) {
        const struct yaml *v = n ? yaml_get(n, k->name) : NULL;
        if (!v)
            read_default(r, s, k, n, out);
        else
            read_value(r, k, v, out);
    }
}

/* {name}, which YAML takes for a map. */
static bool is_variable(const struct yaml *n) {
    return n->length == 1 && yaml_is_null(n->first);
}

bool reader_is_scalar(struct reader *r, const struct key *k, const struct yaml *n) {
    if (n->type == YAML_LIST)
        diagnostics_add(
            r->d, n->place,
            "%s must be %s, not a list; values to run with one after the other stand in "
            "sweep",
            k->name, k->type);
    else if (n->type == YAML_MAP)
        diagnostics_add(r->d, n->place, "%s must be %s, not a map%s", k->name, k->type,
                        is_variable(n) ? "; a variable is written in quotes, \"{name}\"" : "");
    else if (yaml_is_null(n))
        diagnostics_add(r->d, n->key_place.line ? n->key_place : n->place,
                        "%s has no value; it must be %s", k->name, k->type);
    else
        return true;
    return false;
}

void reader_text(struct reader *r, const struct key *k, const struct yaml *n, void *section) {
    if (!reader_is_scalar(r, k, n))
        return;
    if (!*n->text) {
        diagnostics_add(r->d, n->place, "%s is empty; it must be %s", k->name, k->type);
        return;
    }
    *(const char **)((char *)section + k->offset) = n->text;
}

bool reader_number(struct reader *r, const struct key *k, const struct yaml *n, int64_t *ret) {
    if (!reader_is_scalar(r, k, n))
        return false;
    int64_t v;
    if (n->quoted || !str_to_i64(n->text, INT64_MIN, INT64_MAX, &v))
        diagnostics_add(r->d, n->place, "%s must be %s, not %s\"%s\"", k->name, k->type,
                        n->quoted ? "the text " : "", n->text);
    else if (v < k->min || v > k->max)
        diagnostics_add(r->d, n->place, "%s must be from %lld to %lld, not %s", k->name,
                        (long long)k->min, (long long)k->max, n->text);
    else
        return *ret = v, true;
    return false;
}

void reader_int(struct reader *r, const struct key *k, const struct yaml *n, void *section) {
    int64_t v;
    if (reader_number(r, k, n, &v))
        *(int *)(void *)((char *)section + k->offset) = (int)v;
}

void reader_i64(struct reader *r, const struct key *k, const struct yaml *n, void *section) {
    int64_t v;
    if (reader_number(r, k, n, &v))
        *(int64_t *)(void *)((char *)section + k->offset) = v;
}

bool reader_decimal(struct reader *r, const struct key *k, const struct yaml *n, double min,
                    double max, double *ret) {
    char *end = NULL;
    if (!reader_is_scalar(r, k, n))
        return false;
    double v = strtod(n->text, &end);
    if (n->quoted || end == n->text || *end || !(v >= min && v <= max))
        return diagnostics_add(r->d, n->place, "%s must be %s, not \"%s\"", k->name, k->type,
                               n->text);
    *ret = v;
    return true;
}

bool reader_time(struct reader *r, const struct key *k, const struct yaml *n, int64_t *ret_ns) {
    if (!reader_is_scalar(r, k, n))
        return false;
    struct err err = {0};
    int64_t ns;
    if (str_to_duration_ns(n->text, &ns, &err))
        return diagnostics_add(r->d, n->place, "%s: %s", k->name, err.msg);
    if (ns < k->min)
        return diagnostics_add(r->d, n->place, "%s must be longer than 0", k->name);
    *ret_ns = ns;
    return true;
}

void reader_duration(struct reader *r, const struct key *k, const struct yaml *n, void *section) {
    int64_t ns;
    if (reader_time(r, k, n, &ns))
        *(int64_t *)(void *)((char *)section + k->offset) = ns;
}

void reader_bool(struct reader *r, const struct key *k, const struct yaml *n, void *section) {
    if (!reader_is_scalar(r, k, n))
        return;
    bool yes = str_eq(n->text, "true");
    if (n->quoted || (!yes && !str_eq(n->text, "false")))
        diagnostics_add(r->d, n->place, "%s must be true or false, not \"%s\"", k->name, n->text);
    else
        *(bool *)((char *)section + k->offset) = yes;
}

void reader_percent(struct reader *r, const struct key *k, const struct yaml *n, void *section) {
    int64_t v;
    if (!reader_is_scalar(r, k, n))
        return;
    size_t length = strlen(n->text);
    const char *number = arena_strndup(r->arena, n->text, length ? length - 1 : 0);
    if (!length || n->text[length - 1] != '%' || !str_to_i64(number, k->min, k->max, &v))
        diagnostics_add(r->d, n->place, "%s must be %s, not \"%s\"", k->name, k->type, n->text);
    else
        *(int *)((char *)section + k->offset) = (int)v;
}

int reader_choice(struct reader *r, const struct key *k, const struct yaml *n,
                  const char *const *choices, const char *const *later) {
    if (!reader_is_scalar(r, k, n))
        return -1;
    for (int i = 0; choices[i]; i++)
        if (str_eq(choices[i], n->text))
            return i;
    for (; later && *later; later++)
        if (str_eq(*later, n->text)) {
            diagnostics_add(r->d, n->place, "%s: %s is not built yet", k->name, n->text);
            return -1;
        }
    const char *near = str_nearest(n->text, choices);
    if (near)
        diagnostics_add(r->d, n->place, "%s must be %s, not \"%s\"; did you mean \"%s\"?", k->name,
                        k->type, n->text, near);
    else
        diagnostics_add(r->d, n->place, "%s must be %s, not \"%s\"", k->name, k->type, n->text);
    return -1;
}

void reader_enum(struct reader *r, const struct key *k, const struct yaml *n, void *section) {
    int i = reader_choice(r, k, n, k->choices, NULL);
    if (i >= 0)
        *(int *)(void *)((char *)section + k->offset) = i;
}

void reader_flag(struct reader *r, const struct key *k, const struct yaml *n, void *section) {
    int i = reader_choice(r, k, n, k->choices, NULL);
    if (i >= 0)
        *(bool *)((char *)section + k->offset) = !k->choices[i + 1];
}

void reader_under(struct reader *r, const struct key *k, const struct yaml *n, void *section) {
    reader_section(r, k->under, n, (char *)section + k->offset);
}

bool reader_pairs(struct reader *r, const struct key *k, const struct yaml *n,
                  const struct pair **ret, size_t *ret_n) {
    if (n->type != YAML_MAP && !yaml_is_null(n))
        return diagnostics_add(r->d, n->place, "%s must be %s, not %s", k->name, k->type,
                               yaml_type_name(n));
    struct pair *v = arena_array(r->arena, struct pair, n->length + 1);
    size_t used = 0;
    yaml_each(it, n) {
        struct key item = {.name = it->key, .type = "a single value"};
        if (!*it->key)
            diagnostics_add(r->d, it->key_place, "%s: a name is empty", k->name);
        else if (reader_is_scalar(r, &item, it)) {
            reader_check_placeholders(r, it->text, it->place);
            v[used++] = (struct pair){it->key, it->text, it->place};
        }
    }
    *ret = v;
    *ret_n = used;
    return true;
}

bool reader_words(struct reader *r, const struct key *k, const struct yaml *n,
                  const char *const **ret, size_t *ret_n) {
    if (n->type != YAML_LIST)
        return diagnostics_add(r->d, n->place, "%s must be %s, not %s", k->name, k->type,
                               yaml_type_name(n));
    const char **v = arena_array(r->arena, const char *, n->length + 1);
    size_t used = 0;
    yaml_each(it, n) {
        if (it->type != YAML_SCALAR || yaml_is_null(it))
            diagnostics_add(r->d, it->place, "%s must be %s; this item is %s%s", k->name, k->type,
                            yaml_type_name(it),
                            it->type == YAML_SCALAR ? ", unless it stands in quotes" : "");
        else
            v[used++] = it->text;
    }
    *ret = v;
    *ret_n = used;
    return used == n->length;
}

void reader_no_empty(struct reader *r, const struct key *k, const struct yaml *n) {
    yaml_each(it, n) if (it->type == YAML_SCALAR && !*it->text && it->quoted)
        diagnostics_add(r->d, it->place, "%s must be %s; this one is empty", k->name, k->type);
}

const char *reader_line(struct reader *r, const struct key *k, const struct yaml *n) {
    struct err err = {0};
    if (!reader_is_scalar(r, k, n))
        return NULL;
    size_t len = strlen(n->text);
    if (len < 3 || n->text[0] != '/' || n->text[len - 1] != '/') {
        diagnostics_add(r->d, n->place, "%s must be %s between slashes, such as %s, not \"%s\"",
                        k->name, k->type, "'/loss is nan/'", n->text);
        return NULL;
    }
    const char *line = arena_strndup(r->arena, n->text + 1, len - 2);
    struct pattern *p = pattern_new(line, &err);
    if (!p)
        diagnostics_add(r->d, n->place, "%s: %s", k->name, err.msg);
    pattern_free(p);
    return p ? line : NULL;
}

int reader_id(struct reader *r, const struct key *k, const char *id, struct place p) {
    for (size_t i = 0; i < r->ids_n; i++)
        if (str_eq(r->ids[i], id))
            return (int)i;
    const char *near = r->ids_n ? str_nearest(id, r->ids) : NULL;
    diagnostics_add(r->d, p, "%s: no entry of the timeline has the id \"%s\"%s%s%s", k->name, id,
                    near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    return -1;
}

void reader_check_placeholders(struct reader *r, const char *text, struct place p) {
    static const char *const known[] = {"shared", "disk", "tmp", "out", "seed", "node", NULL};
    for (const char *s = strchr(text, '{'); s; s = strchr(s + 1, '{')) {
        size_t n = strspn(s + 1, "abcdefghijklmnopqrstuvwxyz_");
        if (!n || s[1 + n] != '}' || (s > text && s[-1] == '$'))
            continue; /* ${NAME} is the shell's, { ... } somebody else's */
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)n, s + 1);
        size_t i = 0;
        while (known[i] && !str_eq(known[i], name))
            i++;
        const char *near = str_nearest(name, known);
        if (!known[i])
            diagnostics_add(r->d, p,
                            "there is no placeholder {%s}; %s%s%s{shared} {disk} {tmp} {out} "
                            "{seed} {node} exist, and a brace that is meant stands as { %s }",
                            name, near ? "did you mean {" : "", near ? near : "", near ? "}? " : "",
                            name);
    }
}
