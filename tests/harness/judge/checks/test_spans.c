/* Spans: what is found is what asking each would find. */
#include "harness/judge/checks/spans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { N = 300, TIMES = 60 };

static unsigned rolled(unsigned *dice) {
    *dice = *dice * 1103515245 + 12345;
    return *dice >> 16;
}

static struct span span_at(const void *things, size_t at) {
    return ((const struct span *)things)[at];
}

static size_t next_of_all(const struct span *v, size_t n, size_t at, int64_t from, int64_t to) {
    while (at < n && (v[at].end_ns < from || v[at].begin_ns > to))
        at++;
    return at;
}

static void test_every_span_that_touches_a_time_is_found_and_no_other(void **state) {
    (void)state;
    unsigned dice = 7;
    for (size_t n = 0; n < N; n = n < 10 ? n + 1 : n + 37) {
        struct span v[N];
        struct arena a = {0};
        struct spans s;
        for (size_t i = 0; i < n; i++) {
            v[i].begin_ns = rolled(&dice) % TIMES;
            v[i].end_ns = rolled(&dice) % 9 ? v[i].begin_ns + rolled(&dice) % 5 : INT64_MAX;
        }
        spans_init(&s, &a, n, span_at, v);
        for (int64_t from = -1; from <= TIMES; from++)
            for (int64_t to = from; to <= from + 4; to += 2)
                for (size_t i = 0; i < n;) {
                    size_t found = spans_next(&s, i, from, to);
                    assert_int_equal(found, next_of_all(v, n, i, from, to));
                    i = found + 1;
                }
        assert_int_equal(spans_next(&s, n, 0, TIMES), n);
        arena_fini(&a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_span_that_touches_a_time_is_found_and_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
