/* photo: one image file decoded, and made as large as the others. */
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum { PHOTO_CHANNELS = 3, PHOTO_SIDE = 32768 /* at most */ };

struct photo {
    int width, height;
    uint8_t *pixels; /* red, green, blue of each, row by row; of the heap */
};

/* Of a JPEG or PNG file by its first bytes, whatever it is called; one that is much larger than a
 * square of least pixels may be made smaller meanwhile. By libjpeg and libpng, which are loaded
 * when the first such file is read. -EBADMSG: damaged, or neither; -ENOENT: no library. The
 * sentence names the file. */
int photo_read(const char *path, int least, struct photo *ret, struct err *err);
void photo_fini(struct photo *p);

/* The square in the middle, as long as the shorter side, as side x side pixels: each the mean of
 * those that it covers. Channel by channel. In whole numbers: the same bytes everywhere. */
void photo_fit(const struct photo *p, int side, uint8_t *ret_pixels);

/* For photo.c: each by its library. data is the whole file. */
int photo_decode_jpeg(const void *data, size_t n, int least, struct photo *ret, struct err *err);
int photo_decode_png(const void *data, size_t n, struct photo *ret, struct err *err);
