#include "base/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { PIECES = 3000 };

static size_t size_of(int i) {
    return (size_t)(i * 37 % 1500); /* none, some of the pool's, some of malloc's */
}

static void test_pieces_do_not_overlap(void **state) {
    (void)state;
    static unsigned char *pieces[PIECES];
    struct pool p = {0};
    for (int i = 0; i < PIECES; i++) {
        pieces[i] = pool_take(&p, size_of(i));
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        memset(pieces[i], i & 0xff, size_of(i));
    }
    for (int i = 0; i < PIECES; i++) {
        for (size_t k = 0; k < size_of(i); k++)
            assert_int_equal(pieces[i][k], i & 0xff);
        pool_give(&p, pieces[i], size_of(i));
    }
    pool_fini(&p);
}

/* Under the address sanitizer nothing is used again, on purpose. */
static void test_what_was_given_back_serves_again(void **state) {
    (void)state;
    struct pool p = {0};
    for (int i = 0; i < 100 * PIECES; i++) {
        char *a = pool_take(&p, 100), *b = pool_take(&p, 500);
        memset(a, 1, 100);
        memset(b, 2, 500);
        pool_give(&p, a, 100);
        pool_give(&p, b, 500);
    }
    pool_give(&p, NULL, 100);
    pool_fini(&p);
    assert_null(p.chunks);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_do_not_overlap),
        cmocka_unit_test(test_what_was_given_back_serves_again),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
