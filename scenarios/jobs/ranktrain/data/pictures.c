#include "scenarios/jobs/ranktrain/data/pictures.h"
#include "scenarios/jobs/ranktrain/data/photo.h"

#include "base/buf.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

static int mark_of(const struct pictures *p, uint32_t *ret, struct err *err) {
    BUF_FINI struct buf text = {0};
    for (size_t i = 0; i < p->paths.n; i++) {
        struct stat st;
        if (stat(p->paths.v[i], &st) < 0)
            return err_set(err, -errno, "%s", p->paths.v[i]);
        buf_printf(&text, "%s %d %lld\n", strrchr(p->paths.v[i], '/') + 1, p->labels[i],
                   (long long)st.st_size);
    }
    *ret = (uint32_t)crc32_z(0, (const unsigned char *)buf_str(&text), text.len);
    return 0;
}

int pictures_open(struct texts *paths, const uint8_t *labels, const struct images_shape *shape,
                  const char *dir, struct images *ret, struct err *err) {
    size_t bytes = images_bytes(shape);
    struct pictures *p = mem_new(struct pictures);
    p->paths = *paths;
    *paths = (struct texts){0};
    p->labels = mem_alloc(p->paths.n, 1);
    memcpy(p->labels, labels, p->paths.n);
    p->pixels = mem_alloc(bytes, 1);
    p->side = shape->side;
    struct images d = {.shape = *shape,
                       .count = (uint32_t)p->paths.n,
                       .parts = 1,
                       .whole = (uint32_t)p->paths.n,
                       .bytes = bytes,
                       .labels = p->labels,
                       .pictures = p};
    int r = mark_of(p, &d.tail, err);
    if (r < 0) {
        pictures_free(p);
        return r;
    }
    d.path = mem_strdup(dir);
    *ret = d;
    return 0;
}

void pictures_free(struct pictures *p) {
    if (!p)
        return;
    texts_fini(&p->paths);
    free(p->labels);
    free(p->pixels);
    free(p);
}

const uint8_t *pictures_read(struct pictures *p, uint32_t i, struct err *err) {
    struct photo photo = {0};
    if (photo_read(p->paths.v[i], p->side, &photo, err) < 0)
        return NULL;
    photo_fit(&photo, p->side, p->pixels);
    photo_fini(&photo);
    return p->pixels;
}
