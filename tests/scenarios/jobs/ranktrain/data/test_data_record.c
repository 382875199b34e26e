/* The cache, data sets and archives on a system that is played: what is looked for, made, moved and taken away, in which
 * order, what comes of each call that fails, and what is said then. */
#include "tests/played.h"

#include "scenarios/jobs/ranktrain/data/archive.h"
#include "scenarios/jobs/ranktrain/data/cache.h"
#include "scenarios/jobs/ranktrain/data/dataset.h"
#include "scenarios/jobs/ranktrain/data/dataset_kind.h"
#include "scenarios/jobs/ranktrain/data/unpacker.h"

#include "base/sha256.h"
#include "base/sys/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES_MAX = 4, BLOCKS_MAX = 40, BLOCK_BYTES = 512 };

static struct {
    const char *cache, *home;
    /* An archive, block by block. */
    char blocks[BLOCKS_MAX][BLOCK_BYTES];
    int blocks_n, taken;
} host;

static int err_of(struct err *err, const char *what) {
    return err_set(err, -errno, "%s", what);
}

static int open_next(void) {
    int fd = played_open_from(draw(2));
    note("  as %d", fd);
    return fd;
}

/* ---- files ---- */

static char *played_environment(const char *name) {
    const char *value = strcmp(name, "HOME") == 0 ? host.home : host.cache;
    note("%s is %.40s", name, value ? value : "not said");
    return (char *)(uintptr_t)value;
}

static int played_make_dirs(const char *path, mode_t mode, struct err *err) {
    return fails("make %.60s, %o", path, mode) ? err_of(err, "make") : 0;
}

static int played_open_at(int dir, const char *name, const int *flags, size_t n) {
    bool makes = flags[0] & O_CREAT;
    assert_int_equal(n, makes ? 2 : 1);
    if (fails("open %.60s in %d, %d, %o", name, dir, flags[0], makes ? (unsigned)flags[1] : 0))
        return -1;
    errno = ENOENT;
    return makes || dir < 0 || draw(3) == 0 ? open_next() : -1;
}

static int played_memory(const char *name, unsigned flags) {
    return fails("memory %s, %u", name, flags) ? -1 : open_next();
}

static int played_lock(int fd, int how) {
    return fails("lock %d, %d", fd, how) ? -1 : 0;
}

static int played_unlink(int dir, const char *name, int flags) {
    return fails("unlink %s in %d, %d", name, dir, flags) ? -1 : 0;
}

static int played_rename(int dir, const char *from, int to_dir, const char *to) {
    return fails("rename %s in %d to %s in %d", from, dir, to, to_dir) ? -1 : 0;
}

static int played_sync(int fd) {
    return fails("sync %d", fd) ? -1 : 0;
}

static bool played_exists(const char *path) {
    int is = draw(4) == 0;
    note("is there %s: %d", path, is);
    return is;
}

static int played_open_plain(const char *path, struct err *err) {
    return fails("open %s", path) ? err_of(err, path) : open_next();
}

static int played_stat(const char *path, struct stat *ret) {
    if (fails("stat %s", path))
        return -1;
    *ret = (struct stat){.st_size = draw(9), .st_mtim = {draw(9), draw(1000)}};
    note("  %d bytes of %d.%d", (int)ret->st_size, (int)ret->st_mtim.tv_sec,
         (int)ret->st_mtim.tv_nsec);
    return 0;
}

static int played_write_all(int fd, const void *data, size_t n, struct err *err) {
    char hex[65];
    sha256_of(data, n, hex);
    return fails("write %zu bytes to %d, %.8s", n, fd, hex) ? err_of(err, "write") : 0;
}

/* ---- an archive ---- */

static int played_unpacker_open(struct unpacker *u, const char *path, struct err *err) {
    *u = (struct unpacker){0};
    return fails("unpack %s", path) ? err_of(err, path) : 0;
}

static void played_unpacker_close(struct unpacker *u) {
    note("unpack no more");
}

static int played_take(struct unpacker *u, void *ret, size_t n, struct err *err) {
    assert_int_equal(n, BLOCK_BYTES);
    if (fails("take a block"))
        return err_of(err, "take");
    if (host.taken == host.blocks_n)
        return err_say(err, -EBADMSG, "is cut short");
    memcpy(ret, host.blocks[host.taken++], n);
    u->at += n;
    return 0;
}

/* ---- images ---- */

static int played_images_open(int fd, const char *path, struct images *ret, struct err *err) {
    if (fails("images of %d, %s", fd, path))
        return err_of(err, path);
    int side = 8 + (draw(9) == 0);
    *ret = (struct images){
        .shape = {1, side, 2 + (draw(9) == 0)}, .bytes = (size_t)(side * side), .path = "some"};
    return 0;
}

static void played_images_close(struct images *d) {
    note("images no more, %s", d->path ? d->path : "none");
}

