#include "base/json.h"

#include "base/printable.h"
#include "base/str.h"
#include "base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

enum { DEPTH_MAX = 64 };

struct json_reader {
    struct arena *arena;
    const char *start, *p, *end;
    int depth;
    struct err *err;
};

static struct json *fail(struct json_reader *r, const char *expected) {
    err_say(r->err, -EINVAL, "JSON: expected %s at byte %zu", expected, (size_t)(r->p - r->start));
    return NULL;
}

static void skip_space(struct json_reader *r) {
    while (r->p < r->end && strchr(" \t\r\n", *r->p) && *r->p)
        r->p++;
}

static bool take(struct json_reader *r, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
        return false;
    r->p += n;
    return true;
}

static int hex4(const char *p) {
    int v = 0;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef", c = p[i];
        const char *d = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;
        if (!d)
            return -1;
        v = v * 16 + (int)(d - digits);
    }
    return v;
}

static void put_utf8(struct buf *b, unsigned c) {
    if (c < 0x80) {
        buf_putc(b, (char)c);
    } else if (c < 0x800) {
        buf_putc(b, (char)(0xc0 | c >> 6));
        buf_putc(b, (char)(0x80 | (c & 63)));
    } else if (c < 0x10000) {
        buf_putc(b, (char)(0xe0 | c >> 12));
        buf_putc(b, (char)(0x80 | (c >> 6 & 63)));
        buf_putc(b, (char)(0x80 | (c & 63)));
    } else {
        buf_putc(b, (char)(0xf0 | c >> 18));
        buf_putc(b, (char)(0x80 | (c >> 12 & 63)));
        buf_putc(b, (char)(0x80 | (c >> 6 & 63)));
        buf_putc(b, (char)(0x80 | (c & 63)));
    }
}

