#include "agent/store/token.h"

#include "base/http/http.h"
#include "base/sys/random.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int token_check(const char *token, struct err *err) {
    size_t n = strlen(token);
    bool good = n > 0 && n <= TOKEN_MAX;
    for (const char *p = token; *p; p++)
        good = good && *p > ' ' && *p < 0x7f;
    return good
               ? 0
               : err_say(err, -EINVAL,
                         "a token has 1 to %d printable ASCII characters and no blanks", TOKEN_MAX);
}

bool token_shown(const char *header, const char *token) {
    const char *shown = http_bearer_of(header);
    if (!shown)
        return false;
    size_t n = strlen(shown), expected = strlen(token);
    volatile unsigned char differs = n != expected;
    for (size_t i = 0; i < n; i++)
        differs |= (unsigned char)(shown[i] ^ token[i % expected]);
    return !differs;
}

void token_draw(char ret[TOKEN_DRAWN]) {
    snprintf(ret, TOKEN_DRAWN, "%016" PRIx64 "%016" PRIx64, random_u64(), random_u64());
}
