/* token: what a client of the embedded store shows to be let in, as
 * `Authorization: Bearer TOKEN` (RFC 6750, section 2.1) with every request. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

enum { TOKEN_MAX = 512, TOKEN_DRAWN = 33 /* bytes, with the NUL */ };

/* 1 to TOKEN_MAX printable characters without blanks; else -EINVAL with the rule, in words that
 * go behind the name of where it came from. */
int token_check(const char *token, struct err *err);
/* Whether the value of the header shows this token. Takes as long for a wrong one as for the right
 * one, so that it cannot be guessed piece by piece. header: NULL: there was none. */
bool token_shown(const char *header, const char *token);
/* One that nobody can guess: 128 bits of the kernel's, in hexadecimal digits. */
void token_draw(char ret[TOKEN_DRAWN]);
