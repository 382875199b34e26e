/* Writes a section of the language as JSON Schema. */
#include "harness/verbs/language/language.h"

#include "base/str.h"
#include "faults/fault.h"

#include <stdio.h>
#include <string.h>

/* ---- one section ---- */

static void put_default(struct json_writer *w, const struct key *k) {
    int64_t v;
    if (!k->default_text || !*k->default_text || *k->default_text == '(')
        return;
    if (str_to_i64(k->default_text, INT64_MIN, INT64_MAX, &v))
        json_put_i64(w, "default", v);
    else
        json_put_string(w, "default", k->default_text);
}

static void put_key(struct json_writer *w, const struct key *k) {
    BUF_FINI struct buf text = {0};
    buf_puts(&text, k->text);
    if (k->default_text && *k->default_text == '(')
        buf_printf(&text, " Default: %.*s.", (int)strlen(k->default_text) - 2, k->default_text + 1);
    if (k->example)
        buf_printf(&text, " Example: %s", k->example);
    json_object(w, k->name);
    json_put_string(w, "description", buf_str(&text));
    put_default(w, k);
    form_put(w, k);
    json_end_object(w);
}

static bool is_choice(const struct section *s, const char *name) {
    ARENA_FINI struct arena a = {0};
    char **v = s->any_of ? str_split(&a, s->any_of, ' ', NULL) : NULL;
    while (v && *v && !str_eq(*v, name))
        v++;
    return v && *v;
}

static void put_required_word(struct json_writer *w, const char *name) {
    json_array(w, "required");
    json_put_string(w, NULL, name);
    json_end_array(w);
}

/* But for what another word may bring: a file that includes another may leave the job to it. */
static void put_required(struct json_writer *w, const struct section *s) {
    json_array(w, "required");
    for (const struct key *k = s->keys; k->name; k++)
        if (k->required && !is_choice(s, k->name))
            json_put_string(w, NULL, k->name);
    json_end_array(w);
}

/* One of the words, separated by blanks, must be there. */
static void put_choice(struct json_writer *w, const char *name, const char *words) {
    ARENA_FINI struct arena a = {0};
    char **v = words ? str_split(&a, words, ' ', NULL) : NULL;
    if (v)
        json_array(w, name);
    for (; v && *v; v++) {
        json_object(w, NULL);
        put_required_word(w, *v);
        json_end_object(w);
    }
    if (words)
        json_end_array(w);
}

static void put_needs(struct json_writer *w, const struct section *s) {
    put_required(w, s);
    put_choice(w, "anyOf", s->any_of);
    put_choice(w, "oneOf", s->one_of);
}

/* ---- files that include others ---- */

/* The section that stands under this key of the top level as a map, or as a map of such: what an
 * included file says of it is put together with it. NULL: there is none. */
static const struct section *merged_below(const struct key *k, bool *ret_named) {
    const char *form = k->form ? k->form : "";
    for (size_t i = 0; sections[i]; i++) {
        char one[80], many[84];
        snprintf(one, sizeof(one), "<@%s>", sections[i]->name);
        snprintf(many, sizeof(many), "{%s}", one);
        *ret_named = str_eq(form, many);
        if (*ret_named || str_eq(form, one))
            return sections[i];
    }
    return NULL;
}

static bool is_merged(const struct section *s) {
    bool named;
    for (const struct key *k = section_top.keys; k->name; k++)
        if (merged_below(k, &named) == s)
            return true;
    return false;
}

static void put_whole(struct json_writer *w, const struct key *k) {
    bool named;
    const struct section *s = merged_below(k, &named);
    if (!s)
        return;
    json_object(w, k->name);
    if (named)
        json_object(w, "additionalProperties");
    put_needs(w, s);
    if (named)
        json_end_object(w);
    json_end_object(w);
}

/* What a section cannot do without may be in an included file; one that includes none has it. */
static void put_whole_file(struct json_writer *w) {
    json_array(w, "allOf");
    json_object(w, NULL);
    json_object(w, "if");
    put_required_word(w, "include");
    json_end_object(w);
    json_object(w, "else");
    json_object(w, "properties");
    for (const struct key *k = section_top.keys; k->name; k++)
        put_whole(w, k);
    json_end_object(w);
    json_end_object(w);
    json_end_object(w);
    json_end_array(w);
}

