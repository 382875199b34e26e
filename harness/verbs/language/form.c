/* Reads the notation of a key's form. */
#include "harness/verbs/language/language.h"

#include "base/str.h"
#include "faults/fault.h"
#include "harness/plan/features.h"
#include "harness/scenario/expand/schedule.h"
#include "harness/scenario/reader.h"

#include <stdio.h>
#include <string.h>

/* Notation of key->form, alternatives separated by |:
 *
 *   word         that word                  <int> <text> ...   one of the named forms below
 *   [A | B]      a list of such             {A}                a map of any names to such
 *   {a: A, b: B} a map of these names       <@when>            the map of that section
 *   <drawn>      the faults that a schedule draws              <shares>  a map of them and <int>s
 */

const char *form_of(const struct key *k) {
    static const struct {
        key_read_fn *read;
        const char *form;
    } plain[] = {{reader_text, "<text>"},
                 {reader_int, "<int>"},
                 {reader_i64, "<int>"},
                 {reader_duration, "<duration>"},
                 {reader_bool, "<bool>"}};
    for (size_t i = 0; !k->form && i < sizeof(plain) / sizeof(*plain); i++)
        if (k->read == plain[i].read)
            return plain[i].form;
    return k->form;
}

/* ---- named forms ---- */

/* JSON Schema of each, as it stands; in alphabetical order. */
static const struct {
    const char *name, *schema;
} named[] = {
    {"bool", "{\"type\": \"boolean\"}"},
    {"decimal", "{\"type\": \"number\"}"},
    {"duration", "{\"description\": \"a duration: 250ms, 2s, 1.5s, 5m, 1h\", \"type\": \"string\", "
                 "\"pattern\": \"^[0-9]+([.][0-9]+)?(us|ms|s|m|h)$\"}"},
    {"id", "{\"type\": [\"string\", \"number\"], \"pattern\": \"^[A-Za-z0-9_.-]+$\"}"},
    {"line", "{\"description\": \"a regular expression between slashes\", \"type\": \"string\", "
             "\"pattern\": \"^/.+/$\"}"},
    {"name", "{\"type\": [\"string\", \"number\"], \"pattern\": "
             "\"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}$\"}"},
    {"nnodes", "{\"type\": [\"integer\", \"string\"], \"minimum\": 1, \"pattern\": "
               "\"^[0-9]+(:[0-9]+)?$\"}"},
    {"node", "{\"type\": \"string\", \"pattern\": \"^n[0-9]+$\"}"},
    {"pattern", "{\"description\": \"a regular expression\", \"type\": \"string\", "
                "\"minLength\": 1}"},
    {"percent", "{\"type\": \"string\", \"pattern\": \"^[0-9]+%$\"}"},
    {"range", "{\"type\": \"string\", \"pattern\": \"^[0-9]+([.][.][0-9]+)?$\"}"},
    {"scalar", "{\"type\": [\"string\", \"number\", \"boolean\"]}"},
    {"target",
     "{\"description\": \"nodes, agents, workers, n2, n2/0, rank 0, node of rank 0, random of "
     "workers, random 2 of nodes, 50%, majority, rack 0, random of rack 0, random of racks, rack "
     "of rank 0, store, store-0, store-leader, majority of store, coordinator\", \"type\": "
     "\"string\", \"pattern\": "
     "\"^(nodes|agents|workers|store|store-[0-9]|store-leader|coordinator|n[0-9]+(/"
     "[0-9]+)?|((node|rack) of "
     ")?rank [0-9]+|rack [0-9]+|"
     "random( [0-9]+)? of (nodes|agents|workers|racks|store|rack [0-9]+)|"
     "([0-9]+%|majority)( of (nodes|agents|workers|racks|store|rack [0-9]+))?)$\"}"},
    {"text", "{\"type\": [\"string\", \"number\", \"boolean\"], \"minLength\": 1}"},
    {"url", "{\"description\": \"a URL of http or https\", \"type\": \"string\", \"pattern\": "
            "\"^https?://[^/:?#]\"}"},
    {"variable", "{\"description\": \"a value of vars\", \"type\": \"string\", \"pattern\": "
                 "\"[{][a-z_]+[}]\"}"},
};

void form_put_definitions(struct json_writer *w) {
    ARENA_FINI struct arena a = {0};
    for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++) {
        struct json *tree = json_parse(&a, named[i].schema, strlen(named[i].schema), NULL);
        if (tree)
            json_put_tree(w, named[i].name, tree);
    }
}

static void put_ref(struct json_writer *w, const char *name) {
    char path[100];
    snprintf(path, sizeof(path), "#/definitions/%s", name);
    json_object(w, NULL);
    json_put_string(w, "$ref", path);
    json_end_object(w);
}

static void put_int(struct json_writer *w, const struct key *k) {
    json_object(w, NULL);
    json_put_string(w, "type", "integer");
    if (k->min || k->max)
        json_put_i64(w, "minimum", k->min);
    if (k->max)
        json_put_i64(w, "maximum", k->max);
    json_end_object(w);
}

static void put_faults(struct json_writer *w) {
    json_object(w, NULL);
    json_array(w, "enum");
    for (size_t i = 0; faults[i]; i++)
        json_put_string(w, NULL, faults[i]->name);
    json_end_array(w);
    json_end_object(w);
}

