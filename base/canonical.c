#include "base/canonical.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const int64_t LARGEST = (INT64_C(1) << 53) - 1;

/* Bytes of UTF-8 are in the order of code points. UTF-16 has those above U+FFFF behind U+D7FF and
 * in front of U+E000, whose first byte is 0xee. */
static int rank_of(unsigned char c) {
    return c >= 0xf0 ? 2 * 0xed + 1 : 2 * c;
}

static int compare(const char *a, const char *b) {
    while (*a && *a == *b)
        a++, b++;
    int x = rank_of((unsigned char)*a), y = rank_of((unsigned char)*b);
    return x == y ? (unsigned char)*a - (unsigned char)*b : x - y;
}

static int by_key(const void *a, const void *b) {
    return compare((*(const struct json *const *)a)->key, (*(const struct json *const *)b)->key);
}

static void put_text(const char *s, size_t n, struct buf *out) {
    static const char plain[] = "\b\t\n\f\r\"\\", shown[] = "btnfr\"\\";
    buf_putc(out, '"');
    for (size_t i = 0; i < n; i++) {
        const char *special = s[i] ? strchr(plain, s[i]) : NULL;
        if (special)
            buf_printf(out, "\\%c", shown[special - plain]);
        else if ((unsigned char)s[i] < 0x20)
            buf_printf(out, "\\u%04x", (unsigned)(unsigned char)s[i]);
        else
            buf_putc(out, s[i]);
    }
    buf_putc(out, '"');
}

static int put_object(const struct json *j, struct buf *out, struct err *err) {
    const struct json **v = mem_array(const struct json *, j->length + 1);
    size_t n = 0;
    int r = 0;
    json_each(m, j) v[n++] = m;
    qsort(v, n, sizeof(*v), by_key);
    buf_putc(out, '{');
    for (size_t i = 0; i < n && r == 0; i++) {
        if (i && str_eq(v[i]->key, v[i - 1]->key))
            r = err_say(err, -EBADMSG, "an object has the member \"%s\" twice", v[i]->key);
        if (i)
            buf_putc(out, ',');
        put_text(v[i]->key, strlen(v[i]->key), out);
        buf_putc(out, ':');
        r = r ? r : canonical_put(v[i], out, err);
    }
    buf_putc(out, '}');
    free(v);
    return r;
}

static int put_array(const struct json *j, struct buf *out, struct err *err) {
    int r = 0;
    buf_putc(out, '[');
    json_each(m, j) {
        if (m != json_first(j))
            buf_putc(out, ',');
        r = r ? r : canonical_put(m, out, err);
    }
    buf_putc(out, ']');
    return r;
}

static int put_number(int64_t v, struct buf *out, struct err *err) {
    if (v > LARGEST || v < -LARGEST)
        return err_say(err, -EBADMSG, "the number %lld is larger than 2^53 - 1", (long long)v);
    buf_printf(out, "%lld", (long long)v);
    return 0;
}

int canonical_put(const struct json *j, struct buf *out, struct err *err) {
    switch (j->type) {
    case JSON_NULL:
        buf_puts(out, "null");
        return 0;
    case JSON_BOOL:
        buf_puts(out, j->boolean ? "true" : "false");
        return 0;
    case JSON_INT:
        return put_number(j->integer, out, err);
    case JSON_DOUBLE:
        return err_say(err, -EBADMSG, "the number %g is no whole one", j->number);
    case JSON_STRING:
        put_text(j->string, j->length, out);
        return 0;
    case JSON_ARRAY:
        return put_array(j, out, err);
    case JSON_OBJECT:
        return put_object(j, out, err);
    }
    return 0;
}

static int check_utf8(const char *text, size_t len, struct err *err) {
    for (size_t at = 0; at < len;) {
        int n = utf8_read(text + at, len - at, NULL);
        if (n <= 0)
            return err_say(err, -EBADMSG, "byte %zu begins no character of UTF-8", at);
        at += (size_t)n;
    }
    return 0;
}

const struct json *canonical_read(struct arena *a, const char *text, size_t len, struct err *err) {
    BUF_FINI struct buf again = {0};
    if (check_utf8(text, len, err) < 0)
        return NULL;
    const struct json *j = json_parse(a, text, len, err);
    if (!j || canonical_put(j, &again, err) < 0)
        return NULL;
    size_t at = 0;
    while (at < len && at < again.len && text[at] == again.data[at])
        at++;
    if (at == len && at == again.len)
        return j;
    err_say(err, -EBADMSG,
            "from byte %zu on it is not as canonical JSON is written (members in order, no blanks)",
            at);
    return NULL;
}
