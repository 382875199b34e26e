/* The node helper's first work: namespaces, address, mounts and identity of its node. */
#include "harness/cluster/node_helper.h"

#include "base/mem.h"
#include "base/sys/file.h"
#include "base/sys/folder.h"
#include "base/sys/mount.h"
#include "base/sys/namespace.h"
#include "base/sys/netlink.h"
#include "faults/mechanism/disk/fuse_port.h"
#include "harness/cluster/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A list of strings in the caller's message. */
struct node_setup_names {
    const char **v;
    size_t n;
};

static struct node_setup_names names_of(const struct json *list) {
    struct node_setup_names names = {0};
    json_each(it, list) mem_push(names.v, names.n) = json_string(it, "");
    return names;
}

/* What every machine has to itself. Paths of the caller that lie below one of them are brought
 * back. */
static int cover_all(const struct node_setup_names *keep, struct err *err) {
    static const struct {
        const char *path;
        mode_t mode;
    } own[] = {{"/tmp", 01777}, {"/run", 0755}, {"/dev/shm", 01777}};
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
        int r = mount_cover(own[i].path, own[i].mode, keep->v, keep->n, err);
        if (r)
            return r;
    }
    return 0;
}

static int make_dirs(const struct node_setup_names *dirs, struct err *err) {
    for (size_t i = 0; i < dirs->n; i++) {
        int r = file_make_dirs(dirs->v[i], 0777, err);
        if (r)
            return r;
    }
    return 0;
}

/* A file of /etc becomes one of ours. Where it is a link it is the file behind it that is covered;
 * where the job of another node has made a link of ours, nothing is. */
static int cover_file(const char *covered, const char *with, struct err *err) {
    char path[PATH_MAX], source[64];
    struct folder root;
    if (!realpath(covered, path))
        return err_say(err, -ENOENT, "%s is missing on this host: touch %s", covered, covered);
    int r = folder_open(&root, "/", err);
    if (r)
        return r;
    FILE_CLOSE int found = folder_find(&root, *with ? with + 1 : "", err);
    folder_close(&root);
    if (found < 0)
        return found;
    snprintf(source, sizeof(source), "/proc/self/fd/%d", found);
    return mount_bind(source, path, err);
}

/* A file that a host may lack, or have as a link to what a node has for itself (/run): there it is
 * made anew in the node's own /run, else in a layer over /etc. */
static int own_file(const char *path, struct err *err) {
    char to[PATH_MAX];
    struct stat st;
    if (stat(path, &st) == 0)
        return 0;
    ssize_t n = readlink(path, to, sizeof(to) - 1);
    to[n > 0 ? n : 0] = '\0';
    const char *run = strstr(to, "run/");
    if (run && (run == to + 1 || (run > to && strncmp(to, "../", 3) == 0))) {
        char at[PATH_MAX];
        snprintf(at, sizeof(at), "/%s", run);
        return mount_place(at, false, err);
    }
    int r = mount_layer("/etc", err);
    if (r)
        return r;
    if (n > 0 && unlink(path) != 0)
        return err_set(err, -errno, "put another file in the place of %s", path);
    return mount_place(path, false, err);
}

/* The names of all nodes; where a fault is about names, those that a name server is asked for. */
static int cover_names(const struct json *setup, struct err *err) {
    const char *resolv = json_get_string(setup, "resolv", NULL);
    int r = 0;
    if (resolv) {
        r = own_file("/etc/resolv.conf", err);
        r = r ? r : own_file("/etc/nsswitch.conf", err);
        r = r ? r : cover_file("/etc/resolv.conf", resolv, err);
        r = r ? r : cover_file("/etc/nsswitch.conf", json_get_string(setup, "nsswitch", ""), err);
    }
    return r ? r : cover_file("/etc/hosts", json_get_string(setup, "hosts", ""), err);
}

/* IPv6 stays off on the card: nodes have IPv4 addresses, and its announcements would be counted as
 * traffic. A socket that died with unsent data gives up after a second, not after minutes: should
 * the harness be killed, the node's network must not outlive it. NCCL looks up speed and place of
 * a card in /sys by name, and there is a card of the same name on many hosts. All are wishes. */
