/* heard: what a part prints while it is played (tests/played.h), stdout behind stderr where both are written to, as lines of
 * the record. */
#pragma once

#include "tests/played.h"

#include <sys/mman.h>
#include <unistd.h>

static struct { int out, err, page; } heard;

static inline void heard_begin(void) {
    fflush(NULL);
    heard.out = dup(1);
    heard.err = dup(2);
    heard.page = memfd_create("heard", MFD_CLOEXEC);
    dup2(heard.page, 1);
    dup2(heard.page, 2);
}

static inline void heard_end(void) {
    char text[4096];
    ssize_t n;
    fflush(NULL);
    lseek(heard.page, 0, SEEK_SET);
    while ((n = read(heard.page, text, sizeof(text))) > 0)
        buf_put(&played.said, text, (size_t)n);
    dup2(heard.out, 1);
    dup2(heard.err, 2);
    close(heard.out);
    close(heard.err);
    close(heard.page);
}
