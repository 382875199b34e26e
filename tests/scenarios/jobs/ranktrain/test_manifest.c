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
              {.name = "velocity.f32", .tensor = 1, .bytes = 246824, .sha256 = SUM}},
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

static void test_a_training_is_told_since_version_3(void **state) {
    (void)state;
    struct err err;
    struct manifest m = example, again;
    struct buf text = {0};
    m.training = (struct training){.dataset = "mnist",
                                   .images = 60000,
                                   .sum = 4294967295,
                                   .batch_size = 96,
                                   .shards = 12,
                                   .drop_last = true,
                                   .lr = 0.05,
                                   .momentum = 0.9,
                                   .scale_lr = 4,
                                   .mode = "ps-async",
                                   .computes = "cpu \"x\""};
    for (int parts = 0; parts < 2; parts++) {
        if (parts)
            manifest_name_files(&m, optimizer_find("sgd", &err), parts);
        manifest_write(&m, &text);
        assert_non_null(strstr(buf_str(&text), "\"version\":3"));
        assert_int_equal(manifest_read(text.data, text.len, &again, &err), 0);
        assert_memory_equal(&again, &m, sizeof(m));
        buf_fini(&text);
    }
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
        {"\"version\":1", "\"version\":4", "version 4 is not known, only 1 to 3: a newer"},
        {"\"version\":1", "\"version\":0", "version 0"},
        {"\"version\":1", "\"version\":2", "weights.000-of-001.f32 is not listed"},
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

/* Of a model of five floats, by two ranks. */
static void test_parts_are_named_and_follow_upon_one_another(void **state) {
    (void)state;
    struct err err;
    struct manifest m = example, again;
    struct buf text = {0};
    manifest_name_files(&m, optimizer_find("sgd", &err), 2);
    for (int i = 0; i < 4; i++) {
        m.files[i].first = i % 2 ? 2 : 0;
        m.files[i].bytes = i % 2 ? 12 : 8;
        memcpy(m.files[i].sha256, SUM, sizeof(SUM));
    }
    manifest_write(&m, &text);
    assert_non_null(strstr(buf_str(&text), "\"version\":2"));
    assert_non_null(strstr(buf_str(&text), "{\"name\":\"velocity.001-of-002.f32\",\"tensor\":"
                                           "\"velocity\",\"first\":2,\"bytes\":12,"));
    assert_int_equal(manifest_read(text.data, text.len, &again, &err), 0);
    assert_memory_equal(&again, &m, sizeof(m));
    buf_fini(&text);
    m.files[1].first = 3;
    manifest_write(&m, &text);
    assert_int_equal(manifest_read(text.data, text.len, &again, &err), -EBADMSG);
    assert_non_null(strstr(err.msg, "weights.001-of-002.f32 begins at float 3"));
    buf_fini(&text);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read_again),
        cmocka_unit_test(test_a_training_is_told_since_version_3),
        cmocka_unit_test(test_fields_that_are_not_known_are_ignored),
        cmocka_unit_test(test_parts_are_named_and_follow_upon_one_another),
        cmocka_unit_test(test_a_wrong_manifest_is_refused_with_a_reason),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
