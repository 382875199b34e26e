#include "base/base64.h"

#include <stdint.h>
#include <string.h>

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_put(struct buf *out, const void *p, size_t n) {
    const unsigned char *in = p;
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        uint32_t v = (uint32_t)in[i] << 16;
        v |= left > 1 ? (uint32_t)in[i + 1] << 8 : 0;
        v |= left > 2 ? in[i + 2] : 0;
        char four[4] = {ALPHABET[v >> 18], ALPHABET[v >> 12 & 63],
                        left > 1 ? ALPHABET[v >> 6 & 63] : '=', left > 2 ? ALPHABET[v & 63] : '='};
        buf_put(out, four, 4);
    }
}

static int digit(char c) {
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_take(struct buf *out, const char *text, size_t n) {
    size_t start = out->len;
    bool good = n % 4 == 0;
    for (size_t i = 0; i < n && good; i += 4) {
        size_t pad = i + 4 < n || text[i + 3] != '=' ? 0 : text[i + 2] == '=' ? 2 : 1;
        uint32_t v = 0;
        for (size_t k = 0; k < 4; k++) {
            int d = k < 4 - pad ? digit(text[i + k]) : 0;
            good = good && d >= 0;
            v = v << 6 | (uint32_t)(d & 63);
        }
        unsigned char three[3] = {(unsigned char)(v >> 16), (unsigned char)(v >> 8),
                                  (unsigned char)v};
        if (good)
            buf_put(out, three, 3 - pad);
    }
    if (!good && out->data) {
        out->len = start;
        out->data[start] = '\0';
    }
    return good;
}

const char *base64_coded(struct arena *a, const char *text) {
    struct buf b = {0};
    base64_put(&b, text, strlen(text));
    const char *coded = arena_strdup(a, buf_str(&b));
    buf_fini(&b);
    return coded;
}

const char *base64_plain(struct arena *a, const char *text) {
    struct buf b = {0};
    const char *plain = base64_take(&b, text, strlen(text)) ? arena_strdup(a, buf_str(&b)) : NULL;
    buf_fini(&b);
    return plain;
}
