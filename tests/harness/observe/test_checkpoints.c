/* The harness's own reading of a checkpoint directory, on directories made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/sys/file.h"
#include "harness/observe/checkpoints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static void write_file(const char *step, const char *name, const char *text) {
    char path[256];
    struct err err = {0};
    snprintf(path, sizeof(path), "%s/%s", dir, step);
    assert_int_equal(file_make_dirs(path, 0777, &err), 0);
    snprintf(path, sizeof(path), "%s/%s/%s", dir, step, name);
    assert_int_equal(file_write(path, text, strlen(text), &err), 0);
}

/* sha256("abc") is the test vector of FIPS 180-4. */
static const char ABC[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

static void checkpoint(const char *name, int step, const char *content, int bytes) {
    char manifest[512];
    snprintf(manifest, sizeof(manifest),
             "{\"format\":\"ranktrain-checkpoint\",\"version\":1,\"step\":%d,\"round\":2,"
             "\"files\":[{\"name\":\"weights.f32\",\"bytes\":%d,\"sha256\":\"%s\"}]}",
             step, bytes, ABC);
    write_file(name, "weights.f32", content);
    write_file(name, "manifest.json", manifest);
}

static const struct json *read_it(struct checkpoints *c, struct arena *a) {
    struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    checkpoints_put(c, &w);
    json_end_object(&w);
    const struct json *j = json_parse(a, buf_str(&text), text.len, NULL);
    buf_fini(&text);
    assert_non_null(j);
    return j;
}

static int set_up(void **state) {
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/checkpoints_XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    return file_remove_tree(dir, NULL);
}

static void expect(int64_t newest, size_t complete, size_t damaged) {
    struct arena a = {0};
    struct checkpoints *c = checkpoints_new(dir, NULL);
    const struct json *j = read_it(c, &a);
    assert_int_equal(json_get_i64(j, "newest", -2), newest);
    assert_int_equal(json_get(j, "complete")->length, complete);
    assert_int_equal(json_get(j, "damaged")->length, damaged);
    checkpoints_free(c);
    arena_fini(&a);
}

static void test_a_directory_that_is_not_there_is_empty(void **state) {
    (void)state;
    assert_null(checkpoints_free(NULL));
    strcat(dir, "-not");
    expect(-1, 0, 0);
    dir[strlen(dir) - 4] = '\0';
}

static void test_the_newest_complete_one_is_found(void **state) {
    (void)state;
    checkpoint("step-00000010", 10, "abc", 3);
    checkpoint("step-00000020", 20, "abc", 3);
    expect(20, 2, 0);
}

/* What is told is what was read, whatever the manifest says; who names no model has none. */
static void test_a_manifest_that_names_a_model_has_its_weights_told(void **state) {
    (void)state;
    struct arena a = {0};
    struct checkpoints *c = checkpoints_new(dir, NULL);
    char manifest[512];
    checkpoint("step-00000010", 10, "abc", 3);
    checkpoint("step-00000020", 20, "abc", 3);
    snprintf(manifest, sizeof(manifest),
             "{\"format\":\"ranktrain-checkpoint\",\"step\":20,\"model\":\"copied\","
             "\"files\":[{\"name\":\"weights.f32\",\"bytes\":3,\"sha256\":\"%s\"}]}",
             ABC);
    write_file("step-00000020", "manifest.json", manifest);
    json_each(one, json_get(read_it(c, &a), "complete")) assert_string_equal(
        json_get_string(one, "model", ""), json_get_i64(one, "step", 0) == 20 ? ABC : "");
    checkpoints_free(c);
    arena_fini(&a);
}

static void test_a_flipped_byte_makes_it_damaged(void **state) {
    (void)state;
    checkpoint("step-00000010", 10, "abc", 3);
    checkpoint("step-00000020", 20, "abd", 3);
    expect(10, 1, 1);
}

static void test_a_cut_off_file_makes_it_damaged(void **state) {
    (void)state;
    checkpoint("step-00000020", 20, "ab", 3);
    expect(-1, 0, 1);
}

static void test_a_missing_manifest_or_file_makes_it_damaged(void **state) {
    (void)state;
    write_file("step-00000010", "weights.f32", "abc");
    checkpoint("step-00000020", 20, "abc", 3);
    char path[256];
    snprintf(path, sizeof(path), "%s/step-00000020/weights.f32", dir);
    unlink(path);
    expect(-1, 0, 2);
}

static void test_a_manifest_of_another_step_does_not_count(void **state) {
    (void)state;
    checkpoint("step-00000020", 10, "abc", 3);
    expect(-1, 0, 1);
}

static void test_what_is_being_written_is_not_a_checkpoint(void **state) {
    (void)state;
    checkpoint(".step-00000030.tmp", 30, "abc", 3);
    checkpoint("notes", 30, "abc", 3);
    expect(-1, 0, 0);
}

static void test_a_file_outside_the_checkpoint_is_refused(void **state) {
    (void)state;
    write_file("step-00000010", "manifest.json",
               "{\"format\":\"ranktrain-checkpoint\",\"step\":10,\"files\":[{\"name\":"
               "\"../../etc/passwd\",\"bytes\":1,\"sha256\":\"\"}]}");
    expect(-1, 0, 1);
}

/* A job that writes them where it shares a directory: nobody waits for a FIFO, or reads the host's.
 */
static void test_what_is_no_plain_file_is_damage(void **state) {
    (void)state;
    char path[200], real[200];
    checkpoint("step-00000010", 10, "abc", 3);
    snprintf(path, sizeof(path), "%s/step-00000010/manifest.json", dir);
    snprintf(real, sizeof(real), "%s/manifest", dir);
    assert_int_equal(rename(path, real), 0);
    assert_int_equal(symlink("../manifest", path), 0);
    expect(-1, 0, 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0666), 0);
    expect(-1, 0, 1);
    assert_true(unlink(path) == 0 && rename(real, path) == 0);
    expect(10, 1, 0);
}

