/* file_state: what lies by a name on a disk, as it is read there: a file, a directory with all that
 * is in it, or a link. Nothing is changed, and no link is followed. */
#pragma once

#include "base/sys/folder.h"

#include <stdint.h>

struct file_state {
    char kind; /* f: a file, d: a directory, l: a link, o: something else; 0: nothing is there */
    int64_t bytes; /* of a directory of all files in it */
    int64_t inode;
    char sum[65]; /* SHA-256 of what is in it; of a directory also of the names */
};

/* at: a byte of the file that is looked at for certain: of one that is longer than FILE_STATE_WHOLE
 * only its beginning, its end and what is around that byte is read. */
enum { FILE_STATE_WHOLE = 64 << 20, FILE_STATE_PART = 1 << 20 };
void file_state_read(const struct folder *in, const char *path, int64_t at, struct file_state *ret);
bool file_state_same(const struct file_state *a, const struct file_state *b);
/* "a file of 812 bytes, sha256 3f2a..", "nothing" */
void file_state_text(const struct file_state *s, char *ret, size_t size);
