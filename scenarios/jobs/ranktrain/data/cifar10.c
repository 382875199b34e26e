/* CIFAR-10 (Krizhevsky 2009), its binary version: records of a label and 32x32 pixels, all reds
 * before all greens before all blues. */
#include "scenarios/jobs/ranktrain/data/dataset_kind.h"
#include "scenarios/jobs/ranktrain/data/unpacker.h"

#include "base/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

enum { SIDE = 32, CHANNELS = 3, RECORD = 1 + CHANNELS * SIDE * SIDE, CLASSES = 10, BATCHES = 5 };

/* DIR/NAME, or as the archive has it DIR/cifar-10-batches-bin/NAME. */
static int add(const char *dir, const char *name, struct texts *ret, struct err *err) {
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (!file_exists(path))
        snprintf(path, sizeof(path), "%s/cifar-10-batches-bin/%s", dir, name);
    if (!file_exists(path))
        return err_say(err, -ENOENT, "%s has no %s", dir, name);
    texts_add(ret, "%s", path);
    return 0;
}

static int list(const struct dataset_place *at, bool test, struct texts *ret, struct err *err) {
    if (test)
        return add(at->dir, "test_batch.bin", ret, err);
    int r = 0;
    for (int i = 1; i <= BATCHES && r == 0; i++) {
        char name[32];
        snprintf(name, sizeof(name), "data_batch_%d.bin", i);
        r = add(at->dir, name, ret, err);
    }
    return r;
}

static int pack_file(const char *path, struct packing *p, struct err *err) {
    struct unpacker s;
    struct stat st = {0};
    uint8_t record[RECORD];
    int r = unpacker_open(&s, path, err);
    if (r == 0 && stat(path, &st) < 0)
        r = err_set(err, -errno, "%s", path);
    off_t size = st.st_size;
    if (r == 0 && (size == 0 || size % RECORD))
        r = err_say(err, -EBADMSG,
                    "%s is cut short at byte %lld: records of %d bytes do not end there", path,
                    (long long)size, RECORD);
    for (off_t i = 0; i < size / RECORD && r == 0; i++) {
        r = unpacker_take(&s, record, sizeof(record), err);
        if (r == 0 && record[0] >= CLASSES)
            r = err_say(err, -EBADMSG, "%s: the label at byte %lld is %u, more than %d", path,
                        (long long)i * RECORD, record[0], CLASSES - 1);
        if (r == 0)
            r = packing_add(p, record + 1, record[0], err);
    }
    unpacker_close(&s);
    return r;
}

static int pack(const struct dataset_place *at, bool test, const struct texts *files,
                struct packing *p, struct err *err) {
    int r = 0;
    for (size_t i = 0; i < files->n && r == 0; i++)
        r = pack_file(files->v[i], p, err);
    return r;
}

const struct dataset_kind dataset_cifar10 = {
    .name = "cifar10",
    .summary = "50000 coloured images of animals and vehicles",
    .url = "https://www.cs.toronto.edu/~kriz",
    .remedy = "fetch it: ranktrain prepare --dataset=cifar10",
    .shape = {.channels = CHANNELS,
              .side = SIDE,
              .classes = CLASSES,
              .mean = {0.4914f, 0.4822f, 0.4465f},
              .deviation = {0.2470f, 0.2435f, 0.2616f}},
    .list = list,
    .pack = pack,
    .files = {{"cifar-10-binary.tar.gz",
               "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}},
};
