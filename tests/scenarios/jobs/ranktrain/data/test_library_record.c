/* The libraries that decode pictures, played: what is asked of them and in which order, how much smaller a picture is asked
 * for, and what comes of each thing that is missing and of each moment at which they give up. */
#include "tests/played.h"

#include "scenarios/jobs/ranktrain/data/photo.h"

#include <dlfcn.h>
#include <stdio.h>

#include <jpeglib.h>
#include <png.h>

static struct {
    int library; /* its address is the handle */
    struct jpeg_error_mgr *manager;
    unsigned width, height;
    const char *open; /* what has not been given back */
} host;

static void *played_library(const char *name, int flags) {
    return fails("library, %d", flags) ? NULL : &host.library; /* its name is the distribution's */
}

/* ---- JPEG ---- */

static void played_format(j_common_ptr c, char *ret) {
    strcpy(ret, "as the library says");
}

static struct jpeg_error_mgr *played_std_error(struct jpeg_error_mgr *m) {
    note("std_error");
    *m = (struct jpeg_error_mgr){.format_message = played_format};
    return host.manager = m;
}

/* It goes on, warns, tells something, or gives up. */
static void proceed(j_decompress_ptr d, const char *what) {
    assert_true(d->err == host.manager);
    if (fails("%s", what))
        d->err->error_exit((j_common_ptr)d);
    int luck = draw(24);
    if (luck < 4) {
        note("  tells at level %d", luck - 1);
        d->err->emit_message((j_common_ptr)d, luck - 1);
    }
}

static void played_create(j_decompress_ptr d, int version, size_t bytes) {
    assert_true(version == JPEG_LIB_VERSION && bytes == sizeof(*d));
    host.open = "jpeg";
    proceed(d, "create");
}

static void played_source(j_decompress_ptr d, const unsigned char *data, unsigned long n) {
    note("source %.*s", (int)n, (const char *)data);
}

static int played_header(j_decompress_ptr d, boolean whole) {
    note("header, %d", whole);
    proceed(d, "header");
    d->image_width = host.width;
    d->image_height = host.height;
    return JPEG_HEADER_OK;
}

static boolean played_start(j_decompress_ptr d) {
    note("start: colours %d, %u/%u, dct %d", d->out_color_space, d->scale_num, d->scale_denom,
         d->dct_method);
    proceed(d, "start");
    d->output_width = (d->image_width + d->scale_denom - 1) / d->scale_denom;
    d->output_height = (d->image_height + d->scale_denom - 1) / d->scale_denom;
    d->output_scanline = 0;
    return TRUE;
}

static JDIMENSION played_lines(j_decompress_ptr d, JSAMPARRAY rows, JDIMENSION n) {
    assert_int_equal(n, 1);
    if (d->output_scanline % 64 == 0)
        proceed(d, "lines");
    memset(rows[0], (int)(d->output_scanline % 251), d->output_width * 3);
    d->output_scanline++;
    return 1;
}

static boolean played_finish(j_decompress_ptr d) {
    proceed(d, "finish");
    return TRUE;
}

static void played_destroy(j_decompress_ptr d) {
    note("destroy");
    host.open = NULL;
}

/* ---- PNG ---- */

static int played_begin(png_imagep image, png_const_voidp data, size_t n) {
    assert_true(image->version == PNG_IMAGE_VERSION && !image->opaque);
    host.open = "png";
    if (fails("begin %.*s", (int)n, (const char *)data)) {
        strcpy(image->message, draw(2) ? "no PNG" : "");
        return 0;
    }
    image->width = host.width;
    image->height = host.height;
    return 1;
}

static int played_png_finish(png_imagep image, png_const_colorp black, void *pixels,
                             png_int_32 stride, void *map) {
    assert_true(black->red == 0 && black->green == 0 && black->blue == 0 && !map);
    if (fails("finish as %u, %d", image->format, stride)) {
        strcpy(image->message, "cut short");
        return 0;
    }
    memset(pixels, 7, (size_t)image->width * image->height * 3);
    image->warning_or_error = draw(4) ? 0 : 1 + (png_uint_32)draw(2);
    if (image->warning_or_error)
        strcpy(image->message, "a warning");
    else
        host.open = NULL;
    return 1;
}

