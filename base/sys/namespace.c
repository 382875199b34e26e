#include "base/sys/namespace.h"

#include "base/buf.h"
#include "base/sys/file.h"
#include "base/sys/mount.h"
#include "base/sys/netlink.h"
#include "base/sys/packet_port.h"

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
    FILE_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, -errno, "open %s", path);
    return write(fd, text, strlen(text)) < 0 ? err_set(err, -errno, "write %s", path) : 0;
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

/* inside: who the caller is there. */
static int enter_user(uid_t uid_inside, gid_t gid_inside, struct err *err) {
    char map[64];
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (unshare(CLONE_NEWUSER) != 0)
        return refused(-errno, err);
    /* Some hosts let the namespace be made and then forbid every use of it: seen here. */
    struct err why;
    int r = write_map("/proc/self/setgroups", "deny", &why);
    snprintf(map, sizeof(map), "%u %u 1", (unsigned)uid_inside, (unsigned)uid);
    if (r == 0)
        r = write_map("/proc/self/uid_map", map, &why);
    snprintf(map, sizeof(map), "%u %u 1", (unsigned)gid_inside, (unsigned)gid);
    if (r == 0)
        r = write_map("/proc/self/gid_map", map, &why);
    return r ? refused(r, err) : 0;
}

int namespace_enter(struct err *err) {
    return namespace_needs_no_user() ? 0 : enter_user(0, 0, err);
}

int namespace_enter_as_oneself(struct err *err) {
    return namespace_needs_no_user() ? 0 : enter_user(geteuid(), getegid(), err);
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

static int try_all(void *arg, struct err *err) {
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

/* A new pid namespace begins with a child's child. */
static int try_apart(void *arg, struct err *err) {
    const int flags = CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC;
    int r = namespace_enter(err);
    return r ? r : namespace_try(flags, try_all, NULL, err);
}

int namespace_try(int clone_flags, int (*fn)(void *arg, struct err *err), void *arg,
                  struct err *err) {
    int out[2], status = 0, pidfd = -1;
    struct err why = {0};
    if (pipe2(out, O_CLOEXEC) != 0)
        return err_set(err, -errno, "make a pipe");
    pid_t pid = clone_flags ? namespace_fork(clone_flags, &pidfd, err) : fork();
    if (pid == 0) {
        if (clone_flags)
            namespace_die_with_parent();
        int r = fn(arg, &why);
        if (r && write(out[1], &why, sizeof(why)) != sizeof(why))
            _exit(2);
        _exit(r != 0);
    }
    int code = pid < 0 && !clone_flags ? err_set(err, -errno, "fork") : pid;
    close(out[1]);
    ssize_t n = pid < 0 ? 0 : read(out[0], &why, sizeof(why));
    file_close(&out[0]);
    file_close(&pidfd);
    if (pid < 0)
        return code;
    waitpid(pid, &status, 0);
    if (n != (ssize_t)sizeof(why))
        return status ? err_say(err, -EIO, "it died while it was tried") : 0;
    *err = why;
    return why.code;
}

int namespace_check(struct err *err) {
    struct err why;
    if (namespace_try(0, try_apart, NULL, &why) == 0)
        return 0;
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

/* ---- uptimes, see time_namespaces(7) ---- */

static int put_offsets(int64_t monotonic_ns, int64_t boottime_ns, struct err *err) {
    const int64_t second = 1000000000, ns[] = {monotonic_ns, boottime_ns};
    BUF_FINI struct buf text = {0};
    for (int i = 0; i < 2; i++) {
        int64_t s = ns[i] / second - (ns[i] % second < 0);
        buf_printf(&text, "%s %lld %lld\n", i ? "boottime" : "monotonic", (long long)s,
                   (long long)(ns[i] - s * second));
    }
    FILE_CLOSE int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text.data, text.len) != (ssize_t)text.len)
        return err_set(err, -errno, "set the uptime of a time namespace");
    return 0;
}

int namespace_shift_uptime_below(int64_t monotonic_ns, int64_t boottime_ns, struct err *err) {
    if (unshare(CLONE_NEWTIME) != 0)
        return err_set(err, -errno, "make a time namespace (Linux 5.6, CONFIG_TIME_NS)");
    return put_offsets(monotonic_ns, boottime_ns, err);
}

/* The offsets are of the namespace in which children will be; it is joined once they are set. */
int namespace_shift_uptime(int64_t monotonic_ns, int64_t boottime_ns, struct err *err) {
    int r = namespace_shift_uptime_below(monotonic_ns, boottime_ns, err);
    if (r)
        return r;
    FILE_CLOSE int own = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
    if (own < 0 || setns(own, CLONE_NEWTIME) != 0)
        return err_set(err, -errno, "enter a time namespace");
    return 0;
}

bool namespace_uptime_of(pid_t pid, int64_t *ret_monotonic_ns, int64_t *ret_boottime_ns) {
    BUF_FINI struct buf text = {0};
    char path[64];
    long long s[2], ns[2];
    snprintf(path, sizeof(path), "/proc/%d/timens_offsets", (int)pid);
    if (file_read(path, 1000, &text, NULL) != 0 ||
        sscanf(buf_str(&text), "monotonic %lld %lld boottime %lld %lld", &s[0], &ns[0], &s[1],
               &ns[1]) != 4)
        return false;
    *ret_monotonic_ns = s[0] * 1000000000 + ns[0];
    *ret_boottime_ns = s[1] * 1000000000 + ns[1];
    return true;
}

static int try_uptime(void *arg, struct err *err) {
    int r = namespace_enter(err);
    return r ? r : namespace_shift_uptime(1000000000, 1000000000, err);
}

int namespace_check_uptime(struct err *err) {
    struct err why;
    if (namespace_try(0, try_uptime, NULL, &why) == 0)
        return 0;
    return err_say(err, -ENOTSUP,
                   "nodes cannot have uptimes of their own on this host: %s; it takes "
                   "CONFIG_TIME_NS, and of root CAP_SYS_TIME",
                   why.msg);
}

static int try_uptime_below(void *arg, struct err *err) {
    return namespace_shift_uptime_below(1000000000, 1000000000, err);
}

int namespace_check_uptime_below(struct err *err) {
    struct err why;
    if (namespace_try(0, try_uptime_below, NULL, &why) == 0)
        return 0;
    return err_say(err, -ENOTSUP,
                   "what is started here cannot have an uptime of its own: %s; it takes root, with "
                   "CAP_SYS_ADMIN and CAP_SYS_TIME, and CONFIG_TIME_NS",
                   why.msg);
}
