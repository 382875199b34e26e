#include "harness/carrier/frames.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

enum { QUOTED_MAX = 200, MOVED_MIN = 1 << 16 };

void frame_put(struct buf *out, const char *text, size_t len) {
    assert(len > 0 && len <= FRAME_MAX);
    const unsigned char head[FRAME_HEAD] = {(unsigned char)(len >> 24), (unsigned char)(len >> 16),
                                            (unsigned char)(len >> 8), (unsigned char)len};
    buf_put(out, head, sizeof(head));
    buf_put(out, text, len);
}

/* What was taken is dropped when all of it was, or when it has become much. */
void frames_hear(struct frame_stream *f, const void *bytes, size_t n) {
    if (f->at == f->in.len || f->at >= MOVED_MIN) {
        buf_consume(&f->in, f->at);
        f->at = 0;
    }
    buf_put(&f->in, bytes, n);
}

size_t frames_left(const struct frame_stream *f) {
    return f->in.len - f->at;
}

static int no_frame(const char *came, size_t n, struct err *err) {
    const char *end = memchr(came, '\n', n);
    if (end == came) /* the line behind an empty one says more */
        end = memchr(came + 1, '\n', n - 1);
    size_t shown = end ? (size_t)(end - came) : n;
    return err_say(err, -EPROTO, "what came is no message of a helper: \"%.*s\"",
                   (int)(shown < QUOTED_MAX ? shown : QUOTED_MAX), came);
}

int frames_take(struct frame_stream *f, const char **ret, size_t *ret_len, struct err *err) {
    size_t left = frames_left(f);
    if (left < FRAME_HEAD)
        return 0;
    const char *came = f->in.data + f->at;
    const unsigned char *head = (const unsigned char *)came;
    size_t len = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    if (len == 0 || len > FRAME_MAX)
        return no_frame(came, left, err);
    if (left < FRAME_HEAD + len)
        return 0;
    *ret = came + FRAME_HEAD;
    *ret_len = len;
    f->at += FRAME_HEAD + len;
    return 1;
}

void frames_fini(struct frame_stream *f) {
    buf_fini(&f->in);
    f->at = 0;
}