static void played_png_free(png_imagep image) {
    note("free");
    host.open = NULL;
}

static void *played_symbol(void *library, const char *name) {
    static const struct {
        const char *name;
        uintptr_t at;
    } symbols[] = {{"jpeg_std_error", (uintptr_t)played_std_error},
                   {"jpeg_CreateDecompress", (uintptr_t)played_create},
                   {"jpeg_mem_src", (uintptr_t)played_source},
                   {"jpeg_read_header", (uintptr_t)played_header},
                   {"jpeg_start_decompress", (uintptr_t)played_start},
                   {"jpeg_read_scanlines", (uintptr_t)played_lines},
                   {"jpeg_finish_decompress", (uintptr_t)played_finish},
                   {"jpeg_destroy_decompress", (uintptr_t)played_destroy},
                   {"png_image_begin_read_from_memory", (uintptr_t)played_begin},
                   {"png_image_finish_read", (uintptr_t)played_png_finish},
                   {"png_image_free", (uintptr_t)played_png_free}};
    assert_ptr_equal(library, &host.library);
    if (fails("symbol %s", name))
        return NULL;
    for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++)
        if (strcmp(symbols[i].name, name) == 0)
            return (void *)symbols[i].at;
    return NULL;
}

#define dlopen played_library
#define dlsym  played_symbol
#define load   load_jpeg
#define lib    lib_jpeg
#include "scenarios/jobs/ranktrain/data/jpeg.c"
#undef load
#undef lib
#undef LIBRARY
#include "scenarios/jobs/ranktrain/data/png.c"

static void say_photo(int r, const struct err *err, struct photo *p) {
    uint64_t sum = 0;
    for (int i = 0; p->pixels && i < p->width * p->height * PHOTO_CHANNELS; i++)
        sum = sum * 31 + p->pixels[i];
    const char *said =
        strstr(err->msg, "(libjpeg") || strstr(err->msg, "libjpeg") ? "libjpeg" : err->msg;
    note("> %d, %d %s: %dx%d, %llx; left open: %s", r, err->code, said, p->width, p->height,
         (unsigned long long)sum, host.open ? host.open : "nothing");
    photo_fini(p);
}

/* Twice: what is loaded stays so. */
static void jpegs(uint64_t seed) {
    memset(&host, 0, sizeof(host));
    memset(&lib_jpeg, 0, sizeof(lib_jpeg));
    for (int i = 0; i < 2; i++) {
        static const unsigned sides[] = {1, 31, 32, 63, 64, 65, 127, 128, 255, 256, 257};
        struct photo p = {0};
        struct err err = {0};
        host.width = sides[draw(11)];
        host.height = draw(2) ? sides[draw(11)] : host.width;
        int least = draw(2) ? 32 : 16 + draw(3);
        note("%ux%u, %d at least", host.width, host.height, least);
        say_photo(photo_decode_jpeg("data", 4, least, &p, &err), &err, &p);
    }
}

static void pngs(uint64_t seed) {
    memset(&host, 0, sizeof(host));
    memset(&lib, 0, sizeof(lib));
    for (int i = 0; i < 2; i++) {
        static const unsigned sides[] = {1, 2, 5, PHOTO_SIDE, PHOTO_SIDE + 1};
        struct photo p = {0};
        struct err err = {0};
        host.width = sides[draw(5)];
        host.height = host.width < PHOTO_SIDE && draw(2) ? sides[draw(5)] : 1 + (unsigned)draw(4);
        note("%ux%u", host.width, host.height);
        say_photo(photo_decode_png("data", 4, &p, &err), &err, &p);
    }
}

#define RECORD(name) "tests/scenarios/jobs/ranktrain/data/record/" name ".txt"

static const struct play plays[] = {{RECORD("jpeg"), jpegs, 60, true, {EIO, ENOENT}},
                                    {RECORD("png"), pngs, 60, true, {EIO, ENOENT}}};

static void test_how_a_jpeg_is_decoded_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

static void test_how_a_png_is_decoded_is_on_record(void **state) {
    (void)state;
    played_check(&plays[1]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_a_jpeg_is_decoded_is_on_record),
        cmocka_unit_test(test_how_a_png_is_decoded_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