/* Those that are a word alone are offered; the others are known by their first word. */
static void put_features(struct json_writer *w) {
    BUF_FINI struct buf with = {0};
    json_object(w, NULL);
    json_array(w, "anyOf");
    json_object(w, NULL);
    json_array(w, "enum");
    for (const struct feature *f = features; f->name; f++)
        if (f->argument)
            buf_printf(&with, "%s%s", with.len ? "|" : "^(", f->name);
        else
            json_put_string(w, NULL, f->name);
    json_end_array(w);
    json_end_object(w);
    buf_puts(&with, ") +[^ ]");
    json_object(w, NULL);
    json_put_string(w, "type", "string");
    json_put_string(w, "pattern", buf_str(&with));
    json_end_object(w);
    json_end_array(w);
    json_end_object(w);
}

static void put_presets(struct json_writer *w) {
    json_object(w, NULL);
    json_array(w, "enum");
    for (const struct preset *p = presets; p->name; p++)
        json_put_string(w, NULL, p->name);
    json_end_array(w);
    json_end_object(w);
}

static void put_named(struct json_writer *w, const char *name, const struct key *k) {
    if (str_eq(name, "int")) {
        put_int(w, k);
    } else if (str_eq(name, "fault")) {
        put_faults(w);
    } else if (str_eq(name, "feature")) {
        put_features(w);
    } else if (str_eq(name, "preset")) {
        put_presets(w);
    } else if (str_eq(name, "any")) {
        json_object(w, NULL);
        json_end_object(w);
    } else {
        put_ref(w, *name == '@' ? name + 1 : name);
    }
}

/* ---- the notation ---- */

/* Where the part that begins at s ends: at the separator outside all brackets, or at the end. */
static size_t part_length(const char *s, char separator) {
    int depth = 0;
    size_t n = 0;
    for (; s[n] && (depth || s[n] != separator); n++)
        depth += (strchr("[{<", s[n]) != NULL) - (strchr("]}>", s[n]) != NULL);
    return n;
}

/* The next part, without blanks around it, in the arena; NULL: no more. */
static const char *next_part(struct arena *a, const char **s, char separator) {
    if (!**s)
        return NULL;
    size_t n = part_length(*s, separator);
    const char *from = *s, *end = *s + n;
    *s = *end ? end + 1 : end;
    while (*from == ' ')
        from++;
    while (end > from && end[-1] == ' ')
        end--;
    return arena_strndup(a, from, (size_t)(end - from));
}

static bool is_word(const char *part) {
    return !strchr("<[{", *part);
}

static void put_any_of(struct json_writer *w, struct arena *a, const char *form,
                       const struct key *k);

static const char *with_words(struct arena *a, const char *form, const char *mark,
                              const char *words) {
    const char *at = strstr(form, mark);
    return at ? arena_printf(a, "%.*s%s%s", (int)(at - form), form, words, at + strlen(mark))
              : form;
}

/* What the faults themselves say is written out as any other notation. */
static const char *spelled(struct arena *a, const char *form) {
    const char *const *names = hit_names(a);
    const char *drawn = names[0], *shares = arena_printf(a, "{%s: <int>", names[0]);
    for (size_t i = 1; names[i]; i++) {
        drawn = arena_printf(a, "%s | %s", drawn, names[i]);
        shares = arena_printf(a, "%s, %s: <int>", shares, names[i]);
    }
    form = with_words(a, form, "<drawn>", drawn);
    return with_words(a, form, "<shares>", arena_printf(a, "%s}", shares));
}

static void put_list(struct json_writer *w, struct arena *a, const char *part,
                     const struct key *k) {
    json_object(w, NULL);
    json_put_string(w, "type", "array");
    json_object(w, "items");
    put_any_of(w, a, arena_strndup(a, part + 1, strlen(part) - 2), k);
    json_end_object(w);
    json_end_object(w);
}

static void put_members(struct json_writer *w, struct arena *a, const char *inner,
                        const struct key *k) {
    json_object(w, "properties");
    for (const char *member; (member = next_part(a, &inner, ','));) {
        size_t n = part_length(member, ':');
        json_object(w, arena_strndup(a, member, n));
        put_any_of(w, a, member + n + 1, k);
        json_end_object(w);
    }
    json_end_object(w);
    json_put_bool(w, "additionalProperties", false);
}

static void put_map(struct json_writer *w, struct arena *a, const char *part, const struct key *k) {
    const char *inner = arena_strndup(a, part + 1, strlen(part) - 2);
    json_object(w, NULL);
    json_put_string(w, "type", "object");
    if (inner[part_length(inner, ':')]) {
        put_members(w, a, inner, k);
    } else {
        json_object(w, "additionalProperties");
        put_any_of(w, a, inner, k);
        json_end_object(w);
    }
    json_end_object(w);
}

static void put_words(struct json_writer *w, struct arena *a, const char *form) {
    bool open = false;
    for (const char *part; (part = next_part(a, &form, '|'));) {
        if (!is_word(part))
            continue;
        if (!open) {
            json_object(w, NULL);
            json_array(w, "enum");
            open = true;
        }
        json_put_string(w, NULL, part);
    }
    if (open) {
        json_end_array(w);
        json_end_object(w);
    }
}

/* Words first: they are what an editor offers. */
static void put_any_of(struct json_writer *w, struct arena *a, const char *form,
                       const struct key *k) {
    json_array(w, "anyOf");
    put_words(w, a, form);
    for (const char *part; (part = next_part(a, &form, '|'));) {
        if (is_word(part))
            continue;
        if (*part == '[')
            put_list(w, a, part, k);
        else if (*part == '{')
            put_map(w, a, part, k);
        else
            put_named(w, arena_strndup(a, part + 1, strlen(part) - 2), k);
    }
    put_ref(w, "variable");
    json_end_array(w);
}

void form_put(struct json_writer *w, const struct key *k) {
    ARENA_FINI struct arena a = {0};
    put_any_of(w, &a, spelled(&a, form_of(k)), k);
}
