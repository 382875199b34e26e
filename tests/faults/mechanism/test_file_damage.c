#include "faults/mechanism/file_damage.h"
#include "faults/mechanism/file_pick.h"
#include "faults/mechanism/file_state.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct folder in = FOLDER_NONE;
static struct err err;

static int begin(void **state) {
    char path[] = "/tmp/test_file_damage_XXXXXX";
    (void)state;
    err = (struct err){0};
    return mkdtemp(path) ? folder_open(&in, path, NULL) : -1;
}

static int end(void **state) {
    (void)state;
    char path[PATH_MAX];
    str_copy(path, sizeof(path), in.path);
    folder_close(&in);
    char command[PATH_MAX + 16];
    snprintf(command, sizeof(command), "rm -rf '%s'", path);
    return system(command);
}

/* changed_s: when it was changed, by its own time. */
static void put(const char *name, const char *text, int changed_s) {
    char parent[PATH_MAX];
    snprintf(parent, sizeof(parent), "%.*s", (int)(str_base(name) - name), name);
    assert_int_equal(*parent ? folder_make(&in, parent, 0777, NULL) : 0, 0);
    assert_int_equal(folder_write(&in, name, text, strlen(text), NULL), 0);
    const struct timespec times[] = {{.tv_sec = changed_s}, {.tv_sec = changed_s}};
    assert_int_equal(utimensat(in.fd, name, times, 0), 0);
}

static const char *text_of(const char *name) {
    static char text[256];
    struct buf b = {0};
    assert_int_equal(folder_read(&in, name, sizeof(text) - 1, &b, NULL), 0);
    snprintf(text, sizeof(text), "%s", buf_str(&b));
    buf_fini(&b);
    return text;
}

static const char *pick(const char *pattern, enum file_age age, uint64_t seed) {
    static char path[PATH_MAX];
    int r = file_pick(&in, pattern, age, seed, path, &err);
    return r ? NULL : path;
}

static void test_the_newest_of_a_pattern_was_changed_last(void **state) {
    (void)state;
    put("ckpt/step-9/w", "a", 100);
    put("ckpt/step-10/w", "b", 300);
    put("ckpt/step-11/w", "c", 200);
    assert_string_equal(pick("ckpt/*/w", FILE_NEWEST, 0), "ckpt/step-10/w");
    assert_string_equal(pick("ckpt/*/w", FILE_OLDEST, 0), "ckpt/step-9/w");
    assert_string_equal(pick("ckpt/step-1[01]/w", FILE_OLDEST, 0), "ckpt/step-11/w");
    assert_string_equal(pick("ckpt/step-11/w", FILE_NEWEST, 0), "ckpt/step-11/w");
    assert_string_equal(pick("**", FILE_NEWEST, 0), "ckpt/step-10/w");
    assert_string_equal(pick("ckpt/**", FILE_OLDEST, 0), "ckpt/step-9/w");
    assert_null(pick("ckpt/step-1/**", FILE_NEWEST, 0));
    assert_null(pick("ckpt/*/x", FILE_NEWEST, 0));
    assert_int_equal(err.code, -ENOENT);
    assert_non_null(strstr(err.msg, "ckpt/*/x"));
}

static void test_of_the_same_age_the_higher_version_is_newer(void **state) {
    (void)state;
    put("step-9", "a", 100);
    put("step-10", "b", 100);
    assert_string_equal(pick("step-*", FILE_NEWEST, 0), "step-10");
    assert_string_equal(pick("step-*", FILE_OLDEST, 0), "step-9");
}

static void test_a_draft_is_matched_by_a_dot_alone(void **state) {
    (void)state;
    put("step-1", "a", 100);
    put(".step-2", "b", 200);
    assert_string_equal(pick("*", FILE_NEWEST, 0), "step-1");
    assert_string_equal(pick(".*", FILE_NEWEST, 0), ".step-2");
}

static void test_a_seed_draws_the_same_again_and_another_another(void **state) {
    (void)state;
    int first = 0;
    put("a", "a", 100);
    put("b", "b", 100);
    for (uint64_t seed = 0; seed < 64; seed++) {
        char one[PATH_MAX];
        str_copy(one, sizeof(one), pick("*", FILE_SEEDED, seed));
        assert_string_equal(pick("*", FILE_SEEDED, seed), one);
        first += str_eq(one, "a");
    }
    assert_in_range(first, 16, 48);
}

static void test_another_is_looked_for_beside_it_first(void **state) {
    (void)state;
    char other[PATH_MAX];
    put("s1/r0", "a", 100);
    put("s1/r1", "b", 100);
    put("s2/r0", "c", 100);
    assert_int_equal(file_pick_other(&in, "s*/r*", "s1/r1", other, &err), 0);
    assert_string_equal(other, "s1/r0");
    assert_int_equal(file_pick_other(&in, "s*/r*", "s2/r0", other, &err), 0);
    assert_string_equal(other, "s1/r0");
    assert_int_equal(file_pick_other(&in, "s2/*", "s2/r0", other, &err), -ENOENT);
}

