#include "scenarios/jobs/ranktrain/data/images.h"
#include "scenarios/jobs/ranktrain/data/loaders.h"
#include "scenarios/jobs/ranktrain/data/pictures.h"

#include "base/mem.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

static uint32_t crc_of(const void *p, size_t n) {
    return (uint32_t)crc32_z(0, p, n);
}

static bool shape_is_possible(const struct images_shape *s) {
    for (int c = 0; c < IMAGES_CHANNELS; c++)
        if (c < s->channels && !(s->deviation[c] > 0))
            return false;
    return s->channels >= 1 && s->channels <= IMAGES_CHANNELS && s->side >= 1 &&
           s->side <= IMAGES_SIDE && s->classes >= 1 && s->classes <= IMAGES_CLASSES;
}

static int check_header(const struct images_header *h, struct err *err) {
    if (memcmp(h->magic, "RQIMAGES", sizeof(h->magic)) != 0)
        return err_say(err, -EBADMSG, "is no file of images: it begins with something else");
    if (h->version != IMAGES_VERSION)
        return err_say(err, -EBADMSG,
                       "is of version %u and this ranktrain reads %d: prepare it again (ranktrain "
                       "prepare)",
                       h->version, IMAGES_VERSION);
    if (h->crc != crc_of(h, offsetof(struct images_header, crc)))
        return err_say(err, -EBADMSG, "is damaged: the header's checksum at byte %zu is wrong",
                       offsetof(struct images_header, crc));
    if (!shape_is_possible(&h->shape) || !h->parts || h->part >= h->parts)
        return err_say(err, -EBADMSG, "has a header that makes no sense: prepare it again");
    return 0;
}

static int check_length(const struct images_header *h, size_t have, struct err *err) {
    size_t want = IMAGES_HEADER + h->count * images_bytes(&h->shape) +
                  images_labels_bytes(h->count) + (size_t)h->count * sizeof(uint32_t);
    if (have == want)
        return 0;
    return err_say(err, -EBADMSG, "%s at byte %zu: %u images take %zu bytes",
                   have < want ? "is cut short" : "goes on", have < want ? have : want, h->count,
                   want);
}

static int check_tail(const struct images *d, struct err *err) {
    size_t at = (size_t)(d->labels - (const uint8_t *)d->map), n = d->map_bytes - at;
    if (d->tail != crc_of(d->labels, n))
        return err_say(err, -EBADMSG,
                       "is damaged: labels and checksums from byte %zu on are not what was written",
                       at);
    for (uint32_t i = 0; i < d->count; i++)
        if (d->labels[i] >= d->shape.classes)
            return err_say(err, -EBADMSG, "label %u at byte %zu is %u, more than %d", i, at + i,
                           d->labels[i], d->shape.classes - 1);
    return 0;
}

static int map(int fd, struct images *d, struct err *err) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_set(err, -errno, "cannot be looked at");
    if (!S_ISREG(st.st_mode))
        return err_say(err, -EINVAL, "is no plain file");
    if (st.st_size < IMAGES_HEADER)
        return err_say(err, -EBADMSG, "is cut short at byte %lld: the header takes %d",
                       (long long)st.st_size, IMAGES_HEADER);
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return err_set(err, -errno, "cannot be mapped");
    d->map = p;
    d->map_bytes = (size_t)st.st_size;
    return 0;
}

static int look(struct images *d, struct err *err) {
    struct images_header h;
    memcpy(&h, d->map, sizeof(h));
    int r = check_header(&h, err);
    if (r == 0)
        r = check_length(&h, d->map_bytes, err);
    if (r < 0)
        return r;
    d->shape = h.shape;
    d->count = h.count;
    d->part = h.part;
    d->parts = h.parts;
    d->whole = h.whole;
    d->tail = h.tail;
    d->bytes = images_bytes(&h.shape);
    d->pixels = (const uint8_t *)d->map + IMAGES_HEADER;
    d->labels = d->pixels + d->count * d->bytes;
    d->checksums = d->labels + images_labels_bytes(d->count);
    return check_tail(d, err);
}

int images_open(int fd, const char *path, struct images *ret, struct err *err) {
    struct images d = {.path = mem_strdup(path)};
    int r = map(fd, &d, err);
    if (r == 0)
        r = look(&d, err);
    if (r < 0) {
        images_close(&d);
        return err_wrap(err, "%s ", path);
    }
    *ret = d;
    return 0;
}

void images_close(struct images *d) {
    if (d->map)
        munmap(d->map, d->map_bytes);
    pictures_free(d->pictures);
    free((void *)(uintptr_t)d->path);
    *d = (struct images){0};
}

uint64_t images_number(const struct images *d, const uint8_t *image) {
    uint32_t i;
    if (!d->ahead || !loaders_number(d->ahead, image, &i))
        i = (uint32_t)((size_t)(image - d->pixels) / d->bytes);
    return (uint64_t)i * (d->parts ? d->parts : 1) + d->part;
}

/* They lie behind bytes, at any address. */
static uint32_t checksum(const struct images *d, uint32_t i) {
    uint32_t sum;
    memcpy(&sum, d->checksums + i * sizeof(sum), sizeof(sum));
    return sum;
}

const uint8_t *images_read(const struct images *d, uint32_t i, struct err *err) {
    const uint8_t *p = d->ahead ? loaders_find(d->ahead, i) : NULL;
    if (p || d->pictures)
        return p ? p : pictures_read(d->pictures, i, err);
    p = d->pixels + i * d->bytes;
    if (!d->checksums || crc_of(p, d->bytes) == checksum(d, i))
        return p;
    err_say(err, -EBADMSG,
            "%s is damaged: image %u, at byte %zu, does not have its checksum; prepare it again or "
            "remove it",
            d->path, i, (size_t)(p - (const uint8_t *)d->map));
    return NULL;
}
