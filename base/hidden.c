#include "base/hidden.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct covered_place {
    size_t at, len;
};

void hidden_add(struct hidden *h, const char *text) {
    size_t len = strlen(text);
    if (len < HIDDEN_MIN || texts_has(&h->texts, text))
        return;
    texts_add(&h->texts, "%s", text);
    h->longest = len > h->longest ? len : h->longest;
}

/* All are found before one is covered: they may overlap. */
size_t hidden_cover(const struct hidden *h, char *data, size_t n) {
    struct covered_place *found = NULL;
    size_t found_n = 0;
    for (size_t i = 0; i < h->texts.n; i++) {
        size_t len = strlen(h->texts.v[i]);
        const char *at = data, *end = data + n;
        while (n && (at = memmem(at, (size_t)(end - at), h->texts.v[i], len)))
            mem_push(found, found_n) = (struct covered_place){(size_t)(at++ - data), len};
    }
    for (size_t i = 0; i < found_n; i++)
        memset(data + found[i].at, '*', found[i].len);
    free(found);
    return found_n;
}

static size_t begun(const char *text, const char *data, size_t n) {
    size_t len = strlen(text);
    for (size_t k = len - 1 < n ? len - 1 : n; k > 0; k--)
        if (memcmp(data + n - k, text, k) == 0)
            return k;
    return 0;
}

size_t hidden_unfinished(const struct hidden *h, const char *data, size_t n) {
    size_t most = 0;
    for (size_t i = 0; i < h->texts.n; i++) {
        size_t k = begun(h->texts.v[i], data, n);
        most = k > most ? k : most;
    }
    return most;
}

void hidden_fini(struct hidden *h) {
    texts_fini(&h->texts);
    h->longest = 0;
}
