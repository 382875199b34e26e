/* Class folders on a system that is played: what is listed and looked at, which pictures are read and which class they are
 * of; class folders that are written, byte for byte; and what comes of each call that fails. */
#include "tests/played.h"

#include "scenarios/jobs/ranktrain/data/dataset_kind.h"
#include "scenarios/jobs/ranktrain/data/folders.h"
#include "scenarios/jobs/ranktrain/data/photo.h"
#include "scenarios/jobs/ranktrain/data/pictures.h"

#include "base/sys/file.h"

#include <dirent.h>
#include <sys/stat.h>

enum { LISTED_MAX = 6, PIXELS_MAX = 3 * 4 * 4 };

/* A directory that is being listed; one at a time. */
static struct {
    int left, many; /* so many class folders; 0: some */
    bool open, classes;
    struct dirent entry;
    uint8_t pixels[4][PIXELS_MAX];
} host;

static int err_of(struct err *err, const char *what) {
    return err_set(err, -errno, "%s", what);
}

static DIR *played_open_dir(const char *path) {
    assert_false(host.open);
    if (fails("list %s", path))
        return NULL;
    host.open = true;
    host.classes = strcmp(path, "d/train") == 0;
    host.left = draw(15) ? 2 + draw(LISTED_MAX) : draw(3);
    host.left = host.classes && host.many ? host.many : host.left;
    return (DIR *)(void *)&host;
}

static struct dirent *played_next(DIR *d) {
    static const char *const pictures[] = {"b.png", "a.JPG",   ".x.png", "c.jpeg", "readme",
                                           "z.txt", "a.b.Png", "png",    "."};
    static const char *const classes[] = {"dog", "cat", ".hidden", "bird", "file.txt", "ant"};
    assert_ptr_equal(d, &host);
    if (host.left == 0)
        return NULL;
    host.left--;
    if (fails("next"))
        return NULL;
    strcpy(host.entry.d_name, host.classes ? classes[draw(6)] : pictures[draw(9)]);
    if (host.classes && host.many)
        snprintf(host.entry.d_name, sizeof(host.entry.d_name), "c%d", host.left);
    note("  %s", host.entry.d_name);
    errno = draw(2) ? EBADF : 0; /* whatever somebody has left there */
    return &host.entry;
}

static void played_close_dir(DIR **d) {
    note("close %d", *d != NULL);
    if (*d)
        host.open = false;
    *d = NULL;
}

static int played_stat(const char *path, struct stat *ret) {
    static const int gone[] = {ENOENT, ENOTDIR, ELOOP};
    const char *last = strrchr(path, '/') + 1;
    if (fails("stat %s", path))
        return -1;
    errno = gone[draw(3)];
    if (!host.many && draw(25) == 0)
        return -1;
    *ret = (struct stat){.st_mode = strchr(last, '.') && draw(15) ? S_IFREG : S_IFDIR};
    note("  %o", ret->st_mode);
    return 0;
}

static int played_photo(const char *path, int least, struct photo *ret, struct err *err) {
    if (fails("photo %s, %d", path, least))
        return err_of(err, path);
    *ret = (struct photo){.width = 3, .height = 2};
    return 0;
}

static void played_fit(const struct photo *p, int side, uint8_t *ret) {
    note("fit %dx%d to %d", p->width, p->height, side);
    memset(ret, side, (size_t)(PHOTO_CHANNELS * side * side));
}

static void played_photo_fini(struct photo *p) {
    note("photo no more, %d", p->width);
}

static int played_add(struct packing *p, const uint8_t *pixels, uint8_t label, struct err *err) {
    p->seen++;
    return fails("add %u of %u", label, pixels[0]) ? err_of(err, "add") : 0;
}

static int played_pictures(struct texts *paths, const uint8_t *labels,
                           const struct images_shape *shape, const char *dir, struct images *ret,
                           struct err *err) {
    for (size_t i = 0; i < paths->n; i++)
        note("  %s is %u", paths->v[i], labels[i]);
    *ret = (struct images){.count = (uint32_t)paths->n};
    return fails("pictures of %s, %d", dir, shape->side) ? err_of(err, dir) : 0;
}

/* ---- what is written ---- */

static int played_make_dirs(const char *path, mode_t mode, struct err *err) {
    return fails("make %s, %o", path, mode) ? err_of(err, path) : 0;
}

static int played_write(const char *path, const void *data, size_t n, struct err *err) {
    BUF_FINI struct buf hex = {0};
    const unsigned char *bytes = data;
    for (size_t i = 0; i < n; i++) /* how well it is packed is zlib's */
        buf_printf(&hex, i < 37 || i + 12 >= n ? "%02x" : "", bytes[i]);
    return fails("write %s: %s", path, buf_str(&hex)) ? err_of(err, path) : 0;
}

static const uint8_t *played_read(const struct images *d, uint32_t i, struct err *err) {
    if (!fails("read %u", i))
        return host.pixels[i];
    err_of(err, "read");
    return NULL;
}

