#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static const struct {
    const char *plain, *coded;
} PAIRS[] = {{"", ""},
             {"f", "Zg=="},
             {"fo", "Zm8="},
             {"foo", "Zm9v"},
             {"foob", "Zm9vYg=="},
             {"fooba", "Zm9vYmE="},
             {"foobar", "Zm9vYmFy"}};

static void test_the_vectors_of_the_rfc_are_written_and_read(void **state) {
    (void)state;
    struct arena a = {0};
    for (size_t i = 0; i < sizeof(PAIRS) / sizeof(*PAIRS); i++) {
        struct buf coded = {0}, plain = {0};
        base64_put(&coded, PAIRS[i].plain, strlen(PAIRS[i].plain));
        assert_string_equal(buf_str(&coded), PAIRS[i].coded);
        assert_true(base64_take(&plain, PAIRS[i].coded, strlen(PAIRS[i].coded)));
        assert_string_equal(buf_str(&plain), PAIRS[i].plain);
        assert_string_equal(base64_coded(&a, PAIRS[i].plain), PAIRS[i].coded);
        assert_string_equal(base64_plain(&a, PAIRS[i].coded), PAIRS[i].plain);
        buf_fini(&coded);
        buf_fini(&plain);
    }
    assert_null(base64_plain(&a, "Zg="));
    arena_fini(&a);
}

static void test_every_byte_survives(void **state) {
    (void)state;
    unsigned char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (unsigned char)i;
    for (size_t n = 0; n <= sizeof(all); n++) {
        struct buf coded = {0}, plain = {0};
        base64_put(&coded, all, n);
        assert_true(base64_take(&plain, buf_str(&coded), coded.len));
        assert_int_equal(plain.len, n);
        assert_memory_equal(buf_str(&plain), all, n);
        buf_fini(&coded);
        buf_fini(&plain);
    }
}

static void test_what_is_no_base64_is_refused_and_leaves_nothing(void **state) {
    (void)state;
    static const char *const bad[] = {"Z", "Zg=", "Zg=a", "Z===", "====", "Zm9v!mFy", "Zg==Zg=="};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct buf out = {0};
        buf_puts(&out, "kept");
        assert_false(base64_take(&out, bad[i], strlen(bad[i])));
        assert_string_equal(buf_str(&out), "kept");
        buf_fini(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_vectors_of_the_rfc_are_written_and_read),
        cmocka_unit_test(test_every_byte_survives),
        cmocka_unit_test(test_what_is_no_base64_is_refused_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