static void played_packing_begin(struct packing *p, int fd, const struct images_shape *s,
                                 uint32_t part, uint32_t parts) {
    note("pack into %d, %d of %dx%d, part %u of %u", fd, s->classes, s->side, s->side, part, parts);
    *p = (struct packing){.fd = fd, .header = {.count = 77}};
}

static int played_packing_end(struct packing *p, struct err *err) {
    return fails("end of pack") ? err_of(err, "end") : 0;
}

static void played_packing_fini(struct packing *p) {
    note("pack no more");
}

#define getenv(name)   played_environment(name)
#define file_make_dirs played_make_dirs
#define open(path, ...)                                                                            \
    played_open_at(-100, path, (int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define openat(dir, name, ...)                                                                     \
    played_open_at(dir, name, (int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define memfd_create    played_memory
#define flock(fd, how)  played_lock(fd, how)
#define unlinkat        played_unlink
#define renameat        played_rename
#define fsync           played_sync
#define close           played_close
#define getpid()        4711
#define file_close      played_file_close
#define file_exists     played_exists
#define file_open_plain played_open_plain
#define file_write_all  played_write_all
#define stat(path, ret) played_stat(path, ret)
#define unpacker_open   played_unpacker_open
#define unpacker_close  played_unpacker_close
#define unpacker_take   played_take
#define images_open     played_images_open
#define images_close    played_images_close
#define packing_begin   played_packing_begin
#define packing_end     played_packing_end
#define packing_fini    played_packing_fini
#include "scenarios/jobs/ranktrain/data/archive.c"
#include "scenarios/jobs/ranktrain/data/cache.c"
#include "scenarios/jobs/ranktrain/data/dataset.c"
#undef open
#undef stat

/* ---- the cache ---- */

static char long_path[PATH_MAX + 8];

static int make_it(int fd, const void *arg, struct err *err) {
    static const int codes[] = {-ENOSPC, -EDQUOT, -EFBIG, -EROFS, -EBADMSG, -EIO};
    note("make it in %d, %s", fd, (const char *)arg);
    int luck = draw(9);
    return luck < 6 ? err_say(err, codes[luck], "it is %d", luck) : 0;
}

static void places_draw(void) {
    static const char *const places[] = {NULL, "", "relative", "/cache", "/", long_path};
    memset(long_path, 'x', sizeof(long_path) - 1);
    long_path[0] = '/';
    host.cache = places[draw(2) ? 3 : draw(6)];
    host.home = places[draw(2) ? 3 : draw(6)];
}

static void cache_all(uint64_t seed) {
    struct err err = {0};
    memset(&host, 0, sizeof(host));
    places_draw();
    int fd = cache_open("name", make_it, "of it", draw(9) ? &err : NULL);
    note("> %d, %d %s", fd, err.code, err.msg);
    played_file_close(&fd);
}

/* ---- data sets ---- */

static int list_it(const struct dataset_place *at, bool test, struct texts *ret, struct err *err) {
    if (fails("list %s, side %d, test %d", at->dir, at->side, test) || draw(12) == 0)
        return err_say(err, draw(2) ? -ENOENT : -EIO, "no list");
    for (int i = 0; i < 2; i++)
        texts_add(ret, "%s/file-%d", at->dir, i);
    return 0;
}

static int pack_it(const struct dataset_place *at, bool test, const struct texts *files,
                   struct packing *p, struct err *err) {
    return fails("pack %zu of %s, test %d, into %d", files->n, at->dir, test, p->fd)
               ? err_of(err, "pack")
               : 0;
}

static int classes_of_it(const struct dataset_place *at, struct images_shape *shape,
                         struct err *err) {
    shape->classes = 3;
    return fails("classes of %s, side %d, %d", at->dir, at->side, shape->side)
               ? err_of(err, "classes")
               : 0;
}

static int pictures_of_it(const struct dataset_place *at, const struct images_shape *shape,
                          struct images *ret, struct err *err) {
    if (fails("pictures of %s, side %d, %d of %d", at->dir, at->side, shape->classes, shape->side))
        return err_of(err, "pictures");
    *ret = (struct images){.shape = {3, 8, 3}, .bytes = 64, .path = "pictures"};
    return 0;
}

static void sets_all(uint64_t seed) {
    static const char *const dirs[] = {NULL, "/data", "", "elsewhere"};
    struct err err = {0};
    struct dataset d = {.train.path = "untouched"};
    memset(&host, 0, sizeof(host));
    places_draw();
    bool shaped = draw(2);
    const char *usual = dirs[draw(3)];
    const struct dataset_kind kind = {.name = "it",
                                      .dir = usual,
                                      .remedy = draw(2) || !usual ? "do something" : NULL,
                                      .shape = {3, shaped ? 28 : 0, shaped ? 10 : 0},
                                      .list = list_it,
                                      .pack = pack_it,
                                      .classes = shaped ? NULL : classes_of_it,
                                      .pictures = shaped ? NULL : pictures_of_it};
    int sets = draw(8), side = draw(2) ? 0 : 16;
    const char *dir = dirs[draw(4)];
    note("sets %d, side %d, of %s, usually %s", sets, side, dir ? dir : "none",
         kind.dir ? kind.dir : "none");
    int r = dataset_open(&kind, dir, side, sets, &d, &err);
    note("> %d, %d %s; %s, %s, %s", r, err.code, err.msg, d.kind ? d.kind->name : "none",
         d.train.path ? d.train.path : "none", d.test.path ? d.test.path : "none");
    if (r == 0)
        dataset_close(&d);
    uint32_t count = 4;
    const struct dataset_place at = {.dir = "/data", .side = side};
    err = (struct err){0};
    r = dataset_pack(&kind, &at, draw(2), 1, 3, 99, &count, &err);
    note("> packed %d, %d %s; %u", r, err.code, err.msg, count);
}

/* ---- archives ---- */

static void block_add(const void *data, size_t n) {
    assert_true(host.blocks_n < BLOCKS_MAX);
    memcpy(host.blocks[host.blocks_n++], data, n);
}

static void entry_add(void) {
    static const char *const names[] = {"a",      "dir/b", "dir/",    ".hidden",
                                        "dir/.c", "/d",    "../../e", "f"};
    static const char types[] = {'0', '0', '0', '\0', '5', 'L'};
    static const int sizes[] = {0, 1, 511, 512, 513, 1300};
    char header[BLOCK_BYTES] = {0}, content[BLOCK_BYTES];
    int size = sizes[draw(6)];
    strcpy(header, names[draw(8)]);
    if (draw(6) == 0)
        memset(header, 'n', 100); /* as long as there is room */
    snprintf(header + 124, 12, "%011o", (unsigned)size);
    header[135] = draw(2) ? ' ' : '\0';
    header[156] = types[draw(6)];
    memcpy(header + 257, draw(9) ? "ustar" : "ustaR", 5);
    block_add(header, sizeof(header));
    for (int at = 0; at < size; at += BLOCK_BYTES) {
        for (int i = 0; i < BLOCK_BYTES; i++)
            content[i] = (char)draw(256);
        block_add(content, sizeof(content));
    }
}

static void unpack_all(uint64_t seed) {
    struct err err = {0};
    char end[BLOCK_BYTES] = {0};
    memset(&host, 0, sizeof(host));
    for (int i = draw(ENTRIES_MAX + 1); i > 0; i--)
        entry_add();
    for (int i = draw(3); i > 0; i--)
        block_add(end, sizeof(end));
    int r = archive_unpack("all.tar.gz", "there", &err);
    note("> %d, %d %s", r, err.code, err.msg);
}

/* ---- kinds ---- */

static const char *word(const char *text) {
    return text ? text : "none";
}

static void kinds_all(uint64_t seed) {
    for (size_t i = 0; i < KINDS; i++) {
        const struct dataset_kind *k = kinds[i];
        const struct images_shape *s = &k->shape;
        note("%s: %s; in %s, at %s; %s", k->name, k->summary, word(k->dir), word(k->url),
             word(k->remedy));
        note("  %d of %dx%d, %d classes", s->channels, s->side, s->side, s->classes);
        for (int c = 0; c < IMAGES_CHANNELS; c++)
            note("  %.4f, %.4f", (double)s->mean[c], (double)s->deviation[c]);
        for (const struct dataset_file *f = k->files; f->name; f++)
            note("  %s %s", f->name, f->sha256);
    }
}

#define RECORD(name) "tests/scenarios/jobs/ranktrain/data/record/" name ".txt"

static const struct play plays[] = {{RECORD("cache"), cache_all, 200, true, {EACCES, ENOENT}},
                                    {RECORD("dataset"), sets_all, 200, true, {EACCES, ENOENT}},
                                    {RECORD("archive"), unpack_all, 100, true, {EACCES, ENOENT}},
                                    {RECORD("kinds"), kinds_all, 1, false, {0}}};

static void test_what_is_cached_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

static void test_how_data_sets_are_opened_is_on_record(void **state) {
    (void)state;
    played_check(&plays[1]);
}

static void test_what_is_unpacked_is_on_record(void **state) {
    (void)state;
    played_check(&plays[2]);
}

static void test_what_is_known_of_each_kind_is_on_record(void **state) {
    (void)state;
    played_check(&plays[3]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_cached_is_on_record),
        cmocka_unit_test(test_how_data_sets_are_opened_is_on_record),
        cmocka_unit_test(test_what_is_unpacked_is_on_record),
        cmocka_unit_test(test_what_is_known_of_each_kind_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
