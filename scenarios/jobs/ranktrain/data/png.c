/* PNG by libpng, loaded when the first file is read. */
#include "scenarios/jobs/ranktrain/data/photo.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <errno.h>

#include <png.h>

#define LIBRARY "libpng16.so.16"

static struct {
    void *handle;
    __typeof__(png_image_begin_read_from_memory) *begin;
    __typeof__(png_image_finish_read) *finish;
    __typeof__(png_image_free) *free;
} lib;

static int load(struct err *err) {
    if (lib.handle)
        return 0;
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return err_say(err, -ENOENT, "libpng is not installed (%s): apt install libpng16-16",
                       LIBRARY);
    lib.begin = (__typeof__(lib.begin))dlsym(handle, "png_image_begin_read_from_memory");
    lib.finish = (__typeof__(lib.finish))dlsym(handle, "png_image_finish_read");
    lib.free = (__typeof__(lib.free))dlsym(handle, "png_image_free");
    if (!lib.begin || !lib.finish || !lib.free)
        return err_say(err, -ENOENT, "%s is older than 1.6: install libpng16-16", LIBRARY);
    lib.handle = handle;
    return 0;
}

/* What is transparent is black. */
int photo_decode_png(const void *data, size_t n, struct photo *ret, struct err *err) {
    int r = load(err);
    if (r < 0)
        return r;
    png_image image = {.version = PNG_IMAGE_VERSION};
    const png_color black = {0};
    struct photo p = {0};
    if (lib.begin(&image, data, n) && image.width <= PHOTO_SIDE && image.height <= PHOTO_SIDE) {
        image.format = PNG_FORMAT_RGB;
        p.width = (int)image.width;
        p.height = (int)image.height;
        p.pixels = mem_alloc((size_t)p.width * (size_t)p.height, PHOTO_CHANNELS);
        if (lib.finish(&image, &black, p.pixels, 0, NULL) && !image.warning_or_error) {
            *ret = p;
            return 0;
        }
    }
    r = err_say(err, -EBADMSG, "is no whole PNG: %s (%zu bytes)",
                *image.message ? image.message : "it is too large", n);
    photo_fini(&p);
    lib.free(&image);
    return r;
}
