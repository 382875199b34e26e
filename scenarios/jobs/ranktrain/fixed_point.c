#include "scenarios/jobs/ranktrain/fixed_point.h"

#include "scenarios/jobs/ranktrain/wide.h"

#include <string.h>

/* There is no vector instruction from double to int64 before AVX-512. Adding 1.5 * 2^52 leaves the
 * integer, rounded, in the low bits of the sum. */
static const double magic = 0x1.8p52;
enum { CHUNK = 512 };

WIDE static unsigned add_chunk(int64_t *restrict sum, const float *restrict x, size_t n,
                               int64_t magic_bits) {
    unsigned bad = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] * FIXED_POINT_ONE + magic;
        int64_t bits;
        memcpy(&bits, &d, sizeof(bits));
        sum[i] += bits - magic_bits;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        bad |= (bits & 0x7fffffff) >= 0x48800000; /* |x| >= 2^18, infinite or not a number */
    }
    return bad;
}

bool fixed_point_add(int64_t *sum, const float *x, size_t n) {
    int64_t magic_bits;
    memcpy(&magic_bits, &magic, sizeof(magic_bits));
    unsigned bad = 0;
    for (size_t i = 0; i < n; i += CHUNK)
        bad |= add_chunk(sum + i, x + i, n - i < CHUNK ? n - i : CHUNK, magic_bits);
    return !bad;
}

int64_t fixed_point_of(double x) {
    double d = x * FIXED_POINT_ONE + magic;
    int64_t bits, magic_bits;
    memcpy(&bits, &d, sizeof(bits));
    memcpy(&magic_bits, &magic, sizeof(magic_bits));
    return bits - magic_bits;
}

double fixed_point_value(int64_t sum) {
    return (double)sum / FIXED_POINT_ONE;
}
