#include "scenarios/jobs/ranktrain/data/archive.h"
#include "scenarios/jobs/ranktrain/data/unpacker.h"

#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 512, NAME = 100, SIZE_AT = 124, TYPE_AT = 156, MAGIC_AT = 257 };

static uint64_t size_of(const char *header) {
    char digits[13] = {0};
    memcpy(digits, header + SIZE_AT, 12);
    return strtoull(digits, NULL, 8);
}

/* Its content into fd (-1: nowhere), and what fills up the last block. */
static int pass_file(struct unpacker *u, uint64_t size, int fd, struct err *err) {
    char block[BLOCK];
    int r = 0;
    for (uint64_t at = 0; at < size && r == 0; at += BLOCK) {
        r = unpacker_take(u, block, BLOCK, err);
        if (r == 0 && fd >= 0)
            r = file_write_all(fd, block, size - at < BLOCK ? size - at : BLOCK, err);
    }
    return r;
}

static int unpack_file(struct unpacker *u, const char *header, const char *dir, struct err *err) {
    char name[NAME + 1] = {0}, path[PATH_MAX];
    memcpy(name, header, NAME);
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    bool plain = header[TYPE_AT] == '0' || header[TYPE_AT] == '\0';
    if (!plain || !*last || *last == '.')
        return pass_file(u, size_of(header), -1, err);
    snprintf(path, sizeof(path), "%s/%s", dir, last);
    FILE_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    return fd < 0 ? err_set(err, -errno, "%s", path) : pass_file(u, size_of(header), fd, err);
}

int archive_unpack(const char *path, const char *dir, struct err *err) {
    struct unpacker u;
    char header[BLOCK];
    int r = unpacker_open(&u, path, err);
    while (r == 0) {
        r = unpacker_take(&u, header, BLOCK, err);
        if (r < 0 || !*header) /* blocks of zeros end it */
            break;
        if (memcmp(header + MAGIC_AT, "ustar", strlen("ustar")) != 0)
            r = err_say(err, -EBADMSG, "%s: at byte %llu no file of a tar archive begins", path,
                        (unsigned long long)u.at - BLOCK);
        if (r == 0)
            r = unpack_file(&u, header, dir, err);
    }
    unpacker_close(&u);
    return r;
}
