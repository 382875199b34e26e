/* Data that are prepared: all of it or nothing, whatever lies there already. */
#include "scenarios/jobs/ranktrain/data/idx.h"
#include "scenarios/jobs/ranktrain/prepare/fetch.h"
#include "scenarios/jobs/ranktrain/prepare/prepare.h"

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

enum { TRAIN = 12, TEST = 5 };

static char place[64], from[96], to[96], said[4096];
static const char *const names[4] = IDX_FILES;

static void put_word(FILE *f, uint32_t v) {
    for (int i = 24; i >= 0; i -= 8)
        fputc((int)(v >> i & 0xff), f);
}

/* Image k is of the grey 100 + k, and of class k mod 10. */
static void write_sources(void) {
    for (int i = 0; i < 4; i++) {
        char path[192];
        uint32_t n = i < 2 ? TRAIN : TEST;
        bool images = i % 2 == 0;
        snprintf(path, sizeof(path), "%s/%s", from, names[i]);
        FILE *f = fopen(path, "w");
        put_word(f, images ? 0x803 : 0x801);
        put_word(f, n);
        for (int k = 0; k < 2 && images; k++)
            put_word(f, IDX_SIDE);
        for (uint32_t k = 0; k < n; k++)
            for (int p = 0; p < (images ? IDX_PIXELS : 1); p++)
                fputc((int)(images ? 100 + k : k % 10), f);
        fclose(f);
    }
}

static int setup(void **state) {
    (void)state;
    strcpy(place, "/tmp/test-prepare-XXXXXX");
    if (!mkdtemp(place))
        return -1;
    snprintf(from, sizeof(from), "%s/from", place);
    snprintf(to, sizeof(to), "%s/to", place);
    setenv("XDG_CACHE_HOME", place, 1);
    if (mkdir(from, 0700) < 0)
        return -1;
    write_sources();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    return file_remove_tree(place, NULL) < 0;
}

/* What it prints is in `said`, with the place left out. */
static int run(const struct prepare *p, struct err *err) {
    char path[128], *at;
    snprintf(path, sizeof(path), "%s/said", place);
    fflush(stdout);
    int kept = dup(STDOUT_FILENO), fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(fd, STDOUT_FILENO);
    *err = (struct err){0};
    int r = prepare_run(p, err);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    ssize_t n = pread(fd, said, sizeof(said) - 1, 0);
    said[n > 0 ? n : 0] = 0;
    close(fd);
    while ((at = strstr(said, place)))
        memmove(at, at + strlen(place) + 1, strlen(at + strlen(place) + 1) + 1);
    return r;
}

static struct prepare wish(void) {
    return (struct prepare){
        .dataset = "mnist", .from = from, .to = to, .parts = 1, .unverified = true};
}

static int shell(const char *command) {
    char text[512];
    snprintf(text, sizeof(text), "cd %s && %s", place, command);
    return system(text);
}

#define PACKED                                                                                     \
    "from: 0 of its files are the known ones\nto/test.images, 5 images\nto/train.images, 12 "      \
    "images\n"

static void test_images_are_prepared_once(void **state) {
    (void)state;
    struct prepare p = wish();
    struct err err;
    assert_int_equal(run(&p, &err), 0);
    assert_string_equal(said, PACKED);
    assert_int_equal(
        shell("test \"$(ls -A to | xargs)\" = '.prepare.lock test.images train.images'"), 0);
    assert_int_equal(run(&p, &err), 0);
    assert_string_equal(said, "to holds it already\n");
}

/* Whatever is missing, or is of another part, is made; what is whole is not. */
static void test_what_is_not_whole_is_prepared_again(void **state) {
    (void)state;
    static const char *const changes[] = {
        "rm to/train.images", "rm to/test.images", "truncate -s 5000 to/train.images",
        "truncate -s 5000 to/test.images",
        "printf x | dd of=to/train.images conv=notrunc 2>/dev/null"};
    struct prepare p = wish();
    struct err err;
    assert_int_equal(run(&p, &err), 0);
    assert_int_equal(shell("cp -r to whole"), 0);
    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        assert_int_equal(shell(changes[i]), 0);
        assert_int_equal(run(&p, &err), 0);
        assert_string_equal(said, PACKED);
        assert_int_equal(shell("diff -r to whole"), 0);
    }
    p.part = 1;
    p.parts = 2;
    assert_int_equal(run(&p, &err), 0);
    assert_string_equal(said, "from: 0 of its files are the known ones\nto/test.images, 5 images\n"
                              "to/train.images, 6 images\n");
    assert_int_equal(run(&p, &err), 0);
    assert_string_equal(said, "to holds it already\n");
    p.part = 0;
    assert_int_equal(run(&p, &err), 0);
    assert_null(strstr(said, "already"));
    p = wish();
    p.dataset = "fashion-mnist"; /* of the same shape, but for how bright it is */
    assert_int_equal(run(&p, &err), 0);
    assert_null(strstr(said, "already"));
}

/* Somebody was killed while it was prepared. */
static void test_what_was_left_over_is_taken_away(void **state) {
    (void)state;
    struct prepare p = wish();
    struct err err;
    assert_int_equal(shell("mkdir -p to/.prepare.sources/a to/.prepare.folders/b && echo x "
                           ">to/.prepare.images && echo x >to/.prepare.folders/b/c"),
                     0);
    assert_int_equal(run(&p, &err), 0);
    assert_int_equal(
        shell("test \"$(ls -A to | xargs)\" = '.prepare.lock test.images train.images'"), 0);
}

#define UNFOLDED "from: 0 of its files are the known ones\nto/val, 5 images\nto/train, 12 images\n"

