/* Images that lie in files of their own are those that they are packed as; a set is told from others by names, classes and lengths. */
#include "scenarios/jobs/ranktrain/data/pictures.h"
#include "scenarios/jobs/ranktrain/data/dataset.h"
#include "scenarios/jobs/ranktrain/data/dataset_kind.h"
#include "tests/scenarios/jobs/ranktrain/data/pictures.h"

#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static char dir[64];

static const char *path_of(const char *name) {
    static char path[4][200];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
    return path[turn];
}

static int setup(void **state) {
    (void)state;
    static const struct picture_colours colours[] = {
        {{200, 10, 30}, {9, 99, 199}}, {{0, 0, 255}, {255, 255, 0}}, {{1, 2, 3}, {250, 251, 252}}};
    static const char *const folders[] = {"train", "train/cat", "train/dog", "val", "val/cat"};
    strcpy(dir, "/tmp/test-pictures-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    setenv("XDG_CACHE_HOME", path_of("cache"), 1);
    for (int i = 0; i < 5; i++)
        mkdir(path_of(folders[i]), 0755);
    picture_write_jpeg(path_of("train/cat/b.jpg"), 70, 50, &colours[0]);
    picture_write_png(path_of("train/cat/a.png"), 16, 20, &colours[1]);
    picture_write_png(path_of("train/dog/c.png"), 9, 9, &colours[2]);
    picture_write_png(path_of("val/cat/d.png"), 9, 9, &colours[2]);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    return file_remove_tree(dir, NULL) < 0;
}

static void open_as(int sets, int side, struct dataset *d) {
    struct err err = {0};
    if (dataset_open(dataset_find("folder", &err), dir, side, sets, d, &err) < 0)
        fail_msg("%s", err.msg);
}

static void test_a_picture_is_what_it_is_packed_as(void **state) {
    (void)state;
    for (int side = 8; side <= 40; side += 8) {
        struct dataset packed, unpacked;
        struct err err = {0};
        open_as(DATASET_TRAIN, side, &packed);
        open_as(DATASET_TRAIN | DATASET_UNPACKED, side, &unpacked);
        const struct images *a = &packed.train, *b = &unpacked.train;
        assert_null(a->pictures);
        assert_non_null(b->pictures);
        assert_int_equal(b->count, 3);
        assert_int_equal(b->whole, 3);
        assert_int_equal(b->parts, 1);
        assert_int_equal(b->part, 0);
        assert_int_equal(b->bytes, a->bytes);
        assert_memory_equal(&b->shape, &a->shape, sizeof(a->shape));
        assert_string_equal(b->path, dir);
        for (uint32_t i = 0; i < 3; i++) {
            const uint8_t *x = images_read(a, i, &err), *y = images_read(b, i, &err);
            assert_non_null(x);
            assert_non_null(y);
            assert_memory_equal(x, y, a->bytes);
            assert_int_equal(images_label(b, i), images_label(a, i));
        }
        dataset_close(&packed);
        dataset_close(&unpacked);
    }
}

/* Ranks with other files than the others must not train with them; where the files lie is no matter. */
static void test_a_set_is_told_from_others(void **state) {
    (void)state;
    struct dataset d;
    open_as(DATASET_TRAIN | DATASET_UNPACKED, 8, &d);
    uint32_t tail = d.train.tail;
    dataset_close(&d);
    static const char *const changes[] = {
        "mv train/cat/a.png train/cat/aa.png",                               /* a name */
        "mv train/cat/aa.png train/cat/a.png",                               /* as it was */
        "mv train/cat/b.jpg train/dog/b.jpg",                                /* a class */
        "mv train/dog/b.jpg train/cat/b.jpg",  "printf x >>train/dog/c.png", /* a length */
        "truncate -s -1 train/dog/c.png",      "cp train/dog/c.png train/dog/e.png"}; /* one more */
    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        char command[256];
        snprintf(command, sizeof(command), "cd %s && %s", dir, changes[i]);
        assert_int_equal(system(command), 0);
        open_as(DATASET_TRAIN | DATASET_UNPACKED, 8, &d);
        if ((d.train.tail == tail) != (i % 2 == 1))
            fail_msg("%s", changes[i]);
        dataset_close(&d);
    }
}

static void test_a_picture_that_is_damaged_or_gone_is_named(void **state) {
    (void)state;
    struct dataset d;
    struct err err = {0};
    open_as(DATASET_TRAIN | DATASET_UNPACKED, 8, &d);
    assert_int_equal(truncate(path_of("train/cat/a.png"), 30), 0);
    assert_int_equal(unlink(path_of("train/dog/c.png")), 0);
    assert_null(images_read(&d.train, 0, &err));
    char wanted[256];
    snprintf(wanted, sizeof(wanted), "%s: is no whole PNG: ", path_of("train/cat/a.png"));
    assert_memory_equal(err.msg, wanted, strlen(wanted));
    assert_non_null(strstr(err.msg, " (30 bytes)"));
    assert_non_null(images_read(&d.train, 1, &err));
    assert_null(images_read(&d.train, 2, &err));
    assert_int_equal(err.code, -ENOENT);
    assert_non_null(strstr(err.msg, path_of("train/dog/c.png")));
    dataset_close(&d);
}

/* One that has gone before it is looked at. */
static void test_paths_are_taken_over_and_given_back(void **state) {
    (void)state;
    static const struct images_shape shape = {.channels = 3, .side = 8, .classes = 2};
    struct texts paths = {0};
    struct images d = {.count = 77};
    struct err err = {0};
    char wanted[256];
    texts_add(&paths, "%s", path_of("train/cat/a.png"));
    texts_add(&paths, "%s", path_of("nothing/x.png"));
    assert_int_equal(pictures_open(&paths, (const uint8_t[]){0, 1}, &shape, dir, &d, &err),
                     -ENOENT);
    snprintf(wanted, sizeof(wanted), "%s: No such file or directory", path_of("nothing/x.png"));
    assert_string_equal(err.msg, wanted);
    assert_null(paths.v);
    assert_int_equal(d.count, 77);
    pictures_free(NULL);
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_picture_is_what_it_is_packed_as),
        TEST(a_set_is_told_from_others),
        TEST(a_picture_that_is_damaged_or_gone_is_named),
        TEST(paths_are_taken_over_and_given_back),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
