#include "base/texts.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void texts_take(struct texts *t, char *text) {
    mem_push(t->v, t->n) = text;
    t->v[t->n] = NULL;
}

void texts_add(struct texts *t, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    texts_take(t, mem_vprintf(fmt, ap));
    va_end(ap);
}

bool texts_has(const struct texts *t, const char *text) {
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->v[i], text) == 0)
            return true;
    return false;
}

const char *const *texts_list(const struct texts *t) {
    static const char *const none[] = {NULL};
    return t->v ? (const char *const *)t->v : none;
}

void texts_fini(struct texts *t) {
    for (size_t i = 0; i < t->n; i++)
        free(t->v[i]);
    free(t->v);
    *t = (struct texts){0};
}
