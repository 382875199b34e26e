#include "faults/mechanism/disk/fuse_port.h"

#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Not in the headers of every C library that we are built with. */
enum {
    CONFIG_FLAG = 0,
    CONFIG_STRING = 1,
    CONFIG_CREATE = 6,
    OPEN_CLOEXEC = 1,
    MOUNT_CLOEXEC = 1,
    MOUNT_NOSUID = 2,
    MOUNT_NODEV = 4,
    MOUNT_NOATIME = 0x10,
    FROM_EMPTY_PATH = 4,
};

static int refused(int code, struct err *err) {
    if (code == -ENOENT || code == -ENXIO || code == -ENODEV)
        return err_say(err, -ENOTSUP,
                       "there is no /dev/fuse: modprobe fuse; in a container, start it with "
                       "--device /dev/fuse");
    if (code == -EACCES || code == -EPERM)
        return err_say(err, -ENOTSUP,
                       "/dev/fuse may not be opened: chmod 666 /dev/fuse, or run as root; in a "
                       "container, start it with --device /dev/fuse");
    return err_set(err, code, "open /dev/fuse");
}

static int refused_mount(int code, struct err *err) {
    if (code == -EPERM || code == -EACCES)
        return err_say(err, -ENOTSUP,
                       "this host refuses to mount a FUSE disk: run as root, or allow user "
                       "namespaces to ordinary users; in a container, start it with --privileged");
    if (code == -ENODEV)
        return err_say(err, -ENOTSUP, "this kernel has no FUSE: modprobe fuse");
    return err_set(err, code, "mount a FUSE disk");
}

static int set(int fs, const char *key, const char *value) {
    return syscall(SYS_fsconfig, fs, value ? CONFIG_STRING : CONFIG_FLAG, key, value, 0) == 0
               ? 0
               : -errno;
}

static int set_number(int fs, const char *key, bool octal, unsigned value) {
    char text[32];
    snprintf(text, sizeof(text), octal ? "%o" : "%u", value);
    return set(fs, key, text);
}

static int make_mount(int fd, unsigned root_mode, struct err *err) {
    FILE_CLOSE int fs = (int)syscall(SYS_fsopen, "fuse", OPEN_CLOEXEC);
    if (fs < 0)
        return refused_mount(-errno, err);
    int r = set(fs, "source", "rankquake");
    r = r ? r : set_number(fs, "fd", false, (unsigned)fd);
    r = r ? r : set_number(fs, "rootmode", true, root_mode);
    r = r ? r : set_number(fs, "user_id", false, getuid());
    r = r ? r : set_number(fs, "group_id", false, getgid());
    r = r ? r : set(fs, "allow_other", NULL);
    r = r ? r : set(fs, "default_permissions", NULL);
    if (r == 0 && syscall(SYS_fsconfig, fs, CONFIG_CREATE, NULL, NULL, 0) != 0)
        r = -errno;
    if (r)
        return refused_mount(r, err);
    int mount =
        (int)syscall(SYS_fsmount, fs, MOUNT_CLOEXEC, MOUNT_NOSUID | MOUNT_NODEV | MOUNT_NOATIME);
    return mount < 0 ? refused_mount(-errno, err) : mount;
}

int fuse_port_open(struct fuse_port *ret, unsigned root_mode, struct err *err) {
    FILE_CLOSE int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return refused(-errno, err);
    int mount = make_mount(fd, root_mode, err);
    if (mount < 0)
        return mount;
    *ret = (struct fuse_port){file_keep(&fd), mount};
    return 0;
}

void fuse_port_close(struct fuse_port *p) {
    file_close(&p->fd);
    file_close(&p->mount);
}

int fuse_port_attach(int mount, const char *path, struct err *err) {
    if (syscall(SYS_move_mount, mount, "", AT_FDCWD, path, FROM_EMPTY_PATH) != 0)
        return err_set(err, -errno, "mount a disk over %s", path);
    return 0;
}
