#include "base/sys/root.h"

#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

int root_open(const char *root, const char *path, int flags) {
    struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC), .resolve = RESOLVE_IN_ROOT};
    FILE_CLOSE int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
    return fd < 0 ? -errno : fd;
}
