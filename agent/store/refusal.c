#include "agent/store/refusal.h"

#include <string.h>

const char *refusal_advise(struct arena *a, const char *text) {
    static const struct {
        const char *text, *advice;
    } advices[] = {
        {"database space exceeded", "etcd is full: compact, defrag and alarm disarm with etcdctl"},
        {"user name is empty", "give --rdzv-conf user=NAME,password_file=FILE"},
        {"invalid user ID or password", "these are of --rdzv-conf user and password"},
        {"permission denied", "the user of --rdzv-conf needs a role for the keys /rankrun/"},
        {"invalid auth token", "etcd took our token back"},
    };
    for (size_t i = 0; i < sizeof(advices) / sizeof(*advices); i++)
        if (strstr(text, advices[i].text))
            return arena_printf(a, "%s; %s", text, advices[i].advice);
    return text;
}

const char *refusal_of_stranger(struct arena *a, long status, const struct buf *body) {
    int n = 0;
    while (n < 80 && (size_t)n < body->len && body->data[n] >= ' ' && body->data[n] < 0x7f)
        n++;
    return arena_printf(a, "HTTP status %ld%s%.*s: this is no answer of an etcd v3%s", status,
                        n ? ", " : "", n, n ? body->data : "",
                        status == 400 ? "; does it want --rdzv-conf protocol=https?" : "");
}

bool refusal_is_of_token(long status, const char *text) {
    return status == 401 || (text && (strstr(text, "invalid auth token") ||
                                      strstr(text, "user name is empty") || /* wants one now */
                                      strstr(text, "revision of auth store is old")));
}

/* 4xx: the store has judged the request, unless it wants TLS first (426); anything else that is no
 * answer leaves it open (an etcd without a leader says 503, or 500 when it gave up waiting for
 * one). An etcd that is full, or lets us do nothing, is as one that is away: asking again at once
 * would not help. */
bool refusal_is_final(long status, const char *text) {
    return text && status >= 400 && status < 500 && status != 401 && status != 403 &&
           status != 426 && status != 429 && !strstr(text, "user name is empty") &&
           !strstr(text, "database space exceeded");
}
