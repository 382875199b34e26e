#include "agent/hosts/remote_launch.h"

#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The header is of fixed size, so that nothing behind the remote launch is read along with it. */
enum { HEADER = 32, TEXTS_MAX = 1 << 16 };

/* Those that stand behind the first of it, in their order, and how large each may be. */
enum { PLAIN, WORDS, VARIABLES, BYTES, NUMBERS };
static const int64_t most[NUMBERS] = {1, TEXTS_MAX, TEXTS_MAX, ERRAND_BYTES_MAX};
static const char magic[] = "rankrun-launch " RANKQUAKE_VERSION;

static size_t count(const char *const *texts) {
    size_t n = 0;
    while (texts[n])
        n++;
    return n;
}

static void put_texts(struct buf *b, const char *const *texts) {
    for (size_t i = 0; texts[i]; i++)
        buf_put(b, texts[i], strlen(texts[i]) + 1);
}

static void put_number(struct buf *b, size_t n) {
    char text[HEADER] = "";
    snprintf(text, sizeof(text), "%zu", n);
    buf_put(b, text, sizeof(text));
}

/* The first header. */
static void name_program(char ret[HEADER]) {
    memset(ret, 0, HEADER);
    str_copy(ret, HEADER, magic);
}

void remote_launch_write(const struct remote_launch *e, struct buf *ret) {
    BUF_FINI struct buf body = {0};
    char name[HEADER];
    buf_put(&body, e->dir, strlen(e->dir) + 1);
    put_texts(&body, e->argv);
    put_texts(&body, e->env);
    name_program(name);
    buf_put(ret, name, sizeof(name));
    put_number(ret, e->plain);
    put_number(ret, count(e->argv));
    put_number(ret, count(e->env));
    put_number(ret, body.len);
    buf_put(ret, body.data, body.len);
}

static int read_all(int fd, char *to, size_t n) {
    while (n) {
        ssize_t got = read(fd, to, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -EPIPE;
        to += got;
        n -= (size_t)got;
    }
    return 0;
}

static int read_number(int fd, int64_t max, size_t *ret) {
    char text[HEADER];
    int64_t n;
    int code = read_all(fd, text, sizeof(text));
    if (code)
        return code;
    if (!memchr(text, '\0', sizeof(text)) || !str_to_i64(text, 0, max, &n))
        return -EBADMSG;
    *ret = (size_t)n;
    return 0;
}

/* n texts from *at on, all of which end before end. */
static const char *const *take_texts(const char **at, const char *end, size_t n, struct arena *a) {
    const char **texts = arena_array(a, const char *, n + 1);
    for (size_t i = 0; i < n; i++) {
        const char *nul = memchr(*at, '\0', (size_t)(end - *at));
        if (!nul)
            return NULL;
        texts[i] = *at;
        *at = nul + 1;
    }
    texts[n] = NULL;
    return texts;
}

static int read_body(int fd, const size_t numbers[NUMBERS], struct arena *a,
                     struct remote_launch *ret) {
    char *body = arena_alloc(a, numbers[BYTES] + 1);
    int code = read_all(fd, body, numbers[BYTES]);
    if (code)
        return code;
    const char *at = body, *end = body + numbers[BYTES];
    const char *const *dir = take_texts(&at, end, 1, a);
    const char *const *argv = dir ? take_texts(&at, end, numbers[WORDS], a) : NULL;
    const char *const *env = argv ? take_texts(&at, end, numbers[VARIABLES], a) : NULL;
    if (!env || at != end || !numbers[WORDS])
        return -EBADMSG;
    *ret = (struct remote_launch){.dir = dir[0], .argv = argv, .env = env, .plain = numbers[PLAIN]};
    return 0;
}

int remote_launch_read(int fd, struct arena *a, struct remote_launch *ret, struct err *err) {
    char name[HEADER], own[HEADER];
    size_t numbers[NUMBERS] = {0};
    int code = read_all(fd, name, sizeof(name));
    name_program(own);
    if (!code && memcmp(name, own, sizeof(own)) != 0)
        return err_say(err, -EBADMSG,
                       "what came is not from a rankrun of the same version (%s here)",
                       RANKQUAKE_VERSION);
    for (int i = 0; i < NUMBERS && !code; i++)
        code = read_number(fd, most[i], &numbers[i]);
    if (!code)
        code = read_body(fd, numbers, a, ret);
    return code ? err_set(err, code, "read what to do") : 0;
}

/* What describes this host, this login or this terminal is not sent: there it is another. */
static bool stays(const char *variable) {
    static const char *const prefixes[] = {
        "SSH_",  "XDG_",        "DBUS_",      "HOSTNAME=", "DISPLAY=", "HOME=",  "LOGNAME=",
        "USER=", "SHELL=",      "MAIL=",      "PWD=",      "OLDPWD=",  "SHLVL=", "TERM=",
        "_=",    "XAUTHORITY=", "RANKQUAKE_", "TMPDIR=",   NULL};
    for (const char *const *p = prefixes; *p; p++)
        if (str_starts(variable, *p))
            return true;
    return !strchr(variable, '=');
}

const char *const *remote_launch_environment(struct arena *a, const char *more) {
    size_t n = 0, k = 0;
    while (environ[n])
        n++;
    const char **env = arena_array(a, const char *, n + 2);
    for (size_t i = 0; i < n; i++)
        if (!stays(environ[i]))
            env[k++] = environ[i];
    env[k] = more; /* behind it is nothing, as in all of it before */
    return env;
}
