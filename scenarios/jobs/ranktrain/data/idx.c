#include "scenarios/jobs/ranktrain/data/idx.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

static void put_word(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

static uint32_t word(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

void idx_put_header(uint8_t *ret, int dimensions, uint32_t count) {
    put_word(ret, 0x800u + (uint32_t)dimensions);
    put_word(ret + 4, count);
    for (int i = 1; i < dimensions; i++)
        put_word(ret + 4 + 4 * i, IDX_SIDE);
}

static int map_one(int fd, int i, struct idx *d, struct err *err) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_set(err, -errno, "data set");
    if (st.st_size < IDX_IMAGES_HEADER)
        return err_say(err, -EBADMSG, "only %lld bytes long", (long long)st.st_size);
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return err_set(err, -errno, "mmap");
    d->map[i] = p;
    d->map_bytes[i] = (size_t)st.st_size;
    return 0;
}

static int check(const struct idx *d, struct err *err) {
    const uint8_t *images = d->map[0], *labels = d->map[1];
    uint32_t n = word(images + 4);
    if (word(images) != 0x803 || word(images + 8) != IDX_SIDE || word(images + 12) != IDX_SIDE ||
        d->map_bytes[0] != IDX_IMAGES_HEADER + (size_t)n * IDX_PIXELS)
        return err_say(err, -EBADMSG, "no IDX file of 28x28 images, or cut short");
    if (word(labels) != 0x801 || word(labels + 4) != n ||
        d->map_bytes[1] != IDX_LABELS_HEADER + (size_t)n)
        return err_say(err, -EBADMSG, "no IDX file of %u labels, or cut short", n);
    for (uint32_t i = 0; i < n; i++)
        if (labels[IDX_LABELS_HEADER + i] >= IDX_CLASSES)
            return err_say(err, -EBADMSG, "label %u is %u, more than 9", i,
                           labels[IDX_LABELS_HEADER + i]);
    return 0;
}

int idx_map(int images_fd, int labels_fd, struct idx *ret, struct err *err) {
    struct idx d = {0};
    int r = map_one(images_fd, 0, &d, err);
    if (r == 0)
        r = map_one(labels_fd, 1, &d, err);
    if (r == 0)
        r = check(&d, err);
    if (r < 0) {
        idx_unmap(&d);
        return r;
    }
    d.count = word((const uint8_t *)d.map[0] + 4);
    d.images = (const uint8_t *)d.map[0] + IDX_IMAGES_HEADER;
    d.labels = (const uint8_t *)d.map[1] + IDX_LABELS_HEADER;
    *ret = d;
    return 0;
}

void idx_unmap(struct idx *d) {
    for (int i = 0; i < 2; i++)
        if (d->map[i])
            munmap(d->map[i], d->map_bytes[i]);
    *d = (struct idx){0};
}
