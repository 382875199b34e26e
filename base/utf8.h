/* utf8: characters as RFC 3629 has them: none is longer than it must be, none is a surrogate, none
 * lies above U+10FFFF. */
#pragma once

#include <stddef.h>

/* Bytes of the character that begins the n bytes at s, 1 to 4, and in *ret_c (may be NULL) which it
 * is. 0: none begins there. -1: one may begin there, of which the n bytes are not all; where n is
 * all there is, that is none either. */
int utf8_read(const char *s, size_t n, unsigned *ret_c);