/* r->p stands behind "\u". A lone surrogate becomes U+FFFD. */
static bool read_unicode(struct json_reader *r, struct buf *b) {
    int c = r->end - r->p >= 4 ? hex4(r->p) : -1;
    if (c < 0)
        return false;
    r->p += 4;
    if (c >= 0xd800 && c < 0xdc00 && r->end - r->p >= 6 && r->p[0] == '\\' && r->p[1] == 'u') {
        int low = hex4(r->p + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            r->p += 6;
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    put_utf8(b, c >= 0xd800 && c < 0xe000 ? 0xfffd : (unsigned)c);
    return true;
}

static bool read_escape(struct json_reader *r, struct buf *b) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (r->p == r->end)
        return false;
    char c = *r->p++;
    if (c == 'u')
        return read_unicode(r, b);
    const char *at = c ? strchr(from, c) : NULL;
    if (at)
        buf_putc(b, to[at - from]);
    return at;
}

/* r->p stands behind the opening quote. Returns NULL on failure. */
static const char *read_string(struct json_reader *r, size_t *ret_len) {
    BUF_FINI struct buf b = {0};
    bool sound = true;
    while (sound && r->p < r->end && *r->p != '"' && (unsigned char)*r->p >= 0x20) {
        char c = *r->p++;
        if (c == '\\')
            sound = read_escape(r, &b);
        else
            buf_putc(&b, c);
    }
    const char *s = NULL;
    if (!sound) {
        fail(r, "a known escape");
    } else if (r->p < r->end && *r->p == '"') {
        r->p++;
        *ret_len = b.len;
        s = arena_strndup(r->arena, buf_str(&b), b.len);
    } else {
        fail(r, "the end of a string");
    }
    return s;
}

static struct json *read_value(struct json_reader *r);

static struct json *read_number(struct json_reader *r, struct json *j) {
    char text[64], *end;
    size_t n = 0;
    while (n < sizeof(text) - 1 && r->p + n < r->end && strchr("+-.0123456789eE", r->p[n]) &&
           r->p[n])
        n++;
    memcpy(text, r->p, n);
    text[n] = '\0';
    j->type = JSON_INT;
    errno = 0;
    j->integer = strtoll(text, &end, 10);
    if (*end || errno) {
        j->type = JSON_DOUBLE;
        j->number = strtod(text, &end);
    }
    if (!n || *end || text[0] == '+')
        return fail(r, "a value");
    r->p += n;
    return j;
}

static bool read_key(struct json_reader *r, const char **ret_key) {
    size_t len;
    skip_space(r);
    if (!take(r, "\""))
        return fail(r, "a key");
    *ret_key = read_string(r, &len);
    if (!*ret_key)
        return false;
    skip_space(r);
    return take(r, ":") || fail(r, "':'");
}

static struct json *read_children(struct json_reader *r, struct json *parent, const char *close) {
    struct json **tail = &parent->first;
    skip_space(r);
    if (take(r, close))
        return parent;
    do {
        const char *key = NULL;
        if (parent->type == JSON_OBJECT && !read_key(r, &key))
            return NULL;
        struct json *child = read_value(r);
        if (!child)
            return NULL;
        child->key = key;
        *tail = child;
        tail = &child->next;
        parent->length++;
        skip_space(r);
    } while (take(r, ","));
    return take(r, close) ? parent : fail(r, "',' or the end of the list");
}

static struct json *read_value(struct json_reader *r) {
    struct json *j = arena_new(r->arena, struct json);
    skip_space(r);
    if (++r->depth > DEPTH_MAX)
        return fail(r, "fewer than 64 levels");
    if (take(r, "{")) {
        j->type = JSON_OBJECT;
        j = read_children(r, j, "}");
    } else if (take(r, "[")) {
        j->type = JSON_ARRAY;
        j = read_children(r, j, "]");
    } else if (take(r, "\"")) {
        j->type = JSON_STRING;
        j->string = read_string(r, &j->length);
        j = j->string ? j : NULL;
    } else if (take(r, "true") || take(r, "false")) {
        j->type = JSON_BOOL;
        j->boolean = r->p[-2] == 'u';
    } else if (!take(r, "null")) {
        j = read_number(r, j);
    }
    r->depth--;
    return j;
}

struct json *json_parse(struct arena *a, const char *text, size_t len, struct err *err) {
    struct json_reader r = {.arena = a, .start = text, .p = text, .end = text + len, .err = err};
    struct json *j = read_value(&r);
    if (!j)
        return NULL;
    skip_space(&r);
    return r.p == r.end ? j : fail(&r, "the end of the text");
}

const struct json *json_first(const struct json *parent) {
    bool nested = parent && (parent->type == JSON_ARRAY || parent->type == JSON_OBJECT);
    return nested ? parent->first : NULL;
}

const struct json *json_get(const struct json *object, const char *key) {
    if (!object || object->type != JSON_OBJECT)
        return NULL;
    json_each(it, object) if (strcmp(it->key, key) == 0) return it;
    return NULL;
}

const char *json_string(const struct json *j, const char *absent) {
    return j && j->type == JSON_STRING ? j->string : absent;
}

int64_t json_i64(const struct json *j, int64_t absent) {
    int64_t v = absent;
    if (j && j->type == JSON_INT)
        return j->integer;
    if (j && j->type == JSON_STRING)
        str_to_i64(j->string, INT64_MIN, INT64_MAX, &v);
    return v;
}

double json_number(const struct json *j, double absent) {
    if (j && j->type == JSON_DOUBLE)
        return j->number;
    return j && j->type == JSON_INT ? (double)j->integer : absent;
}

bool json_bool(const struct json *j, bool absent) {
    return j && j->type == JSON_BOOL ? j->boolean : absent;
}

const char *json_get_string(const struct json *object, const char *key, const char *absent) {
    return json_string(json_get(object, key), absent);
}

int64_t json_get_i64(const struct json *object, const char *key, int64_t absent) {
    return json_i64(json_get(object, key), absent);
}

bool json_get_bool(const struct json *object, const char *key, bool absent) {
    return json_bool(json_get(object, key), absent);
}

/* ---- writing ---- */

/* Beyond 16 bits a character takes two, of the surrogates. */
static void put_unicode(struct buf *b, unsigned c) {
    if (c >= 0x10000)
        buf_printf(b, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + (c & 0x3ff));
    else
        buf_printf(b, "\\u%04x", c);
}

/* How much of it stands for itself: most texts as a whole. */
static size_t plain_part(const char *s, const char *end) {
    const char *p = s;
    while (p < end && *p >= ' ' && *p <= '~' && *p != '"' && *p != '\\')
        p++;
    return (size_t)(p - s);
}

static void put_escaped(struct buf *b, const char *s, size_t n) {
    buf_putc(b, '"');
    for (const char *end = s + n; s < end;) {
        size_t plain = plain_part(s, end);
        buf_put(b, s, plain);
        s += plain;
        if (s == end)
            break;
        unsigned c = 0;
        int len = utf8_read(s, (size_t)(end - s), &c);
        if (len <= 0)
            buf_puts(b, "\xef\xbf\xbd");
        else if (c == '"' || c == '\\')
            buf_printf(b, "\\%c", (char)c);
        else if (c == '\n')
            buf_puts(b, "\\n");
        else if (!printable_is(c))
            put_unicode(b, c);
        else
            buf_put(b, s, (size_t)len);
        s += len > 0 ? len : 1;
    }
    buf_putc(b, '"');
}

static void begin(struct json_writer *w, const char *key) {
    if (w->comma)
        buf_putc(w->out, ',');
    w->comma = true;
    if (!key)
        return;
    put_escaped(w->out, key, strlen(key));
    buf_putc(w->out, ':');
}

static void open_nested(struct json_writer *w, const char *key, char c) {
    begin(w, key);
    buf_putc(w->out, c);
    w->comma = false;
}

static void close_nested(struct json_writer *w, char c) {
    buf_putc(w->out, c);
    w->comma = true;
}

void json_object(struct json_writer *w, const char *key) {
    open_nested(w, key, '{');
}
void json_array(struct json_writer *w, const char *key) {
    open_nested(w, key, '[');
}
void json_end_object(struct json_writer *w) {
    close_nested(w, '}');
}
void json_end_array(struct json_writer *w) {
    close_nested(w, ']');
}

void json_put_stringn(struct json_writer *w, const char *key, const char *s, size_t n) {
    begin(w, key);
    put_escaped(w->out, s, n);
}

void json_put_string(struct json_writer *w, const char *key, const char *s) {
    if (s)
        json_put_stringn(w, key, s, strlen(s));
    else
        json_put_null(w, key);
}

void json_put_strings(struct json_writer *w, const char *key, const char *const *v) {
    json_array(w, key);
    for (; v && *v; v++)
        json_put_string(w, NULL, *v);
    json_end_array(w);
}

/* Of which most records are made. */
static void put_digits(struct buf *b, int64_t v) {
    char text[20];
    size_t at = sizeof(text);
    uint64_t left = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do
        text[--at] = (char)('0' + left % 10);
    while (left /= 10);
    if (v < 0)
        text[--at] = '-';
    buf_put(b, text + at, sizeof(text) - at);
}

void json_put_i64(struct json_writer *w, const char *key, int64_t v) {
    begin(w, key);
    put_digits(w->out, v);
}

void json_put_double(struct json_writer *w, const char *key, double v) {
    begin(w, key);
    if (isfinite(v))
        buf_printf(w->out, "%.17g", v);
    else
        buf_puts(w->out, "null");
}

void json_put_bool(struct json_writer *w, const char *key, bool v) {
    begin(w, key);
    buf_puts(w->out, v ? "true" : "false");
}

void json_put_null(struct json_writer *w, const char *key) {
    begin(w, key);
    buf_puts(w->out, "null");
}

void json_put_known(struct json_writer *w, const char *key, bool known, int64_t v) {
    if (known)
        json_put_i64(w, key, v);
    else
        json_put_null(w, key);
}

void json_put_tree(struct json_writer *w, const char *key, const struct json *j) {
    switch (j ? j->type : JSON_NULL) {
    case JSON_NULL:
        json_put_null(w, key);
        break;
    case JSON_BOOL:
        json_put_bool(w, key, j->boolean);
        break;
    case JSON_INT:
        json_put_i64(w, key, j->integer);
        break;
    case JSON_DOUBLE:
        json_put_double(w, key, j->number);
        break;
    case JSON_STRING:
        json_put_stringn(w, key, j->string, j->length);
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        open_nested(w, key, j->type == JSON_ARRAY ? '[' : '{');
        json_each(it, j) json_put_tree(w, it->key, it);
        close_nested(w, j->type == JSON_ARRAY ? ']' : '}');
        break;
    }
}
