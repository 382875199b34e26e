#include "agent/sys/namespace.h"

#include "agent/sys/mount.h"
#include "agent/sys/netlink.h"
#include "agent/sys/packet_port.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool has_capability(int capability) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &header, data) != 0)
        return false;
    return data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

static int write_map(const char *path, const char *text, struct err *err) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, -errno, "open %s", path);
    ssize_t n = write(fd, text, strlen(text));
    int r = n < 0 ? -errno : 0;
    close(fd);
    return r ? err_set(err, r, "write %s", path) : 0;
}

static int refused(int code, struct err *err) {
    if (code == -ENOSPC)
        return err_say(
            err, code,
            "no more namespaces on this host: raise the sysctls user.max_user_namespaces "
            "and user.max_net_namespaces, or run as root");
    if (code == -EPERM || code == -EACCES)
        return err_say(err, code,
                       "this host refuses user namespaces to ordinary users: run as root, or set "
                       "the sysctl kernel.unprivileged_userns_clone=1 (Debian) or "
                       "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); in a container, "
                       "start it with --security-opt seccomp=unconfined");
    return err_set(err, code, "move into a user namespace");
}

bool namespace_needs_no_user(void) {
    return has_capability(CAP_SYS_ADMIN) && has_capability(CAP_NET_ADMIN);
}

int namespace_enter(struct err *err) {
    if (namespace_needs_no_user())
        return 0;
    char map[64];
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (unshare(CLONE_NEWUSER) != 0)
        return refused(-errno, err);
    /* Some hosts let the namespace be made and then forbid every use of it: seen here. */
    struct err why;
    int r = write_map("/proc/self/setgroups", "deny", &why);
    snprintf(map, sizeof(map), "0 %u 1", (unsigned)uid);
    if (r == 0)
        r = write_map("/proc/self/uid_map", map, &why);
    snprintf(map, sizeof(map), "0 %u 1", (unsigned)gid);
    if (r == 0)
        r = write_map("/proc/self/gid_map", map, &why);
    return r ? refused(r, err) : 0;
}

pid_t namespace_fork(int clone_flags, int *ret_pidfd, struct err *err) {
    int pidfd = -1;
    unsigned long flags = (unsigned)clone_flags | CLONE_PIDFD | SIGCHLD;
    /* The third argument is where the pidfd goes, on every architecture. */
    long pid = syscall(SYS_clone, flags, 0, &pidfd, 0, 0);
    if (pid < 0)
        return refused(-errno, err);
    if (pid > 0)
        *ret_pidfd = pidfd;
    return (pid_t)pid;
}

void namespace_die_with_parent(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

static int try_all(struct err *err) {
    struct packet_port port;
    int r, ifindex, nl = -1;
    if ((r = mount_make_private(err)) || (r = mount_proc(err)) ||
        (r = nl = netlink_open_route(err)) < 0)
        return r;
    struct netlink_veth veth = {.name = "p0", .peer_name = "eth0", .peer_netns = -1};
    if ((r = netlink_add_veth(nl, &veth, &ifindex, err)) == 0 &&
        (r = netlink_link_up(nl, ifindex, err)) == 0)
        r = packet_port_open(&port, ifindex, PACKET_QUEUE_AUTO, err);
    return r;
}

/* Runs in a child; a new pid namespace begins with a child's child. */
static int check_in_child(struct err *err) {
    int pidfd, status, flags = CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS;
    int r = namespace_enter(err);
    if (r)
        return r;
    int out[2];
    if (pipe2(out, O_CLOEXEC) != 0)
        return err_set(err, -errno, "make a pipe");
    pid_t pid = namespace_fork(flags | CLONE_NEWIPC, &pidfd, err);
    if (pid < 0)
        return pid;
    if (pid == 0) {
        namespace_die_with_parent();
        struct err why = {0};
        r = try_all(&why);
        if (r && write(out[1], &why, sizeof(why)) != sizeof(why))
            _exit(2);
        _exit(r != 0);
    }
    close(out[1]);
    ssize_t n = read(out[0], err, sizeof(*err));
    waitpid(pid, &status, 0);
    if (n == (ssize_t)sizeof(*err))
        return err->code;
    return status ? err_say(err, -EIO, "the trial of namespaces died") : 0;
}

int namespace_check(struct err *err) {
    int out[2], status;
    struct err why = {0};
    if (pipe2(out, O_CLOEXEC) != 0)
        return err_set(err, -errno, "make a pipe");
    pid_t pid = fork();
    if (pid < 0)
        return err_set(err, -errno, "fork");
    if (pid == 0) {
        close(out[0]);
        bool failed = check_in_child(&why) != 0;
        if (failed && write(out[1], &why, sizeof(why)) != sizeof(why))
            _exit(2);
        _exit(failed);
    }
    close(out[1]);
    ssize_t n = read(out[0], &why, sizeof(why));
    close(out[0]);
    waitpid(pid, &status, 0);
    if (status == 0)
        return 0;
    if (n != (ssize_t)sizeof(why))
        return err_say(err, -ENOTSUP, "the trial of namespaces died");
    return err_say(err, -ENOTSUP, "nodes cannot be made on this host: %s", why.msg);
}

bool namespace_is_shared(pid_t pid, const char *kind) {
    char path[64];
    struct stat own, its;
    snprintf(path, sizeof(path), "/proc/self/ns/%.20s", kind);
    if (stat(path, &own) != 0)
        return false;
    snprintf(path, sizeof(path), "/proc/%d/ns/%.20s", (int)pid, kind);
    return stat(path, &its) == 0 && own.st_ino == its.st_ino && own.st_dev == its.st_dev;
}
