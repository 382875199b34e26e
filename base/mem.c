#include "base/mem.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 8 };

static void *checked(void *memory) {
    if (!memory)
        abort();
    return memory;
}

void *mem_alloc(size_t n, size_t size) {
    return checked(calloc(n ? n : 1, size));
}

char *mem_strdup(const char *s) {
    return checked(strdup(s));
}

char *mem_vprintf(const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    size_t size = (size_t)vsnprintf(NULL, 0, fmt, again) + 1;
    va_end(again);
    char *text = mem_alloc(size, 1);
    vsnprintf(text, size, fmt, ap);
    return text;
}

char *mem_printf(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    char *text = mem_vprintf(fmt, ap);
    va_end(ap);
    return text;
}

/* How much there is follows from n: it doubles where n and the one behind it would not fit. */
void *mem_room(void *v, size_t n, size_t size) {
    bool full = n + 1 >= ROOM_FIRST && ((n + 1) & n) == 0;
    if (v && !full)
        return v;
    return checked(realloc(v, (full ? 2 * (n + 1) : ROOM_FIRST) * size));
}
