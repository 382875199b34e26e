#include "harness/cluster/kept_file.h"

#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int kept_file_open(const char *path, struct err *err) {
    struct stat st;
    FILE_CLOSE int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, -errno, "open %s, which is to keep something of the process", path);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size)
        return err_say(err, -EEXIST,
                       "%s, which is to keep something of the process, is no empty file", path);
    return file_keep(&fd);
}

int kept_file_name(int fd, bool others, char *ret, size_t size, struct err *err) {
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, ret, size - 1);
    if (n < 0 || (size_t)n == size - 1)
        return err_set(err, n < 0 ? -errno : -ENAMETOOLONG,
                       "find the file that is to keep something of a process");
    ret[n] = 0;
    if (others && fchmod(fd, 0602) != 0)
        return err_set(err, -errno, "let the user of another host write %s", ret);
    return 0;
}