/* The run directory is held; the way to the checkpoints in it leads through no link. */
static void test_checkpoints_in_a_run_are_reached_through_its_folder(void **state) {
    (void)state;
    char path[200], other[200];
    struct arena a = {0};
    struct folder run;
    checkpoint("step-00000010", 10, "abc", 3);
    snprintf(path, sizeof(path), "%s/run/shared", dir);
    assert_int_equal(file_make_dirs(path, 0777, NULL), 0);
    snprintf(path, sizeof(path), "%s/run", dir);
    assert_int_equal(folder_open(&run, path, NULL), 0);
    strcat(path, "/shared/ckpt");
    assert_int_equal(mkdir(path, 0777), 0);
    struct checkpoints *c = checkpoints_new(path, &run);
    snprintf(other, sizeof(other), "%s/step-00000010", dir);
    strcat(path, "/step-00000010");
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(json_get_i64(read_it(c, &a), "newest", -2), 10);
    snprintf(path, sizeof(path), "%s/run/shared/ckpt", dir);
    snprintf(other, sizeof(other), "%s/ckpt", dir);
    assert_true(rename(path, other) == 0 && symlink("../../ckpt", path) == 0);
    assert_int_equal(json_get_i64(read_it(c, &a), "newest", -2), -1);
    checkpoints_free(c);
    folder_close(&run);
    arena_fini(&a);
}

static void test_what_changed_is_read_again(void **state) {
    (void)state;
    struct arena a = {0};
    struct checkpoints *c = checkpoints_new(dir, NULL);
    checkpoint("step-00000010", 10, "abd", 3);
    assert_int_equal(json_get_i64(read_it(c, &a), "newest", -2), -1);
    checkpoint("step-00000010", 10, "abc", 3);
    assert_int_equal(json_get_i64(read_it(c, &a), "newest", -2), 10);
    file_remove_tree(dir, NULL);
    assert_int_equal(json_get_i64(read_it(c, &a), "newest", -2), -1);
    checkpoints_free(c);
    arena_fini(&a);
}

