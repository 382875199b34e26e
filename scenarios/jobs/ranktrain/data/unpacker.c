#include "scenarios/jobs/ranktrain/data/unpacker.h"

#include <errno.h>
#include <stdio.h>
#include <zlib.h>

enum { BUFFER = 1 << 17 };

int unpacker_open(struct unpacker *ret, const char *path, struct err *err) {
    *ret = (struct unpacker){0};
    snprintf(ret->path, sizeof(ret->path), "%s", path);
    errno = 0;
    ret->gz = gzopen(path, "rbe");
    if (!ret->gz)
        return err_set(err, errno ? -errno : -ENOMEM, "open %s", path);
    gzbuffer(ret->gz, BUFFER);
    return 0;
}

void unpacker_close(struct unpacker *s) {
    if (s->gz)
        gzclose_r(s->gz);
    s->gz = NULL;
}

static int fail(struct unpacker *s, struct err *err) {
    int e = Z_OK;
    const char *words = gzerror(s->gz, &e);
    if (e == Z_ERRNO)
        return err_set(err, errno ? -errno : -EIO, "%s: reading at byte %llu", s->path,
                       (unsigned long long)s->at);
    if (e == Z_DATA_ERROR)
        return err_say(err, -EBADMSG, "%s is damaged near byte %llu, unpacked: %s", s->path,
                       (unsigned long long)s->at, words);
    return 0;
}

int unpacker_take(struct unpacker *s, void *ret, size_t n, struct err *err) {
    size_t got = 0;
    while (got < n) {
        errno = 0;
        int k = gzread(s->gz, (char *)ret + got, (unsigned)(n - got < BUFFER ? n - got : BUFFER));
        if (k <= 0)
            break;
        got += (size_t)k;
        s->at += (uint64_t)k;
    }
    int r = got < n ? fail(s, err) : 0;
    if (r < 0 || got == n)
        return r;
    return err_say(err, -EBADMSG, "%s is cut short at byte %llu: %zu more should follow", s->path,
                   (unsigned long long)s->at, n - got);
}

/* At the end: whether gzip says that it is one. */
static int check_end(struct unpacker *s, struct err *err) {
    int r = fail(s, err), e = Z_OK;
    gzerror(s->gz, &e);
    if (r == 0 && e == Z_BUF_ERROR)
        return err_say(err, -EBADMSG, "%s is cut short behind byte %llu: gzip's end is missing",
                       s->path, (unsigned long long)s->at);
    return r;
}

int unpacker_some(struct unpacker *s, void *ret, size_t n, size_t *ret_n, struct err *err) {
    errno = 0;
    int k = gzread(s->gz, ret, (unsigned)(n < BUFFER ? n : BUFFER));
    *ret_n = k > 0 ? (size_t)k : 0;
    s->at += *ret_n;
    return k > 0 ? 0 : check_end(s, err);
}

int unpacker_end(struct unpacker *s, struct err *err) {
    char more;
    size_t n;
    int r = unpacker_some(s, &more, 1, &n, err);
    if (r == 0 && n > 0)
        return err_say(err, -EBADMSG, "%s goes on behind byte %llu, where it should end", s->path,
                       (unsigned long long)s->at - 1);
    return r;
}