static void test_no_pattern_leads_out(void **state) {
    (void)state;
    static const char *const odd[] = {"", "/etc", "a//b", "a/", "..", "a/../b", ".", NULL};
    for (const char *const *p = odd; *p; p++)
        assert_int_equal(file_pattern_check(*p, &err), -EINVAL);
    assert_int_equal(file_pattern_check("a/..b/*", &err), 0);
}

static void test_what_lies_behind_a_link_is_not_found(void **state) {
    (void)state;
    put("real/w", "a", 100);
    assert_int_equal(symlinkat("/etc", in.fd, "out"), 0);
    assert_int_equal(symlinkat("real", in.fd, "inner"), 0);
    assert_null(pick("out/passwd", FILE_NEWEST, 0));
    assert_null(pick("inner/w", FILE_NEWEST, 0));
    assert_string_equal(pick("in*", FILE_NEWEST, 0), "inner");
    assert_int_equal(file_truncate(&in, "out/passwd", 0, &err), -ELOOP);
}

static void test_a_file_is_cut_off_and_never_made_longer(void **state) {
    (void)state;
    put("w", "abcdef", 100);
    assert_int_equal(file_truncate(&in, "w", 2, &err), 0);
    assert_string_equal(text_of("w"), "ab");
    assert_int_equal(file_truncate(&in, "w", 2, &err), -EINVAL);
    assert_int_equal(file_truncate(&in, "w", 9, &err), -EINVAL);
    assert_string_equal(text_of("w"), "ab");
}

static void test_a_flipped_bit_changes_one_byte_and_no_time(void **state) {
    (void)state;
    struct stat before, after;
    put("w", "aaa", 100);
    assert_int_equal(fstatat(in.fd, "w", &before, 0), 0);
    assert_int_equal(file_flip(&in, "w", 1, 1, &err), 0);
    assert_string_equal(text_of("w"), "aca");
    assert_int_equal(fstatat(in.fd, "w", &after, 0), 0);
    assert_int_equal(before.st_mtim.tv_sec, after.st_mtim.tv_sec);
    assert_int_equal(file_flip(&in, "w", 3, 1, &err), -EINVAL);
}

static void test_a_file_with_a_second_name_is_left_alone(void **state) {
    (void)state;
    put("w", "abc", 100);
    assert_int_equal(linkat(in.fd, "w", in.fd, "v", 0), 0);
    assert_int_equal(file_truncate(&in, "w", 1, &err), -EMLINK);
    assert_int_equal(file_flip(&in, "w", 1, 1, &err), -EMLINK);
    assert_string_equal(text_of("v"), "abc");
    assert_int_equal(file_delete(&in, "w", &err), 0);
    assert_string_equal(text_of("v"), "abc");
}

static void test_nothing_but_a_file_is_cut_off(void **state) {
    (void)state;
    assert_int_equal(folder_make(&in, "d", 0777, NULL), 0);
    assert_int_equal(mkfifoat(in.fd, "fifo", 0666), 0);
    assert_int_equal(file_truncate(&in, "d", 0, &err), -EINVAL);
    assert_int_equal(file_truncate(&in, "fifo", 0, &err), -EINVAL);
}

static void test_a_directory_is_deleted_with_all_in_it(void **state) {
    (void)state;
    put("d/a/b", "x", 100);
    assert_int_equal(file_delete(&in, "d", &err), 0);
    assert_false(folder_has(&in, "d"));
}

static void test_two_names_are_exchanged(void **state) {
    (void)state;
    put("a/x", "1", 100);
    put("b/y", "2", 100);
    assert_int_equal(file_exchange(&in, "a/x", "b/y", &err), 0);
    assert_string_equal(text_of("a/x"), "2");
    assert_string_equal(text_of("b/y"), "1");
    assert_int_equal(file_exchange(&in, "a/x", "b/z", &err), -ENOENT);
}

static void test_a_copy_takes_the_place_and_the_source_stays(void **state) {
    (void)state;
    put("one/w", "1", 100);
    put("one/deep/v", "2", 100);
    put("two/w", "3", 100);
    put("two/more", "4", 100);
    assert_int_equal(file_replace(&in, "two", &in, "one", &err), 0);
    assert_string_equal(text_of("two/w"), "1");
    assert_string_equal(text_of("two/deep/v"), "2");
    assert_false(folder_has(&in, "two/more"));
    assert_string_equal(text_of("one/w"), "1");
    TEXTS_FINI struct texts names = {0};
    assert_int_equal(folder_list(&in, ".", NULL, &names, NULL), 0);
    assert_int_equal(names.n, 4); /* and nothing was left aside */
    assert_int_equal(file_replace(&in, "two", &in, "three", &err), -ENOENT);
    assert_string_equal(text_of("two/w"), "1");
}

