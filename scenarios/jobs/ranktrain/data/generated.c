/* Images of the shape and number of Fashion-MNIST, for machines without it, where they are asked for.
 *
 * Each class is a pattern of 7x7 greys, enlarged; a sample is its class's pattern moved by up to
 * three pixels, darkened and covered with noise. Made of integers: the same bytes everywhere. */
#include "scenarios/jobs/ranktrain/data/draw.h"
#include "scenarios/jobs/ranktrain/data/idx.h"

enum {
    GRID = 7,
    WIDE = IDX_SIDE + 6,
    SEED = 20240,
    GENERATED_TRAIN = 60000,
    GENERATED_TEST = 10000
};

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

static int list(const struct dataset_place *at, bool test, struct texts *ret, struct err *err) {
    return 0;
}

static int pack(const struct dataset_place *at, bool test, const struct texts *files,
                struct packing *p, struct err *err) {
    static uint8_t pattern[IDX_CLASSES][WIDE][WIDE];
    uint8_t pixels[IDX_PIXELS];
    int r = 0;
    draw_patterns(pattern);
    for (uint32_t i = 0; i < (test ? GENERATED_TEST : GENERATED_TRAIN) && r == 0; i++) {
        draw_image(pattern, test, i, pixels);
        r = packing_add(p, pixels, label_of(test, i), err);
    }
    return r;
}

const struct dataset_kind dataset_generated = {
    .name = "generated",
    .summary = "made-up images of the shape and number of Fashion-MNIST",
    .dir = "",
    .shape = {.channels = 1,
              .side = IDX_SIDE,
              .classes = IDX_CLASSES,
              .mean = {0.2860f},
              .deviation = {0.3530f}},
    .list = list,
    .pack = pack,
};
