/* Reads the text of a file that may come from a stranger. */
#include "harness/scenario/load.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_below(const char *path, const char *dir) {
    size_t n = strlen(dir);
    n -= n && dir[n - 1] == '/';
    return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

bool source_root(const char *path, bool is_folder, char *ret, size_t size) {
    char folder[PATH_MAX], here[PATH_MAX], real[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    if (is_folder)
        str_copy(folder, sizeof(folder), path);
    else
        snprintf(folder, sizeof(folder), "%.*s", n ? (int)n : 1, n ? path : ".");
    if (!realpath(folder, real))
        return false;
    bool inside = getcwd(here, sizeof(here)) && is_below(real, here);
    return str_copy(ret, size, inside ? here : real);
}

/* What the caller hands over as a descriptor has been chosen by nobody else. */
static bool is_handed_over(const char *file, const char *who) {
    return !*who && (str_eq(file, "/dev/stdin") || str_starts(file, "/dev/fd/") ||
                     str_starts(file, "/proc/self/fd/"));
}

static bool check_within(int fd, const char *file, struct place p, const char *who,
                         struct diagnostics *d) {
    char real[PATH_MAX];
    if (!d->within || is_handed_over(file, who) ||
        (file_path_of(fd, real, sizeof(real)) && is_below(real, d->within)))
        return true;
    return diagnostics_add(
        d, p,
        "%slies outside %s, and nothing is followed out of there for a file that "
        "somebody else may have written; if it is yours, start rankquake in a "
        "directory above both",
        who, d->within);
}

static void say_unreadable(const struct err *err, bool opened, const char *file, struct place p,
                           const char *who, struct diagnostics *d) {
    if (err->code == -EISDIR)
        diagnostics_add(d, p, "%sis a directory; name a file in it", who);
    else if (err->code == -EFBIG)
        diagnostics_add(d, p, "%sis larger than 1 MiB; a scenario is a page of text", who);
    else if (err->code == -EINVAL && str_starts(err->msg, file))
        diagnostics_add(d, p, "%s%s", who, err->msg + strlen(file) + 1);
    else
        diagnostics_add(d, p, opened ? "%scannot be read: %s" : "%scannot be opened: %s", who,
                        strerror(-err->code));
}

bool source_read_into(const char *file, struct buf *out, struct place p, const char *who,
                      struct diagnostics *d) {
    struct err err = {0};
    FILE_CLOSE int fd = file_open_plain(file, &err);
    if (fd >= 0 && !check_within(fd, file, p, who, d))
        return false;
    if (fd >= 0)
        file_read_fd(fd, YAML_SIZE_MAX, out, &err);
    if (err.code)
        say_unreadable(&err, fd >= 0, file, p, who, d);
    return !err.code;
}

bool source_read(const char *file, struct diagnostics *d) {
    return source_read_into(file, &d->source, (struct place){0}, "", d);
}
