#include "harness/scenario/yaml.h"

#include "base/str.h"
#include "base/utf8.h"

#include <libfyaml.h>
#include <stdlib.h>
#include <string.h>

struct builder {
    struct arena *arena;
    struct diagnostics *d;
    struct fy_parser *parser;
    struct fy_diag *diag;
    int set;
    struct yaml *root, *at; /* at: the open list or map */
    const char *key;        /* read, its value has not come yet */
    struct place key_place;
    int depth, values, documents;
    bool failed;
};

struct yaml *yaml_get(const struct yaml *map, const char *key) {
    if (!map || map->type != YAML_MAP)
        return NULL;
    for (struct yaml *n = map->first; n; n = n->next)
        if (str_eq(n->key, key))
            return n;
    return NULL;
}

bool yaml_is_null(const struct yaml *n) {
    return n->type == YAML_SCALAR && !n->quoted &&
           (!*n->text || str_eq(n->text, "~") || str_eq(n->text, "null"));
}

const char *yaml_type_name(const struct yaml *n) {
    if (n->type == YAML_SCALAR)
        return yaml_is_null(n) ? "nothing" : "a single value";
    return n->type == YAML_LIST ? "a list" : "a map";
}

static void append(struct yaml *parent, struct yaml *child) {
    child->parent = parent;
    child->next = NULL;
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->length++;
}

void yaml_put(struct yaml *parent, struct yaml *child) {
    struct yaml *old = child->key ? yaml_get(parent, child->key) : NULL;
    if (!old) {
        append(parent, child);
        return;
    }
    struct yaml *next = old->next;
    child->key_place = child->place;
    *old = *child;
    old->parent = parent;
    old->next = next;
    for (struct yaml *n = old->first; n; n = n->next)
        n->parent = old;
}

static struct place place_of(const struct builder *b, int line, int column) {
    return b->set ? (struct place){-b->set, column + 1}
                  : (struct place){line + 1, column + 1, b->d->reading};
}

static struct place event_place(const struct builder *b, struct fy_event *e) {
    const struct fy_mark *m = fy_event_start_mark(e);
    return place_of(b, m ? m->line : 0, m ? m->column : 0);
}

#define refuse(b, p, ...) (diagnostics_add((b)->d, p, __VA_ARGS__), (b)->failed = true)

/* A value has come: the root, an item of the open list, or the member whose key was read. */
static void add_value(struct builder *b, struct yaml *n) {
    if (++b->values > YAML_VALUES_MAX) {
        refuse(b, n->place, "the file has more than %d values; a scenario is much smaller",
               YAML_VALUES_MAX);
        return;
    }
    if (!b->at) {
        b->root = n;
        return;
    }
    if (b->at->type == YAML_MAP) {
        n->key = b->key;
        n->key_place = b->key_place;
        b->key = NULL;
        if (yaml_get(b->at, n->key)) {
            diagnostics_add(b->d, n->key_place, "\"%s\" is given twice", n->key);
            return;
        }
    }
    append(b->at, n);
}

static void on_scalar(struct builder *b, struct fy_event *e, struct place p) {
    size_t len = 0;
    struct fy_token *t = e->scalar.value;
    const char *text = t ? fy_token_get_text(t, &len) : "";
    const char *copy = arena_strndup(b->arena, text ? text : "", len);
    if (text && strlen(copy) != len) {
        refuse(b, p, "a text cannot hold the character \\0; leave it out");
        return;
    }
    if (b->at && b->at->type == YAML_MAP && !b->key) {
        if (str_eq(copy, "<<"))
            refuse(b, p, "merge keys (<<) are not used in scenarios; write the keys out");
        b->key = copy;
        b->key_place = p;
        return;
    }
    struct yaml *n = arena_new(b->arena, struct yaml);
    n->type = YAML_SCALAR;
    n->place = p;
    n->text = copy;
    n->quoted = t && fy_token_scalar_style(t) != FYSS_PLAIN;
    if (t && !b->set && n->place.column > 1 &&
        (fy_token_scalar_style(t) == FYSS_SINGLE_QUOTED ||
         fy_token_scalar_style(t) == FYSS_DOUBLE_QUOTED))
        n->place.column--; /* the mark is behind the quote */
    add_value(b, n);
}

static void on_open(struct builder *b, enum yaml_type type, struct place p) {
    if (++b->depth > YAML_DEPTH_MAX) {
        refuse(b, p, "nested more than %d deep; a scenario is much flatter", YAML_DEPTH_MAX);
        return;
    }
    if (b->at && b->at->type == YAML_MAP && !b->key) {
        refuse(b, p, "a key must be a word, not a list or a map");
        return;
    }
    struct yaml *n = arena_new(b->arena, struct yaml);
    n->type = type;
    n->place = p;
    struct yaml *parent = b->at;
    add_value(b, n);
    n->parent = parent;
    b->at = n;
}

static void on_close(struct builder *b) {
    b->depth--;
    b->at = b->at->parent;
}

/* Aliases and tags say nothing that a scenario needs, and aliases can make a small file huge. */
static bool check_decoration(struct builder *b, struct fy_event *e, struct place p) {
    struct fy_token *tag = fy_event_get_tag_token(e), *anchor = fy_event_get_anchor_token(e);
    if (e->type == FYET_ALIAS || anchor)
        refuse(b, p, "anchors and aliases are not used in scenarios; write the value out");
    else if (tag)
        refuse(b, p, "tags (!...) are not used in scenarios");
    return !b->failed;
}

