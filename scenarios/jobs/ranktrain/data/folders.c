#include "scenarios/jobs/ranktrain/data/folders.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/sys/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { PNG_GREY = 0, PNG_COLOUR = 2, PNG_BITS = 8 };

static void put_number(struct buf *b, uint32_t v) {
    v = htonl(v);
    buf_put(b, &v, sizeof(v));
}

/* A chunk: its length, its name and data, and their checksum. */
static void put_chunk(struct buf *b, const char name[4], const void *data, size_t n) {
    put_number(b, (uint32_t)n);
    size_t at = b->len;
    buf_put(b, name, 4);
    buf_put(b, data, n);
    put_number(b, (uint32_t)crc32_z(0, (const unsigned char *)b->data + at, b->len - at));
}

/* Row by row, the channels of a pixel together, a filter of none in front of each row. */
static void interleave(const struct images_shape *s, const uint8_t *pixels, struct buf *ret) {
    size_t area = (size_t)s->side * (size_t)s->side;
    for (size_t p = 0; p < area; p++) {
        if (p % (size_t)s->side == 0)
            buf_putc(ret, 0);
        for (size_t c = 0; c < (size_t)s->channels; c++)
            buf_putc(ret, (char)pixels[c * area + p]);
    }
}

static int put_png(const struct images_shape *s, const uint8_t *pixels, struct buf *ret,
                   struct err *err) {
    BUF_FINI struct buf rows = {0}, head = {0};
    interleave(s, pixels, &rows);
    uLongf packed_n = compressBound(rows.len);
    uint8_t *packed = mem_alloc(packed_n, 1);
    int z = compress2(packed, &packed_n, (const Bytef *)rows.data, rows.len, Z_BEST_SPEED);
    put_number(&head, (uint32_t)s->side);
    put_number(&head, (uint32_t)s->side);
    buf_put(&head, (const char[]){PNG_BITS, s->channels == 1 ? PNG_GREY : PNG_COLOUR, 0, 0, 0}, 5);
    buf_put(ret, "\x89PNG\r\n\x1a\n", 8);
    put_chunk(ret, "IHDR", head.data, head.len);
    put_chunk(ret, "IDAT", packed, packed_n);
    put_chunk(ret, "IEND", "", 0);
    free(packed);
    return z == Z_OK ? 0 : err_say(err, -ENOMEM, "zlib packs no image (%d)", z);
}

static int make_classes(const char *folder, int classes, struct err *err) {
    char path[PATH_MAX];
    int r = file_make_dirs(folder, 0755, err);
    for (int k = 0; k < classes && r == 0; k++) {
        snprintf(path, sizeof(path), "%s/%03d", folder, k);
        r = file_make_dirs(path, 0755, err);
    }
    return r;
}

int folders_write(const char *folder, const struct images *d, uint32_t limit, uint32_t *ret_count,
                  struct err *err) {
    BUF_FINI struct buf file = {0};
    uint32_t n = limit && limit < d->count ? limit : d->count;
    int r = d->shape.channels == 2
                ? err_say(err, -EINVAL, "%s: a PNG has one channel or three, not two", d->path)
                : make_classes(folder, d->shape.classes, err);
    for (uint32_t i = 0; i < n && r == 0; i++) {
        char path[PATH_MAX];
        const uint8_t *pixels = images_read(d, i, err);
        buf_clear(&file);
        r = pixels ? put_png(&d->shape, pixels, &file, err) : err->code;
        snprintf(path, sizeof(path), "%s/%03d/%06u.png", folder, images_label(d, i), i);
        if (r == 0)
            r = file_write(path, file.data, file.len, err);
    }
    *ret_count = n;
    return r;
}
