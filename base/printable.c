#include "base/printable.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/* What moves, turns around or hides text, or is not to be seen: first and last, in order. Joiners
 * are among them, though some scripts and pictures are written with them: names that differ by one
 * look the same. */
static const struct {
    unsigned first, last;
} hidden[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},     {0x34f, 0x34f},   {0x61c, 0x61c},
    {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x200b, 0x200f}, {0x2028, 0x202e},
    {0x2060, 0x206f}, {0x3164, 0x3164}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb},
};

bool printable_is(unsigned c) {
    for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden) && c >= hidden[i].first; i++)
        if (c <= hidden[i].last)
            return false;
    if (c >= 0x1d173 && c <= 0x1d17a) /* of music: begins and ends what is not to be seen */
        return false;
    return (c & 0xfffe) != 0xfffe && (c < 0xe0000 || c > 0xe0fff); /* no characters; tags */
}

/* Bytes of a sequence that sets colours; 0: it is none. */
static size_t color_length(const char *s, size_t n) {
    size_t i = 2;
    if (n < 3 || s[0] != '\033' || s[1] != '[')
        return 0;
    while (i < n && i < PRINTABLE_MAX - 2 && strchr("0123456789;:", s[i]) && s[i])
        i++;
    return i < n && s[i] == 'm' ? i + 1 : 0;
}

static void spell(unsigned c, char ret[PRINTABLE_MAX]) {
    static const char from[] = "\n\t\r", to[] = "ntr";
    const char *at = c ? strchr(from, (int)c) : NULL;
    if (c < 0x80 && at)
        snprintf(ret, PRINTABLE_MAX, "\\%c", to[at - from]);
    else if (c < 0x80)
        snprintf(ret, PRINTABLE_MAX, "\\x%02x", c);
    else if (c < 0x10000)
        snprintf(ret, PRINTABLE_MAX, "\\u%04x", c);
    else
        snprintf(ret, PRINTABLE_MAX, "\\U%08x", c);
}

size_t printable_next(const char *s, size_t n, int how, char ret[PRINTABLE_MAX]) {
    unsigned c;
    int length = utf8_read(s, n, &c);
    if (length <= 0) {
        snprintf(ret, PRINTABLE_MAX, "\\x%02x", (unsigned char)*s);
        return 1;
    }
    bool line = how & PRINTABLE_LINES && (c == '\n' || c == '\t');
    size_t color = how & PRINTABLE_COLORS ? color_length(s, n) : 0;
    size_t taken = color ? color : (size_t)length;
    if (!printable_is(c) && !line && !color) {
        spell(c, ret);
        return taken;
    }
    memcpy(ret, s, taken);
    ret[taken] = '\0';
    return taken;
}

void printable_put(struct buf *out, const char *s, size_t n, int how) {
    char shown[PRINTABLE_MAX];
    while (n) {
        size_t taken = 0;
        while (taken < n && s[taken] >= ' ' && s[taken] < 0x7f)
            taken++;
        if (taken) {
            buf_put(out, s, taken);
        } else {
            taken = printable_next(s, n, how, shown);
            buf_puts(out, shown);
        }
        s += taken;
        n -= taken;
    }
}

void printable_puts(struct buf *out, const char *s) {
    printable_put(out, s, strlen(s), 0);
}

void printable_copy(char *ret, size_t size, const char *s) {
    char shown[PRINTABLE_MAX];
    size_t n = strlen(s), to = 0;
    while (n) {
        size_t taken = printable_next(s, n, 0, shown), length = strlen(shown);
        if (to + length >= size)
            break;
        memcpy(ret + to, shown, length);
        to += length;
        s += taken;
        n -= taken;
    }
    ret[to] = '\0';
}

size_t printable_unfinished(const char *s, size_t n) {
    for (size_t back = 1; back <= 3 && back <= n; back++)
        if (utf8_read(s + n - back, back, NULL) != 0) /* the first that can begin a character */
            return utf8_read(s + n - back, back, NULL) < 0 ? back : 0;
    return 0;
}
