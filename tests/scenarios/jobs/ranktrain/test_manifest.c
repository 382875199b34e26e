#include "scenarios/jobs/ranktrain/manifest.h"

#include <errno.h>
#include <stdio.h>
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

/* ---- word for word ---- */

#define HEAD(version)                                                                              \
    "{\"format\":\"ranktrain-checkpoint\",\"version\":" version                                    \
    ",\"step\":25,\"round\":3,\"run_id\":\"a \\\"job\\\"\",\"world_size\":6,\"seed\":1,"           \
    "\"network\":\"lenet\",\"width\":6,\"optimizer\":\"sgd\","
#define TRAINING                                                                                   \
    "\"mode\":\"ddp\",\"dataset\":\"mnist\",\"images\":960,\"images_sum\":7,\"batch_size\":96,"    \
    "\"shards\":12,\"drop_last\":false,\"lr\":0.25,\"momentum\":0.5,\"scale_lr\":0,"               \
    "\"computes\":\"cpu\","
#define MODEL               "\"parameters\":61706,\"model\":\"" SUM "\",\"files\":["
#define FILE_OF(name, more) "{\"name\":\"" name "\"," more "\"sha256\":\"" SUM "\"}"
#define WHOLE                                                                                      \
    FILE_OF("weights.f32", "\"bytes\":246824,") "," FILE_OF("velocity.f32", "\"bytes\":246824,")
#define PART(tensor, n, first, bytes)                                                              \
    FILE_OF(tensor "." n "-of-002.f32",                                                            \
            "\"tensor\":\"" tensor "\",\"first\":" first ",\"bytes\":" bytes ",")
#define PARTS                                                                                      \
    PART("weights", "000", "0", "8")                                                               \
    "," PART("weights", "001", "2", "12") "," PART("velocity", "000", "0",                         \
                                                   "8") "," PART("velocity", "001", "2", "12")

static struct manifest in_two_parts(void) {
    struct err err;
    struct manifest m = example;
    manifest_name_files(&m, optimizer_find("sgd", &err), 2);
    for (int i = 0; i < 4; i++) {
        m.files[i].first = i % 2 ? 2 : 0;
        m.files[i].bytes = i % 2 ? 12 : 8;
        memcpy(m.files[i].sha256, SUM, sizeof(SUM));
    }
    return m;
}

static void test_each_version_is_written_word_for_word(void **state) {
    (void)state;
    static const struct training told = {.dataset = "mnist",
                                         .images = 960,
                                         .sum = 7,
                                         .batch_size = 96,
                                         .shards = 12,
                                         .lr = 0.25,
                                         .momentum = 0.5,
                                         .mode = "ddp",
                                         .computes = "cpu"};
    static const char *const wanted[] = {HEAD("1") MODEL WHOLE "]}\n", HEAD("2") MODEL PARTS "]}\n",
                                         HEAD("3") TRAINING "\"parts\":0," MODEL WHOLE "]}\n",
                                         HEAD("3") TRAINING "\"parts\":2," MODEL PARTS "]}\n"};
    for (int i = 0; i < 4; i++) {
        BUF_FINI struct buf text = {0};
        struct manifest m = i % 2 ? in_two_parts() : example, again;
        struct err err;
        if (i >= 2)
            m.training = told;
        manifest_write(&m, &text);
        assert_string_equal(buf_str(&text), wanted[i]);
        assert_int_equal(manifest_read(text.data, text.len, &again, &err), 0);
        assert_int_equal(again.parts, i % 2 ? 2 : 0);
        assert_int_equal(again.n_files, i % 2 ? 4 : 2);
        BUF_FINI struct buf repeated = {0};
        manifest_write(&again, &repeated);
        assert_string_equal(buf_str(&repeated), wanted[i]);
    }
}

static void test_files_have_the_names_of_their_tensors(void **state) {
    (void)state;
    struct err err;
    struct manifest m;
    const struct optimizer_kind *sgd = optimizer_find("sgd", &err),
                                *adam = optimizer_find("adam", &err);
    static const char *const tensors[] = {"weights", "first_moment", "second_moment"};
    assert_string_equal(manifest_tensor(sgd, 0), "weights");
    assert_string_equal(manifest_tensor(sgd, 1), "velocity");
    for (int parts = 0; parts <= MANIFEST_PARTS; parts++) {
        int each = parts ? parts : 1;
        memset(&m, 0, sizeof(m));
        manifest_name_files(&m, adam, parts);
        assert_int_equal(m.parts, parts);
        assert_int_equal(m.n_files, 3 * each);
        for (int i = 0; i < m.n_files; i++) {
            char name[64];
            assert_string_equal(manifest_tensor(adam, i / each), tensors[i / each]);
            snprintf(name, sizeof(name), parts ? "%s.%03d-of-%03d.f32" : "%s.f32",
                     tensors[i / each], i % each, parts);
            assert_string_equal(m.files[i].name, name);
            assert_int_equal(m.files[i].tensor, i / each);
        }
    }
}

