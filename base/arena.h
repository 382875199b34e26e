/* arena: memory that is freed all at once.
 *
 * A scenario, a plan, a parsed message live in one arena and die with it. Allocation never fails
 * (out of memory aborts: no caller could do anything better) and is zeroed, aligned to 16. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

struct arena {
    struct arena_block *head;
};

void *arena_alloc(struct arena *a, size_t size);
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
/* Frees everything and leaves an empty arena; {0} is an empty arena too. */
void arena_fini(struct arena *a);
/* ARENA_FINI struct arena a = {0}; ends with its block. */
#define ARENA_FINI __attribute__((cleanup(arena_fini)))
/* Empties it but keeps a block, for what is filled and emptied again and again. */
void arena_clear(struct arena *a);

#define arena_new(a, type)      ((type *)arena_alloc((a), sizeof(type)))
#define arena_array(a, type, n) ((type *)arena_alloc((a), sizeof(type) * (n)))
