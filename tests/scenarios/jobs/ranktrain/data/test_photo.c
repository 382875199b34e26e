/* Pictures made one size, beside a plain model. */
#include "scenarios/jobs/ranktrain/data/photo.h"
#include "scenarios/jobs/ranktrain/data/draw.h"

#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { MOST = 37 };

/* The mean, rounded half up, of the pixels of the square in the middle that a cell covers, at least one. */
static int cell(const struct photo *p, int side, int c, int y, int x) {
    int length = p->width < p->height ? p->width : p->height;
    int left = (p->width - length) / 2, top = (p->height - length) / 2;
    int x0 = x * length / side, x1 = (x + 1) * length / side, y0 = y * length / side,
        y1 = (y + 1) * length / side;
    long sum = 0, n = 0;
    x1 = x1 > x0 ? x1 : x0 + 1;
    y1 = y1 > y0 ? y1 : y0 + 1;
    for (int i = y0; i < y1; i++)
        for (int k = x0; k < x1; k++, n++)
            sum += p->pixels[((top + i) * p->width + left + k) * 3 + c];
    return (int)((2 * sum + n) / (2 * n));
}

static void test_each_cell_is_the_mean_of_what_it_covers(void **state) {
    (void)state;
    static uint8_t pixels[MOST * MOST * 3], fitted[3 * MOST * MOST + 1];
    uint64_t seed = 7;
    for (int i = 0; i < 1500; i++) {
        struct photo p = {.width = 1 + (int)draw_below(&seed, MOST),
                          .height = 1 + (int)draw_below(&seed, MOST),
                          .pixels = pixels};
        int side = 1 + (int)draw_below(&seed, MOST);
        for (int k = 0; k < p.width * p.height * 3; k++)
            pixels[k] = (uint8_t)draw_below(&seed, 256);
        memset(fitted, 0xa5, sizeof(fitted));
        photo_fit(&p, side, fitted);
        const uint8_t *at = fitted;
        for (int c = 0; c < 3; c++)
            for (int y = 0; y < side; y++)
                for (int x = 0; x < side; x++)
                    assert_int_equal(*at++, cell(&p, side, c, y, x));
        assert_int_equal(*at, 0xa5);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_cell_is_the_mean_of_what_it_covers),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
