#include "base/utf8.h"

/* What the first byte promises: how many bytes, and between which bounds the second lies. */
static int promised(unsigned char first, unsigned char *low, unsigned char *high) {
    *low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    *high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

int utf8_read(const char *s, size_t n, unsigned *ret_c) {
    static const unsigned char bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07}; /* of the first byte */
    const unsigned char *p = (const unsigned char *)s;
    unsigned char low, high;
    int length = n ? promised(*p, &low, &high) : -1;
    if (length <= 0)
        return length;
    unsigned c = *p & bits[length];
    for (int i = 1; i < length; i++) {
        if ((size_t)i == n)
            return -1;
        if (p[i] < low || p[i] > high)
            return 0;
        low = 0x80, high = 0xbf;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (ret_c)
        *ret_c = c;
    return length;
}
