#include "harness/scenario/load.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_limited(int fd, struct buf *out) {
    char chunk[65536];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        buf_put(out, chunk, (size_t)n);
        if (out->len > YAML_SIZE_MAX)
            return -EFBIG;
    }
}

bool source_read_into(const char *file, struct buf *out, struct place p, const char *who,
                      struct diagnostics *d) {
    struct stat st;
    int before = d->errors;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        diagnostics_add(d, p, "%scannot be opened: %s", who, strerror(errno));
    } else if (S_ISDIR(st.st_mode)) {
        diagnostics_add(d, p, "%sis a directory; name a file in it", who);
    } else {
        int code =
            S_ISREG(st.st_mode) && st.st_size > YAML_SIZE_MAX ? -EFBIG : read_limited(fd, out);
        if (code == -EFBIG)
            diagnostics_add(d, p, "%sis larger than 1 MiB; a scenario is a page of text", who);
        else if (code)
            diagnostics_add(d, p, "%scannot be read: %s", who, strerror(-code));
    }
    if (fd >= 0)
        close(fd);
    return d->errors == before;
}

bool source_read(const char *file, struct diagnostics *d) {
    return source_read_into(file, &d->source, (struct place){0}, "", d);
}
