#include "scenarios/jobs/ranktrain/data/dataset.h"
#include "scenarios/jobs/ranktrain/data/cache.h"
#include "scenarios/jobs/ranktrain/data/generated.h"

#include "base/sha256.h"
#include "base/sys/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static const char *const files[4] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                     "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

static int unpack(int fd, const void *arg, struct err *err) {
    static unsigned char block[1 << 16];
    const char *path = arg;
    gzFile gz = gzopen(path, "rb");
    if (!gz)
        return err_set(err, errno ? -errno : -ENOMEM, "open %s", path);
    gzbuffer(gz, sizeof(block));
    int n, r = 0;
    while (r == 0 && (n = gzread(gz, block, sizeof(block))) > 0)
        r = file_write_all(fd, block, (size_t)n, err);
    if (r == 0 && n < 0)
        r = err_say(err, -EBADMSG, "%s is no whole gzip file: install dataset-fashion-mnist anew",
                    path);
    int closed = gzclose(gz);
    if (r == 0 && closed != Z_OK)
        r = err_say(err, -EBADMSG, "%s is cut short: install dataset-fashion-mnist anew", path);
    return r;
}

/* Finds DIR/NAME.gz or DIR/NAME. */
static bool locate(const char *dir, const char *name, char ret[PATH_MAX], struct stat *ret_stat) {
    for (int packed = 1; packed >= 0; packed--) {
        int n = snprintf(ret, PATH_MAX, "%s/%s%s", dir, name, packed ? ".gz" : "");
        if (n < PATH_MAX && stat(ret, ret_stat) == 0)
            return true;
    }
    return false;
}

static int open_packed(const char *dir, int i, struct err *err) {
    char path[PATH_MAX], key[65], name[128], text[PATH_MAX + 64];
    struct stat st;
    if (!locate(dir, files[i], path, &st))
        return -ENOENT;
    int n = snprintf(text, sizeof(text), "%s %lld %lld.%09ld", path, (long long)st.st_size,
                     (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    sha256_of(text, (size_t)n, key);
    snprintf(name, sizeof(name), "%.16s-%s", key, files[i]);
    return cache_open(name, unpack, path, err);
}

static int open_generated(int i, struct err *err) {
    struct generated_data g = {.test = i >= 2, .labels = i % 2 == 1};
    char name[128];
    snprintf(name, sizeof(name), "generated-%d-%s", GENERATED_VERSION, files[i]);
    return cache_open(name, generated_write, &g, err);
}

static int map_pair(const int fd[2], const char *dir, const char *const name[2], struct idx *ret,
                    struct err *err) {
    int r = idx_map(fd[0], fd[1], ret, err);
    return r < 0 ? err_wrap(err, "%s/{%s,%s}, unpacked: ", dir, name[0], name[1]) : 0;
}

int dataset_open(const char *dir, struct dataset *ret, struct err *err) {
    struct dataset d = {0};
    struct stat st;
    char path[PATH_MAX];
    int fd[4] = {-1, -1, -1, -1}, r = 0;
    for (int i = 0; i < 4; i++)
        if (!locate(dir, files[i], path, &st))
            d.generated = true;
    for (int i = 0; i < 4 && r >= 0; i++)
        r = fd[i] = d.generated ? open_generated(i, err) : open_packed(dir, i, err);
    if (r >= 0)
        r = map_pair(fd, dir, files, &d.train, err);
    if (r >= 0)
        r = map_pair(fd + 2, dir, files + 2, &d.test, err);
    for (int i = 0; i < 4; i++)
        file_close(&fd[i]);
    if (r < 0) {
        dataset_close(&d);
        return r;
    }
    *ret = d;
    return 0;
}

void dataset_close(struct dataset *d) {
    idx_unmap(&d->train);
    idx_unmap(&d->test);
}
