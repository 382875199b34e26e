#include "scenarios/jobs/ranktrain/data/dataset.h"
#include "scenarios/jobs/ranktrain/data/dataset_kind.h"
#include "scenarios/jobs/ranktrain/data/idx.h"
#include "scenarios/jobs/ranktrain/data/draw.h"
#include "tests/scenarios/jobs/ranktrain/data/pictures.h"

#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static char dir[64], cache[80];
static const char *const names[4] = IDX_FILES;
enum { TRAIN = 12, TEST = 5, CIFAR_RECORD = 3073 };

static const char *path_of(const char *name) {
    static char path[4][200];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
    return path[turn];
}

static void write_file(const char *name, const void *p, size_t n, bool packed) {
    char gz[300];
    struct err err = {0};
    unlink(path_of(name));
    snprintf(gz, sizeof(gz), "%s.gz", path_of(name));
    unlink(gz);
    if (!packed) {
        assert_int_equal(file_write(path_of(name), p, n, &err), 0);
        return;
    }
    gzFile f = gzopen(gz, "wb1");
    assert_int_equal(gzwrite(f, p, (unsigned)n), n);
    assert_int_equal(gzclose(f), Z_OK);
}

static void put_word(uint8_t *p, uint32_t v) {
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* The bytes of one of the four files. */
static uint8_t *idx_bytes(int i, size_t *ret_n) {
    uint32_t count = i < 2 ? TRAIN : TEST;
    bool images = i % 2 == 0;
    *ret_n = images ? 16 + count * IDX_PIXELS : 8 + count;
    uint8_t *p = malloc(*ret_n);
    put_word(p, images ? 0x803 : 0x801);
    put_word(p + 4, count);
    if (images) {
        put_word(p + 8, IDX_SIDE);
        put_word(p + 12, IDX_SIDE);
    }
    for (uint32_t k = 0; k < count; k++)
        if (images)
            memset(p + 16 + k * IDX_PIXELS, (int)(100 + k), IDX_PIXELS);
        else
            p[8 + k] = (uint8_t)(k % 10);
    return p;
}

static void write_idx(bool packed) {
    for (int i = 0; i < 4; i++) {
        size_t n;
        uint8_t *p = idx_bytes(i, &n);
        write_file(names[i], p, n, packed);
        free(p);
    }
}

static int open_kind(const char *kind, int side, struct dataset *d, struct err *err) {
    *err = (struct err){0};
    return dataset_open(dataset_find(kind, err), dir, side, DATASET_TRAIN | DATASET_TEST, d, err);
}

static void assert_refused(const char *kind, int code, const char *text) {
    struct dataset d;
    struct err err;
    assert_int_equal(open_kind(kind, 0, &d, &err), code);
    if (!strstr(err.msg, text))
        fail_msg("'%s' not found in: %s", text, err.msg);
}

static int setup(void **state) {
    (void)state;
    strcpy(dir, "/tmp/rankquake-test-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(cache, sizeof(cache), "%s-cache", dir);
    return setenv("XDG_CACHE_HOME", cache, 1);
}

static int teardown(void **state) {
    (void)state;
    return file_remove_tree(dir, NULL) < 0 || file_remove_tree(cache, NULL) < 0;
}

static void test_mnist_is_read_packed_and_unpacked(void **state) {
    (void)state;
    for (int packed = 0; packed < 2; packed++) {
        struct dataset d;
        struct err err;
        write_idx(packed);
        assert_int_equal(open_kind(packed ? "FashionMNIST" : "mnist", 0, &d, &err), 0);
        assert_int_equal(d.train.count, TRAIN);
        assert_int_equal(d.test.count, TEST);
        assert_int_equal(images_read(&d.train, 11, &err)[IDX_PIXELS - 1], 111);
        assert_int_equal(images_label(&d.train, 11), 1);
        assert_true(d.train.shape.mean[0] > (packed ? 0.2f : 0.1f));
        dataset_close(&d);
    }
}

static void test_each_flaw_of_an_idx_file_is_named_with_its_byte(void **state) {
    (void)state;
    static const struct {
        int file;
        size_t at;
        int value; /* -1: the file ends there */
        const char *text;
    } flaws[] = {
        {0, 3, 1, "begins with 0x00000801 at byte 0"},
        {0, 11, 29, "images of 29x28 pixels (byte 8)"},
        {0, 16 + 2 * IDX_PIXELS + 5, -1, "is cut short at byte 1589: 779 more"},
        {0, 7, 10, "says at byte 4 that it has 12 labels, for 10 images"},
        {1, 3, 3, "begins with 0x00000803 at byte 0"},
        {1, 8 + 4, 10, "the label at byte 12 is 10, more than 9"},
        {1, 8 + 11, -1, "is cut short at byte 19: 1 more"},
        {3, 5, -1, "is cut short at byte 5: 3 more"},
        {2, 0, -1, "is cut short at byte 0: 16 more"},
    };
    for (size_t i = 0; i < sizeof(flaws) / sizeof(*flaws); i++) {
        size_t n;
        write_idx(false);
        uint8_t *p = idx_bytes(flaws[i].file, &n);
        if (flaws[i].value >= 0)
            p[flaws[i].at] = (uint8_t)flaws[i].value;
        write_file(names[flaws[i].file], p, flaws[i].value < 0 ? flaws[i].at : n, false);
        free(p);
        assert_refused("mnist", -EBADMSG, flaws[i].text);
        assert_refused("mnist", -EBADMSG, names[flaws[i].file + (i == 3)]);
    }
    write_idx(false);
    FILE *f = fopen(path_of(names[1]), "a");
    fputc(1, f);
    fclose(f);
    assert_refused("mnist", -EBADMSG, "goes on behind byte 20");
}

static void test_a_gzip_file_that_is_cut_short_or_damaged_is_refused(void **state) {
    (void)state;
    struct stat st;
    char gz[300];
    write_idx(true);
    snprintf(gz, sizeof(gz), "%s.gz", path_of(names[0]));
    assert_int_equal(stat(gz, &st), 0);
    assert_int_equal(truncate(gz, st.st_size - 9), 0);
    assert_refused("mnist", -EBADMSG, "is cut short");
    write_idx(true);
    int fd = open(gz, O_WRONLY);
    assert_int_equal(pwrite(fd, "\377\377", 2, st.st_size - 6), 2);
    close(fd);
    assert_refused("mnist", -EBADMSG, "is damaged near byte");
}

static void test_files_that_are_not_there_are_no_reason_to_make_some_up(void **state) {
    (void)state;
    assert_refused("fashion-mnist", -ENOENT, "has neither train-images-idx3-ubyte nor");
    assert_refused("fashion-mnist", -ENOENT, "install dataset-fashion-mnist");
    assert_refused("fashion-mnist", -ENOENT, "--dataset=generated");
    assert_refused("cifar10", -ENOENT, "has no data_batch_1.bin");
    assert_refused("folder", -ENOENT, "has no folder train");
    write_idx(false);
    unlink(path_of(names[3]));
    assert_refused("mnist", -ENOENT, "has neither t10k-labels-idx1-ubyte nor");
    struct dataset d;
    struct err err = {0};
    assert_int_equal(dataset_open(dataset_find("cifar10", &err), NULL, 0, 3, &d, &err), -ENOENT);
    assert_non_null(strstr(err.msg, "needs --data-dir"));
    assert_null(dataset_find("imagenet", &err));
    assert_non_null(strstr(err.msg, "cifar10, fashion-mnist, folder, generated, mnist"));
}

static void write_cifar(int file, int records, int label, size_t cut) {
    char name[32];
    size_t n = (size_t)records * CIFAR_RECORD;
    uint8_t *p = malloc(n);
    for (int i = 0; i < records; i++) {
        uint8_t *record = p + i * CIFAR_RECORD;
        record[0] = (uint8_t)label;
        for (int c = 0; c < 3; c++)
            memset(record + 1 + c * 1024, 10 * file + c, 1024);
    }
    snprintf(name, sizeof(name), file ? "data_batch_%d.bin" : "test_batch.bin", file);
    write_file(name, p, n - cut, false);
    free(p);
}

static void test_cifar_has_its_channels_one_after_another(void **state) {
    (void)state;
    struct dataset d;
    struct err err;
    for (int file = 0; file < 6; file++)
        write_cifar(file, 3, file, 0);
    assert_int_equal(open_kind("cifar10", 0, &d, &err), 0);
    assert_int_equal(d.train.count, 15);
    assert_int_equal(d.test.count, 3);
    assert_int_equal(d.train.shape.channels, 3);
    const uint8_t *p = images_read(&d.train, 14, &err);
    assert_int_equal(p[0], 50);
    assert_int_equal(p[1024], 51);
    assert_int_equal(p[3071], 52);
    assert_int_equal(images_label(&d.train, 14), 5);
    dataset_close(&d);
    write_cifar(4, 3, 4, 1);
    assert_refused("cifar10", -EBADMSG, "data_batch_4.bin is cut short at byte 9218");
    write_cifar(4, 3, 11, 0);
    assert_refused("cifar10", -EBADMSG, "data_batch_4.bin: the label at byte 0 is 11, more than 9");
    write_cifar(4, 0, 4, 0);
    assert_refused(
        "cifar10", -EBADMSG,
        "data_batch_4.bin is cut short at byte 0: records of 3073 bytes do not end there");
    write_cifar(4, 3, 4, 0);
    unlink(path_of("data_batch_2.bin"));
    assert_refused("cifar10", -ENOENT, "has no data_batch_2.bin");
    mkdir(path_of("cifar-10-batches-bin"), 0755); /* as the archive has it */
    for (int file = 0; file < 6; file++) {
        char from[192], to[64];
        write_cifar(file, 3, file, 0);
        snprintf(from, sizeof(from), file ? "data_batch_%d.bin" : "test_batch.bin", file);
        snprintf(to, sizeof(to), "cifar-10-batches-bin/%.40s", from);
        snprintf(from, sizeof(from), "%s", path_of(to));
        snprintf(to, sizeof(to), "%s", strrchr(from, '/') + 1);
        assert_int_equal(rename(path_of(to), from), 0);
    }
    assert_int_equal(open_kind("cifar10", 0, &d, &err), 0);
    assert_int_equal(d.train.count, 15);
    dataset_close(&d);
}

static void write_folders(void) {
    static const struct picture_colours cat = {{200, 10, 30}, {200, 10, 30}};
    static const struct picture_colours dog = {{0, 0, 255}, {255, 255, 0}};
    static const char *const folders[] = {"train", "train/cat", "train/dog",
                                          "val",   "val/cat",   "val/dog"};
    for (int i = 0; i < 6; i++)
        mkdir(path_of(folders[i]), 0755);
    picture_write_jpeg(path_of("train/cat/b.JPG"), 70, 50, &cat);
    picture_write_png(path_of("train/cat/a.png"), 16, 20, &cat);
    picture_write_png(path_of("train/dog/c.png"), 64, 64, &dog);
    picture_write_jpeg(path_of("val/dog/d.jpeg"), 256, 256, &dog);
    write_file("train/dog/notes.txt", "x", 1, false);
}

static void test_a_folder_of_class_folders_is_read_in_the_order_of_names(void **state) {
    (void)state;
    struct dataset d;
    struct err err;
    write_folders();
    assert_int_equal(open_kind("folder", 8, &d, &err), 0);
    assert_int_equal(d.train.count, 3);
    assert_int_equal(d.train.shape.classes, 2);
    assert_int_equal(d.train.shape.side, 8);
    const uint8_t *png = images_read(&d.train, 0, &err), *jpeg = images_read(&d.train, 1, &err);
    assert_int_equal(png[0], 200);
    assert_int_equal(png[64], 10);
    assert_int_equal(png[128 + 63], 30);
    for (int c = 0; c < 3; c++)
        assert_true(abs(jpeg[64 * c] - png[64 * c]) < 4);
    const uint8_t *dog = images_read(&d.train, 2, &err);
    assert_int_equal(images_label(&d.train, 2), 1);
    assert_int_equal(dog[0], 0);
    assert_int_equal(dog[128], 255);
    assert_int_equal(dog[8 * 4 + 4], 255);
    assert_int_equal(dog[128 + 8 * 4 + 4], 0);
    dog = images_read(&d.test, 0, &err);
    assert_int_equal(images_label(&d.test, 0), 1);
    assert_true(dog[0] < 8 && dog[128] > 247 && dog[8 * 4 + 4] > 247);
    dataset_close(&d);
}

static void test_broken_pictures_are_named(void **state) {
    (void)state;
    struct stat st;
    write_folders();
    write_file("train/dog/e.png", "GIF89a", 6, false);
    assert_refused("folder", -EBADMSG, "train/dog/e.png is neither JPEG nor PNG");
    unlink(path_of("train/dog/e.png"));
    assert_int_equal(stat(path_of("train/cat/b.JPG"), &st), 0);
    assert_int_equal(truncate(path_of("train/cat/b.JPG"), st.st_size * 2 / 3), 0);
    assert_refused("folder", -EBADMSG, "train/cat/b.JPG: is no whole JPEG: ");
    unlink(path_of("train/cat/b.JPG"));
    assert_int_equal(truncate(path_of("train/cat/a.png"), 60), 0);
    assert_refused("folder", -EBADMSG, "train/cat/a.png: is no whole PNG: ");
    unlink(path_of("train/cat/a.png"));
    assert_refused("folder", -ENOENT, "train/cat has no .jpg, .jpeg or .png file");
}

/* Bytes of both changed at random: an image or a sentence, never more. */
static void test_damaged_pictures_do_no_harm(void **state) {
    (void)state;
    uint64_t seed = 11;
    write_folders();
    const char *paths[2] = {path_of("train/cat/b.JPG"), path_of("train/dog/c.png")};
    for (int i = 0; i < 300; i++) {
        const char *path = paths[i % 2];
        struct buf b = {0};
        struct dataset d;
        struct err err;
        assert_int_equal(file_read(path, 1 << 20, &b, &err), 0);
        char *copy = malloc(b.len);
        memcpy(copy, b.data, b.len);
        for (int k = 0; k < 4; k++)
            b.data[draw_below(&seed, (uint32_t)b.len)] ^= (char)(1 + draw_below(&seed, 255));
        assert_int_equal(file_write(path, b.data, b.len, &err), 0);
        if (open_kind("folder", 8, &d, &err) == 0)
            dataset_close(&d);
        else
            assert_true(*err.msg);
        assert_int_equal(file_write(path, copy, b.len, &err), 0);
        buf_fini(&b);
        free(copy);
    }
}

static void test_generated_images_are_always_the_same(void **state) {
    (void)state;
    struct dataset d;
    struct err err;
    assert_int_equal(dataset_open(dataset_find("generated", &err), NULL, 0, DATASET_TEST, &d, &err),
                     0);
    assert_int_equal(d.test.count, 10000);
    assert_int_equal(d.test.tail, 0x9ffda76b);
    dataset_close(&d);
}

/* Another file in a source's place is another file in the cache. */
static void test_the_cache_follows_its_sources(void **state) {
    (void)state;
    struct dataset d;
    struct err err;
    write_idx(false);
    assert_int_equal(open_kind("mnist", 0, &d, &err), 0);
    uint32_t tail = d.train.tail;
    dataset_close(&d);
    size_t n;
    uint8_t *p = idx_bytes(0, &n);
    p[16] ^= 1;
    write_file(names[0], p, n, false);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, path_of(names[0]), times, 0), 0);
    free(p);
    assert_int_equal(open_kind("mnist", 0, &d, &err), 0);
    assert_int_not_equal(d.train.tail, tail);
    dataset_close(&d);
}

int main(int argc, char **argv) {
#define ROW(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        ROW(test_mnist_is_read_packed_and_unpacked),
        ROW(test_each_flaw_of_an_idx_file_is_named_with_its_byte),
        ROW(test_a_gzip_file_that_is_cut_short_or_damaged_is_refused),
        ROW(test_files_that_are_not_there_are_no_reason_to_make_some_up),
        ROW(test_cifar_has_its_channels_one_after_another),
        ROW(test_a_folder_of_class_folders_is_read_in_the_order_of_names),
        ROW(test_broken_pictures_are_named),
        ROW(test_damaged_pictures_do_no_harm),
        ROW(test_generated_images_are_always_the_same),
        ROW(test_the_cache_follows_its_sources),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