static void tune_network(void) {
    netlink_refuse_ipv6();
    mount_sys_network("/run/.rankquake-sys", NULL);
    file_write("/proc/sys/net/ipv4/tcp_orphan_retries", "1", 1, NULL);
}

static int bring_up_loopback(struct err *err) {
    int lo;
    FILE_CLOSE int nl = netlink_open_route(err);
    if (nl < 0)
        return nl;
    int r = netlink_link_index(nl, "lo", &lo, err);
    if (r == 0)
        r = netlink_link_up(nl, lo, err);
    return r;
}

int node_disks_attach(const struct node_disks *d, struct err *err) {
    size_t i = 0;
    int r = 0;
    json_each(it, d->paths) {
        r = r || i == 2 ? r : fuse_port_attach(d->mounts[i], json_string(it, ""), err);
        i++;
    }
    return r;
}

static int setup_all(const struct json *setup, const struct node_setup_names *keep,
                     const struct node_setup_names *dirs, struct err *err) {
    const char *name = json_get_string(setup, "name", "node");
    const struct json *root = json_get(setup, "root");
    int r;
    if ((r = mount_make_private(err)) ||
        (r = root ? node_root_enter(root, err) : mount_proc(err)) || (r = cover_all(keep, err)) ||
        (r = root ? node_root_furnish(root, err) : 0) || (r = make_dirs(dirs, err)) ||
        (r = cover_names(setup, err)))
        return r;
    if (sethostname(name, strlen(name)) != 0)
        return err_set(err, -errno, "set the host name %s", name);
    if (chdir("/") != 0)
        return err_set(err, -errno, "go to /");
    tune_network();
    return bring_up_loopback(err);
}

static int seal_all(const struct json *setup, struct err *err) {
    const struct json *seal = json_get(setup, "seal");
    if (!seal)
        return 0;
    struct node_setup_names writable = names_of(json_get(seal, "writable"));
    int r = node_seal(seal, json_get(setup, "root") != NULL, writable.v, writable.n, err);
    free(writable.v);
    return r;
}

static int setup_node(const struct json *setup, const struct node_disks *disks, struct err *err) {
    int64_t monotonic_ns = json_get_i64(setup, "monotonic", 0),
            boottime_ns = json_get_i64(setup, "boottime", 0);
    struct node_setup_names keep = names_of(json_get(setup, "keep")),
                            dirs = names_of(json_get(setup, "dirs"));
    int r =
        monotonic_ns || boottime_ns ? namespace_shift_uptime(monotonic_ns, boottime_ns, err) : 0;
    r = r ? r : setup_all(setup, &keep, &dirs, err);
    r = r ? r : node_disks_attach(disks, err);
    if (r == 0)
        r = seal_all(setup, err);
    free(keep.v);
    free(dirs.v);
    return r;
}

static int setup_network(const struct json *net, struct err *err) {
    int eth0;
    FILE_CLOSE int nl = netlink_open_route(err);
    if (nl < 0)
        return nl;
    int r = netlink_link_index(nl, CLUSTER_CARD, &eth0, err);
    if (r == 0)
        r = netlink_add_address(nl, eth0, json_get_string(net, "addr", ""),
                                (int)json_get_i64(net, "prefix", 24), err);
    if (r == 0)
        r = netlink_link_up(nl, eth0, err);
    return r;
}

static int ready(int ret_fds[CHANNEL_FDS_MAX], size_t *ret_n, struct err *err) {
    size_t n = 0;
    int fd = node_listen(CLUSTER_EVENTS_PATH, err);
    if (fd >= 0) {
        ret_fds[n++] = fd;
        fd = netlink_open_diag(err);
    }
    if (fd >= 0) {
        ret_fds[n++] = fd;
        fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            fd = err_set(err, -errno, "open /proc/self/ns/net");
    }
    if (fd >= 0)
        ret_fds[n++] = fd;
    *ret_n = n;
    return fd < 0 ? fd : 0;
}

static void put_sockets(struct json_writer *w, uint16_t port) {
    sockets_put(w, port, NULL, NULL);
}

const struct habitat habitat_namespaces = {
    .name = "namespaces",
    .setup = setup_node,
    .ready = ready,
    .net = setup_network,
    .put_sockets = put_sockets,
    .put_leftovers = leftovers_of_namespaces,
};
