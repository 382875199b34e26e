#include "harness/host/host_hold.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WHO_MAX = 256, PATH_LEN = 4096 };

/* Where every user may make files, and nobody take away another's. A directory that several hosts share has one for each
 * of them. */
static const char *path_of(char *ret) {
    const char *other = getenv("RANKQUAKE_LOCK");
    char host[65] = "";
    if (other && *other) {
        str_copy(ret, PATH_LEN, other);
        return ret;
    }
    gethostname(host, sizeof(host) - 1);
    for (char *c = host; *c; c++)
        if (*c == '/')
            *c = '_';
    snprintf(ret, PATH_LEN, "/var/tmp/rankquake-certify-%s.lock", host);
    return ret;
}

/* One that is there is opened as it is: kernels keep even root from making what another user has made in such a place. */
static int open_lock(const char *path, struct err *err) {
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_set(
            err, -errno,
            "the lock of this host, %s (RANKQUAKE_LOCK names another file, which all who "
            "certify here must agree on)",
            path);
    fchmod(fd, 0666); /* only its owner can, and need */
    return fd;
}

static int busy(int fd, const char *who, struct err *err) {
    char has[WHO_MAX] = "";
    ssize_t n = pread(fd, has, sizeof(has) - 1, 0);
    has[n > 0 ? n : 0] = '\0';
    if (str_eq(has, who))
        return -EALREADY;
    return err_say(err, -EBUSY, "%s", *has ? has : "somebody else");
}

int host_hold_take(const char *who, struct err *err) {
    char path[PATH_LEN], text[WHO_MAX];
    FILE_CLOSE int fd = open_lock(path_of(path), err);
    if (fd < 0)
        return fd;
    str_copy(text, sizeof(text), who);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return busy(fd, text, err);
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, strlen(text), 0) < 0)
        (void)!ftruncate(fd, 0); /* nobody is told who it is, and it is held all the same */
    return file_keep(&fd);
}
