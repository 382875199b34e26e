/* fuse_port: one mount of the kernel's FUSE file system and the descriptor by which it is served,
 * by the kernel's own protocol (linux/fuse.h): no library is needed.
 *
 * The mount is made without a place; whoever has its descriptor and a mount namespace attaches it
 * there. It is aborted for all (ENOTCONN) when the last copy of `fd` is closed, also by SIGKILL.
 * Works on Linux >= 5.10. */
#pragma once

#include "base/err.h"

struct fuse_port {
    int fd;    /* requests are read from it, and answers written to it */
    int mount; /* the mount, until it is attached somewhere */
};
#define FUSE_PORT_NONE ((struct fuse_port){-1, -1})

/* In the user namespace and the process namespace of the caller: pids in requests are as it sees
 * them. root_mode: of the directory that is served. Returns 0, or -ENOTSUP with what would allow
 * it, or another -errno. */
int fuse_port_open(struct fuse_port *ret, unsigned root_mode, struct err *err);
void fuse_port_close(struct fuse_port *p);

/* In the mount namespace of the caller, over the directory. */
int fuse_port_attach(int mount, const char *path, struct err *err);
