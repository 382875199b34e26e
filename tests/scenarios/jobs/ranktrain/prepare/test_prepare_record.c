/* Preparing and fetching on a system that is played: each file that is made, moved and taken away, each question to a
 * server, what is printed, and what comes of each call that fails. */
#include "tests/played.h"

#include "scenarios/jobs/ranktrain/data/archive.h"
#include "scenarios/jobs/ranktrain/data/dataset.h"
#include "scenarios/jobs/ranktrain/data/dataset_kind.h"
#include "scenarios/jobs/ranktrain/data/folders.h"
#include "scenarios/jobs/ranktrain/data/unpacker.h"
#include "scenarios/jobs/ranktrain/prepare/fetch.h"
#include "scenarios/jobs/ranktrain/prepare/prepare.h"

#include "base/http/http.h"
#include "base/sha256.h"
#include "base/sys/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

enum { KINDS = 5 };

static const char content[] = "what is known";
static char content_sum[65];

static struct {
    struct dataset_kind kinds[KINDS];
    struct dataset opened;
    int unpacked;
} host;

/* Whether it is so; chance says. */
static int says(const char *what, const char *of, int n) {
    int is = draw(n);
    note("%s %s: %d", what, of, is);
    return is;
}

/* ---- files ---- */

static int err_of(struct err *err, const char *what) {
    return err_set(err, -errno, "%s", what);
}

static int played_make_dirs(const char *path, mode_t mode, struct err *err) {
    return fails("make %s, %o", path, mode) ? err_of(err, path) : 0;
}

static int played_open_at(int dir, const char *name, const int *flags, size_t n) {
    bool makes = flags[0] & O_CREAT;
    assert_int_equal(n, makes ? 2 : 1);
    if (fails("open %s in %d, %d, %o", name, dir, flags[0], makes ? (unsigned)flags[1] : 0))
        return -1;
    int fd = played_open_from(draw(2));
    note("  as %d", fd);
    return fd;
}

static int played_lock(int fd, int how) {
    return fails("lock %d, %d", fd, how) ? -1 : 0;
}

static int played_access(int dir, const char *name, int may, int flags) {
    note("access in %d, %d, %d", dir, may, flags);
    return says("is there", name, 3) ? 0 : -1;
}

static int played_unlink(int dir, const char *name, int flags) {
    if (fails("unlink %s in %d, %d", name, dir, flags))
        return -1;
    errno = ENOENT;
    return draw(2) - 1;
}

static int played_remove(const char *path, struct err *err) {
    return fails("remove %s", path) ? err_of(err, path) : 0;
}

static int played_rename(int dir, const char *from, int to_dir, const char *to) {
    return fails("rename %s in %d to %s in %d", from, dir, to, to_dir) ? -1 : 0;
}

static int played_sync(int fd) {
    return fails("sync %d", fd) ? -1 : 0;
}

static bool played_exists(const char *path) {
    return says("is there", path, 3);
}

static int played_read_plain(const char *path, size_t max, struct buf *out, struct err *err) {
    if (fails("read %s, %zu at most", path, max))
        return err_of(err, path);
    buf_puts(out, draw(8) ? content : "another");
    return 0;
}

static int played_write(const char *path, const void *data, size_t n, struct err *err) {
    return fails("write %.*s to %s", (int)n, (const char *)data, path) ? err_of(err, path) : 0;
}

/* ---- what is packed ---- */

static int played_unpacker_open(struct unpacker *u, const char *path, struct err *err) {
    host.unpacked = 0;
    return fails("unpack %s", path) ? err_of(err, path) : 0;
}

static void played_unpacker_close(struct unpacker *u) {
    note("unpack no more");
}

static int played_unpacker_some(struct unpacker *u, void *ret, size_t n, size_t *ret_n,
                                struct err *err) {
    int left = (int)strlen(content) - host.unpacked;
    if (fails("unpack %zu", n))
        return err_of(err, "unpack");
    *ret_n = left ? 1 + (size_t)draw(left) : 0;
    memcpy(ret, content + host.unpacked, *ret_n);
    host.unpacked += (int)*ret_n;
    if (draw(12) == 0)
        host.unpacked = (int)strlen(content);
    return 0;
}