#define opendir         played_open_dir
#define readdir         played_next
#define file_close_dir  played_close_dir
#define stat(path, ret) played_stat(path, ret)
#define photo_read      played_photo
#define photo_fit       played_fit
#define photo_fini      played_photo_fini
#define packing_add     played_add
#define pictures_open   played_pictures
#define file_make_dirs  played_make_dirs
#define file_write      played_write
#define images_read     played_read
#include "scenarios/jobs/ranktrain/data/folder.c"
#include "scenarios/jobs/ranktrain/data/folders.c"
#undef stat

static void folder_all(uint64_t seed) {
    struct err err = {0};
    TEXTS_FINI struct texts files = {0};
    const struct dataset_place at = {.dir = "d", .side = 4};
    struct images_shape shape = {.channels = 3, .side = 2 + draw(2), .classes = -7};
    memset(&host, 0, sizeof(host));
    bool test = draw(2);
    int r = dataset_folder.list(&at, test, &files, &err);
    note("> listed %d, %d %s", r, err.code, err.msg);
    for (size_t i = 0; i < files.n; i++)
        note(">   %s", files.v[i]);
    err = (struct err){0};
    r = dataset_folder.classes(&at, &shape, &err);
    note("> classes %d, %d %s: %d", r, err.code, err.msg, shape.classes);
    err = (struct err){0};
    struct images d = {.count = 7};
    r = dataset_folder.pictures(&at, &shape, &d, &err);
    note("> pictures %d, %d %s: %u", r, err.code, err.msg, d.count);
    err = (struct err){0};
    struct packing p = {.header = {.shape = shape, .part = (uint32_t)draw(2), .parts = 2}};
    r = dataset_folder.pack(&at, test, &files, &p, &err);
    note("> packed %d, %d %s: %u", r, err.code, err.msg, p.seen);
}

/* As many classes as there may be, one less and one more. */
static void many_all(uint64_t seed) {
    struct err err = {0};
    const struct dataset_place at = {.dir = "d"};
    struct images_shape shape = {.classes = -7};
    memset(&host, 0, sizeof(host));
    host.many = IMAGES_CLASSES - 2 + (int)seed;
    int r = dataset_folder.classes(&at, &shape, &err);
    note("> classes %d, %d %s: %d", r, err.code, err.msg, shape.classes);
}

static void folders_all(uint64_t seed) {
    struct err err = {0};
    uint8_t labels[4];
    memset(&host, 0, sizeof(host));
    struct images d = {.shape = {1 + draw(3), 1 + draw(4), 1 + draw(3)},
                       .count = (uint32_t)draw(5),
                       .labels = labels,
                       .path = "some"};
    for (int i = 0; i < 4; i++) {
        labels[i] = (uint8_t)draw(d.shape.classes);
        for (int k = 0; k < PIXELS_MAX; k++)
            host.pixels[i][k] = (uint8_t)draw(256);
    }
    uint32_t count = 7, limit = (uint32_t)draw(6);
    note("%u images of %d classes, %dx%dx%d, %u at most", d.count, d.shape.classes,
         d.shape.channels, d.shape.side, d.shape.side, limit);
    int r = folders_write("to", &d, limit, &count, &err);
    note("> %d, %d %s: %u", r, err.code, err.msg, count);
}

/* Of a colour and of a grey picture: each pixel comes back from where PNG's own reader finds it. */
static void test_pictures_are_read_as_they_were_written(void **state) {
    (void)state;
    for (int channels = 1; channels <= 3; channels += 2)
        for (int side = 1; side <= 4; side++) {
            const struct images_shape shape = {.channels = channels, .side = side};
            BUF_FINI struct buf png = {0};
            uint8_t pixels[PIXELS_MAX];
            struct photo photo = {0};
            struct err err;
            for (int i = 0; i < PIXELS_MAX; i++)
                pixels[i] = (uint8_t)(i * 37 + side);
            assert_int_equal(put_png(&shape, pixels, &png, &err), 0);
            assert_int_equal(photo_decode_png(png.data, png.len, &photo, &err), 0);
            assert_true(photo.width == side && photo.height == side);
            for (int i = 0; i < side * side; i++)
                for (int c = 0; c < PHOTO_CHANNELS; c++)
                    assert_int_equal(photo.pixels[i * PHOTO_CHANNELS + c],
                                     pixels[(channels == 1 ? 0 : c) * side * side + i]);
            free(photo.pixels);
        }
}

#define RECORD(name) "tests/scenarios/jobs/ranktrain/data/record/" name ".txt"

static const struct play plays[] = {{RECORD("folder"), folder_all, 60, true, {EACCES, ENOENT}},
                                    {RECORD("classes"), many_all, 3, false, {0}},
                                    {RECORD("folders"), folders_all, 60, true, {EACCES, ENOENT}}};

static void test_how_class_folders_are_read_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
    played_check(&plays[1]);
}

static void test_how_class_folders_are_written_is_on_record(void **state) {
    (void)state;
    played_check(&plays[2]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_class_folders_are_read_is_on_record),
        cmocka_unit_test(test_how_class_folders_are_written_is_on_record),
        cmocka_unit_test(test_pictures_are_read_as_they_were_written),
    };
    return played_main(argc, argv, plays, tests);
}
