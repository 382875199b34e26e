#include "harness/observe/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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
