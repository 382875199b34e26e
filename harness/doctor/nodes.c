/* What nodes and the wire between them are made of. */
#include "harness/doctor/host_question.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/mount.h"
#include "base/sys/namespace.h"
#include "base/sys/netlink.h"
#include "base/sys/packet_port.h"
#include "faults/need.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- namespaces ---- */

/* The switches that distributions have for them, where this one has them. */
static void put_switches(struct buf *out) {
    static const char *const switches[] = {"kernel/unprivileged_userns_clone",
                                           "kernel/apparmor_restrict_unprivileged_userns",
                                           "user/max_user_namespaces", "user/max_net_namespaces"};
    for (size_t i = 0; i < sizeof(switches) / sizeof(*switches); i++) {
        long value = question_sysctl(switches[i]);
        if (value >= 0)
            buf_printf(out, "%s%s %ld", out->len ? ", " : "", strchr(switches[i], '/') + 1, value);
    }
}

/* The sentence names what is missing and the fix; the question has already said that it is about
 * nodes. */
static const char *fix_of(const struct err *err) {
    const char *colon = strstr(err->msg, "on this host: ");
    return colon ? colon + strlen("on this host: ") : err->msg;
}

static bool look_namespaces(struct question_result *r) {
    struct err err = {0};
    BUF_FINI struct buf switches = {0};
    put_switches(&switches);
    if (namespace_check(&err) == 0)
        question_works(r, "a node with a network card was made %s",
                       geteuid() == 0 ? "as root" : "as an ordinary user");
    else
        question_lacks(r, fix_of(&err), "no node can be made here (%.160s)", buf_str(&switches));
    return r->status == QUESTION_WORKS;
}

const struct host_question host_question_namespaces = {
    .name = "namespaces",
    .part = QUESTION_FOR_NAMESPACES,
    .gives = "nodes: processes, networks, mounts and host names of their own",
    .demo = true,
    .look = look_namespaces,
};

/* A folder of our own becomes its own layer, and something is written that must not stay. */
static int try_layer(struct err *err) {
    char dir[] = "/tmp/rankquake_XXXXXX", file[64];
    int r = namespace_enter(err);
    if (r == 0 && unshare(CLONE_NEWNS) != 0)
        r = err_set(err, -errno, "make a mount namespace");
    if (r || (r = mount_make_private(err)) || (r = file_make_temp_dir(dir, err)))
        return r;
    snprintf(file, sizeof(file), "%s/x", dir);
    r = mount_layer(dir, err);
    if (r == 0)
        r = file_write(file, "x", 1, err);
    mount_forget(dir, NULL); /* the overlay, then what it keeps its changes in */
    mount_forget(dir, NULL);
    if (rmdir(dir) != 0 && errno != ENOENT && r == 0)
        r = err_set(err, -errno, "leave %s as it was", dir);
    return r;
}

static bool look_rootfs(struct question_result *r) {
    struct err err = {0};
    if (try_layer(&err) == 0)
        return question_works(r, "a folder was used as a root file system and stayed as it was");
    return question_lacks(r, "modprobe overlay; without root Linux 5.11 or newer", "%.200s",
                          err.msg);
}

const struct host_question host_question_rootfs = {
    .name = "rootfs",
    .gives = "nodes with a root file system of their own, for another release of PyTorch",
    .look = look_rootfs,
};

/* Into a network of its own with a pair of cards; the index of one of them. */
static int enter_network(int *ret_ifindex, struct err *err) {
    int r = namespace_enter(err);
    if (r)
        return r;
    if (unshare(CLONE_NEWNET) != 0)
        return err_set(err, -errno, "make a network namespace");
    int nl = netlink_open_route(err);
    if (nl < 0)
        return nl;
    struct netlink_veth veth = {.name = "p0", .peer_name = "eth0", .peer_netns = -1};
    r = netlink_add_veth(nl, &veth, ret_ifindex, err);
    if (r == 0)
        r = netlink_link_up(nl, *ret_ifindex, err);
    int lo;
    if (r == 0 && netlink_link_index(nl, "lo", &lo, NULL) == 0)
        r = netlink_link_up(nl, lo, err);
    close(nl);
    return r;
}

static bool look_wire(struct question_result *r) {
    struct packet_port port;
    struct err err = {0};
    int ifindex;
    long queue = question_sysctl("net/core/rmem_max");
    if (enter_network(&ifindex, &err) != 0 ||
        packet_port_open(&port, ifindex, PACKET_QUEUE_AUTO, &err) != 0)
        return question_lacks(
            r, "as for namespaces; the kernel needs veth and AF_PACKET (modprobe veth)", "%.200s",
            err.msg);
    if (port.ring)
        return question_works(
            r, "frames of 64 KiB pass, through rings: net.core.rmem_max is %ld only", queue);
    return question_works(
        r, "frames of 64 KiB pass, with a queue in the socket (net.core.rmem_max %ld)", queue);
}

