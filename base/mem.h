/* mem: memory of the heap that is there, always: out of memory aborts, as no caller could do
 * anything better. Everything is given back by free(). */
#pragma once

#include <stdarg.h>
#include <stddef.h>

/* n of size bytes, zeroed. */
void *mem_alloc(size_t n, size_t size);
#define mem_new(type)      ((type *)mem_alloc(1, sizeof(type)))
#define mem_array(type, n) ((type *)mem_alloc((n), sizeof(type)))

char *mem_strdup(const char *s);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *mem_vprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

/* One more element of v, a pointer to n of them: mem_push(v, n) = x. v is NULL while it is empty,
 * and has been made by nothing else. Behind the last there is room for one more, to end a list. */
#define mem_push(v, n) (*((v) = mem_room((v), (n), sizeof(*(v))), &(v)[(n)++]))
void *mem_room(void *v, size_t n, size_t size);