static void on_event(struct builder *b, struct fy_event *e) {
    struct place p = event_place(b, e);
    if (e->type == FYET_DOCUMENT_START && ++b->documents > 1)
        refuse(b, p, "one file is one scenario; move the second document to a file of its own");
    bool value = e->type == FYET_SCALAR || e->type == FYET_SEQUENCE_START ||
                 e->type == FYET_MAPPING_START || e->type == FYET_ALIAS;
    if (b->failed || (value && !check_decoration(b, e, p)))
        return;
    if (e->type == FYET_SCALAR)
        on_scalar(b, e, p);
    else if (e->type == FYET_SEQUENCE_START || e->type == FYET_MAPPING_START)
        on_open(b, e->type == FYET_MAPPING_START ? YAML_MAP : YAML_LIST, p);
    else if (e->type == FYET_SEQUENCE_END || e->type == FYET_MAPPING_END)
        on_close(b);
}

/* What libfyaml found wrong, in its words: the first, for the rest follows from it. */
static void report_syntax(struct builder *b) {
    void *prev = NULL;
    struct fy_diag_error *e = fy_diag_errors_iterate(b->diag, &prev);
    if (e)
        refuse(b, place_of(b, e->line > 0 ? e->line - 1 : 0, e->column > 0 ? e->column - 1 : 0),
               "this is not YAML: %s", e->msg ? e->msg : "it cannot be read");
    else
        refuse(b, ((struct place){b->set ? -b->set : 0, 0}), "this is not YAML: it cannot be read");
}

/* The length of the UTF-8 character at s, 0 when it is none or a control character. */
static size_t character(const char *s, size_t left) {
    unsigned c = 0;
    int n = utf8_read(s, left, &c);
    bool control = (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
    return n <= 0 || control ? 0 : (size_t)n;
}

/* Only text reaches the library. */
static bool check_text(struct builder *b, const char *text, size_t len) {
    int line = 0, column = 0;
    for (size_t i = 0, n; i < len; i += n) {
        n = character(text + i, len - i);
        if (!n) {
            int byte = (unsigned char)text[i];
            if (!b->set)
                /* nothing in it is fit for a terminal */
                buf_clear(diagnostics_source(b->d, b->d->reading));
            refuse(b, place_of(b, line, column),
                   "this is not text: byte 0x%02x is no UTF-8 character; is it a scenario?", byte);
            return false;
        }
        column = text[i] == '\n' ? 0 : column + 1;
        line += text[i] == '\n';
    }
    return true;
}

/* The library reads ahead: to tell whether a list is a key it takes in all of it, some 600 bytes a
 * token. So what it would make tokens of is counted before it sees any. */
static bool check_marks(struct builder *b, const char *text, size_t len) {
    int line = 0, marks = 0;
    size_t begin = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\n') {
            line++;
            begin = i + 1;
        }
        bool alone = text[i] == '-' && (i + 1 == len || strchr(" \t\r\n", text[i + 1]));
        marks += alone || memchr("[]{},:?*&!\"'", text[i], 12);
        if (marks > YAML_MARKS_MAX) {
            refuse(b, place_of(b, line, (int)(i - begin)),
                   "more than %d brackets, commas, quotes and the like; a scenario is much smaller",
                   YAML_MARKS_MAX);
            return false;
        }
    }
    return true;
}

static void read_events(struct builder *b, const char *text, size_t len) {
    if (fy_parser_set_string(b->parser, text, len))
        abort(); /* out of memory */
    for (bool end = false; !end && !b->failed;) {
        struct fy_event *e = fy_parser_parse(b->parser);
        if (!e) {
            if (fy_diag_got_error(b->diag))
                report_syntax(b);
            break;
        }
        end = e->type == FYET_STREAM_END;
        on_event(b, e);
        fy_parser_event_free(b->parser, e);
    }
}

static struct fy_diag *new_diag(void) {
    struct fy_diag_cfg cfg;
    fy_diag_cfg_default(&cfg);
    cfg.fp = NULL;
    struct fy_diag *diag = fy_diag_create(&cfg);
    if (!diag)
        abort(); /* out of memory */
    fy_diag_set_collect_errors(diag, true);
    return diag;
}

struct yaml *yaml_parse(struct arena *a, const char *text, size_t len, int set,
                        struct diagnostics *d) {
    struct builder b = {.arena = a, .d = d, .set = set};
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3, len -= 3;
    if (!check_text(&b, text, len) || !check_marks(&b, text, len))
        return NULL;
    b.diag = new_diag();
    struct fy_parse_cfg cfg = {.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG, .diag = b.diag};
    b.parser = fy_parser_create(&cfg);
    if (!b.parser)
        abort(); /* out of memory */
    read_events(&b, text, len);
    fy_parser_destroy(b.parser);
    fy_diag_destroy(b.diag);
    if (b.failed)
        return NULL;
    if (!b.root) {
        b.root = arena_new(a, struct yaml);
        b.root->text = "";
        b.root->place = place_of(&b, 0, 0);
    }
    return b.root;
}
