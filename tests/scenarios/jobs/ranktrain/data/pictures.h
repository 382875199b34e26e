/* JPEG and PNG files for tests, of one colour with a square of another in the middle. */
#pragma once

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

struct picture_colours {
    uint8_t outer[3], inner[3];
};

static inline uint8_t *picture_draw(int width, int height, const struct picture_colours *c) {
    uint8_t *p = malloc((size_t)(width * height * 3));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            int inner = x >= width / 4 && x < width - width / 4 && y >= height / 4 &&
                        y < height - height / 4;
            memcpy(p + (y * width + x) * 3, inner ? c->inner : c->outer, 3);
        }
    return p;
}

static inline void *picture_symbol(const char *library, const char *name) {
    void *handle = dlopen(library, RTLD_NOW);
    void *symbol = handle ? dlsym(handle, name) : NULL;
    if (!symbol) {
        fprintf(stderr, "%s has no %s\n", library, name);
        abort();
    }
    return symbol;
}

#define PICTURE_CALL(library, name) ((__typeof__(&(name)))picture_symbol(library, #name))

static inline void picture_write_png(const char *path, int width, int height,
                                     const struct picture_colours *c) {
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (unsigned)width,
                       .height = (unsigned)height,
                       .format = PNG_FORMAT_RGB};
    uint8_t *pixels = picture_draw(width, height, c);
    if (!PICTURE_CALL("libpng16.so.16", png_image_write_to_file)(&image, path, 0, pixels, 0, NULL))
        abort();
    free(pixels);
}

static inline void picture_write_jpeg(const char *path, int width, int height,
                                      const struct picture_colours *c) {
    const char *library = JPEG_LIB_VERSION >= 80 ? "libjpeg.so.8" : "libjpeg.so.62";
    struct jpeg_error_mgr errors;
    struct jpeg_compress_struct j = {.err = PICTURE_CALL(library, jpeg_std_error)(&errors)};
    uint8_t *pixels = picture_draw(width, height, c);
    FILE *f = fopen(path, "w");
    if (!f)
        abort();
    PICTURE_CALL(library, jpeg_CreateCompress)(&j, JPEG_LIB_VERSION, sizeof(j));
    PICTURE_CALL(library, jpeg_stdio_dest)(&j, f);
    j.image_width = (unsigned)width;
    j.image_height = (unsigned)height;
    j.input_components = 3;
    j.in_color_space = JCS_RGB;
    PICTURE_CALL(library, jpeg_set_defaults)(&j);
    PICTURE_CALL(library, jpeg_set_quality)(&j, 100, TRUE);
    PICTURE_CALL(library, jpeg_start_compress)(&j, TRUE);
    for (int y = 0; y < height; y++) {
        JSAMPROW row = pixels + (size_t)y * (size_t)width * 3;
        PICTURE_CALL(library, jpeg_write_scanlines)(&j, &row, 1);
    }
    PICTURE_CALL(library, jpeg_finish_compress)(&j);
    PICTURE_CALL(library, jpeg_destroy_compress)(&j);
    if (fclose(f) != 0)
        abort();
    free(pixels);
}