/* All that is told of the directory, without its name. */
static void assert_told(const char *wanted) {
    struct buf text = {0};
    struct json_writer w = {.out = &text};
    struct checkpoints *c = checkpoints_new(dir, NULL);
    json_object(&w, NULL);
    checkpoints_put(c, &w);
    json_end_object(&w);
    const char *told = strstr(buf_str(&text), "\"newest\"");
    assert_non_null(told);
    assert_string_equal(told, wanted);
    checkpoints_free(c);
    buf_fini(&text);
}

/* One checkpoint, of step 10, with files a ("abcd") and b ("efghi"), and this in its manifest. */
static void tell_of(const char *rest, const char *wanted) {
    char manifest[1200];
    snprintf(manifest, sizeof(manifest), "{\"format\":\"ranktrain-checkpoint\",\"round\":3,%s}",
             rest);
    write_file("step-00000010", "a", "abcd");
    write_file("step-00000010", "b", "efghi");
    write_file("step-00000010", "manifest.json", manifest);
    assert_told(wanted);
}

#define DAMAGED(why)                                                                               \
    "\"newest\":-1,\"complete\":[],\"damaged\":[{\"path\":\"step-00000010\",\"why\":\"" why        \
    "\"}],\"drafts\":0}"
#define COMPLETE(more)                                                                             \
    "\"newest\":10,\"complete\":[{\"step\":10,\"round\":3,\"path\":\"step-00000010\"" more         \
    "}],\"damaged\":[],\"drafts\":0}"
#define SUM_A          "88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589"
#define SUM_B          "959d1b333574401775ac9d6551d3166ce55a28961c9fbd9d3571ef0ff1fbf3db"
#define SUM            "19cc02f26df43cc571bc9ed7b0c4d29224a3ec229529221725ef76d021c8326f"
#define FILE_A(more)   "{\"name\":\"a\",\"bytes\":4,\"sha256\":\"" SUM_A "\"" more "}"
#define FILE_B(more)   "{\"name\":\"b\",\"bytes\":5,\"sha256\":\"" SUM_B "\"" more "}"
#define WEIGHTS(first) ",\"tensor\":\"weights\",\"first\":" first