/* Of a text of the second version, in which one thing is another. */
static void test_each_flaw_of_a_manifest_is_a_sentence(void **state) {
    (void)state;
    static const struct {
        const char *text, *said;
    } rows[] = {
        {"[]", "it has no \"format\": \"ranktrain-checkpoint\""},
        {"{}", "it has no \"format\": \"ranktrain-checkpoint\""},
        {"{\"format\":\"ranktrain-checkpoint\"}", "version 0 is not known, only 1 to 3"},
        {HEAD("-1") MODEL WHOLE "]}", "version -1 is not known, only 1 to 3"},
        {HEAD("4") MODEL WHOLE "]}",
         "version 4 is not known, only 1 to 3: a newer ranktrain has written it"},
        {"{\"format\":\"ranktrain-checkpoint\",\"version\":1,\"round\":0,\"seed\":0,\"parameters\":"
         "0}",
         "it lacks step, round, seed or parameters"},
        {"{\"format\":\"ranktrain-checkpoint\",\"version\":1,\"step\":0,\"seed\":0,\"parameters\":"
         "0}",
         "it lacks step, round, seed or parameters"},
        {"{\"format\":\"ranktrain-checkpoint\",\"version\":1,\"step\":0,\"round\":0,\"parameters\":"
         "0}",
         "it lacks step, round, seed or parameters"},
        {"{\"format\":\"ranktrain-checkpoint\",\"version\":1,\"step\":0,\"round\":0,\"seed\":0}",
         "it lacks step, round, seed or parameters"},
        {"{\"format\":\"ranktrain-checkpoint\",\"version\":1,\"step\":0,\"round\":0,\"seed\":0,"
         "\"parameters\":0}",
         "weights.f32 is not listed"},
        {"{\"format\":\"ranktrain-checkpoint\",\"version\":1,\"step\":0,\"round\":0,\"seed\":0,"
         "\"parameters\":0,\"optimizer\":\"lion\"}",
         "its optimizer, lion, is not known"},
        {HEAD("2") MODEL "]}", "0 files are no equal number of parts, at most 64, of 2 tensors"},
        {HEAD("2") MODEL PART("weights", "000", "0", "8") "]}",
         "1 files are no equal number of parts, at most 64, of 2 tensors"},
        {HEAD("2") MODEL PARTS "," PART("weights", "002", "5", "0") "]}",
         "5 files are no equal number of parts, at most 64, of 2 tensors"},
        {HEAD("3") TRAINING "\"parts\":2," MODEL "]}",
         "0 files are no equal number of parts, at most 64, of 2 tensors"},
        {HEAD("1") MODEL FILE_OF("weights.f32", "") "]}", "velocity.f32 is not listed"},
        {HEAD("2")
             MODEL PART("weights", "000", "1", "8") "," PART("weights", "001", "2", "12") "," PART(
                 "velocity", "000", "0", "8") "," PART("velocity", "001", "2", "12") "]}",
         "weights.000-of-002.f32 begins at float 1 and has 8 bytes; 0 come before it"},
        {HEAD("2")
             MODEL PART("weights", "000", "0", "8") "," PART("weights", "001", "3", "12") "," PART(
                 "velocity", "000", "0", "8") "," PART("velocity", "001", "2", "12") "]}",
         "weights.001-of-002.f32 begins at float 3 and has 12 bytes; 2 come before it"},
        {HEAD("2")
             MODEL PART("weights", "000", "0", "8") "," PART("weights", "001", "2", "12") "," PART(
                 "velocity", "000", "5", "8") "," PART("velocity", "001", "2", "12") "]}",
         "velocity.000-of-002.f32 begins at float 5 and has 8 bytes; 0 come before it"},
        {HEAD("2")
             MODEL PART("weights", "000", "0", "6") "," PART("weights", "001", "2", "12") "," PART(
                 "velocity", "000", "0", "8") "," PART("velocity", "001", "2", "12") "]}",
         "weights.000-of-002.f32 begins at float 0 and has 6 bytes; 0 come before it"},
        {HEAD("2") MODEL PART("weights", "000", "0", "-8") "," PART(
             "weights", "001", "-2", "12") "," PART("velocity", "000", "0",
                                                    "8") "," PART("velocity", "001", "2",
                                                                  "12") "]}",
         "weights.000-of-002.f32 begins at float 0 and has -8 bytes; 0 come before it"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        static struct manifest m, before;
        struct err err = {0};
        memset(&m, 0xa5, sizeof(m));
        before = m;
        assert_int_equal(manifest_read(rows[i].text, strlen(rows[i].text), &m, &err), -EBADMSG);
        assert_string_equal(err.msg, rows[i].said);
        assert_memory_equal(&m, &before, sizeof(m));
    }
}

/* A manifest of so many parts of one float each. */
static int read_parts(int parts, struct manifest *ret, struct err *err) {
    BUF_FINI struct buf text = {0};
    buf_puts(&text, HEAD("2") MODEL);
    for (int i = 0; i < 2 * parts; i++)
        buf_printf(
            &text,
            "%s{\"name\":\"%s.%03d-of-%03d.f32\",\"first\":%d,\"bytes\":4,\"sha256\":\"%s\"}",
            i ? "," : "", i < parts ? "weights" : "velocity", i % parts, parts, i % parts, SUM);
    buf_puts(&text, "]}");
    return manifest_read(buf_str(&text), text.len, ret, err);
}

static void test_there_are_so_many_parts_at_most(void **state) {
    (void)state;
    static struct manifest m;
    struct err err = {0};
    assert_int_equal(read_parts(1, &m, &err), 0);
    assert_int_equal(read_parts(MANIFEST_PARTS, &m, &err), 0);
    assert_int_equal(m.parts, MANIFEST_PARTS);
    assert_int_equal(m.files[2 * MANIFEST_PARTS - 1].first, MANIFEST_PARTS - 1);
    assert_int_equal(read_parts(MANIFEST_PARTS + 1, &m, &err), -EBADMSG);
    assert_string_equal(err.msg,
                        "130 files are no equal number of parts, at most 64, of 2 tensors");
}

/* What a first version does not say, or says too long. */
static void test_what_is_not_said_is_what_was_usual(void **state) {
    (void)state;
    static struct manifest m;
    struct err err;
    static const char text[] =
        "{\"format\":\"ranktrain-checkpoint\",\"version\":1,\"step\":0,\"round\":0,\"seed\":0,"
        "\"parameters\":0,\"files\":[" WHOLE "]}";
    assert_int_equal(manifest_read(text, strlen(text), &m, &err), 0);
    assert_string_equal(m.network, "lenet");
    assert_string_equal(m.optimizer, "sgd");
    assert_int_equal(m.width, 6);
    assert_int_equal(m.world_size, -1);
    assert_string_equal(m.run_id, "");
    assert_string_equal(m.model, "");
    assert_string_equal(m.training.dataset, "");
    static const char longer[] =
        "{\"format\":\"ranktrain-checkpoint\",\"version\":1,\"step\":0,\"round\":0,\"seed\":0,"
        "\"parameters\":0,\"network\":\"01234567890123456789\",\"model\":\"" SUM SUM
        "\",\"run_id\":\"" SUM SUM SUM "\",\"mode\":\"fsdp\",\"files\":[" WHOLE "]}";
    assert_int_equal(manifest_read(longer, strlen(longer), &m, &err), 0);
    assert_int_equal(strlen(m.network), sizeof(m.network) - 1);
    assert_int_equal(strlen(m.model), 64);
    assert_int_equal(strlen(m.run_id), sizeof(m.run_id) - 1);
    assert_string_equal(m.training.mode, ""); /* of a version that does not say it */
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read_again),
        cmocka_unit_test(test_a_training_is_told_since_version_3),
        cmocka_unit_test(test_fields_that_are_not_known_are_ignored),
        cmocka_unit_test(test_parts_are_named_and_follow_upon_one_another),
        cmocka_unit_test(test_a_wrong_manifest_is_refused_with_a_reason),
        cmocka_unit_test(test_each_version_is_written_word_for_word),
        cmocka_unit_test(test_files_have_the_names_of_their_tensors),
        cmocka_unit_test(test_each_flaw_of_a_manifest_is_a_sentence),
        cmocka_unit_test(test_there_are_so_many_parts_at_most),
        cmocka_unit_test(test_what_is_not_said_is_what_was_usual),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
