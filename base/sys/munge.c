#include "base/sys/munge.h"

#include <errno.h>

#if __has_include(<munge.h>)

#include <dlfcn.h>
#include <munge.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FUNCTIONS(X)                                                                               \
    X(munge_encode)                                                                                \
    X(munge_decode)                                                                                \
    X(munge_strerror)                                                                              \
    X(munge_ctx_create)                                                                            \
    X(munge_ctx_destroy)                                                                           \
    X(munge_ctx_set)                                                                               \
    X(munge_ctx_strerror)

struct libmunge {
#define X(name) __typeof__(&(name)) name;
    FUNCTIONS(X)
#undef X
};

static const struct libmunge *load(struct err *err) {
    static struct libmunge munge;
    static bool loaded;
    void *lib = loaded ? NULL : dlopen("libmunge.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!loaded && !lib) {
        err_say(err, -ENOENT, "libmunge is not installed (Debian, Ubuntu: apt install libmunge2)");
        return NULL;
    }
#define X(name)                                                                                    \
    munge.name = loaded ? munge.name : (__typeof__(munge.name))dlsym(lib, #name);                  \
    if (!munge.name) {                                                                             \
        err_say(err, -ENOENT, "the libmunge of this machine has no %s: install libmunge2", #name); \
        return NULL;                                                                               \
    }
    FUNCTIONS(X)
#undef X
    loaded = true;
    return &munge;
}

/* The daemon's administrator may have turned encryption off by default; here it is the point. */
static int seal(const struct libmunge *m, munge_ctx_t ctx, const char *text, struct buf *ret,
                struct err *err) {
    char *credential = NULL;
    munge_err_t e = m->munge_ctx_set(ctx, MUNGE_OPT_CIPHER_TYPE, MUNGE_CIPHER_AES128);
    if (e == EMUNGE_SUCCESS)
        e = m->munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, geteuid());
    if (e == EMUNGE_SUCCESS)
        e = m->munge_encode(&credential, ctx, text, (int)strlen(text));
    if (e == EMUNGE_SUCCESS)
        buf_puts(ret, credential);
    else
        err_say(err, -EIO, "munge: %s",
                m->munge_ctx_strerror(ctx) ? m->munge_ctx_strerror(ctx) : m->munge_strerror(e));
    free(credential);
    return e == EMUNGE_SUCCESS ? 0 : err->code;
}

int munge_seal(const char *text, struct buf *ret, struct err *err) {
    const struct libmunge *m = load(err);
    munge_ctx_t ctx = m ? m->munge_ctx_create() : NULL;
    if (!ctx)
        return m ? err_say(err, -ENOMEM, "munge: out of memory") : err->code;
    int code = seal(m, ctx, text, ret, err);
    m->munge_ctx_destroy(ctx);
    return code;
}

/* An age proves nothing here and a second opening harms nobody: it is the secret that counts. The
 * library hands it over in these cases, too. */
static bool is_opened(munge_err_t e) {
    return e == EMUNGE_SUCCESS || e == EMUNGE_CRED_EXPIRED || e == EMUNGE_CRED_REWOUND ||
           e == EMUNGE_CRED_REPLAYED;
}

int munge_open(const char *credential, struct buf *ret, struct err *err) {
    const struct libmunge *m = load(err);
    void *text = NULL;
    int n = 0, code = 0;
    uid_t uid = (uid_t)-1;
    gid_t gid;
    if (!m)
        return err->code;
    munge_err_t e = m->munge_decode(credential, NULL, &text, &n, &uid, &gid);
    if (!is_opened(e))
        code = err_say(err, e == EMUNGE_CRED_UNAUTHORIZED ? -EPERM : -EIO, "munge: %s",
                       m->munge_strerror(e));
    else if (uid != geteuid())
        code = err_say(err, -EPERM, "munge: user %u sealed it, and we are user %u", (unsigned)uid,
                       (unsigned)geteuid());
    else
        buf_put(ret, text, (size_t)n);
    free(text);
    return code;
}

#else

static int without(struct err *err) {
    return err_say(err, -ENOENT, "rankrun was built without munge.h (package libmunge-dev)");
}

int munge_seal(const char *text, struct buf *ret, struct err *err) {
    return without(err);
}

int munge_open(const char *credential, struct buf *ret, struct err *err) {
    return without(err);
}

#endif