static int played_archive(const char *path, const char *dir, struct err *err) {
    return fails("unpack %s into %s", path, dir) ? err_of(err, path) : 0;
}

static int played_ask(const struct http_question *q, struct buf *answer, struct err *err) {
    note("%s %s by %s, %d ms, silent for %d ms, %zu bytes", q->request.method, q->request.url,
         q->request.agent, (int)q->request.timeout_ms, (int)q->silence_ms, (size_t)q->bytes_max);
    note("  tls %d, %s", q->way.https, q->way.cacert ? q->way.cacert : "as the system says");
    for (int i = 0; i < HTTP_TROUBLES; i++)
        note("  %s", q->way.advice[i] ? q->way.advice[i] : "-");
    if (fails("ask"))
        return err_of(err, "ask");
    buf_puts(answer, content);
    return 0;
}

/* ---- data ---- */

static const struct dataset_kind *played_find(const char *name, struct err *err) {
    if (!fails("find %s", name))
        return &host.kinds[draw(KINDS)];
    err_say(err, -EINVAL, "%s is not known", name);
    return NULL;
}

static int played_dataset_open(const struct dataset_kind *k, const char *dir, int side, int sets,
                               struct dataset *ret, struct err *err) {
    *ret = (struct dataset){0}; /* whoever closes what was not opened dies of it */
    if (fails("open %s in %s, %d, %d", k->name, dir, side, sets))
        return err_of(err, dir);
    static const int sides[] = {8, 32, 28};
    *ret = (struct dataset){.kind = k};
    struct images *d = &ret->train;
    d->part = (uint32_t)(draw(4) == 0);
    d->parts = 1 + (uint32_t)(draw(4) == 0);
    d->shape = k->shape;
    d->shape.side = sides[draw(3)];
    if (draw(4) == 0)
        d->shape.mean[draw(IMAGES_CHANNELS)] = 0.25f;
    note("  part %u of %u, %d", d->part, d->parts, d->shape.side);
    return 0;
}

static void played_dataset_close(struct dataset *d) {
    note("close %s", d->kind->name);
}

static int played_pack(const struct dataset_kind *k, const struct dataset_place *at, bool test,
                       uint32_t part, uint32_t parts, int fd, uint32_t *ret, struct err *err) {
    if (fails("pack %s of %s, %d, test %d, part %u of %u, into %d", k->name, at->dir, at->side,
              test, part, parts, fd))
        return err_of(err, "pack");
    *ret = 1000 + (uint32_t)test;
    return 0;
}

static int played_images_open(int fd, const char *path, struct images *ret, struct err *err) {
    *ret = (struct images){.count = 7};
    return fails("images of %d, %s", fd, path) ? err_of(err, path) : 0;
}

static void played_images_close(struct images *d) {
    note("images no more, %u", d->count);
}

static int played_folders(const char *folder, const struct images *d, uint32_t limit, uint32_t *ret,
                          struct err *err) {
    *ret = 2000 + limit;
    return fails("folders %s of %u, %u at most", folder, d->count, limit) ? err_of(err, folder) : 0;
}

