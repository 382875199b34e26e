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
    };
#undef T
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