static const char *other(const char *path, bool missing) {
    static char ret[PATH_MAX];
    char says[PATH_MAX];
    assert_int_equal(file_pointer_read(&in, path, says, sizeof(says), &err), 0);
    return file_pointer_other(&in, path, says, missing, ret, sizeof(ret), &err) == 0 ? ret : NULL;
}

static void test_a_pointer_names_an_older_one_as_it_writes_names(void **state) {
    (void)state;
    put("step-00000009/w", "a", 1);
    put("step-00000010/w", "a", 1);
    put("step-00000020/w", "a", 1);
    put("draft-00000015/w", "a", 1);
    put("text", "step-00000020\n", 1);
    put("number", "20", 1);
    assert_int_equal(symlinkat("step-00000010/w", in.fd, "deep"), 0);
    assert_int_equal(symlinkat("step-00000010", in.fd, "link"), 0);
    assert_string_equal(other("text", false), "step-00000010");
    assert_string_equal(other("text", true), "step-00000021");
    assert_string_equal(other("number", false), "10");
    assert_string_equal(other("number", true), "21");
    assert_string_equal(other("link", false), "step-00000009");
    put("oldest", "step-00000009", 1);
    assert_null(other("oldest", false));
    assert_int_equal(err.code, -ENOENT);
    put("words", "best", 1);
    assert_null(other("words", true));
    assert_int_equal(err.code, -EINVAL);
}

static void test_a_pointer_stays_what_it_is(void **state) {
    (void)state;
    char says[64];
    struct stat st;
    put("text", "one\n", 1);
    assert_int_equal(symlinkat("one", in.fd, "link"), 0);
    assert_int_equal(file_pointer_write(&in, "text", "two", &err), 0);
    assert_string_equal(text_of("text"), "two\n");
    assert_int_equal(file_pointer_write(&in, "link", "two", &err), 0);
    assert_int_equal(fstatat(in.fd, "link", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(file_pointer_read(&in, "link", says, sizeof(says), &err), 0);
    assert_string_equal(says, "two");
    put("book", "one\ntwo\n", 1);
    assert_int_equal(file_pointer_read(&in, "book", says, sizeof(says), &err), -EINVAL);
}

static void test_a_state_tells_what_differs(void **state) {
    (void)state;
    struct file_state a, b;
    char text[128];
    put("d/x", "1", 1);
    put("d/e/y", "2", 1);
    file_state_read(&in, "d", 0, &a);
    file_state_read(&in, "d", 0, &b);
    assert_true(file_state_same(&a, &b));
    assert_true(a.kind == 'd' && a.bytes == 2);
    assert_int_equal(file_exchange(&in, "d/x", "d/e/y", NULL), 0);
    file_state_read(&in, "d", 0, &b);
    assert_false(file_state_same(&a, &b));
    file_state_read(&in, "d/z", 0, &a);
    file_state_text(&a, text, sizeof(text));
    assert_string_equal(text, "nothing");
    file_state_read(&in, "d/x", 0, &a);
    file_state_text(&a, text, sizeof(text));
    assert_string_equal(text, "a file of 1 bytes, sha256 d4735e3a265e");
}

/* Of a long file not all is read: what changes is. */
static void test_a_byte_in_the_midst_of_a_long_file_is_seen(void **state) {
    (void)state;
    struct file_state a, b;
    const int64_t at = INT64_C(40) << 20;
    FILE_CLOSE int fd = openat(in.fd, "long", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    assert_int_equal(ftruncate(fd, INT64_C(100) << 20), 0);
    file_state_read(&in, "long", at, &a);
    assert_int_equal(file_flip(&in, "long", at, 0, &err), 0);
    file_state_read(&in, "long", at, &b);
    assert_false(file_state_same(&a, &b));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_the_newest_of_a_pattern_was_changed_last),
        TEST(test_of_the_same_age_the_higher_version_is_newer),
        TEST(test_a_draft_is_matched_by_a_dot_alone),
        TEST(test_a_seed_draws_the_same_again_and_another_another),
        TEST(test_another_is_looked_for_beside_it_first),
        TEST(test_no_pattern_leads_out),
        TEST(test_what_lies_behind_a_link_is_not_found),
        TEST(test_a_file_is_cut_off_and_never_made_longer),
        TEST(test_a_flipped_bit_changes_one_byte_and_no_time),
        TEST(test_a_file_with_a_second_name_is_left_alone),
        TEST(test_nothing_but_a_file_is_cut_off),
        TEST(test_a_directory_is_deleted_with_all_in_it),
        TEST(test_two_names_are_exchanged),
        TEST(test_a_copy_takes_the_place_and_the_source_stays),
        TEST(test_a_pointer_names_an_older_one_as_it_writes_names),
        TEST(test_a_pointer_stays_what_it_is),
        TEST(test_a_state_tells_what_differs),
        TEST(test_a_byte_in_the_midst_of_a_long_file_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
