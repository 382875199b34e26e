/* JPEG by libjpeg (libjpeg-turbo), loaded when the first file is read. */
#include "scenarios/jobs/ranktrain/data/photo.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

/* Version 6b of the interface is Debian's, 8 is Ubuntu's. */
#define LIBRARY (JPEG_LIB_VERSION >= 80 ? "libjpeg.so.8" : "libjpeg.so.62")

#define FUNCTIONS(X)                                                                               \
    X(jpeg_std_error)                                                                              \
    X(jpeg_CreateDecompress)                                                                       \
    X(jpeg_mem_src)                                                                                \
    X(jpeg_read_header)                                                                            \
    X(jpeg_start_decompress)                                                                       \
    X(jpeg_read_scanlines)                                                                         \
    X(jpeg_finish_decompress)                                                                      \
    X(jpeg_destroy_decompress)

static struct {
    void *handle;
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} lib;

static int load(struct err *err) {
    if (lib.handle)
        return 0;
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return err_say(err, -ENOENT,
                       "libjpeg-turbo is not installed (%s): apt install libjpeg62-turbo (Ubuntu: "
                       "libjpeg-turbo8)",
                       LIBRARY);
#define LOAD(name)                                                                                 \
    lib.name = (__typeof__(lib.name))dlsym(handle, #name);                                         \
    if (!lib.name)                                                                                 \
        return err_say(err, -ENOENT, "%s has no %s: install libjpeg-turbo", LIBRARY, #name);
    FUNCTIONS(LOAD)
#undef LOAD
    lib.handle = handle;
    return 0;
}

/* The library leaves by exit unless somebody jumps. A file that is cut short is a warning to it. */
struct jpeg_failure {
    struct jpeg_error_mgr manager; /* first: the library knows the struct by it */
    jmp_buf back;
    char text[JMSG_LENGTH_MAX];
};

static void leave(j_common_ptr c) {
    struct jpeg_failure *f = (struct jpeg_failure *)c->err;
    f->manager.format_message(c, f->text);
    longjmp(f->back, 1);
}

static void warn(j_common_ptr c, int level) {
    if (level < 0)
        leave(c);
}

/* How much smaller the library may make it, which costs nothing. */
static unsigned smaller(const struct jpeg_decompress_struct *d, int least) {
    unsigned shorter = d->image_width < d->image_height ? d->image_width : d->image_height;
    unsigned by = 1;
    while (by < 8 && shorter / (2 * by) >= (unsigned)least)
        by *= 2;
    return by;
}

static void decode(struct jpeg_decompress_struct *d, const void *data, size_t n, int least,
                   struct photo *p) {
    lib.jpeg_mem_src(d, data, (unsigned long)n);
    lib.jpeg_read_header(d, TRUE);
    d->out_color_space = JCS_RGB;
    d->scale_num = 1;
    d->scale_denom = smaller(d, least);
    d->dct_method = JDCT_ISLOW;
    lib.jpeg_start_decompress(d);
    p->width = (int)d->output_width;
    p->height = (int)d->output_height;
    p->pixels = mem_alloc((size_t)p->width * (size_t)p->height, PHOTO_CHANNELS);
    while (d->output_scanline < d->output_height) {
        JSAMPROW row = p->pixels + (size_t)d->output_scanline * (size_t)p->width * PHOTO_CHANNELS;
        lib.jpeg_read_scanlines(d, &row, 1);
    }
    lib.jpeg_finish_decompress(d);
}

int photo_decode_jpeg(const void *data, size_t n, int least, struct photo *ret, struct err *err) {
    int r = load(err);
    if (r < 0)
        return r;
    struct jpeg_failure f = {0};
    struct jpeg_decompress_struct d = {.err = lib.jpeg_std_error(&f.manager)};
    struct photo *p = mem_new(struct photo); /* what changes until a jump must not be automatic */
    f.manager.error_exit = leave;
    f.manager.emit_message = warn;
    if (setjmp(f.back) == 0) {
        lib.jpeg_CreateDecompress(&d, JPEG_LIB_VERSION, sizeof(d));
        decode(&d, data, n, least, p);
    } else {
        photo_fini(p);
        r = err_say(err, -EBADMSG, "is no whole JPEG: %s (%zu bytes)", f.text, n);
    }
    lib.jpeg_destroy_decompress(&d);
    if (r == 0)
        *ret = *p;
    free(p);
    return r;
}
