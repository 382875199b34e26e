#include "scenarios/jobs/ranktrain/data/photo.h"

#include "base/sys/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 256 << 20 };

int photo_read(const char *path, int least, struct photo *ret, struct err *err) {
    static const unsigned char png[] = {0x89, 'P', 'N', 'G'}, jpeg[] = {0xff, 0xd8};
    BUF_FINI struct buf b = {0};
    int r = file_read_plain(path, FILE_MAX, &b, err);
    if (r < 0)
        return r;
    if (b.len >= sizeof(png) && memcmp(b.data, png, sizeof(png)) == 0)
        r = photo_decode_png(b.data, b.len, ret, err);
    else if (b.len >= sizeof(jpeg) && memcmp(b.data, jpeg, sizeof(jpeg)) == 0)
        r = photo_decode_jpeg(b.data, b.len, least, ret, err);
    else
        return err_say(err, -EBADMSG, "%s is neither JPEG nor PNG: at byte 0 begins neither", path);
    return r < 0 ? err_wrap(err, "%s: ", path) : 0;
}

void photo_fini(struct photo *p) {
    free(p->pixels);
    *p = (struct photo){0};
}

/* The mean of a rectangle of one channel, rounded. */
static uint8_t mean(const struct photo *p, int channel, int left, int top, int right, int bottom) {
    uint64_t sum = 0, n = (uint64_t)(right - left) * (uint64_t)(bottom - top);
    for (int y = top; y < bottom; y++)
        for (int x = left; x < right; x++)
            sum += p->pixels[((size_t)y * (size_t)p->width + (size_t)x) * PHOTO_CHANNELS +
                             (size_t)channel];
    return (uint8_t)((sum + n / 2) / n);
}

/* Where the i-th of `side` parts of `length` begins, and where it ends: at least a pixel further. */
static int part_begin(int i, int length, int side) {
    return (int)((int64_t)i * length / side);
}

static int part_end(int i, int length, int side) {
    int begin = part_begin(i, length, side), end = part_begin(i + 1, length, side);
    return end > begin ? end : begin + 1;
}

void photo_fit(const struct photo *p, int side, uint8_t *ret_pixels) {
    int length = p->width < p->height ? p->width : p->height;
    int left = (p->width - length) / 2, top = (p->height - length) / 2;
    for (int c = 0; c < PHOTO_CHANNELS; c++)
        for (int y = 0; y < side; y++)
            for (int x = 0; x < side; x++)
                *ret_pixels++ = mean(
                    p, c, left + part_begin(x, length, side), top + part_begin(y, length, side),
                    left + part_end(x, length, side), top + part_end(y, length, side));
}
