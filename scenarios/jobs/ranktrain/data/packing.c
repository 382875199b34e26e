#include "scenarios/jobs/ranktrain/data/packing.h"

#include "base/sys/file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { FLUSHED = 1 << 20 };

void packing_begin(struct packing *p, int fd, const struct images_shape *s, uint32_t part,
                   uint32_t parts) {
    *p = (struct packing){.fd = fd,
                          .header = {.magic = {'R', 'Q', 'I', 'M', 'A', 'G', 'E', 'S'},
                                     .version = IMAGES_VERSION,
                                     .shape = *s,
                                     .part = part,
                                     .parts = parts}};
    for (int i = 0; i < IMAGES_HEADER; i++)
        buf_putc(&p->pixels, 0);
}

static int flush(struct packing *p, size_t least, struct err *err) {
    if (p->pixels.len < least)
        return 0;
    int r = file_write_all(p->fd, p->pixels.data, p->pixels.len, err);
    buf_clear(&p->pixels);
    return r;
}

bool packing_wants(const struct packing *p) {
    return p->seen % p->header.parts == p->header.part;
}

void packing_skip(struct packing *p) {
    p->seen++;
}

int packing_add(struct packing *p, const uint8_t *pixels, uint8_t label, struct err *err) {
    size_t n = images_bytes(&p->header.shape);
    bool wanted = packing_wants(p);
    packing_skip(p);
    if (!wanted)
        return 0;
    uint32_t crc = (uint32_t)crc32_z(0, pixels, n);
    buf_put(&p->pixels, pixels, n);
    buf_putc(&p->labels, (char)label);
    buf_put(&p->checksums, &crc, sizeof(crc));
    p->header.count++;
    return flush(p, FLUSHED, err);
}

int packing_end(struct packing *p, struct err *err) {
    struct images_header *h = &p->header;
    h->whole = p->seen;
    while (p->labels.len < images_labels_bytes(h->count))
        buf_putc(&p->labels, 0);
    buf_put(&p->labels, p->checksums.data, p->checksums.len);
    if (p->labels.len)
        h->tail = (uint32_t)crc32_z(0, (const unsigned char *)p->labels.data, p->labels.len);
    h->crc = (uint32_t)crc32_z(0, (const unsigned char *)h, offsetof(struct images_header, crc));
    buf_put(&p->pixels, p->labels.data, p->labels.len);
    int r = flush(p, 0, err);
    if (r == 0 && pwrite(p->fd, h, sizeof(*h), 0) != (ssize_t)sizeof(*h))
        r = err_set(err, errno ? -errno : -EIO, "writing the header");
    return r;
}

void packing_fini(struct packing *p) {
    buf_fini(&p->pixels);
    buf_fini(&p->labels);
    buf_fini(&p->checksums);
}
