#include "reports/escape.h"

#include <string.h>

/* Bytes of the character of UTF-8 at s; 0: it is none. */
static int utf8_length(const unsigned char *s) {
    int n = *s >= 0xf0 && *s < 0xf5 ? 4 : *s >= 0xe0 ? 3 : *s >= 0xc2 ? 2 : 0;
    if (*s >= 0xf5)
        return 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

void escape_put(struct buf *out, const char *s) {
    static const char special[] = "&<>\"\n";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#10;"};
    while (*s) {
        unsigned char c = (unsigned char)*s;
        const char *at = strchr(special, c);
        int n = c >= 0x80 ? utf8_length((const unsigned char *)s) : 1;
        if (at)
            buf_puts(out, entities[at - special]);
        else if (!n || c < 0x20 || c == 0x7f)
            buf_putc(out, '?');
        else
            buf_put(out, s, (size_t)n);
        s += n ? n : 1;
    }
}
