#include "scenarios/jobs/ranktrain/model/narrow.h"
#include "scenarios/jobs/ranktrain/wide.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

typedef float lanes __attribute__((vector_size(4 * NARROW_LANES)));

/* By address: how a vector is passed by value depends on the CPU. */
static inline __attribute__((always_inline)) void load(lanes *ret, const float *p) {
    memcpy(ret, p, sizeof(*ret));
}

static inline __attribute__((always_inline)) void store(float *p, const lanes *v) {
    memcpy(p, v, sizeof(*v));
}

WIDE void narrow_product(int n, int k, const float *a, const float *b, float *c) {
    assert(n % (2 * NARROW_LANES) == 0);
    for (int j = 0; j < n; j += 2 * NARROW_LANES) {
        lanes sum[NARROW_ROWS][2] = {{{0}}};
        const float *column = b + j;
        for (int i = 0; i < k; i++, column += n) {
            lanes left, right;
            load(&left, column);
            load(&right, column + NARROW_LANES);
            for (int r = 0; r < NARROW_ROWS; r++) {
                float w = a[r * k + i];
                sum[r][0] += left * w;
                sum[r][1] += right * w;
            }
        }
        for (int r = 0; r < NARROW_ROWS; r++) {
            store(c + r * n + j, &sum[r][0]);
            store(c + r * n + j + NARROW_LANES, &sum[r][1]);
        }
    }
}

static inline __attribute__((always_inline)) float add_lanes(const lanes *v) {
    const lanes x = *v;
    return ((x[0] + x[4]) + (x[1] + x[5])) + ((x[2] + x[6]) + (x[3] + x[7]));
}

/* Two rows of b at a time, or the last one twice. */
WIDE void narrow_gradient(int n, int k, const float *a, const float *b, float *c) {
    assert(n % NARROW_LANES == 0);
    for (int i = 0; i < k; i += 2) {
        int second = i + 1 < k ? i + 1 : i;
        const float *left = b + (size_t)i * (size_t)n, *right = b + (size_t)second * (size_t)n;
        lanes sum[NARROW_ROWS][2] = {{{0}}};
        for (int j = 0; j < n; j += NARROW_LANES) {
            lanes x, y;
            load(&x, left + j);
            load(&y, right + j);
            for (int r = 0; r < NARROW_ROWS; r++) {
                lanes g;
                load(&g, a + r * n + j);
                sum[r][0] += g * x;
                sum[r][1] += g * y;
            }
        }
        for (int r = 0; r < NARROW_ROWS; r++) {
            c[r * k + i] = add_lanes(&sum[r][0]);
            c[r * k + second] = add_lanes(&sum[r][1]);
        }
    }
}
