/* Names and files of a checkpoint directory: which are steps, which are left over, what is looked at and what is not. */
#include "scenarios/jobs/ranktrain/checkpoint_dir.h"

#include "base/sys/descriptors.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { HIGH = 20 };

static char place[64];
static int dir, standard;

/* Descriptor 0 is free meanwhile: whatever is opened first is that. */
static int setup(void **state) {
    (void)state;
    strcpy(place, "/tmp/test-checkpoint-dir-XXXXXX");
    if (!mkdtemp(place))
        return -1;
    int first = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = fcntl(first, F_DUPFD_CLOEXEC, HIGH);
    standard = fcntl(0, F_DUPFD_CLOEXEC, HIGH);
    close(first);
    close(0);
    return dir < 0 || standard < 0;
}

static int teardown(void **state) {
    (void)state;
    close(dir);
    dup2(standard, 0);
    close(standard);
    return file_remove_tree(place, NULL) < 0;
}

static void put(const char *name, const char *text) {
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static bool is_there(const char *name) {
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void test_a_step_has_eight_digits_at_least(void **state) {
    (void)state;
    static const struct {
        int64_t step;
        const char *name;
    } rows[] = {{0, "step-00000000"},
                {25, "step-00000025"},
                {99999999, "step-99999999"},
                {100000000, "step-100000000"},
                {INT64_MAX, "step-9223372036854775807"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char name[CHECKPOINT_DIR_NAME];
        checkpoint_dir_name(rows[i].step, name);
        assert_string_equal(name, rows[i].name);
    }
}

/* Whatever else lies there is none, and what is none is not counted. */
static void test_steps_are_those_of_their_own_names_newest_first(void **state) {
    (void)state;
    static const char *const names[] = {"step-00000007",
                                        "step-00000025",
                                        "step-100000000",
                                        "step-00000000",
                                        "step-7",
                                        "step-000000025",
                                        "step-00000026x",
                                        "step--0000027",
                                        "step-",
                                        "Step-00000028",
                                        "xstep-00000029",
                                        ".step-00000030",
                                        "step-0000003a",
                                        "step-+0000031",
                                        "step- 0000032",
                                        "step_00000033",
                                        "evaluator-1.lease",
                                        "step-00000000000000000000000000000000000034"};
    static const int64_t wanted[] = {100000000, 25, 7, 0};
    struct err err;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        assert_int_equal(mkdirat(dir, names[i], 0700), 0);
    int64_t *steps = NULL;
    assert_int_equal(checkpoint_dir_steps(dir, &steps, &err), 4);
    assert_memory_equal(steps, wanted, sizeof(wanted));
    free(steps);
}

static void test_of_many_steps_all_are_in_order(void **state) {
    (void)state;
    struct err err;
    for (int i = 0; i < 40; i++) {
        char name[CHECKPOINT_DIR_NAME];
        checkpoint_dir_name(i * 37 % 40, name);
        assert_int_equal(mkdirat(dir, name, 0700), 0);
    }
    int64_t *steps = NULL;
    assert_int_equal(checkpoint_dir_steps(dir, &steps, &err), 40);
    for (int i = 0; i < 40; i++)
        assert_int_equal(steps[i], 39 - i);
    free(steps);
}

static void test_an_empty_directory_has_no_steps(void **state) {
    (void)state;
    struct err err;
    int64_t *steps = NULL;
    assert_int_equal(checkpoint_dir_steps(dir, &steps, &err), 0);
    assert_null(steps);
}

static void test_what_is_no_directory_has_none_and_says_so(void **state) {
    (void)state;
    struct err err;
    int64_t *steps = NULL;
    put("file", "x");
    int fd = openat(dir, "file", O_RDONLY);
    assert_int_equal(checkpoint_dir_steps(fd, &steps, &err), -ENOTDIR);
    assert_string_equal(err.msg, "list: Not a directory");
    close(fd);
}

static void test_the_nearest_directory_above_is_found(void **state) {
    (void)state;
    char above[PATH_MAX], path[PATH_MAX], wanted[PATH_MAX];
    static const struct {
        const char *below, *above; /* of the place; the shorter one is there */
        int missing;
    } rows[] = {{"", "", 0},
                {"/", "/", 0},
                {"/here", "/here", 0},
                {"/here/a", "/here/", 1},
                {"/here/a/", "/here/", 1},
                {"/here//a//b", "/here//", 2},
                {"/a/b/c", "/", 3},
                {"/here/ab/abc/a", "/here/", 3}};
    assert_int_equal(mkdirat(dir, "here", 0700), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        snprintf(path, sizeof(path), "%s%s", place, rows[i].below);
        snprintf(wanted, sizeof(wanted), "%s%s", place, rows[i].above);
        memset(above, 'x', sizeof(above));
        assert_int_equal(checkpoint_dir_above(path, above), rows[i].missing);
        assert_string_equal(above, wanted);
    }
    assert_int_equal(checkpoint_dir_above("/nowhere-at-all/x", above), 2);
    assert_string_equal(above, "/");
}

static void test_a_path_without_a_slash_at_first_begins_here(void **state) {
    (void)state;
    char above[PATH_MAX], was[PATH_MAX];
    assert_non_null(getcwd(was, sizeof(was)));
    assert_int_equal(fchdir(dir), 0);
    assert_int_equal(mkdir("here", 0700), 0);
    assert_int_equal(checkpoint_dir_above("a/b", above), 2);
    assert_string_equal(above, ".");
    assert_int_equal(checkpoint_dir_above("a", above), 1);
    assert_string_equal(above, ".");
    assert_int_equal(checkpoint_dir_above("here/b", above), 1);
    assert_string_equal(above, "here/");
    assert_int_equal(chdir(was), 0);
}

static void test_files_are_read_up_to_a_bound(void **state) {
    (void)state;
    struct err err;
    BUF_FINI struct buf text = {0};
    assert_int_equal(mkdirat(dir, "step-00000025", 0700), 0);
    put("step-00000025/file", "12345");
    assert_int_equal(checkpoint_dir_read(dir, 25, "file", 5, &text, &err), 0);
    assert_string_equal(buf_str(&text), "12345");
    buf_clear(&text);
    assert_int_equal(checkpoint_dir_read(dir, 25, "file", 4, &text, &err), -EFBIG);
    assert_string_equal(err.msg, "file: File too large");
    assert_int_equal(checkpoint_dir_read(dir, 25, "none", 5, &text, &err), -ENOENT);
    assert_string_equal(err.msg, "none: No such file or directory");
    assert_int_equal(checkpoint_dir_read(dir, 26, "file", 5, &text, &err), -ENOENT);
}

#define MANIFEST(step)                                                                             \
    "{\"format\":\"ranktrain-checkpoint\",\"version\":1,\"step\":" step ",\"round\":1,\"seed\":1," \
    "\"parameters\":3,\"files\":[{\"name\":\"weights.f32\",\"bytes\":12,\"sha256\":\"" SUM "\"},"  \
    "{\"name\":\"velocity.f32\",\"bytes\":12,\"sha256\":\"" SUM "\"}]}"
#define SUM "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_a_manifest_is_of_the_step_of_its_directory(void **state) {
    (void)state;
    static const struct {
        const char *text, *said; /* NULL: it is taken */
        int r;
    } rows[] = {{MANIFEST("25"), NULL, 0},
                {MANIFEST("26"), "manifest.json: it is of step 26", -EBADMSG},
                {"{}", "manifest.json: it has no \"format\": \"ranktrain-checkpoint\"", -EBADMSG}};
    assert_int_equal(mkdirat(dir, "step-00000025", 0700), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct manifest m = {.step = -7};
        struct err err = {0};
        put("step-00000025/manifest.json", rows[i].text);
        assert_int_equal(checkpoint_dir_manifest(dir, 25, &m, &err), rows[i].r);
        assert_string_equal(err.msg, rows[i].said ? rows[i].said : "");
        assert_int_equal(m.step, rows[i].said ? -7 : 25);
    }
    struct manifest m;
    struct err err;
    assert_int_equal(checkpoint_dir_manifest(dir, 24, &m, &err), -ENOENT);
    assert_string_equal(err.msg, "manifest.json: No such file or directory");
}

static void test_a_manifest_may_be_so_long_and_no_longer(void **state) {
    (void)state;
    static char text[MANIFEST_BYTES_MAX + 2];
    struct manifest m;
    struct err err;
    assert_int_equal(mkdirat(dir, "step-00000025", 0700), 0);
    snprintf(text, sizeof(text), "%-*s", MANIFEST_BYTES_MAX, MANIFEST("25"));
    put("step-00000025/manifest.json", text);
    assert_int_equal(checkpoint_dir_manifest(dir, 25, &m, &err), 0);
    strcat(text, " ");
    put("step-00000025/manifest.json", text);
    assert_int_equal(checkpoint_dir_manifest(dir, 25, &m, &err), -EFBIG);
}

static void test_a_directory_is_taken_away_with_its_files_and_no_other(void **state) {
    (void)state;
    assert_int_equal(mkdirat(dir, "a", 0700), 0);
    assert_int_equal(mkdirat(dir, "b", 0700), 0);
    put("a/1", "");
    put("a/.2", "");
    put("b/1", "");
    put("c", "");
    assert_int_equal(symlinkat("b", dir, "link"), 0);
    checkpoint_dir_remove(dir, "a");
    checkpoint_dir_remove(dir, "link");
    checkpoint_dir_remove(dir, "c");
    checkpoint_dir_remove(dir, "none");
    assert_false(is_there("a"));
    assert_true(is_there("b/1") && is_there("c") && is_there("link"));
    DIR *d = checkpoint_dir_list(dir, "link");
    assert_null(d);
    d = checkpoint_dir_list(dir, "c");
    assert_null(d);
    d = checkpoint_dir_list(dir, "b");
    assert_non_null(d);
    closedir(d);
}

static void test_what_this_and_earlier_rounds_have_left_is_swept(void **state) {
    (void)state;
    static const struct {
        const char *name;
        bool is_file, goes;
    } rows[] = {{".step-00000025.round-4.pid-17", false, true},
                {".step-00000025.round-5.pid-17", false, true},
                {".step-00000025.round-5.parts-3", false, true},
                {".step-00000025.round-6.pid-17", false, false},
                {".step-00000025.round-16.parts-3", false, false},
                {".place-0123.round-5.rank-1", true, true},
                {".place-0123.round-6.rank-1", true, false},
                {".place-0123.round-0.rank-1", true, true},
                {".step-00000025", false, false},
                {".place-0123", true, false},
                {"step-00000025.round-1", false, false},
                {"step-00000025", false, false},
                {".steps.round-1", false, false},
                {".places.round-1", true, false},
                {".other.round-1", true, false},
                {"evaluator-1.lease", true, false}};
    enum { ROWS = sizeof(rows) / sizeof(*rows) };
    for (size_t i = 0; i < ROWS; i++) {
        char inside[96];
        if (rows[i].is_file) {
            put(rows[i].name, "x");
            continue;
        }
        assert_int_equal(mkdirat(dir, rows[i].name, 0700), 0);
        snprintf(inside, sizeof(inside), "%s/weights.f32", rows[i].name);
        put(inside, "x");
    }
    checkpoint_dir_sweep(dir, 5);
    for (size_t i = 0; i < ROWS; i++)
        if (is_there(rows[i].name) == rows[i].goes)
            fail_msg("%s %s", rows[i].name, rows[i].goes ? "is still there" : "has gone");
}

int main(int argc, char **argv) {
    descriptors_open_standard();
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_step_has_eight_digits_at_least),
        TEST(steps_are_those_of_their_own_names_newest_first),
        TEST(of_many_steps_all_are_in_order),
        TEST(an_empty_directory_has_no_steps),
        TEST(what_is_no_directory_has_none_and_says_so),
        TEST(the_nearest_directory_above_is_found),
        TEST(a_path_without_a_slash_at_first_begins_here),
        TEST(files_are_read_up_to_a_bound),
        TEST(a_manifest_is_of_the_step_of_its_directory),
        TEST(a_manifest_may_be_so_long_and_no_longer),
        TEST(a_directory_is_taken_away_with_its_files_and_no_other),
        TEST(what_this_and_earlier_rounds_have_left_is_swept),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