const struct host_question host_question_wire = {
    .name = "wire",
    .need = FAULT_NEEDS_WIRE | FAULT_NEEDS_NAMES, /* the name server is on the wire */
    .part = QUESTION_FOR_NAMESPACES,
    .gives = "the network between nodes (veth, AF_PACKET with virtio_net_hdr)",
    .demo = true,
    .look = look_wire,
};

static int listen_somewhere(void) {
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd >= 0 && bind(fd, (void *)&any, sizeof(any)) == 0 && listen(fd, 1) == 0 ? 0 : -errno;
}

static bool look_sockets(struct question_result *r) {
    struct err err = {0};
    int ifindex, diag = -1, code = enter_network(&ifindex, &err);
    if (code == 0 && (code = listen_somewhere()) == 0 &&
        (code = diag = netlink_open_diag(&err)) >= 0)
        code = netlink_destroy_sockets(diag, &err);
    if (code > 0)
        return question_works(r, "the sockets of a node can be destroyed");
    return question_lacks(
        r, code == -EOPNOTSUPP ? "a kernel with CONFIG_INET_DIAG_DESTROY" : "as for namespaces",
        "%.200s", err.code ? err.msg : "sockets cannot be destroyed");
}

const struct host_question host_question_sockets = {
    .name = "sockets",
    .part = QUESTION_FOR_NAMESPACES,
    .gives = "node-poweroff without traces: without it its sockets linger for seconds",
    .look = look_sockets,
};

/* ---- for faults to come ---- */

/* The folder of our own cgroup; "" when there is no cgroup v2. */
static void own_cgroup(char *ret, size_t size) {
    BUF_FINI struct buf mounts = {0}, own = {0};
    char mount[512] = "";
    *ret = '\0';
    file_read("/proc/self/mounts", 4 << 20, &mounts, NULL);
    char *save = NULL, *line = mounts.len ? strtok_r(mounts.data, "\n", &save) : NULL;
    for (; line && !*mount; line = strtok_r(NULL, "\n", &save)) {
        char path[512], type[64];
        if (sscanf(line, "%*s %511s %63s", path, type) == 2 && str_eq(type, "cgroup2"))
            str_copy(mount, sizeof(mount), path);
    }
    file_read("/proc/self/cgroup", 1 << 16, &own, NULL);
    const char *at = strstr(buf_str(&own), "0::/");
    if (*mount && at)
        snprintf(ret, size, "%s%.*s", mount, (int)strcspn(at + 3, "\n"), at + 3);
}

static bool look_cgroup(struct question_result *r) {
    static const char fix[] = "run as root with cgroup v2 mounted, or in a delegated scope: "
                              "systemd-run --user --scope -p Delegate=yes rankquake ...";
    char own[1200], dir[1300], path[1400];
    own_cgroup(own, sizeof(own));
    if (!*own)
        return question_lacks(r, fix, "no cgroup v2 is mounted");
    snprintf(dir, sizeof(dir), "%s/rankquake-doctor-%d", own, (int)getpid());
    if (mkdir(dir, 0755) != 0)
        return question_lacks(r, fix, "no group can be made in %.140s: %s", own, strerror(errno));
    snprintf(path, sizeof(path), "%s/cgroup.freeze", dir);
    bool freezes = file_write(path, "1", 1, NULL) == 0;
    snprintf(path, sizeof(path), "%s/cgroup.kill", dir);
    bool kills = access(path, W_OK) == 0;
    rmdir(dir);
    if (freezes && kills)
        return question_works(r, "a group was made, frozen and removed");
    return question_lacks(r, "Linux 5.14 or newer", "groups can%s be frozen and can%s be killed",
                          freezes ? "" : "not", kills ? "" : "not");
}

const struct host_question host_question_cgroup = {
    .name = "cgroup",
    .gives = "freezing whole nodes (no scenario needs it yet)",
    .look = look_cgroup,
};

/* As a run asks before it begins. */
static bool look_fuse(struct question_result *r) {
    struct err err = {0};
    if (fault_needs_check_namespaces(FAULT_NEEDS_DISK, &err) == 0)
        return question_works(r, "a disk of ours was mounted");
    return question_lacks(r, "modprobe fuse; in a container --device /dev/fuse", "%.200s", err.msg);
}

const struct host_question host_question_fuse = {
    .name = "fuse",
    .gives = "disks of ours: cluster.disk, faults on them, and crashpoints",
    .need = FAULT_NEEDS_DISK,
    .look = look_fuse,
};
