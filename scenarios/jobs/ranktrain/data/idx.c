#include "scenarios/jobs/ranktrain/data/idx.h"
#include "scenarios/jobs/ranktrain/data/unpacker.h"

#include "base/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const names[4] = IDX_FILES;

/* DIR/NAME.gz or DIR/NAME. */
int idx_list(const struct dataset_place *at, bool test, struct texts *ret, struct err *err) {
    for (int i = test ? 2 : 0; i < (test ? 4 : 2); i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s/%s.gz", at->dir, names[i]);
        if (!file_exists(path))
            snprintf(path, sizeof(path), "%s/%s", at->dir, names[i]);
        if (!file_exists(path))
            return err_say(err, -ENOENT, "%s has neither %s nor %s.gz", at->dir, names[i],
                           names[i]);
        texts_add(ret, "%s", path);
    }
    return 0;
}

static uint32_t word(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int open_images(struct unpacker *s, const char *path, uint32_t *ret_count, struct err *err) {
    uint8_t head[16];
    int r = unpacker_open(s, path, err);
    if (r == 0)
        r = unpacker_take(s, head, sizeof(head), err);
    if (r < 0)
        return r;
    if (word(head) != 0x803)
        return err_say(err, -EBADMSG, "%s begins with 0x%08x at byte 0, IDX images with 0x00000803",
                       path, word(head));
    if (word(head + 8) != IDX_SIDE || word(head + 12) != IDX_SIDE)
        return err_say(err, -EBADMSG, "%s has images of %ux%u pixels (byte 8), not of %dx%d", path,
                       word(head + 8), word(head + 12), IDX_SIDE, IDX_SIDE);
    *ret_count = word(head + 4);
    return 0;
}

static int open_labels(struct unpacker *s, const char *path, uint32_t images, struct err *err) {
    uint8_t head[8];
    int r = unpacker_open(s, path, err);
    if (r == 0)
        r = unpacker_take(s, head, sizeof(head), err);
    if (r < 0)
        return r;
    if (word(head) != 0x801)
        return err_say(err, -EBADMSG, "%s begins with 0x%08x at byte 0, IDX labels with 0x00000801",
                       path, word(head));
    if (word(head + 4) != images)
        return err_say(err, -EBADMSG, "%s says at byte 4 that it has %u labels, for %u images",
                       path, word(head + 4), images);
    return 0;
}

static int pack_one(struct unpacker *images, struct unpacker *labels, struct packing *p,
                    struct err *err) {
    uint8_t pixels[IDX_PIXELS], label;
    int r = unpacker_take(images, pixels, sizeof(pixels), err);
    if (r == 0)
        r = unpacker_take(labels, &label, 1, err);
    if (r == 0 && label >= IDX_CLASSES)
        r = err_say(err, -EBADMSG, "%s: the label at byte %llu is %u, more than %d", labels->path,
                    (unsigned long long)labels->at - 1, label, IDX_CLASSES - 1);
    return r == 0 ? packing_add(p, pixels, label, err) : r;
}

int idx_pack(const struct dataset_place *at, bool test, const struct texts *files,
             struct packing *p, struct err *err) {
    struct unpacker images = {0}, labels = {0};
    uint32_t n = 0;
    int r = open_images(&images, files->v[0], &n, err);
    if (r == 0)
        r = open_labels(&labels, files->v[1], n, err);
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = pack_one(&images, &labels, p, err);
    if (r == 0)
        r = unpacker_end(&images, err);
    if (r == 0)
        r = unpacker_end(&labels, err);
    unpacker_close(&images);
    unpacker_close(&labels);
    return r;
}