/* ---- the parameters of faults ---- */

static void put_param(struct json_writer *w, const struct fault_param *p) {
    static const struct {
        const char *type, *form;
    } forms[] = {{"int", "<int>"}, {"bool", "<bool>"}, {"duration", "<duration>"}};
    struct key k = {.name = p->name, .form = "<scalar>"};
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
        if (str_eq(p->type, forms[i].type))
            k.form = forms[i].form;
    json_object(w, p->name);
    json_put_string(w, "description", p->text);
    if (p->default_text)
        json_put_string(w, "default", p->default_text);
    form_put(w, &k);
    json_end_object(w);
}

/* With this fault, `with` takes these parameters. */
static void put_fault(struct json_writer *w, const struct fault *f) {
    json_object(w, NULL);
    json_object(w, "if");
    json_object(w, "properties");
    json_object(w, "fault");
    json_put_string(w, "const", f->name);
    json_end_object(w);
    json_end_object(w);
    put_required_word(w, "fault");
    json_end_object(w);
    json_object(w, "then");
    json_object(w, "properties");
    json_object(w, "with");
    json_object(w, "properties");
    for (const struct fault_param *p = f->params; p && p->name; p++)
        put_param(w, p);
    json_end_object(w);
    json_put_bool(w, "additionalProperties", false);
    json_end_object(w);
    json_end_object(w);
    json_end_object(w);
    json_end_object(w);
}

static void put_faults(struct json_writer *w) {
    json_array(w, "allOf");
    for (size_t i = 0; faults[i]; i++)
        put_fault(w, faults[i]);
    json_end_array(w);
}

static void put_section(struct json_writer *w, const struct section *s) {
    json_object(w, s->name);
    json_put_string(w, "description", s->text);
    json_array(w, "type"); /* nothing: all defaults */
    json_put_string(w, NULL, "object");
    json_put_string(w, NULL, "null");
    json_end_array(w);
    json_object(w, "properties");
    for (const struct key *k = s->keys; k->name; k++)
        if (k->read)
            put_key(w, k);
    json_end_object(w);
    json_put_bool(w, "additionalProperties", false);
    if (!is_merged(s))
        put_needs(w, s);
    if (s == &section_entry)
        put_faults(w);
    if (s == &section_top)
        put_whole_file(w);
    json_end_object(w);
}

/* ---- the whole ---- */

static void put_root(struct json_writer *w) {
    json_object(w, NULL);
    json_put_string(w, "$schema", "http://json-schema.org/draft-07/schema#");
    json_put_string(w, "title", "A scenario of RankQuake, or a suite of them");
    json_put_string(w, "type", "object");
    json_object(w, "if");
    put_required_word(w, "suite");
    json_end_object(w);
    json_object(w, "then");
    json_put_string(w, "$ref", "#/definitions/suite");
    json_end_object(w);
    json_object(w, "else");
    json_put_string(w, "$ref", "#/definitions/scenario");
    json_end_object(w);
    json_object(w, "definitions");
    for (size_t i = 0; sections[i]; i++)
        put_section(w, sections[i]);
    form_put_definitions(w);
    json_end_object(w);
    json_end_object(w);
}

static void new_line(struct buf *out, int depth) {
    buf_putc(out, '\n');
    for (int i = 0; i < depth; i++)
        buf_puts(out, "  ");
}

/* As a person would write it; what is empty stays on its line. */
static void indent(const char *s, struct buf *out) {
    int depth = 0;
    for (bool quoted = false; *s; s++) {
        bool opens = !quoted && strchr("[{", *s), closes = !quoted && strchr("]}", *s);
        if (closes && !strchr("[{", s[-1]))
            new_line(out, depth - 1);
        depth += opens - closes;
        buf_putc(out, *s);
        if (*s == '\\')
            buf_putc(out, *++s);
        else
            quoted ^= *s == '"';
        if ((opens && !strchr("]}", s[1])) || (!quoted && *s == ','))
            new_line(out, depth);
        else if (!quoted && *s == ':')
            buf_putc(out, ' ');
    }
    buf_putc(out, '\n');
}

void schema_put_scenario(struct buf *out) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    put_root(&w);
    indent(buf_str(&text), out);
}
