/* Files of images that are packed, and files of data that are unpacked, on a system that is played: in which pieces they
 * are written and read, and what comes of each call that fails. */
#include "tests/played.h"

#include "scenarios/jobs/ranktrain/data/packing.h"
#include "scenarios/jobs/ranktrain/data/unpacker.h"

#include "base/sha256.h"
#include "base/sys/file.h"

#include <unistd.h>
#include <zlib.h>

enum { PIECE = 1 << 17 };

static struct {
    int file, error; /* of gzip */
    uint64_t written;
} host;

static int played_write_all(int fd, const void *data, size_t n, struct err *err) {
    char hex[65];
    sha256_of(data, n, hex);
    host.written += n;
    return fails("write %zu to %d: %.16s", n, fd, hex) ? err_set(err, -errno, "write") : 0;
}

static ssize_t played_write_at(int fd, const void *data, size_t n, off_t at) {
    char hex[65];
    sha256_of(data, n, hex);
    if (fails("write %zu to %d at %d: %.16s", n, fd, (int)at, hex))
        return -1;
    errno = draw(2) ? 0 : EINTR;
    return draw(9) ? (ssize_t)n : 3;
}

static gzFile played_gz_open(const char *path, const char *how) {
    if (fails("open %s, %s", path, how)) {
        errno = draw(3) ? errno : 0;
        return NULL;
    }
    host.error = Z_OK;
    return (gzFile)(void *)&host.file;
}

static int played_gz_buffer(gzFile f, unsigned n) {
    assert_ptr_equal(f, &host.file);
    note("buffer of %u", n);
    return 0;
}

static int played_gz_close(gzFile f) {
    assert_ptr_equal(f, &host.file);
    note("closed");
    return Z_OK;
}

static int played_gz_read(gzFile f, void *ret, unsigned n) {
    static const int errors[] = {Z_OK, Z_DATA_ERROR, Z_BUF_ERROR, Z_ERRNO};
    assert_ptr_equal(f, &host.file);
    if (fails("read %u", n)) {
        host.error = draw(3) ? Z_ERRNO : Z_DATA_ERROR;
        errno = draw(3) ? errno : 0;
        return -1;
    }
    unsigned got = draw(3) ? n : (unsigned)draw((int)n + 1);
    host.error = got < n ? errors[draw(4)] : Z_OK;
    memset(ret, 'u', got);
    return got || draw(2) ? (int)got : -1;
}

static const char *played_gz_error(gzFile f, int *ret) {
    assert_ptr_equal(f, &host.file);
    *ret = host.error;
    return "as zlib says";
}

#undef fail
#define file_write_all played_write_all
#define pwrite         played_write_at
#define gzopen         played_gz_open
#define gzbuffer       played_gz_buffer
#define gzclose_r      played_gz_close
#define gzread         played_gz_read
#define gzerror        played_gz_error
#include "scenarios/jobs/ranktrain/data/packing.c"
#include "scenarios/jobs/ranktrain/data/unpacker.c"

/* Images that are so large that some are written before the last has come. */
static void pack_all(uint64_t seed) {
    static uint8_t pixels[3 * 512 * 512];
    struct packing p;
    struct err err = {0};
    bool large = draw(4) == 0;
    struct images_shape shape = {
        1 + draw(3), large ? 512 : 1 + draw(9), 1 + draw(9), {0}, {1, 1, 1}};
    memset(&host, 0, sizeof(host));
    packing_begin(&p, 17, &shape, (uint32_t)draw(2), 2 + (uint32_t)draw(2));
    int r = 0, n = draw(large ? 8 : 14);
    for (int i = 0; i < n && r == 0; i++) {
        memset(pixels, 3 * i + 1, sizeof(pixels));
        note("> wanted %d", packing_wants(&p));
        if (draw(5) == 0)
            packing_skip(&p);
        else
            r = packing_add(&p, pixels, (uint8_t)(i % shape.classes), &err);
        note("> %d, %u seen, %u taken", r, p.seen, p.header.count);
    }
    if (r == 0)
        r = packing_end(&p, &err);
    note("> %d, %d %s; %u of %u, %llu bytes", r, err.code, err.msg, p.header.count, p.header.whole,
         (unsigned long long)host.written);
    packing_fini(&p);
}

static void unpack_all(uint64_t seed) {
    static char bytes[3 * PIECE];
    static const size_t sizes[] = {1, 7, PIECE - 1, PIECE, PIECE + 1, sizeof(bytes)};
    struct unpacker u;
    struct err err = {0};
    memset(&host, 0, sizeof(host));
    memset(&u, 0xaa, sizeof(u));
    int r = unpacker_open(&u, "data.gz", &err);
    note("> opened %d, %d %s; %s, %llu", r, err.code, err.msg, u.path, (unsigned long long)u.at);
    for (int i = 0; i < 4 && r == 0; i++) {
        size_t n = sizes[draw(6)], got = 7;
        memset(bytes, 0, sizeof(bytes));
        r = draw(3) ? unpacker_take(&u, bytes, n, &err) : unpacker_some(&u, bytes, n, &got, &err);
        size_t have = 0;
        while (have < sizeof(bytes) && bytes[have])
            have++;
        note("> %zu: %d, %d %s; %zu, %zu, at %llu", n, r, err.code, err.msg, got, have,
             (unsigned long long)u.at);
    }
    if (r == 0) {
        r = unpacker_end(&u, &err);
        note("> ended %d, %d %s", r, err.code, err.msg);
    }
    unpacker_close(&u);
    unpacker_close(&u);
}

#define RECORD(name) "tests/scenarios/jobs/ranktrain/data/record/" name ".txt"

static const struct play plays[] = {{RECORD("packing"), pack_all, 60, true, {EIO, ENOSPC}},
                                    {RECORD("unpacker"), unpack_all, 150, true, {EIO, ENOMEM}}};

static void test_what_is_packed_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

static void test_what_is_unpacked_is_on_record(void **state) {
    (void)state;
    played_check(&plays[1]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_packed_is_on_record),
        cmocka_unit_test(test_what_is_unpacked_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
