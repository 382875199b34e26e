#include "harness/observe/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_put(struct buf *out, const void *data, size_t n) {
    const unsigned char *in = data;
    for (size_t i = 0; i < n; i += 3) {
        unsigned bits = (unsigned)in[i] << 16 | (i + 1 < n ? (unsigned)in[i + 1] << 8 : 0) |
                        (i + 2 < n ? in[i + 2] : 0u);
        for (size_t k = 0; k < 4; k++)
            buf_putc(out, i + k > n ? '=' : digits[bits >> (18 - 6 * k) & 63]);
    }
}

static int value_of(char c) {
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

char *base64_decode(struct arena *a, const char *text, size_t *ret_n) {
    char *out = arena_array(a, char, strlen(text) / 4 * 3 + 4);
    unsigned bits = 0;
    size_t n = 0;
    int have = 0;
    for (; value_of(*text) >= 0; text++) {
        bits = bits << 6 | (unsigned)value_of(*text);
        have += 6;
        if (have < 8)
            continue;
        have -= 8;
        out[n++] = (char)(bits >> have & 255);
    }
    out[n] = '\0';
    if (ret_n)
        *ret_n = n;
    return out;
}