static void test_each_damage_is_told_in_its_words(void **state) {
    (void)state;
    static const struct {
        const char *manifest, *told;
    } rows[] = {
        {"\"step\":10", DAMAGED("its manifest lists no files")},
        {"\"step\":10,\"files\":[]", DAMAGED("its manifest lists no files")},
        {"\"files\":[" FILE_A("") "]", DAMAGED("its manifest is of step -1")},
        {"\"step\":11,\"files\":[" FILE_A("") "]", DAMAGED("its manifest is of step 11")},
        {"\"step\":10,\"files\":[{\"bytes\":4}]",
         DAMAGED("its manifest lists a file without a proper name")},
        {"\"step\":10,\"files\":[{\"name\":\"../a\",\"bytes\":4}]",
         DAMAGED("its manifest lists a file without a proper name")},
        {"\"step\":10,\"files\":[{\"name\":\"a\",\"bytes\":5,\"sha256\":\"" SUM_A "\"}]",
         DAMAGED("a has 4 bytes, its manifest says 5")},
        {"\"step\":10,\"files\":[{\"name\":\"a\",\"sha256\":\"" SUM_A "\"}]",
         DAMAGED("a has 4 bytes, its manifest says -1")},
        {"\"step\":10,\"files\":[" FILE_A("") ",{\"name\":\"b\",\"bytes\":5,\"sha256\":\"" SUM_A
                                              "\"}]",
         DAMAGED("b does not have the checksum of its manifest")},
        {"\"step\":10,\"model\":\"m\",\"files\":[" FILE_A(WEIGHTS("0")) "," FILE_B(
             WEIGHTS("2")) "]",
         DAMAGED("b begins at byte 8 of the weights, and 4 come before it")},
        {"\"step\":10,\"files\":[" FILE_A(WEIGHTS("1")) "]",
         DAMAGED("a begins at byte 4 of the weights, and 0 come before it")},
        {"\"step\":10,\"files\":[" FILE_A("") "," FILE_B("") "]", COMPLETE("")},
        {"\"step\":10,\"model\":\"m\",\"files\":[" FILE_A("") "," FILE_B("") "]", COMPLETE("")},
        {"\"step\":10,\"files\":[" FILE_A(WEIGHTS("0")) "]", COMPLETE("")},
        {"\"step\":10,\"model\":\"m\",\"files\":[" FILE_A(WEIGHTS("0")) "," FILE_B("") "]",
         COMPLETE(",\"model\":\"" SUM_A "\"")},
        {"\"step\":10,\"model\":\"m\",\"files\":[" FILE_A(WEIGHTS("0")) "," FILE_B(
             WEIGHTS("1")) "]",
         COMPLETE(",\"model\":\"" SUM "\"")},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        tell_of(rows[i].manifest, rows[i].told);
}

static void test_what_has_no_manifest_of_the_format_is_damaged(void **state) {
    (void)state;
    write_file("step-00000010", "manifest.json", "{\"format\":\"another\",\"step\":10}");
    assert_told(DAMAGED("its manifest is not of the format ranktrain-checkpoint"));
}

/* Exactly which names are a checkpoint's, which a draft's, and which nobody's. */
static void test_names_tell_checkpoints_drafts_and_all_else_apart(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int checkpoint, draft;
    } rows[] = {{"step-1234567", 0, 0},
                {"step-12345678", 1, 0},
                {"step-123456789012", 1, 0},
                {"step-9223372036854775807", 1, 0},
                {"step-9223372036854775808", 0, 0},
                {"step-0000000000000000000000000000000000000000000000000000000007", 1, 0},
                {"step-00000000000000000000000000000000000000000000000000000000007", 0, 0},
                {"step-12345678x", 0, 0},
                {"step_12345678", 0, 0},
                {".step-00000025.3", 0, 1},
                {"model.tmp", 0, 1},
                {"tmp-abc", 0, 1},
                {"step-25.part", 0, 1},
                {"a-draft-of", 0, 1},
                {"model~", 0, 1},
                {"~model", 0, 0},
                {"party", 0, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct arena a = {0};
        char path[200];
        write_file(rows[i].name, "x", "");
        struct checkpoints *c = checkpoints_new(dir, NULL);
        const struct json *j = read_it(c, &a);
        assert_int_equal(json_get(j, "damaged")->length, rows[i].checkpoint);
        assert_int_equal(json_get_i64(j, "drafts", -1), rows[i].draft);
        checkpoints_free(c);
        arena_fini(&a);
        snprintf(path, sizeof(path), "%s/%s", dir, rows[i].name);
        assert_int_equal(file_remove_tree(path, NULL), 0);
    }
}

int main(int argc, char **argv) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_a_directory_that_is_not_there_is_empty),
        T(test_the_newest_complete_one_is_found),
        T(test_a_manifest_that_names_a_model_has_its_weights_told),
        T(test_a_flipped_byte_makes_it_damaged),
        T(test_a_cut_off_file_makes_it_damaged),
        T(test_a_missing_manifest_or_file_makes_it_damaged),
        T(test_a_manifest_of_another_step_does_not_count),
        T(test_what_is_being_written_is_not_a_checkpoint),
        T(test_a_file_outside_the_checkpoint_is_refused),
        T(test_what_is_no_plain_file_is_damage),
        T(test_checkpoints_in_a_run_are_reached_through_its_folder),
        T(test_what_changed_is_read_again),
        T(test_each_damage_is_told_in_its_words),
        T(test_what_has_no_manifest_of_the_format_is_damaged),
        T(test_names_tell_checkpoints_drafts_and_all_else_apart),
    };
#undef T
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
