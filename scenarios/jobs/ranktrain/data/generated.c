#include "scenarios/jobs/ranktrain/data/generated.h"
#include "scenarios/jobs/ranktrain/data/cache.h"
#include "scenarios/jobs/ranktrain/data/draw.h"
#include "scenarios/jobs/ranktrain/data/idx.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <stdlib.h>

enum { GRID = 7, WIDE = IDX_SIDE + 6, SEED = 20240 };

static uint8_t label_of(bool test, uint32_t i) {
    uint64_t state = draw_stream(SEED + test, 2 * (uint64_t)i + 10);
    return (uint8_t)draw_below(&state, IDX_CLASSES);
}

/* Greys between the points of the grid are mixed from their four neighbours. */
static void draw_patterns(uint8_t pattern[IDX_CLASSES][WIDE][WIDE]) {
    for (unsigned k = 0; k < IDX_CLASSES; k++) {
        uint64_t state = draw_stream(SEED, k);
        int grid[GRID + 1][GRID + 1];
        for (int y = 0; y <= GRID; y++)
            for (int x = 0; x <= GRID; x++)
                grid[y][x] = draw_below(&state, 3) ? 0 : 128 + (int)draw_below(&state, 128);
        for (int y = 0; y < WIDE; y++)
            for (int x = 0; x < WIDE; x++) {
                int gy = y / 5, gx = x / 5, fy = y % 5, fx = x % 5;
                int top = grid[gy][gx] * (5 - fx) + grid[gy][gx + 1] * fx;
                int low = grid[gy + 1][gx] * (5 - fx) + grid[gy + 1][gx + 1] * fx;
                pattern[k][y][x] = (uint8_t)((top * (5 - fy) + low * fy) / 25);
            }
    }
}

static void draw_image(uint8_t pattern[IDX_CLASSES][WIDE][WIDE], bool test, uint32_t i,
                       uint8_t ret[IDX_PIXELS]) {
    uint64_t state = draw_stream(SEED + test, 2 * (uint64_t)i + 11), noise = 0;
    uint32_t dy = draw_below(&state, 7), dx = draw_below(&state, 7);
    int light = 100 + (int)draw_below(&state, 156);
    uint8_t label = label_of(test, i);
    for (uint32_t p = 0; p < IDX_PIXELS; p++, noise >>= 8) {
        if (p % 8 == 0)
            noise = draw_u64(&state);
        int grey = pattern[label][p / IDX_SIDE + dy][p % IDX_SIDE + dx] * light / 255 +
                   ((int)(noise & 0xff) - 128) / 2;
        ret[p] = (uint8_t)(grey < 0 ? 0 : grey > 255 ? 255 : grey);
    }
}

int generated_write(int fd, const void *arg, struct err *err) {
    const struct generated_data *g = arg;
    static uint8_t pattern[IDX_CLASSES][WIDE][WIDE];
    uint32_t n = g->test ? GENERATED_TEST : GENERATED_TRAIN;
    size_t header = g->labels ? IDX_LABELS_HEADER : IDX_IMAGES_HEADER;
    size_t bytes = header + (size_t)n * (g->labels ? 1 : IDX_PIXELS);
    uint8_t *file = mem_alloc(bytes, 1);
    idx_put_header(file, g->labels ? 1 : 3, n);
    draw_patterns(pattern);
    for (uint32_t i = 0; i < n; i++)
        if (g->labels)
            file[header + i] = label_of(g->test, i);
        else
            draw_image(pattern, g->test, i, file + header + (size_t)i * IDX_PIXELS);
    int r = file_write_all(fd, file, bytes, err);
    free(file);
    return r;
}