static void test_class_folders_are_prepared_once(void **state) {
    (void)state;
    struct prepare p = wish();
    struct err err;
    p.folders = true;
    assert_int_equal(run(&p, &err), 0);
    assert_string_equal(said, UNFOLDED);
    assert_int_equal(shell("test \"$(ls -A to | xargs)\" = '.prepare.lock train val'"), 0);
    assert_int_equal(
        shell("test \"$(ls to/train | xargs)\" = '000 001 002 003 004 005 006 007 008 009'"), 0);
    assert_int_equal(shell("test \"$(cd to/val && echo */*)\" = '000/000000.png 001/000001.png "
                           "002/000002.png 003/000003.png 004/000004.png'"),
                     0);
    assert_int_equal(shell("test \"$(ls to/train/001 | xargs)\" = '000001.png 000011.png'"), 0);
    assert_int_equal(run(&p, &err), 0);
    assert_string_equal(said, "to holds it already\n");
}

/* Who was interrupted between the two sets has left one, whole. */
static void test_one_set_that_is_there_is_kept_and_the_other_is_made(void **state) {
    (void)state;
    struct prepare p = wish();
    struct err err;
    p.folders = true;
    p.samples = 3;
    assert_int_equal(run(&p, &err), 0);
    assert_int_equal(shell("cp -r to whole && rm -r to/train"), 0);
    assert_int_equal(run(&p, &err), 0);
    assert_string_equal(said, "from: 0 of its files are the known ones\nto/val is there already\n"
                              "to/train, 3 images\n");
    assert_int_equal(shell("diff -r to whole"), 0);
}

static void test_what_cannot_be_prepared_is_named_and_leaves_nothing(void **state) {
    (void)state;
    struct prepare p = wish();
    struct err err;
    char wanted[256];
    p.unverified = false;
    assert_int_equal(run(&p, &err), -EBADMSG);
    assert_string_equal(said, "");
    assert_non_null(strstr(err.msg, "/from/train-images-idx3-ubyte is not the known file: its "
                                    "SHA-256, unpacked, is "));
    assert_non_null(strstr(
        err.msg, " and should be ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db; "
                 "fetch it again, or say --no-verify"));
    assert_int_equal(shell("test \"$(ls -A to)\" = .prepare.lock"), 0);
    p = wish();
    p.dataset = "folder";
    p.from = "http://127.0.0.1:1/x";
    assert_int_equal(run(&p, &err), -EINVAL);
    assert_string_equal(err.msg,
                        "--dataset=folder is of no known files: --from must be a directory");
    p.from = NULL;
    assert_int_equal(run(&p, &err), -EINVAL);
    assert_string_equal(err.msg, "--dataset=folder has no usual place: say --from");
    p.dataset = "none";
    assert_int_equal(run(&p, &err), -EINVAL);
    p = wish();
    p.to = from;
    assert_int_equal(shell("rm from/t10k-labels-idx1-ubyte"), 0);
    assert_int_equal(run(&p, &err), -ENOENT);
    snprintf(wanted, sizeof(wanted),
             "%s has neither t10k-labels-idx1-ubyte nor t10k-labels-idx1-ubyte.gz", from);
    assert_string_equal(err.msg, wanted);
    p.to = "/proc/none/x";
    assert_true(run(&p, &err) < 0);
    assert_non_null(strstr(err.msg, "/proc/none"));
    static char file[160];
    snprintf(file, sizeof(file), "%s/train-images-idx3-ubyte", from);
    p.to = file;
    assert_int_equal(run(&p, &err), -ENOTDIR);
}

/* Of files that are known by their sums: those that are there, packed or not. */
static void test_known_files_are_counted_and_others_refused(void **state) {
    (void)state;
    static const char hello[] = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    const struct dataset_kind k = {
        .files = {{"a.gz", hello}, {"b.tar.gz", hello}, {"c.gz", hello}}};
    struct err err;
    int known = -1;
    char wanted[512];
    assert_int_equal(fetch_verify(&k, from, &known, &err), 0);
    assert_int_equal(known, 0);
    assert_int_equal(shell("printf hello | gzip >from/a.gz; printf hello >from/b.tar.gz"), 0);
    assert_int_equal(fetch_verify(&k, from, &known, &err), 0);
    assert_int_equal(known, 2);
    assert_int_equal(shell("printf hello >from/c"), 0);
    assert_int_equal(fetch_verify(&k, from, &known, &err), 0);
    assert_int_equal(known, 3);
    assert_int_equal(shell("printf hullo >from/b.tar.gz"), 0);
    assert_int_equal(fetch_verify(&k, from, &known, &err), -EBADMSG);
    snprintf(wanted, sizeof(wanted),
             "%s/b.tar.gz is not the known file: its SHA-256 is "
             "7835066a1457504217688c8f5d06909c6591e0ca78c254ccf17450d0d999cab0 and should be %s; "
             "fetch it "
             "again, or say --no-verify",
             from, hello);
    assert_string_equal(err.msg, wanted);
    assert_int_equal(shell("rm from/b.tar.gz; mkdir from/b"), 0);
    assert_int_equal(fetch_verify(&k, from, &known, &err), 0);
    assert_int_equal(known, 2);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(images_are_prepared_once),
        TEST(what_is_not_whole_is_prepared_again),
        TEST(what_was_left_over_is_taken_away),
        TEST(class_folders_are_prepared_once),
        TEST(one_set_that_is_there_is_kept_and_the_other_is_made),
        TEST(what_cannot_be_prepared_is_named_and_leaves_nothing),
        TEST(known_files_are_counted_and_others_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