#define file_make_dirs    played_make_dirs
#define open(path, flags) played_open_at(-100, path, (int[]){flags}, 1)
#define openat(dir, name, ...)                                                                     \
    played_open_at(dir, name, (int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define flock(fd, how)    played_lock(fd, how)
#define faccessat         played_access
#define unlinkat          played_unlink
#define file_remove_tree  played_remove
#define renameat          played_rename
#define fsync             played_sync
#define file_exists       played_exists
#define file_read_plain   played_read_plain
#define file_write        played_write
#define file_close        played_file_close
#define unpacker_open     played_unpacker_open
#define unpacker_close    played_unpacker_close
#define unpacker_some     played_unpacker_some
#define archive_unpack    played_archive
#define http_ask(q, b, e) played_ask(q, b, e)
#define dataset_find      played_find
#define dataset_open      played_dataset_open
#define dataset_close     played_dataset_close
#define dataset_pack      played_pack
#define images_open       played_images_open
#define images_close      played_images_close
#define folders_write     played_folders
#undef RANKQUAKE_VERSION
#define RANKQUAKE_VERSION "1.2.3"
#define printf            note
#include "scenarios/jobs/ranktrain/prepare/fetch.c"
#include "scenarios/jobs/ranktrain/prepare/prepare.c"
#undef printf

static void kinds_make(void) {
    const struct dataset_file plain = {"images.gz", content_sum},
                              other = {"labels.gz", content_sum},
                              archive = {"all.tar.gz", content_sum};
    host.kinds[0] = (struct dataset_kind){
        .name = "usual", .dir = "/usual", .url = "http://usual/", .shape = {3, 32, 10}};
    host.kinds[1] = (struct dataset_kind){.name = "fetched", .url = "https://fetched"};
    host.kinds[2] = (struct dataset_kind){.name = "nowhere"};
    host.kinds[3] = (struct dataset_kind){.name = "folders", .dir = "/folders"};
    host.kinds[4] =
        (struct dataset_kind){.name = "packed", .url = "http://packed/x", .shape = {1, 28, 10}};
    host.kinds[0].files[0] = plain;
    host.kinds[0].files[1] = other;
    host.kinds[1].files[0] = plain;
    host.kinds[1].files[1] = archive;
    host.kinds[4].files[0] = archive;
    sha256_of(content, strlen(content), content_sum);
}

static void prepare_all_of(uint64_t seed) {
    static const char *const places[] = {NULL,          "from",         "http://from/at",
                                         "https://at/", "http:/no-url", "https:no-url"};
    static const char *const cacerts[] = {NULL, "", "ca.pem"};
    static const int sides[] = {0, 8, 32};
    struct err err = {0};
    memset(&host, 0, sizeof(host));
    kinds_make();
    struct prepare p = {.dataset = "it",
                        .from = places[draw(2) ? 0 : draw(6)],
                        .to = "to",
                        .side = sides[draw(3)],
                        .parts = 1 + (uint32_t)(draw(4) == 0),
                        .cacert = cacerts[draw(3)],
                        .folders = draw(3) == 0,
                        .samples = draw(2) ? 0 : 5,
                        .unverified = draw(3) == 0};
    p.part = p.parts > 1;
    int r = prepare_run(&p, &err);
    note("> %d, %d %s", r, err.code, err.msg);
}

/* What is fetched and held against its sums, and how much of that is said. */
static void fetch_all(uint64_t seed) {
    struct err err = {0};
    memset(&host, 0, sizeof(host));
    kinds_make();
    const struct fetch_way way = {.cacert = draw(2)   ? "ca.pem"
                                            : draw(2) ? ""
                                                      : NULL,
                                  .unverified = draw(4) == 0};
    const struct dataset_kind *k = &host.kinds[draw(KINDS)];
    int count = -7;
    int r = fetch_files(k, draw(2) ? "https://a/b/" : "http://a/b", "dir", &way, &err);
    note("> fetched %d, %d %s", r, err.code, err.msg);
    err = (struct err){0};
    r = fetch_verify(k, "dir", &count, &err);
    note("> known %d, %d, %d %s", count, r, err.code, err.msg);
}

static const struct play plays[] = {{"tests/scenarios/jobs/ranktrain/prepare/record/prepare.txt",
                                     prepare_all_of,
                                     150,
                                     true,
                                     {EIO, ENOENT}},
                                    {"tests/scenarios/jobs/ranktrain/prepare/record/fetch.txt",
                                     fetch_all,
                                     60,
                                     true,
                                     {EIO, ENOENT}}};

static void test_what_prepare_does_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

static void test_what_is_fetched_is_on_record(void **state) {
    (void)state;
    played_check(&plays[1]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_prepare_does_is_on_record),
        cmocka_unit_test(test_what_is_fetched_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
