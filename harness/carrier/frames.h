/* frames: messages cut out of a stream of bytes, pure: whatever brings the bytes may bring them in
 * any pieces. A frame is the length of its text in four bytes, the highest first, and the text. No
 * text is longer than FRAME_MAX, so that what a host prints by itself, a greeting or an error of its
 * shell, is told from a frame by its first four bytes. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

enum { FRAME_HEAD = 4, FRAME_MAX = 64 << 20 };

struct frame_stream {
    struct buf in;
    size_t at; /* where the next frame begins in it */
};

/* Appends the frame of a text of 1 to FRAME_MAX bytes. */
void frame_put(struct buf *out, const char *text, size_t len);

void frames_hear(struct frame_stream *f, const void *bytes, size_t n);
/* Returns 1 with the text of the next frame, which is valid until bytes are heard again and has no
 * NUL behind it; 0: it is not whole yet; -EPROTO: what came is no frame, which err quotes. */
int frames_take(struct frame_stream *f, const char **ret, size_t *ret_len, struct err *err);
/* Bytes that have come and are no whole frame. */
size_t frames_left(const struct frame_stream *f);
void frames_fini(struct frame_stream *f);
