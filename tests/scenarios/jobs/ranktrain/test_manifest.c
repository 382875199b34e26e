#include "scenarios/jobs/ranktrain/manifest.h"

#include <errno.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define SUM "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct manifest example = {
    .step = 25,
    .round = 3,
    .world_size = 6,
    .seed = 1,
    .width = 6,
    .parameters = 61706,
    .network = "lenet",
    .optimizer = "sgd",
    .n_files = 2,
    .run_id = "a \"job\"",
    .model = SUM,
    .files = {{.name = "weights.f32", .bytes = 246824, .sha256 = SUM},
              {.name = "velocity.f32", .bytes = 246824, .sha256 = SUM}},
};

/* Reads the example's text after from, if given, has been replaced by to. */
static int read_changed(const char *from, const char *to, struct manifest *ret, struct err *err) {
    struct buf text = {0}, changed = {0};
    manifest_write(&example, &text);
    const char *s = buf_str(&text), *at = from ? strstr(s, from) : NULL;
    if (from)
        assert_non_null(at);
    buf_put(&changed, s, at ? (size_t)(at - s) : text.len);
    buf_puts(&changed, at ? to : "");
    buf_puts(&changed, at ? at + strlen(from) : "");
    int r = manifest_read(changed.data, changed.len, ret, err);
    buf_fini(&text);
    buf_fini(&changed);
    return r;
}

static void test_what_is_written_is_read_again(void **state) {
    (void)state;
    struct manifest m;
    struct err err;
    assert_int_equal(read_changed(NULL, NULL, &m, &err), 0);
    assert_memory_equal(&m, &example, sizeof(m));
}

static void test_fields_that_are_not_known_are_ignored(void **state) {
    (void)state;
    struct manifest m;
    struct err err;
    assert_int_equal(read_changed("{", "{\"colour\":[\"red\"],", &m, &err), 0);
    assert_memory_equal(&m, &example, sizeof(m));
}

static void test_a_wrong_manifest_is_refused_with_a_reason(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *reason;
    } wrong[] = {
        {"ranktrain-checkpoint", "tar", "format"},
        {"\"version\":1", "\"version\":2", "version 2"},
        {"\"step\":25", "\"step\":\"x\"", "lacks step"},
        {"velocity.f32", "velocity.f64", "velocity.f32 is not listed"},
        {"\"sgd\"", "\"lion\"", "its optimizer, lion, is not known"},
        {"\"sgd\"", "\"adam\"", "first_moment.f32 is not listed"},
        {SUM "\"}", "0123\"}", "64 digits"},
        {"]", "", "JSON"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct manifest m;
        struct err err = {0};
        assert_int_equal(read_changed(wrong[i].from, wrong[i].to, &m, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, wrong[i].reason));
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read_again),
        cmocka_unit_test(test_fields_that_are_not_known_are_ignored),
        cmocka_unit_test(test_a_wrong_manifest_is_refused_with_a_reason),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
