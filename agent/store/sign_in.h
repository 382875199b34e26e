/* sign_in: the token that a client shows to a store, where the store itself is asked for it: an
 * etcd for that of a user and his password, a store of rankrun for what it has sealed for our
 * user. */
#pragma once

#include "agent/store/access.h"

enum sign_in_end {
    SIGNED_IN,          /* also where no token is wanted */
    SIGN_IN_FAILED,     /* why says it */
    SIGN_IN_NO_SUCH_URL /* an etcd, but of another version; why as well */
};
typedef void sign_in_fn(void *arg, enum sign_in_end end, const char *why);

struct sign_in {
    const struct store_access *access; /* NULL: plain HTTP, nobody in particular */
    struct http *http;                 /* shows the token from then on */
    sign_in_fn *fn;
    void *arg;
    struct http_call *call; /* NULL: nobody is asking */
    int times;              /* how often it has ended well */
    bool stale;             /* the token is no longer taken */
};

/* Whether a token is to be asked for at all, and whether that comes before anything else now. */
bool sign_in_is_used(const struct sign_in *s);
bool sign_in_is_due(const struct sign_in *s);
/* Asks, unless somebody does already; fn is told from the loop. */
void sign_in_begin(struct sign_in *s, const char *url);
void sign_in_cancel(struct sign_in *s);
