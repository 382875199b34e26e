/* captured: what is printed on a stream meanwhile. No assertion may stand in between: what it prints would be captured too. */
#pragma once

#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct captured {
    FILE *stream;
    int kept, file;
};

static inline void captured_begin(struct captured *c, FILE *stream) {
    fflush(stream);
    c->stream = stream;
    c->kept = dup(fileno(stream));
    c->file = memfd_create("captured", MFD_CLOEXEC);
    if (c->kept < 0 || c->file < 0 || dup2(c->file, fileno(stream)) < 0)
        abort();
}

/* Appends it. */
static inline void captured_end(struct captured *c, struct buf *out) {
    char part[4096];
    ssize_t n;
    fflush(c->stream);
    dup2(c->kept, fileno(c->stream));
    close(c->kept);
    lseek(c->file, 0, SEEK_SET);
    while ((n = read(c->file, part, sizeof(part))) > 0)
        buf_put(out, part, (size_t)n);
    close(c->file);
}
